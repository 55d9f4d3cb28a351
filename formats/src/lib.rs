//! The file formats Halite reads and writes, as pure functions from bytes to data and back: IREE module files (`vmfb`), the
//! executables inside them, parameter archives, and models (`gguf`, `onnx`, `pte`, `tosa`, `vgf`).
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! All input is untrusted. Every offset and length is checked; nothing allocates more than the input justifies.
#![forbid(unsafe_code)]

pub mod flatbuffer;
pub mod gguf;
pub mod onnx;
pub mod params;
pub mod pte;
mod rope;
pub mod tosa;
pub mod vgf;
pub mod vmfb;
pub mod wire;

pub use rope::Rope;
