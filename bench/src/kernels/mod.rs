//! Measures the variants of the kernel library beside what the device can do at most, and beside the original's code.

mod against;
mod bench;
mod ceilings;
mod check;
mod choice;
mod defaults;
mod original;
mod random;
mod report;
mod result;
mod timing;
mod tune;

pub use bench::{Bench, Caches, Options};
pub use ceilings::{Ceilings, CopySpeed};
pub use check::Reference;
pub use choice::{Chosen, share};
pub use defaults::{Size, defaults};
pub use original::Compiler;
pub use random::{NAMES, Shapes};
pub use report::{heading, json, text};
pub use result::{Against, Measured, Report, Row};
pub use timing::{Clock, Pace, Recorded, Side, Stopwatch, Timing, measure, measure_job};
pub use tune::{Subject, measurements, rows};
