//! What came of the cases, and the table of it.

use std::{collections::BTreeMap, fmt};

use serde_json::{Value, json};

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All outputs are as expected.
    Passed,
    /// The compiler says that it does not support something, and what.
    Unsupported(String),
    /// Not what the case expects, which ONNX has corrected since; and what was corrected.
    Superseded(&'static str),
    /// A wrong result, or an error that should not be.
    Failed(String),
}

/// The outcomes of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Name and outcome of each case.
    pub outcomes: Vec<(String, Outcome)>,
}

impl Summary {
    fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.outcomes.iter().filter(|(_, outcome)| is(outcome)).count()
    }

    /// Number of cases that passed.
    pub fn passed(&self) -> usize {
        self.count(|outcome| *outcome == Outcome::Passed)
    }

    /// Number of cases that failed.
    pub fn failed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    /// Number of cases that expect what ONNX has corrected since.
    pub fn superseded(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Superseded(_)))
    }

    /// Reasons for which cases are not supported, and the cases of each.
    pub fn reasons(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, outcome) in &self.outcomes {
            if let Outcome::Unsupported(reason) = outcome {
                reasons.entry(reason).or_default().push(name);
            }
        }
        reasons
    }

    /// Everything as JSON.
    pub fn json(&self, device: &str) -> Value {
        let case = |(name, outcome): &(String, Outcome)| match outcome {
            Outcome::Passed => json!({ "case": name, "outcome": "passed" }),
            Outcome::Unsupported(why) => json!({ "case": name, "outcome": "unsupported", "reason": why }),
            Outcome::Superseded(why) => json!({ "case": name, "outcome": "superseded", "reason": why }),
            Outcome::Failed(why) => json!({ "case": name, "outcome": "failed", "reason": why }),
        };
        let cases: Vec<Value> = self.outcomes.iter().map(case).collect();
        json!({ "device": device, "passed": self.passed(), "failed": self.failed(), "cases": cases })
    }
}

impl fmt::Display for Summary {
    /// The table of what is not supported, and the counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: Vec<_> = self.reasons().into_iter().collect();
        reasons.sort_by_key(|(reason, cases)| (std::cmp::Reverse(cases.len()), *reason));
        for (reason, cases) in reasons {
            writeln!(f, "{:5}  {reason}", cases.len())?;
        }
        let (all, passed, failed) = (self.outcomes.len(), self.passed(), self.failed());
        let superseded = self.superseded();
        let share = 100.0 * passed as f64 / all.max(1) as f64;
        write!(
            f,
            "{all} cases: {passed} passed ({share:.1} %), {} not supported, {superseded} superseded, {failed} failed",
            all - passed - superseded - failed
        )
    }
}
