//! Kernels that are made at run time: expressions over the elements of tensors, and SPIR-V of them without a compiler.
//!
//! # From an expression to a kernel
//! [`Expression`] is checked (`Expression::types`), made smaller (`simplify`), and turned into instructions on vectors of
//! four (`lower`: `float`, `transcendental`, `inverse`, `integer`, `pair`, `convert`, `double`), around which `kernel` puts the reading and writing of elements (`memory`)
//! where broadcasting has them (`layout`, `address`). The assembler of `halite-spirv` orders it all into a module. The same expression, types and kind of
//! shape give the same words, so whoever caches pipelines by their code has them once.
//!
//! # As an epilogue
//! `lower` takes its inputs in registers and gives its results there. A kernel that has four neighbours of its result in a
//! register can have an expression applied before it stores them: one that is emitted calls `lower` itself; a template
//! would declare a function `vec4 epilogue(vec4 value, uint index)`, whose body in the compiled module is replaced by these
//! instructions, with further inputs bound behind the template's own and read by `memory`. Only `kernel` knows of the grid.

mod address;
mod convert;
mod double;
mod float;
mod integer;
mod inverse;
mod kernel;
mod lanes;
mod layout;
mod lower;
mod memory;
mod pair;
mod transcendental;

pub(crate) use kernel::{Grid, emit};
pub(crate) use lanes::LANES;
pub(crate) use layout::Layout;
