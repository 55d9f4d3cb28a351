//! A driver without hardware: memory and ordering are real, dispatches do nothing. The template for a new driver
//! (README.md says how to clone it) and the bench for validation tests.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # What works
//! Buffers hold bytes in host memory, so host access, fills, updates, copies and file transfers do what they say.
//! Semaphores and fences order work as on any device. Executables are lists of function facts ([`EXECUTABLE_FORMAT`]);
//! dispatching one checks nothing and computes nothing.
#![forbid(unsafe_code)]

mod buffer;
mod command_buffer;
mod device;
mod driver;
mod executable;
mod queue;

pub use driver::NullDriver;
pub use executable::EXECUTABLE_FORMAT;
