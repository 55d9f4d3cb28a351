//! The command-line tools, in one program: `halite run`, `bench`, `compile`, `dump`, `devices`, `kernels` and more; `cli` has
//! the list. Each is a module here, and a thin user of the crate `halite`, which runs and compiles.
//!
//! Flags are those of IREE's tools, so that scripts keep working: see [`argv`] for the spelling and `foreign` for the
//! flags that mean nothing here. Exit codes: 0 success, 1 failure, 2 wrong usage, 130
//! ended by Ctrl-C.
#![forbid(unsafe_code)]

pub mod argv;
pub mod bench;
pub mod cache;
pub mod check;
pub mod cli;
pub mod compile;
pub mod console;
mod describe;
pub mod devices;
pub mod dump;
pub mod embed;
mod engine;
pub mod flags;
mod foreign;
pub mod generate;
pub mod html;
mod inputs;
mod interrupt;
pub mod kernels;
pub mod list;
pub mod logger;
pub mod npz;
mod page;
pub mod perplexity;
pub mod picture;
mod place;
mod ports;
mod progress;
pub mod run;
#[cfg(feature = "serve")]
pub mod serve;
mod session;
mod state;
mod text_file;
mod text_flags;
pub mod trial;
pub mod units;
mod values;
mod visible;
mod whole;
