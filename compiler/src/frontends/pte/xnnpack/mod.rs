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
mod offsets;
mod packed;
mod packed_product;
mod pool;
#[cfg(test)]
mod tests;
mod values;

use std::ops::Range;

use halite_formats::pte::{Constant, Program, XnnGraph, XnnNode, XnnOperator as Op};

use super::{
    Result,
    back_end::{BackEnd, Inlined},
    value::Passed,
};
use crate::{CompileError, SourceLocation, UnsupportedOperator, build::Builder, graph::TensorId};
use layout::Held;
use values::Values;

/// ExecuTorch's XNNPACK back end.
#[derive(Debug)]
pub(super) struct Xnnpack;

impl BackEnd for Xnnpack {
    fn id(&self) -> &'static str {
        "XnnpackBackend"
    }

    fn read(&self, data: &bytes::Bytes) -> std::result::Result<Box<dyn Inlined>, String> {
        Ok(Box::new(XnnGraph::parse(data).map_err(|e| e.to_string())?))
    }
}

/// The arguments of a call that a graph's results are.
fn results_of(graph: &XnnGraph) -> Range<usize> {
    let places = || graph.outputs.iter().map(|port| port.argument);
    match (places().min(), places().max()) {
        (Some(first), Some(last)) => first..last.saturating_add(1),
        _ => 0..0,
    }
}

impl Inlined for XnnGraph {
    /// Inputs that nothing reads are no values of the graph.
    fn inputs(&self) -> usize {
        results_of(self).start
    }

    fn outputs(&self) -> usize {
        results_of(self).len()
    }

    fn import(
        &self,
        builder: Builder,
        program: &Program,
        inputs: &[Passed],
        orders: &[Vec<usize>],
        _kept: &mut [TensorId],
        name: &str,
    ) -> Result<(Builder, Vec<Passed>)> {
        let mut handed = Vec::new();
        for port in &self.inputs {
            let (Some(Passed::Tensor(tensor)), Some(order)) =
                (inputs.get(port.argument), orders.get(port.argument))
            else {
                let reason = format!("argument {} of {name} is no tensor that is handed in", port.argument);
                return Err(builder.invalid(reason));
            };
            if builder.rank(*tensor) != order.len() {
                let what = builder.describe(&[*tensor]);
                return Err(builder.invalid(format!("{what} lies in memory in the order {order:?}")));
            }
            handed.push(Held::ordered(*tensor, order));
        }
        let places = results_of(self);
        // Each argument from the first result on is one, once.
        if !self.outputs.iter().map(|port| port.argument).eq(places.clone()) {
            return Err(builder.invalid(format!("arguments {places:?} of {name} are not each a result")));
        }
        let orders = orders.get(places).unwrap_or_default();
        let (builder, made) = import(builder, program, self, handed, orders, name)?;
        Ok((builder, made.into_iter().map(Passed::Tensor).collect()))
    }

    fn data(&self) -> Vec<&str> {
        let named = self.constants.iter().filter_map(|constant| match constant {
            Constant::Named { key, .. } => Some(key.as_str()),
            Constant::Inline(_) => None,
        });
        named.collect()
    }

    fn unsupported(&self, name: &str) -> Vec<UnsupportedOperator> {
        unknown(self, name)
    }
}

/// Puts the graph of a delegate into that of the method. `inputs` are in the order of the graph's ports, `orders` the orders
/// in which the results lie in memory.
fn import(
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
    offsets::check(&values.builder, graph)?;
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
        results.push(given(&mut values.builder, &held, order)?);
    }
    Ok((values.builder, results))
}

/// A result as the plan has it, whose dimensions lie in memory in an order.
fn given(b: &mut Builder, held: &Held, order: &[usize]) -> Result<TensorId> {
    if held.order.len() == order.len() {
        return held.laid(b, order);
    }
    // What has no dimensions has one of one element here.
    let own = held.in_order(b)?;
    if order.is_empty() { b.reshape(own, &[]) } else { Ok(own) }
}

fn location(index: usize, node: &XnnNode, name: &str) -> SourceLocation {
    SourceLocation::new(format!("{} (node {index} of {name})", node.operator.name()))
}

/// Operators of a graph that nothing computes.
fn unknown(graph: &XnnGraph, name: &str) -> Vec<UnsupportedOperator> {
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
