//! The CPU driver: runs executables that iree-compile makes for `llvm-cpu` (native code in a small ELF file) and
//! `vmvx` (bytecode) on the host's processor.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # Two drivers, one device
//! `local-sync` does its work on the thread that makes it ready. `local-task` does it on whoever waits for it, helped
//! by a pool of threads where a dispatch is worth it; work that nobody waits for is done by the pool alone. Bytecode, which
//! may never end, is run by neither on a thread that waits: a deadline holds whatever a module does.
//!
//! # From a submission to a kernel
//! `queue` keeps accepted operations in order and lets one thread at a time drain them; `operation` does what each
//! one says; `program` is the compact form that a recording was lowered to; `execution` runs it, `pool` helps by `job`;
//! `code` is what a kernel is, made by `library` over an ELF image (`elf`) or by `vmvx`.
//!
//! # Unsafe code
//! Native code is called, and host memory is shared with it: see `elf`, `library` and `memory` for why that is sound
//! as far as the code keeps to its interface. With `native_code=off` no native code of a module is ever mapped.

mod abi;
mod buffer;
mod code;
mod cpu;
mod device;
mod driver;
pub mod elf;
mod engine;
mod executable;
mod execution;
mod fpenv;
mod job;
mod library;
mod memory;
mod operation;
mod pool;
mod profile;
mod program;
mod queue;
mod semaphore;
mod settings;
mod transfer;
mod vmvx;

pub use driver::{LocalDriver, SYNC_NAME, TASK_NAME};
