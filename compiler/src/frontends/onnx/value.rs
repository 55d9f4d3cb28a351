//! What names of a model stand for while its graph is built.

use std::rc::Rc;

use halite_formats::onnx::DataType;

use super::{Result, listed::Listed, narrow};
use crate::{CompileError, SourceLocation, build::Builder, graph::TensorId};

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A tensor; also an optional value that is there.
    Tensor(TensorId),
    /// A tensor of a type that graphs lack, in the type that holds it; of texts, their places in the constant that they are from.
    Narrow(TensorId, DataType),
    /// A list of tensors. Copies share it: a value may have many names.
    Sequence(Rc<[TensorId]>),
    /// A list of as many tensors as data decide.
    Listed(Listed),
    /// An optional value that is not there.
    Nothing,
}

impl Value {
    /// A tensor whose elements have a type of ONNX.
    pub(super) fn of(id: TensorId, data_type: Option<DataType>) -> Value {
        match data_type.filter(|own| narrow::is_tagged(*own)) {
            Some(own) => Value::Narrow(id, own),
            None => Value::Tensor(id),
        }
    }
}

/// Values that have to be tensors, because they are known at run time only.
pub(super) fn tensors(values: &[Value], location: &SourceLocation) -> Result<Vec<TensorId>> {
    let tensor = |value: &Value| match value {
        Value::Tensor(id) => Ok(*id),
        Value::Narrow(_, data_type) => Err(CompileError::unsupported(
            location,
            format!("control flow and lists with elements of type {data_type}"),
        )),
        _ => Err(CompileError::unsupported(
            location,
            "lists and optional values that are known at run time only",
        )),
    };
    values.iter().map(tensor).collect()
}

/// Tensors of one shape, one behind the other along a new axis.
pub(super) fn stack(b: &mut Builder, all: &[TensorId], axis: usize) -> Result<TensorId> {
    let mut parts = Vec::with_capacity(all.len());
    for id in all {
        let mut dims = b.sizes(*id).to_vec();
        if axis > dims.len() {
            return Err(b.invalid(format!("{} gets no axis {axis}", b.describe(&[*id]))));
        }
        dims.insert(axis, 1.into());
        parts.push(b.reshape_to(*id, &dims)?);
    }
    b.concat(&parts, axis)
}
