//! The front end for TOSA: graphs of `halite_formats::tosa`, whichever file they came in, become graphs of operations.

mod control;
mod model;
mod ops;
mod types;
mod walk;

pub use model::{Model, Tosa};
pub use types::element_of;
pub use walk::lower;

use crate::CompileError;

type Result<T, E = CompileError> = std::result::Result<T, E>;
