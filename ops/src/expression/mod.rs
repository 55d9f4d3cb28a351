//! The language of elementwise operations: straight-line programs over the elements of tensors, their types, text, values on
//! the host, and how far a device may be off. How code is made of them is the back end's.

mod broadcast;
mod evaluate;
mod function;
mod program;
mod simplify;
mod text;
mod tolerance;

pub use broadcast::broadcast;
pub use evaluate::{evaluate, value};
pub use function::{Function, Type};
pub use program::{Expression, Node, Operand, Output, Scalar, operand_type};
pub use simplify::simplify;
pub use text::range;
pub use tolerance::tolerance;
