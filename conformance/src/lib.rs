//! Behaviour of Halite on whatever device is there: suites of cases for devices, replays of modules from the real compiler
//! that are compared with expected values, and soak runs; with manifests, verdicts and expectations per device.
//!
//! Internal to Halite; programs use the crate `halite`.
#![forbid(unsafe_code)]

pub mod carried;
pub mod corpus;
pub mod executor;
pub mod expectations;
pub mod hazards;
pub mod onnx;
pub mod replay;
pub mod reports;
pub mod run;
pub mod soak;
pub mod suites;
