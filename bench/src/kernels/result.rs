//! What comes out of measuring.

use halite_ops::{Operation, Work};
use halite_shaders::{Candidate, Probe, Variant};
use halite_targets::Capabilities;

use super::{ceilings::CopySpeed, timing::Timing};

/// A variant that was timed.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Seconds.
    pub timing: Timing,
    /// What its results were compared with and agree with.
    pub checked: String,
}

/// How a variant computes an operation.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// The variant; `None` in tests alone.
    pub variant: Option<&'static Variant>,
    /// How many dispatches it takes.
    pub dispatches: usize,
    /// In how many parts sums are, where they are cut.
    pub cut: Option<u64>,
    /// Microseconds that the cost model says.
    pub estimate: Option<f64>,
}

impl Details {
    /// Those of a candidate that can run.
    pub fn of(candidate: &Candidate, operation: &Operation, target: &Capabilities) -> Details {
        let plan = candidate.plan();
        let most = candidate.variant.params.get("parts").unwrap_or(1);
        let results: u64 = operation.outputs().first().map_or(0, |tensor| tensor.elements().exact());
        // Parts are sums of 32 bits, one behind the other.
        let scratch = plan.and_then(|plan| plan.scratch.last()).filter(|_| most > 1);
        Details {
            variant: Some(candidate.variant),
            dispatches: plan.map_or(0, |plan| plan.steps.len()),
            cut: scratch.map(|bytes| bytes.exact() / (4 * results.max(1))).filter(|parts| *parts > 1),
            estimate: candidate.estimate(operation, target),
        }
    }
}

/// A variant that can run.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub variant: &'static str,
    /// Its place in the choice; 1 is what would be used.
    pub place: usize,
    /// How it works, and what it is estimated to take.
    pub details: Details,
    /// What was measured, or why nothing was: a wrong result, an error of the driver.
    pub outcome: Result<Measured, String>,
}

/// The variants of an operation.
#[derive(Clone, Debug)]
pub struct Report {
    /// The operation.
    pub operation: Operation,
    /// What it costs at least.
    pub work: Work,
    /// Those that can run, in the order of choice.
    pub rows: Vec<Row>,
    /// Whether all that can run and were asked for are there: the time may have been over before.
    pub complete: bool,
    /// Those of the same types that cannot, and why.
    pub ruled_out: Vec<(&'static str, String)>,
    /// Sets of buffers that runs took turns on.
    pub sets: u32,
    /// The copy that the same caches help as much.
    pub copy: CopySpeed,
    /// The ceiling of arithmetic.
    pub peak: Option<(Probe, f64)>,
    /// The original's code in turns with variants, or why there is none; `None` when it was not asked for.
    pub against: Option<Result<Against, String>>,
}

impl Report {
    /// Whether any variant failed or was wrong.
    pub fn failed(&self) -> bool {
        self.rows.iter().any(|row| row.outcome.is_err())
    }
}

/// How long the original's code and variants took in turns.
#[derive(Clone, Debug)]
pub struct Against {
    /// Seconds of one run of the original's code.
    pub original: Timing,
    /// What its results were compared with and agree with, or how they differ.
    pub checked: Result<String, String>,
    /// The variants that it took turns with: the first choice, and the fastest.
    pub ours: Vec<(&'static str, Timing)>,
}

impl Against {
    /// How many times as long as a variant the original's code takes.
    pub fn ratio(&self, variant: &str) -> Option<f64> {
        let (_, ours) = self.ours.iter().find(|(name, _)| *name == variant)?;
        (ours.median > 0.0).then(|| self.original.median / ours.median)
    }
}
