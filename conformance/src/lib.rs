//! Behaviour of Halite on whatever device is there: suites of cases for devices, and replays of modules from the real
//! compiler that are compared with expected values; soak runs. Owns cases, manifests, verdicts and expectations per device;
//! does not own how anything is executed.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod drivers;
pub mod expectations;
pub mod replay;
pub mod soak;
pub mod suites;
