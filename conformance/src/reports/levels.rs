//! The levels of devices: lists of cases that must pass.
//!
//! A level is a text file in `conformance/levels/`, `#` for comments, a rule in each line:
//!
//! | rule | means |
//! |---|---|
//! | `all PATTERN [TAG…]` | every case whose name fits passes |
//! | `some PATTERN [TAG…]` | at least one of them passes, and none fails; the others may be skipped |
//! | `except PATTERN [TAG…]` | no rule is about these |
//!
//! In a pattern `*` is any text. With tags a case must have all of them, and none that is written as `!tag`.

use serde::{Deserialize, Serialize};

use super::{CaseReport, Status};
use crate::run::Pattern;

/// The files of this repository, from the least level up.
const BUILT_IN: [(&str, &str); 4] = [
    ("baseline", include_str!("../../levels/baseline.txt")),
    ("fp16", include_str!("../../levels/fp16.txt")),
    ("int8", include_str!("../../levels/int8.txt")),
    ("coopmat", include_str!("../../levels/coopmat.txt")),
];

/// What a rule asks of the cases that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    All,
    Some,
    Except,
}

#[derive(Clone, Debug)]
struct Rule {
    demand: Demand,
    text: String,
    pattern: Pattern,
    tags: Vec<String>,
    without: Vec<String>,
}

impl Rule {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let demand = match words.next() {
            Some("all") => Demand::All,
            Some("some") => Demand::Some,
            Some("except") => Demand::Except,
            _ => return Err(format!("'{line}' does not begin with all, some or except")),
        };
        let pattern = Pattern::whole(words.next().ok_or_else(|| format!("'{line}' has no pattern"))?);
        let (mut tags, mut without) = (Vec::new(), Vec::new());
        for word in words {
            match word.strip_prefix('!') {
                Some(tag) => without.push(tag.to_owned()),
                None => tags.push(word.to_owned()),
            }
        }
        Ok(Rule { demand, text: line.to_owned(), pattern, tags, without })
    }

    fn is_about(&self, name: &str, tags: &[&str]) -> bool {
        let has = |tag: &String| tags.contains(&tag.as_str());
        self.tags.iter().all(has) && !self.without.iter().any(has) && self.pattern.fits(name)
    }
}

/// A level.
#[derive(Clone, Debug)]
pub struct Level {
    name: String,
    rules: Vec<Rule>,
}

/// Whether a device holds a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holding {
    /// Every rule holds.
    Holds,
    /// A rule does not hold.
    Lacks,
    /// Cases that rules are about were not run, and what was run holds.
    Unknown,
}

/// What came of a level on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelReport {
    /// The level.
    pub name: String,
    /// Whether the device holds it.
    pub holding: Holding,
    /// Cases that it is about, of all that the suites have for the device.
    pub cases: usize,
    /// Cases of these that passed.
    pub passed: usize,
    /// Why the device does not hold it, or why that is not known: at most a few lines.
    pub why: Vec<String>,
}

/// Most lines of [`LevelReport::why`].
const MOST: usize = 8;

impl Level {
    /// The levels of this repository, from the least up.
    pub fn built_in() -> Vec<Level> {
        let level = |(name, text): (&str, &str)| {
            Level::parse(name, text).expect("a test parses the files that are built in")
        };
        BUILT_IN.into_iter().map(level).collect()
    }

    /// Parses the text of a file; the error names the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(Level { name: name.to_owned(), rules: lines.map(Rule::parse).collect::<Result<_, _>>()? })
    }

    /// Judges a device by its cases. `suites` are those that were asked for, `offered` all names and tags that they have for
    /// it.
    pub fn judge(&self, suites: &[&str], offered: &[(&str, &[&str])], cases: &[CaseReport]) -> LevelReport {
        let of = |demand| self.rules.iter().filter(move |rule| rule.demand == demand);
        let excepted = |name: &str, tags: &[&str]| of(Demand::Except).any(|rule| rule.is_about(name, tags));
        let (mut names, mut passed, mut why, mut unknown) = (0, 0, Vec::new(), Vec::new());
        for rule in self.rules.iter().filter(|rule| rule.demand != Demand::Except) {
            let about = |name: &str, tags: &[&str]| rule.is_about(name, tags) && !excepted(name, tags);
            let expected = offered.iter().filter(|(name, tags)| about(name, tags)).count();
            let ran: Vec<&CaseReport> = cases
                .iter()
                .filter(|case| {
                    let tags: Vec<&str> = case.tags.iter().map(String::as_str).collect();
                    about(&case.name, &tags)
                })
                .collect();
            let count = |status| ran.iter().filter(|case| case.status == status).count();
            names += expected;
            passed += count(Status::Pass);
            let skips_count = rule.demand == Demand::All;
            let against = |case: &&&CaseReport| match case.status {
                Status::Pass | Status::SurprisePass => false,
                Status::Skip => skips_count,
                Status::ExpectedFail | Status::Fail | Status::Crash | Status::Timeout => true,
            };
            let suite = rule.pattern.head().split('.').next().unwrap_or_default();
            if !suites.contains(&suite) {
                unknown.push(format!("{}: the suite was not run", rule.text));
                continue;
            }
            if expected == 0 {
                why.push(format!("{}: there are no such cases for this device", rule.text));
                continue;
            }
            let lacking: Vec<_> = ran.iter().filter(against).collect();
            if let Some(first) = lacking.first() {
                let reason = first.reason.as_deref().unwrap_or_default();
                let text = format!("{} ({reason})", first.name);
                why.push(format!(
                    "{}: {} of {expected} do not pass, such as {text}",
                    rule.text,
                    lacking.len()
                ));
            } else if ran.len() < expected {
                unknown.push(format!("{}: {} of {expected} were run", rule.text, ran.len()));
            } else if count(Status::Pass) + count(Status::SurprisePass) == 0 {
                why.push(format!("{}: all {expected} are skipped", rule.text));
            }
        }
        let holding = match (why.is_empty(), unknown.is_empty()) {
            (false, _) => Holding::Lacks,
            (true, false) => Holding::Unknown,
            (true, true) => Holding::Holds,
        };
        why.extend(unknown);
        why.truncate(MOST);
        LevelReport { name: self.name.clone(), holding, cases: names, passed, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, status: Status, tags: &[&str]) -> CaseReport {
        CaseReport {
            name: name.to_owned(),
            status,
            seconds: 0.0,
            tags: tags.iter().map(|t| (*t).to_owned()).collect(),
            reason: (status != Status::Pass).then(|| "why".to_owned()),
            numbers: None,
            expected: None,
        }
    }

    const OFFERED: [(&str, &[&str]); 4] =
        [("k.a", &["f16"]), ("k.b", &["f16", "sized"]), ("k.c", &[]), ("h.a", &[])];

    const SUITES: [&str; 3] = ["k", "h", "m"];

    #[test]
    fn rules_count_passes_skips_and_what_was_not_run() {
        let level = Level::parse("x", "all k.* f16 !sized\nsome h.*\n").unwrap();
        let judge = |cases: &[CaseReport]| level.judge(&SUITES, &OFFERED, cases);
        let (a, h) = (case("k.a", Status::Pass, &["f16"]), case("h.a", Status::Pass, &[]));
        let b = case("k.b", Status::Fail, &["f16", "sized"]);
        let good = judge(&[a.clone(), b, h.clone()]);
        assert_eq!((good.holding, good.cases, good.passed), (Holding::Holds, 2, 2), "{good:?}");
        assert_eq!(judge(std::slice::from_ref(&a)).holding, Holding::Unknown);
        for status in [Status::Skip, Status::Fail, Status::ExpectedFail, Status::Timeout] {
            let lacks = judge(&[case("k.a", status, &["f16"]), h.clone()]);
            assert_eq!(lacks.holding, Holding::Lacks);
            assert!(lacks.why[0].starts_with("all k.* f16 !sized: 1 of 1 do not pass, such as k.a (why)"));
        }
        let skipped = judge(&[a.clone(), case("h.a", Status::Skip, &[])]);
        assert_eq!(skipped.why, ["some h.*: all 1 are skipped"]);
        let none = Level::parse("x", "all m.*").unwrap().judge(&SUITES, &OFFERED, &[a]);
        assert_eq!(none.holding, Holding::Lacks);
        let elsewhere = Level::parse("x", "all n.*").unwrap().judge(&SUITES, &OFFERED, &[]);
        assert_eq!(elsewhere.holding, Holding::Unknown);
        let except = Level::parse("x", "all k.*\nexcept k.b\nexcept k.c").unwrap();
        assert_eq!(
            except.judge(&SUITES, &OFFERED, &[case("k.a", Status::Pass, &["f16"])]).holding,
            Holding::Holds
        );
        assert!(Level::parse("x", "every k.*").is_err() && Level::parse("x", "all").is_err());
    }

    #[test]
    fn the_files_are_well_formed() {
        assert!(Level::built_in().iter().all(|level| !level.rules.is_empty()));
    }
}
