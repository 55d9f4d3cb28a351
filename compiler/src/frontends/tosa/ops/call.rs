//! One node with the tensors that it reads, and what importers ask of it.

use halite_formats::tosa::{self, Graph, Node};

use super::super::Result;
use crate::{build::Builder, graph::TensorId};

/// A node that is imported. The number of its tensors was checked, so they are taken by index.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    graph: &'a Graph,
    node: &'a Node,
    /// What the node reads, in the builder's graph.
    pub(super) inputs: &'a [TensorId],
}

impl<'a> Call<'a> {
    /// A node of a graph, and its inputs.
    ///
    /// # Errors
    /// The node has another number of inputs or outputs than its operator.
    pub(super) fn new(b: &Builder, graph: &'a Graph, node: &'a Node, inputs: &'a [TensorId]) -> Result<Self> {
        let (least, most, outputs) = tensors(&node.operator);
        if inputs.len() < least || inputs.len() > most || node.outputs.len() != outputs {
            let (takes, gives) = (inputs.len(), node.outputs.len());
            return Err(b.invalid(format!(
                "{} has {takes} inputs and {gives} outputs; it takes {least} and gives {outputs}",
                node.operator.name()
            )));
        }
        Ok(Call { graph, node, inputs })
    }

    /// The operator's name.
    pub(super) fn name(&self) -> &'static str {
        self.node.operator.name()
    }

    /// The type that the file gives an input.
    pub(super) fn element(&self, input: usize) -> tosa::ElementType {
        self.graph.tensors[self.node.inputs[input]].element
    }

    /// The types that the file gives all inputs.
    pub(super) fn elements(&self) -> impl Iterator<Item = tosa::ElementType> {
        self.node.inputs.iter().map(|id| self.graph.tensors[*id].element)
    }

    /// The shapes that the file gives all inputs and outputs.
    pub(super) fn shapes(&self) -> impl Iterator<Item = (&'a [u64], tosa::ElementType)> {
        let all = self.node.inputs.iter().chain(&self.node.outputs);
        all.map(|id| (self.graph.tensors[*id].shape.as_slice(), self.graph.tensors[*id].element))
    }

    /// The first output as the file has it.
    pub(super) fn output(&self) -> &'a tosa::Tensor {
        &self.graph.tensors[self.node.outputs[0]]
    }

    /// An axis of the first input.
    ///
    /// # Errors
    /// The input has no such axis.
    pub(super) fn axis(&self, b: &Builder, axis: i64) -> Result<usize> {
        let rank = b.dims(self.inputs[0]).len();
        match usize::try_from(axis) {
            Ok(axis) if axis < rank => Ok(axis),
            _ => Err(b.invalid(format!("{} along axis {axis} of {rank} axes", self.name()))),
        }
    }

    /// A number that is not negative.
    ///
    /// # Errors
    /// It is.
    pub(super) fn size(&self, b: &Builder, value: i64, what: &str) -> Result<u64> {
        u64::try_from(value).map_err(|_| b.invalid(format!("{}: {what} of {value}", self.name())))
    }

    /// Numbers that are not negative.
    ///
    /// # Errors
    /// One is.
    pub(super) fn sizes(&self, b: &Builder, values: &[i64], what: &str) -> Result<Vec<u64>> {
        values.iter().map(|value| self.size(b, *value, what)).collect()
    }

    /// The dimensions of an input, which has so many.
    ///
    /// # Errors
    /// It has others.
    pub(super) fn dims<const N: usize>(&self, b: &Builder, input: usize) -> Result<[u64; N]> {
        let dims = b.dims(self.inputs[input]);
        dims.try_into().map_err(|_| {
            b.invalid(format!("{}: input {input} has {} dimensions, not {N}", self.name(), dims.len()))
        })
    }
}

/// The fewest and most inputs of an operator, and its outputs.
fn tensors(operator: &tosa::Operator) -> (usize, usize, usize) {
    use tosa::Operator as O;
    match operator {
        O::Conv2d(_) | O::Conv3d(_) | O::DepthwiseConv2d(_) | O::TransposeConv2d(_) => (3, 3, 1),
        O::Fft2d { .. } => (2, 2, 2),
        O::Rfft2d { .. } => (1, 1, 2),
        O::MatMul { .. } | O::Table | O::Pad { .. } | O::Gather => (2, 2, 1),
        O::Add | O::Sub | O::Mul { .. } | O::Pow | O::IntDiv => (2, 2, 1),
        O::ArithmeticRightShift { .. } | O::LogicalLeftShift | O::LogicalRightShift => (2, 2, 1),
        O::BitwiseAnd | O::BitwiseOr | O::BitwiseXor => (2, 2, 1),
        O::LogicalAnd | O::LogicalOr | O::LogicalXor => (2, 2, 1),
        O::Maximum { .. } | O::Minimum { .. } => (2, 2, 1),
        O::Equal | O::Greater | O::GreaterEqual => (2, 2, 1),
        O::Select | O::Scatter | O::Rescale { .. } => (3, 3, 1),
        O::Concat { .. } => (1, usize::MAX, 1),
        _ => (1, 1, 1),
    }
}
