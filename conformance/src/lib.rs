//! Behaviour of Halite on whatever device is there: suites of cases for devices, replays of modules from the real compiler
//! that are compared with expected values, soak runs, and what calls cost. Owns cases, manifests, verdicts and expectations
//! per device; does not own how anything is executed.
#![forbid(unsafe_code)]

pub mod calls;
pub mod carried;
pub mod corpus;
pub mod drivers;
pub mod executor;
pub mod expectations;
pub mod hazards;
pub mod kernel_bench;
pub mod onnx;
pub mod replay;
pub mod reports;
pub mod run;
pub mod soak;
pub mod suites;
