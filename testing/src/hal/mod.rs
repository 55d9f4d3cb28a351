//! Device code for tests in every executable format, and short forms of what tests do with devices.

pub mod kernels;
pub mod support;
