//! The front end for VGF files of Arm's ML SDK: graphs of TOSA and compute kernels, run one after the other.

mod graph;
mod kernel;
mod model;
mod opaque;
mod operand;
mod resources;
mod run;
mod segment;

pub use model::{Model, Vgf};
pub(crate) use run::{check_input, import, operators, unsupported};

use crate::CompileError;

type Result<T, E = CompileError> = std::result::Result<T, E>;
