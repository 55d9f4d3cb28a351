//! The inputs of a model as the tensors that a graph gets.

use std::collections::HashMap;

use super::value::Value;
use crate::{
    graph::TensorId,
    signature::{Arity, Bindings, Dim, Signature},
};

/// Inputs as tensors: a list is as many as shapes are given for, an optional one is there if one is.
pub(super) fn ports(inputs: &[Signature], bindings: &Bindings) -> Vec<Signature> {
    let mut ports = Vec::new();
    for input in inputs {
        match input.arity {
            Arity::Tensor if input.is_optional && bindings.shape(&input.name).is_none() => {}
            Arity::Tensor => ports.push(input.clone()),
            Arity::Sequence => {
                let names = (0..).map(|index| format!("{}[{index}]", input.name));
                let given = names.take_while(|name| bindings.shape(name).is_some());
                // Symbols are those of one element: elements may have different sizes.
                let open =
                    |dim: &Dim| if let Dim::Known(size) = dim { Dim::Known(*size) } else { Dim::Unknown };
                let dims = input.dims.as_ref().map(|dims| dims.iter().map(open).collect::<Vec<_>>());
                let port =
                    |name| Signature { name, arity: Arity::Tensor, dims: dims.clone(), ..input.clone() };
                ports.extend(given.map(port));
            }
        }
    }
    ports
}

/// What an input of the model stands for; nothing for one that has a default.
pub(super) fn value_of(
    name: &str,
    declared: Option<&halite_formats::onnx::Type>,
    tensors: &HashMap<&str, TensorId>,
) -> Option<Value> {
    use halite_formats::onnx::Type;
    let is_list = match declared {
        Some(Type::Sequence(_)) => true,
        Some(Type::Optional(of)) => matches!(**of, Type::Sequence(_)),
        _ => false,
    };
    let list =
        || (0..).map_while(|index| tensors.get(format!("{name}[{index}]").as_str()).copied()).collect();
    match (declared, tensors.get(name)) {
        (Some(Type::Tensor(data_type, _)), Some(id)) => Some(Value::of(*id, *data_type)),
        (_, Some(id)) => Some(Value::Tensor(*id)),
        (Some(Type::Optional(_)), None) if is_list => {
            let all: Vec<TensorId> = list();
            Some(if all.is_empty() { Value::Nothing } else { Value::Sequence(all.into()) })
        }
        _ if is_list => Some(Value::Sequence(list().into())),
        (Some(Type::Optional(_)), None) => Some(Value::Nothing),
        _ => None,
    }
}
