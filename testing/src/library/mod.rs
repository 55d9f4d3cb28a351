//! Plans of the kernel library on a device: inputs, memory with guards around it, dispatches, and comparison of results.

pub mod data;
mod launch;
mod memory;

pub use launch::{Job, Prepared, compile, compile_all};
pub use memory::Guards;
