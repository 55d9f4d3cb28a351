//! The ExecuTorch front end: `.pte` programs to graphs.
//!
//! What is compiled are methods whose work the Vulkan or XNNPACK delegate does: `plan` walks the instructions around the
//! delegate's calls, `delegate` the operators of the Vulkan delegate's graphs, and `ops` says with the builder what each one
//! computes; `xnnpack` has graphs of XNNPACK.
//! Storage and memory layouts in the file are hints for the shaders of ExecuTorch's own runtime and are not read. Tensors
//! keep the types of the delegate's graph: a program of 16-bit floats (`force_fp16`) computes with them and takes and gives
//! what its own signature says.

mod delegate;
mod kernels;
mod model;
mod names;
mod node;
mod ops;
mod plan;
mod survey;
#[cfg(test)]
mod tests;
mod types;
mod walk;
mod xnnpack;

pub use model::{ExecuTorch, Model};

type Result<T, E = crate::CompileError> = std::result::Result<T, E>;
