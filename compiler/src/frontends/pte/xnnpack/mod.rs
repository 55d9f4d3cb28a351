//! Graphs of the XNNPACK delegate: its operators, 8-bit and 4-bit numbers among them, to operations.
//!
//! Images lie channels last in such graphs. Values keep the order of dimensions that their tensors have here (`layout`), so
//! that the transposes around and between convolutions are none. Of quantized values the integers are kept; what no
//! operation computes of integers is computed of the numbers that they stand for, and rounded to the scale of the result:
//! at most one step from XNNPACK's own arithmetic.

mod convolution;
mod dynamic;
mod elementwise;
mod layout;
mod linear;
mod moves;
mod numbers;
mod packed;
mod packed_product;
mod pool;
#[cfg(test)]
mod tests;
mod values;

use halite_formats::pte::{Program, XnnGraph, XnnNode, XnnOperator as Op};

use super::Result;
use crate::{CompileError, SourceLocation, UnsupportedOperator, build::Builder, graph::TensorId};
pub(super) use layout::Held;
use values::Values;

/// Name of the back end whose graphs these are.
pub(super) const BACK_END: &str = "XnnpackBackend";

/// Puts the graph of a delegate into that of the method. `inputs` are in the order of the graph's ports, `orders` the orders
/// in which the results lie in memory.
pub(super) fn import(
    builder: Builder,
    program: &Program,
    graph: &XnnGraph,
    inputs: Vec<Held>,
    orders: &[Vec<usize>],
    name: &str,
) -> Result<(Builder, Vec<TensorId>)> {
    let unknown = unknown(graph, name);
    if !unknown.is_empty() {
        return Err(CompileError::UnsupportedOperators { operators: unknown });
    }
    let mut values = Values::new(builder, program, graph);
    values.builder.at(SourceLocation::new(name));
    for (port, held) in graph.inputs.iter().zip(inputs) {
        values.take(port.value, held)?;
    }
    for (i, node) in graph.nodes.iter().enumerate() {
        values.builder.watch().step(i, graph.nodes.len())?;
        values.builder.at(location(i, node, name));
        one(&mut values, node)?;
    }
    values.builder.watch().step(graph.nodes.len(), graph.nodes.len())?;
    values.builder.at(SourceLocation::new(format!("outputs of {name}")));
    let mut results = Vec::new();
    for (port, order) in graph.outputs.iter().zip(orders) {
        let held = values.value(port.value)?;
        let order =
            if order.len() == held.order.len() { order.clone() } else { (0..held.order.len()).collect() };
        results.push(held.laid(&mut values.builder, &order)?);
    }
    Ok((values.builder, results))
}

fn location(index: usize, node: &XnnNode, name: &str) -> SourceLocation {
    SourceLocation::new(format!("{} (node {index} of {name})", node.operator.name()))
}

/// Operators of a graph that nothing computes.
pub(super) fn unknown(graph: &XnnGraph, name: &str) -> Vec<UnsupportedOperator> {
    let mut all = Vec::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        if let Op::Unknown(_) = node.operator {
            let reason = Some("it came after ExecuTorch 1.5".to_owned());
            let first = SourceLocation::new(format!("node {i} of {name}"));
            let operator = node.operator.name();
            UnsupportedOperator { name: operator, domain: None, count: 1, first, reason }.add_to(&mut all);
        }
    }
    all
}

/// Says with the builder what a node computes.
fn one(v: &mut Values<'_>, node: &XnnNode) -> Result<()> {
    match &node.operator {
        Op::Unary(function) => elementwise::unary(v, node, *function),
        Op::Binary(function) => elementwise::binary(v, node, *function),
        Op::Prelu => elementwise::prelu(v, node),
        Op::Softmax => elementwise::softmax(v, node),
        Op::Convert => elementwise::convert(v, node),
        Op::FullyConnected => linear::fully_connected(v, node),
        Op::BatchMatrixMultiply => linear::batch_product(v, node),
        Op::Attention => linear::attention(v, node),
        Op::Convolution(numbers) => convolution::plain(v, node, numbers),
        Op::DepthwiseConvolution(numbers) => convolution::depthwise(v, node, numbers),
        Op::TransposedConvolution(numbers) => convolution::transposed(v, node, numbers),
        Op::MaxPool(numbers) => pool::largest(v, node, numbers),
        Op::AveragePool(numbers) => pool::mean(v, node, numbers),
        Op::ArgMaxPool(numbers) => pool::places(v, node, numbers),
        Op::GlobalAveragePool => pool::global_mean(v, node),
        Op::ResizeBilinear { size } => pool::resize(v, node, *size),
        Op::Transpose { order } => moves::transpose(v, node, order),
        Op::Reshape { dims } => moves::reshape(v, node, dims),
        Op::Slice { starts, sizes } => moves::slice(v, node, starts, sizes),
        Op::Pad { before, behind, value } => moves::pad(v, node, before, behind, *value),
        Op::Concatenate { axis } => moves::concatenate(v, node, *axis),
        Op::Copy => moves::copy(v, node),
        Op::Unknown(_) => Err(v.builder.unsupported(node.operator.name())),
    }
}
