//! Reading ONNX models: the protocol buffer messages of `onnx.proto` that a compiler needs, as plain data.
//!
//! Field numbers are those of `onnx.proto`. Messages, names and payloads are slices of the file's bytes where that is
//! possible: a mapped file is not copied.

mod context;
mod error;
mod graph;
mod model;
mod tensor;
mod value;

pub use error::OnnxError;
pub use graph::{Attribute, AttributeValue, Dim, Graph, Node, Type, ValueInfo};
pub use model::{Function, Model, OpsetId};
pub use tensor::{DataType, ExternalData, NoExternalData, Tensor};
pub use value::{Optional, Sequence};
