//! Owns what is expected not to pass on a device, and why. Does not own: running anything.
//!
//! One text file per device in `conformance/expectations/`: lines of `set/name | kind | reason`, `#` for comments.
//! `unsupported` cases must be refused with an error (wrong numbers are a failure); `xfail` cases may fail in any way.
//! Either kind that passes is a failure too: the line has to go.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::replay::Verdict;

/// What a line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The device or the module lacks something; Halite has to say so.
    Unsupported,
    /// A known fault that is not Halite's to mend, such as a miscompiled module.
    ExpectedFail,
}

/// Expectations of one device.
#[derive(Clone, Debug, Default)]
pub struct Expectations(BTreeMap<String, (Kind, String)>);

impl Expectations {
    /// Reads the file for a device whose name contains `HEAD` of `HEAD.txt`, ignoring case; none is fine.
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
    pub fn parse(text: &str) -> Result<Self> {
        let mut map = BTreeMap::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let parts: Vec<_> = line.split('|').map(str::trim).collect();
            let [case, kind, reason] = parts[..] else {
                bail!("line {}: expected `case | kind | reason`", n + 1);
            };
            let kind = match kind {
                "unsupported" => Kind::Unsupported,
                "xfail" => Kind::ExpectedFail,
                other => bail!("line {}: unknown kind '{other}'; write unsupported or xfail", n + 1),
            };
            map.insert(case.to_owned(), (kind, reason.to_owned()));
        }
        Ok(Expectations(map))
    }

    /// What is wrong with the verdicts of a program, if anything.
    pub fn complaint(&self, program: &str, verdicts: &[Verdict]) -> Option<String> {
        let failed = verdicts.iter().find(|v| !v.passed());
        match (self.0.get(program), failed) {
            (None, None) => None,
            (None, Some(verdict)) => Some(verdict.to_string()),
            (Some((_, reason)), None) => Some(format!("passes, although it is expected not to: {reason}")),
            (Some((Kind::ExpectedFail, _)), Some(_)) => None,
            (Some((Kind::Unsupported, _)), Some(Verdict::Error(_))) => None,
            (Some((Kind::Unsupported, reason)), Some(verdict)) => {
                Some(format!("is not refused although it is unsupported ({reason}): {verdict}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_numbers_are_never_fine_for_unsupported_cases() {
        let e =
            Expectations::parse("# c\nsmall/a | unsupported | no f64\nsmall/b | xfail | compiler\n").unwrap();
        let (pass, wrong, error) =
            (Verdict::Pass, Verdict::Mismatch("x".into()), Verdict::Error("needs shaderFloat64".into()));
        assert!(e.complaint("small/a", std::slice::from_ref(&error)).is_none());
        assert!(e.complaint("small/a", std::slice::from_ref(&wrong)).is_some());
        assert!(e.complaint("small/a", std::slice::from_ref(&pass)).is_some());
        assert!(e.complaint("small/b", std::slice::from_ref(&wrong)).is_none());
        assert!(e.complaint("small/b", std::slice::from_ref(&pass)).is_some());
        assert!(e.complaint("small/c", &[pass, error]).is_some());
        assert!(Expectations::parse("small/a | maybe | x").is_err());
        assert!(Expectations::parse("small/a").is_err());
    }
}
