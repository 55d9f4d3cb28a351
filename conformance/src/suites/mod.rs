//! Suites of cases that every device should pass, and what runs them.
//!
//! A case is a function over an open device. It knows nothing of the driver behind it, nor of how that was linked, so
//! the same cases hold for a driver in this process, one in a library, and one on another machine.

mod case;
pub mod hal;
pub mod kernels;
pub mod models;
pub mod modules;
mod report;
mod runner;
mod suite;
pub mod vm;

pub use case::{Case, Cases, Context, Need, Outcome, Stop};
pub use report::{Report, Summary, Verdict};
pub use runner::{Lane, Runner, Watch};
pub use suite::{Offer, Settings, Suite, all, named, takes_spirv};
