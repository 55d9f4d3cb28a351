//! Measurements of Halite on whatever device is there: the variants of the kernel library beside the device's own ceilings
//! and beside other implementations, and what calls into a driver cost. The scripts beside `src` compare whole programs.
//!
//! Internal to Halite; programs use the crate `halite`.
#![forbid(unsafe_code)]

pub mod calls;
pub mod kernels;
