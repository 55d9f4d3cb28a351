//! The small ELF files in which iree-compile puts native code: reading them, relocating a copy, mapping it.
//!
//! Reading and relocating are plain functions over bytes, and every number of the file is checked before it is used.
//! Only `image` touches memory protection.
//!
//! Formats: the System V ABI's ELF-64 (<https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html>) and its
//! supplements for x86-64 and AArch64.

mod dynamic;
mod error;
mod file;
mod frames;
#[cfg_attr(not(target_os = "linux"), path = "unsupported.rs")]
pub(crate) mod image;
mod numbers;
mod relocate;

pub use error::ElfError;
pub use file::{ElfFile, Machine, Protection, Segment};
