//! What the programs that test and measure devices share: drivers and flags to choose them by, device code for tests, plans
//! of the kernel library on a device, and what is told of wrong results.
//!
//! Internal to Halite; programs use the crate `halite`.
#![forbid(unsafe_code)]

pub mod drivers;
pub mod flags;
pub mod hal;
pub mod library;
mod part;
mod random;
mod wrong;

pub use part::{PART, Part};
pub use random::Random;
pub use wrong::{Numbers, Wrong, ulp};
