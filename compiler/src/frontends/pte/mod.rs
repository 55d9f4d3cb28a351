//! The ExecuTorch front end: `.pte` programs to graphs.
//!
//! A method becomes one graph: `plan` begins, `flow` walks the instructions, `state` puts calls and delegates into the graph,
//! and `ops` says with the builder what each operator computes, whether a delegate (`vulkan`) has it or the method itself
//! (`outside`). Back ends whose delegates are understood stand in `back_ends`; `xnnpack` has operators of its own.
//! Storage and memory layouts in the file are hints for the shaders of ExecuTorch's own runtime and are not read. Tensors
//! keep the types of the delegate's graph: a program of 16-bit floats (`force_fp16`) computes with them and takes and gives
//! what its own signature says.

mod back_end;
mod back_ends;
mod buffers;
mod data;
mod flow;
mod model;
mod mutation;
mod names;
mod node;
mod ops;
mod outline;
mod outside;
mod plan;
mod repeats;
mod scope;
mod state;
mod survey;
mod tenant;
#[cfg(test)]
mod tests;
mod types;
mod value;
mod vgf;
mod vulkan;
mod xnnpack;

pub use model::{ExecuTorch, Model};

type Result<T, E = crate::CompileError> = std::result::Result<T, E>;
