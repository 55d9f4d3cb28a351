//! The results of cases and their text form, and the form in which processes tell them.

use std::{fmt, time::Duration};

use halite_testing::Wrong;
use serde::{Deserialize, Serialize};

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "told")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// The device lacks what the case is about.
    Skip(String),
    /// It does not hold, or panicked.
    Fail(String),
    /// It gave a result, which is wrong.
    Wrong(Box<Wrong>),
    /// It did not end in time.
    Timeout(String),
    /// The process died that ran it.
    Crash(String),
}

impl Verdict {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Skip(_) => "skip",
            Verdict::Fail(_) | Verdict::Wrong(_) => "fail",
            Verdict::Timeout(_) => "timeout",
            Verdict::Crash(_) => "crash",
        }
    }

    /// Why it is not a pass.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Pass => None,
            Verdict::Wrong(wrong) => Some(&wrong.what),
            Verdict::Skip(reason)
            | Verdict::Fail(reason)
            | Verdict::Timeout(reason)
            | Verdict::Crash(reason) => Some(reason),
        }
    }

    /// Whether it is neither a pass nor a skip.
    pub fn failed(&self) -> bool {
        !matches!(self, Verdict::Pass | Verdict::Skip(_))
    }
}

/// One case's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the case.
    pub case: String,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How long it took.
    #[serde(with = "seconds", rename = "seconds")]
    pub time: Duration,
}

/// Durations as seconds, to the microsecond.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e6)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:4} {}", self.verdict.name(), self.case)?;
        match self.verdict.reason() {
            None => write!(f, " ({:.1} ms)", self.time.as_secs_f64() * 1e3),
            Some(reason) => write!(f, ": {reason}"),
        }
    }
}

/// All results of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// In the order of the cases.
    pub reports: Vec<Report>,
}

impl Summary {
    /// (passed, skipped, failed).
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |is: fn(&Verdict) -> bool| self.reports.iter().filter(|r| is(&r.verdict)).count();
        (count(|v| *v == Verdict::Pass), count(|v| matches!(v, Verdict::Skip(_))), count(Verdict::failed))
    }

    /// Reports of cases that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Report> {
        self.reports.iter().filter(|r| r.verdict.failed())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, skipped, failed) = self.counts();
        let time: Duration = self.reports.iter().map(|r| r.time).sum();
        write!(
            f,
            "{} cases in {:.1} s: {passed} passed, {skipped} skipped, {failed} failed",
            self.reports.len(),
            time.as_secs_f64()
        )
    }
}
