//! What is expected not to pass on a device, and why.
//!
//! One text file per device in `conformance/expectations/`: lines of `case | kind | reason` or `case | kind | reason | link`,
//! `#` for comments; `*` in a name is any text. `unsupported` cases must be refused with an error (wrong numbers, crashes and
//! hangs are failures); `xfail` cases may fail in any way. Either kind that passes is a failure too: the line has to go.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::{replay, reports::Status, run::Pattern, suites::Verdict};

/// The files of this repository, by the name of the device that they are for.
const BUILT_IN: [(&str, &str); 4] = [
    ("llvmpipe", include_str!("../expectations/llvmpipe.txt")),
    ("local", include_str!("../expectations/local.txt")),
    ("nvidia", include_str!("../expectations/nvidia.txt")),
    ("swiftshader", include_str!("../expectations/swiftshader.txt")),
];

/// What a line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The device or the module lacks something; Halite has to say so.
    Unsupported,
    /// A known fault, such as a miscompiled module or a driver's.
    ExpectedFail,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The cases that it is about.
    pub pattern: Pattern,
    /// What it asks for.
    pub kind: Kind,
    /// Why.
    pub reason: String,
    /// Where more is told.
    pub link: Option<String>,
}

/// Expectations of one device.
#[derive(Clone, Debug, Default)]
pub struct Expectations(Vec<Line>);

impl Expectations {
    /// Those of this repository for a device whose name contains a file's name, ignoring case; none is fine.
    ///
    /// # Errors
    /// A file is malformed.
    pub fn built_in(device_name: &str) -> Result<Self> {
        let device = device_name.to_lowercase();
        let file = BUILT_IN.iter().find(|(head, _)| device.contains(head));
        file.map_or_else(|| Ok(Self::default()), |(_, text)| Self::parse(text))
    }

    /// Reads the file for a device whose name contains `HEAD` of `HEAD.txt`, ignoring case; none is fine.
    ///
    /// # Errors
    /// The folder or the file cannot be read, or the file is malformed.
    pub fn for_device(folder: &Path, device_name: &str) -> Result<Self> {
        let device = device_name.to_lowercase();
        let entries = folder.read_dir().with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let head = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            if device.contains(&head) {
                let text = std::fs::read_to_string(&path)?;
                return Self::parse(&text).with_context(|| format!("in {}", path.display()));
            }
        }
        Ok(Self::default())
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// A line is malformed.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let parts: Vec<_> = line.split(" | ").map(str::trim).collect();
            let (case, kind, reason, link) = match parts[..] {
                [case, kind, reason] => (case, kind, reason, None),
                [case, kind, reason, link] => (case, kind, reason, Some(link.to_owned())),
                _ => {
                    bail!("line {}: expected `case | kind | reason` or `case | kind | reason | link`", n + 1)
                }
            };
            let kind = match kind {
                "unsupported" => Kind::Unsupported,
                "xfail" => Kind::ExpectedFail,
                other => bail!("line {}: unknown kind '{other}'; write unsupported or xfail", n + 1),
            };
            let pattern = Pattern::whole(case);
            lines.push(Line { pattern, kind, reason: reason.to_owned(), link });
        }
        Ok(Expectations(lines))
    }

    /// The line for a case: one that names it, or else the first whose pattern fits.
    pub fn line(&self, case: &str) -> Option<&Line> {
        let fits = || self.0.iter().filter(|line| line.pattern.fits(case));
        fits().find(|line| line.pattern.is_name()).or_else(|| fits().next())
    }

    /// Lines that are about none of these cases, although they are about a suite that these are of.
    pub fn unused<'a>(&'a self, suites: &[&str], cases: &[&str]) -> Vec<&'a Line> {
        let of_suite = |line: &Line| {
            let head = line.pattern.head();
            suites.iter().any(|suite| head.strip_prefix(suite).is_some_and(|rest| rest.starts_with('.')))
        };
        let unused = |line: &&Line| of_suite(line) && !cases.iter().any(|case| line.pattern.fits(case));
        self.0.iter().filter(unused).collect()
    }

    /// What a verdict means where this line, if any, is about its case.
    pub fn judge(line: Option<&Line>, verdict: &Verdict) -> Status {
        match (verdict, line.map(|line| line.kind)) {
            (Verdict::Skip(_), _) => Status::Skip,
            (Verdict::Pass, None) => Status::Pass,
            (Verdict::Pass, Some(_)) => Status::SurprisePass,
            (_, Some(Kind::ExpectedFail)) | (Verdict::Fail(_), Some(Kind::Unsupported)) => {
                Status::ExpectedFail
            }
            (Verdict::Fail(_) | Verdict::Wrong(_), _) => Status::Fail,
            (Verdict::Timeout(_), _) => Status::Timeout,
            (Verdict::Crash(_), _) => Status::Crash,
        }
    }

    /// What is wrong with the verdicts of a program, if anything.
    pub fn complaint(&self, program: &str, verdicts: &[replay::Verdict]) -> Option<String> {
        let line = self.line(&replay::case_name(program));
        let failed = verdicts.iter().find(|v| !v.passed());
        let verdict = failed.map_or(Verdict::Pass, replay::Verdict::of_case);
        let reason = line.map_or("", |line| line.reason.as_str());
        match (Self::judge(line, &verdict), failed) {
            (Status::SurprisePass, _) => Some(format!("passes, although it is expected not to: {reason}")),
            (Status::Fail, Some(verdict)) if line.is_some() => {
                Some(format!("is not refused although it is unsupported ({reason}): {verdict}"))
            }
            (Status::Fail, Some(verdict)) => Some(verdict.to_string()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_testing::Wrong;

    use super::*;

    #[test]
    fn wrong_numbers_are_never_fine_for_unsupported_cases() {
        let text = "# c\nmodules.small.a | unsupported | no f64\nmodules.small.b | xfail | compiler | https://example.org/1\n";
        let e = Expectations::parse(text).unwrap();
        let (pass, wrong, error) = (
            replay::Verdict::Pass,
            replay::Verdict::Mismatch(Wrong::words("x")),
            replay::Verdict::Error("needs shaderFloat64".into()),
        );
        assert!(e.complaint("small/a", std::slice::from_ref(&error)).is_none());
        assert!(e.complaint("small/a", std::slice::from_ref(&wrong)).is_some());
        assert!(e.complaint("small/a", std::slice::from_ref(&pass)).is_some());
        assert!(e.complaint("small/b", std::slice::from_ref(&wrong)).is_none());
        assert!(e.complaint("small/b", std::slice::from_ref(&pass)).is_some());
        assert!(e.complaint("small/c", &[pass, error]).is_some());
        assert!(Expectations::parse("small/a | maybe | x").is_err());
        assert!(Expectations::parse("small/a").is_err());
        assert_eq!(e.line("modules.small.b").unwrap().link.as_deref(), Some("https://example.org/1"));
    }

    #[test]
    fn every_verdict_is_judged_in_both_directions() {
        let lines = Expectations::parse("a.* | xfail | known\na.b | unsupported | lacks\n").unwrap();
        assert_eq!(lines.line("a.b").unwrap().kind, Kind::Unsupported);
        assert_eq!(lines.line("a.c").unwrap().kind, Kind::ExpectedFail);
        assert!(lines.line("b.a").is_none());
        let text = || "x".to_owned();
        let judged = |verdict: &Verdict| {
            [None, lines.line("a.b"), lines.line("a.c")].map(|line| Expectations::judge(line, verdict))
        };
        use Status::{Crash, ExpectedFail, Fail, Pass, Skip, SurprisePass, Timeout};
        assert_eq!(judged(&Verdict::Pass), [Pass, SurprisePass, SurprisePass]);
        assert_eq!(judged(&Verdict::Skip(text())), [Skip, Skip, Skip]);
        assert_eq!(judged(&Verdict::Fail(text())), [Fail, ExpectedFail, ExpectedFail]);
        assert_eq!(judged(&Verdict::Wrong(Wrong::words("x"))), [Fail, Fail, ExpectedFail]);
        assert_eq!(judged(&Verdict::Crash(text())), [Crash, Crash, ExpectedFail]);
        assert_eq!(judged(&Verdict::Timeout(text())), [Timeout, Timeout, ExpectedFail]);
        let unused = lines.unused(&["a"], &["a.c"]);
        assert_eq!(unused.len(), 1);
        assert!(lines.unused(&["b"], &[]).is_empty());
    }

    #[test]
    fn all_files_are_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("expectations");
        let mut stems: Vec<_> = folder
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        stems.sort();
        assert_eq!(stems, BUILT_IN.map(|(name, _)| name));
        for name in &stems {
            assert!(!Expectations::built_in(&format!("vulkan {name} 1.0")).unwrap().0.is_empty());
        }
    }
}
