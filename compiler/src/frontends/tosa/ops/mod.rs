//! What the operators of TOSA become.

use halite_formats::tosa::{Graph, Node, Operator};

use super::Result;
use crate::{build::Builder, graph::TensorId};

/// Builds what a node computes, from the tensors that it reads: one for each output of the node.
///
/// # Errors
/// The node breaks a rule of its operator, or is not supported.
pub(super) fn lower(
    builder: &mut Builder,
    _graph: &Graph,
    node: &Node,
    inputs: &[TensorId],
) -> Result<Vec<TensorId>> {
    match &node.operator {
        Operator::Identity => Ok(inputs.to_vec()),
        other => Err(builder.unsupported(format!("the operator {}", other.name()))),
    }
}
