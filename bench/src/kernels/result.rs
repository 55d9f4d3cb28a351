//! What comes out of measuring.

use halite_ops::{Operation, Work};
use halite_shaders::Probe;

use super::{ceilings::CopySpeed, timing::Timing};

/// A variant that was timed.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Seconds.
    pub timing: Timing,
    /// What its results were compared with and agree with.
    pub checked: String,
}

/// A variant that can run.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub variant: &'static str,
    /// Its place in the choice; 1 is what would be used.
    pub place: usize,
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
