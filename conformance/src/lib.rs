//! Behaviour of Halite on whatever device is there: replays modules from the real compiler and compares with
//! expected values. Owns manifests, verdicts and expectations per device; does not own how anything is executed.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod expectations;
pub mod replay;
