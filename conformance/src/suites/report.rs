//! Owns the results of cases and their text and JSON forms. Does not own: running cases.

use std::{fmt, time::Duration};

use halite_hal::DeviceInfo;
use serde_json::{Value as Json, json};

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Pass,
    /// The device lacks what the case is about.
    Skip(String),
    /// It does not hold, panicked, or did not end in time.
    Fail(String),
}

impl Verdict {
    fn name(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Skip(_) => "skip",
            Verdict::Fail(_) => "fail",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Pass => None,
            Verdict::Skip(reason) | Verdict::Fail(reason) => Some(reason),
        }
    }
}

/// One case's result.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the case.
    pub case: String,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took.
    pub time: Duration,
}

impl Report {
    fn json(&self) -> Json {
        let mut row = json!({
            "case": self.case,
            "verdict": self.verdict.name(),
            "seconds": (self.time.as_secs_f64() * 1e6).round() / 1e6,
        });
        if let Some(reason) = self.verdict.reason() {
            row["reason"] = reason.into();
        }
        row
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
        let count = |name| self.reports.iter().filter(|r| r.verdict.name() == name).count();
        (count("pass"), count("skip"), count("fail"))
    }

    /// Reports of cases that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Report> {
        self.reports.iter().filter(|r| matches!(r.verdict, Verdict::Fail(_)))
    }

    /// Machine-readable form: `{"device": …, "passed": …, "skipped": …, "failed": …, "cases": […]}`.
    pub fn json(&self, device: &DeviceInfo) -> Json {
        let (passed, skipped, failed) = self.counts();
        json!({
            "device": {"uri": device.uri(), "name": device.name, "driver": device.driver},
            "passed": passed, "skipped": skipped, "failed": failed,
            "cases": self.reports.iter().map(Report::json).collect::<Vec<_>>(),
        })
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
