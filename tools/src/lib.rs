//! The command-line tools, in one program: `halite run`, `bench`, `compile`, `dump`, `devices`, `kernels` and more; `cli` has
//! the list. Each is a module here. Does not own: loading and running (the `halite` crate), drivers, or file formats.
//!
//! Flags are those of IREE's tools, so that scripts keep working: see [`argv`] for the spelling and `foreign` for the
//! flags that mean nothing here. Exit codes: 0 success, 1 failure, 2 wrong usage, 130
//! ended by Ctrl-C.
#![forbid(unsafe_code)]

pub mod argv;
pub mod bench;
pub mod cli;
pub mod compile;
pub mod console;
pub mod devices;
pub mod dump;
mod engine;
pub mod flags;
mod foreign;
mod inputs;
mod interrupt;
mod jit;
pub mod kernels;
pub mod list;
mod load;
pub mod logger;
mod npz;
pub mod picture;
mod place;
mod ports;
pub mod run;
pub mod units;
mod values;

/// Drivers that are linked in for their registration and never named: those of the feature `static-drivers`. Without it the
/// tools know plug-ins only.
#[cfg(feature = "static-drivers")]
mod linked {
    use halite_local as _;
    use halite_null as _;
    use halite_vulkan as _;

    halite_hal::expect_drivers!("local-sync", "local-task", "null", "vulkan");
}
