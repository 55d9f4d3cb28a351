//! The ONNX front end: models to graphs.
//!
//! [`Model::graph`] walks the nodes that the outputs need. An *importer* (`ops`) per operator says with the builder what
//! the node computes. What is not a tensor (lists, optional values) exists while the graph is built only; control flow is
//! in `control`, functions of the model are put in where they are called.

mod blocked;
#[cfg(test)]
mod classic_more_tests;
#[cfg(test)]
mod classic_tests;
mod constant;
mod control;
mod conversion;
mod e8m0;
#[cfg(test)]
pub(crate) mod encode;
mod flex;
#[cfg(test)]
mod hostile_tests;
mod importer;
mod inputs;
mod listed;
mod mapped;
#[cfg(test)]
mod microsoft_layout_tests;
#[cfg(test)]
mod microsoft_tests;
mod model;
mod names;
mod narrow;
mod node;
mod operators;
mod ops;
mod order;
mod ports;
#[cfg(test)]
mod recurrent_tests;
mod repeat;
#[cfg(test)]
mod resize_tests;
mod rolled;
#[cfg(test)]
mod rolled_tests;
#[cfg(test)]
mod rows_tests;
mod runs;
mod scan;
mod sequence;
mod survey;
#[cfg(test)]
mod texts_tests;
mod value;

pub use constant::read_tensor;
pub use model::{Model, Onnx};

pub(crate) use node::{Import, NodeView};

type Result<T, E = crate::CompileError> = std::result::Result<T, E>;
