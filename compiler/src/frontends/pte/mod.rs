//! The ExecuTorch front end: `.pte` programs to graphs.
//!
//! What is compiled are methods whose work the Vulkan delegate does: `plan` walks the instructions around the
//! delegate's calls, `delegate` the operators of its graphs, and `ops` says with the builder what each one computes.
//! Storage and memory layouts in the file are hints for the shaders of ExecuTorch's own runtime and are not read. Tensors
//! keep the types of the delegate's graph: a program of 16-bit floats (`force_fp16`) computes with them and takes and gives
//! what its own signature says.

mod back_end;
mod back_ends;
mod flow;
mod model;
mod names;
mod node;
mod ops;
mod outside;
mod plan;
mod scope;
mod survey;
#[cfg(test)]
mod tests;
mod types;
mod value;
mod vulkan;

pub use model::{ExecuTorch, Model};

type Result<T, E = crate::CompileError> = std::result::Result<T, E>;
