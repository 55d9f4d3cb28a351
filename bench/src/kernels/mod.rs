//! Measures the variants of the kernel library beside what the device can do at most, and beside the original's code.

mod against;
mod bench;
mod ceilings;
mod check;
mod choice;
mod defaults;
mod fit;
mod hints;
mod options;
mod original;
mod pipelines;
mod random;
mod report;
mod result;
mod shape;
mod timing;
mod tune;

pub use bench::Bench;
pub use ceilings::{Ceilings, CopySpeed};
pub use check::Reference;
pub use choice::{Chosen, Summary, share};
pub use defaults::{Size, defaults};
pub use fit::{Data, Fit, FitError, Fitted, Quality};
pub use options::{Caches, Options, cores};
pub use original::Compiler;
pub use random::{HALVES, NAMES, Shapes};
pub use report::{heading, json, text};
pub use result::{Against, Details, Measured, Report, Row};
pub use timing::{
    Clock, Pace, Patience, Recorded, Side, Stopwatch, Timing, measure, measure_job, measure_one,
};
pub use tune::{Subject, measurements, rows};
