//! The walk over a graph of TOSA: its constants, its nodes in order, its outputs.

use bytes::Bytes;
use halite_formats::tosa::{Constant, Graph, GraphId, Program, Tensor};

use super::{Result, element_of, ops};
use crate::{SourceLocation, build::Builder, graph::TensorId};

/// Puts a graph of a program where the builder is: `inputs` are its inputs, and what comes back are its outputs.
///
/// # Errors
/// A node breaks a rule of its operator or is not supported, or the builder's control ended the work.
pub fn lower(
    builder: &mut Builder,
    program: &Program,
    graph: GraphId,
    inputs: &[TensorId],
) -> Result<Vec<TensorId>> {
    let graph = &program.graphs[graph];
    let mut made: Vec<Option<TensorId>> = vec![None; graph.tensors.len()];
    for (id, given) in graph.inputs.iter().zip(inputs) {
        made[*id] = Some(*given);
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        builder.watch().step(at, graph.nodes.len())?;
        builder.at(SourceLocation::new(node.location.as_str()));
        let inputs: Result<Vec<_>> =
            node.inputs.iter().map(|id| value(builder, graph, &mut made, *id)).collect();
        let results = ops::lower(builder, graph, node, &inputs?)?;
        for (id, result) in node.outputs.iter().zip(results) {
            check(builder, &graph.tensors[*id], result)?;
            made[*id] = Some(result);
        }
    }
    graph.outputs.iter().map(|id| value(builder, graph, &mut made, *id)).collect()
}

/// A tensor that was made before, or a constant.
fn value(builder: &mut Builder, graph: &Graph, made: &mut [Option<TensorId>], id: usize) -> Result<TensorId> {
    if let Some(known) = made[id] {
        return Ok(known);
    }
    let tensor = &graph.tensors[id];
    let Some(constant) = &tensor.constant else {
        return Err(builder.invalid(format!("tensor {id} '{}' is read before it is computed", tensor.name)));
    };
    let element = element_of(tensor.element);
    let found = match constant {
        Constant::Dense(bytes) => builder.constant(&tensor.name, element, &tensor.shape, bytes.clone())?,
        Constant::Splat(bytes) => splat(builder, tensor, bytes.clone())?,
    };
    made[id] = Some(found);
    Ok(found)
}

/// A constant of one element that repeats.
fn splat(builder: &mut Builder, tensor: &Tensor, bytes: Bytes) -> Result<TensorId> {
    let ones = vec![1; tensor.shape.len()];
    let one = builder.constant(&tensor.name, element_of(tensor.element), &ones, bytes)?;
    builder.expand(one, &tensor.shape)
}

/// Whether a result is what the file says.
fn check(builder: &Builder, tensor: &Tensor, result: TensorId) -> Result<()> {
    let wants = element_of(tensor.element);
    if builder.element(result) == wants && builder.dims(result) == tensor.shape {
        return Ok(());
    }
    let what = builder.describe(&[result]);
    Err(builder.invalid(format!("gives {what}; the file says {}{:?}", tensor.element, tensor.shape)))
}
