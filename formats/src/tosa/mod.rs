//! TOSA: its graphs as plain data, whichever file they came in.
//!
//! TOSA is the operator set of Arm's machine-learning back ends. A graph arrives as a FlatBuffer (`.tosa`) or as SPIR-V in a
//! VGF file; both become a [`Program`]. Names and numbers are those of the specification 1.0.

mod attributes;
mod block;
mod data;
mod element;
mod error;
mod fields;
mod graph;
mod names;
mod operator;
mod read;
mod schema;
mod shapes;
mod spec;
mod tables;
#[cfg(test)]
mod tests;

pub use attributes::{Attribute, Attributes};
pub use element::ElementType;
pub use error::TosaError;
pub use graph::{Constant, Graph, GraphId, Node, Program, Tensor, TensorId, Variable, VariableId};
pub use operator::{Accumulator, Conv, NanMode, Operator, Pool, ResizeMode, Rounding, Scalar};
pub use read::is_tosa;
pub use spec::{Kind, OPERATORS, Spec};

type Result<T, E = TosaError> = std::result::Result<T, E>;
