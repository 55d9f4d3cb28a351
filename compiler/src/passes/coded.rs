//! What makes lines that are quantized goes into the operation that quantizes them, where nothing else reads them: a normalization by
//! the root of the mean of squares, or a gate. A dispatch of a few thousand elements waits more than it computes.

use halite_ops::{
    Operation,
    line_codes::LineCodes,
    norm::{Norm, NormKind},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    gates::{self, Halves, producer},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Replaces what quantizes; what made the lines goes with the next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    for place in 0..region.nodes.len() {
        watch.check()?;
        let node = &region.nodes[place];
        let Some((operation, inputs)) = found(graph, region, uses, node) else { continue };
        let new = Node { op: NodeOp::Operation(Operation::LineCodes(operation)), inputs, ..node.clone() };
        uses.replace(node, &new);
        region.nodes[place] = new;
    }
    Ok(())
}

/// The operation that makes the lines as well, and what it reads.
fn found(graph: &Graph, region: &Region, uses: &Uses, node: &Node) -> Option<(LineCodes, Vec<TensorId>)> {
    let NodeOp::Operation(Operation::LineCodes(codes)) = &node.op else { return None };
    if codes.norm.is_some() || codes.gate.is_some() {
        return None;
    }
    let before = maker(region, uses, node.inputs[0])?;
    let (operation, inputs) = match &before.op {
        NodeOp::Operation(Operation::Norm(norm)) => with_norm(codes, norm, before)?,
        _ => with_gate(graph, codes, &gates::halves(region, uses, before)?)?,
    };
    crate::backend::check(&Operation::LineCodes(operation.clone())).ok()?;
    Some((operation, inputs))
}

/// The node that makes a tensor which nothing else reads, behind views that nothing else reads.
fn maker<'a>(region: &'a Region, uses: &Uses, id: TensorId) -> Option<&'a Node> {
    let node = producer(region, id).filter(|_| uses.count(id) == 1)?;
    match node.op {
        NodeOp::View => maker(region, uses, *node.inputs.first()?),
        _ => Some(node),
    }
}

fn with_norm(codes: &LineCodes, norm: &Norm, before: &Node) -> Option<(LineCodes, Vec<TensorId>)> {
    let plain = norm.kind == NormKind::Rms && norm.scale && !norm.bias;
    let lines = norm.groups == 1
        && norm.spatial.is(1.into())
        && norm.order.is_none()
        && norm.activation.is_none()
        && !norm.channels_last;
    let same =
        norm.dtype == codes.dtype && codes.length.is(norm.channels.into()) && codes.outer == norm.batch;
    (plain && lines && same)
        .then(|| (LineCodes { norm: Some(norm.epsilon), ..codes.clone() }, before.inputs.clone()))
}

/// Rows of both halves have to be the rows of one tensor.
fn with_gate(graph: &Graph, codes: &LineCodes, halves: &Halves) -> Option<(LineCodes, Vec<TensorId>)> {
    let whole = graph.tensor(halves.whole);
    let elements: Size = codes.outer * codes.length * 2u64;
    let same = halves.first.is(0.into()) && halves.second == codes.length && halves.dtype == codes.dtype;
    let fits = same && whole.count() == elements && whole.element == codes.dtype.into();
    fits.then(|| (LineCodes { gate: Some(halves.function), ..codes.clone() }, vec![halves.whole]))
}

#[cfg(test)]
mod tests {
    use halite_ops::{
        DType,
        expression::Function,
        line_codes::{CodeRule, LineCodes},
    };

    use super::super::tests::{constant, kernels, optimized};
    use super::*;
    use crate::build::{Builder, Normalization, Range};

    fn coded(b: &mut Builder, x: TensorId) -> TensorId {
        let rule = LineCodes { codes: Some(DType::I8), ..LineCodes::new(CodeRule::Symmetric, -128, 127) };
        let made = b.codes_of_lines(x, &[1], rule).unwrap().unwrap();
        b.output("scales", made[0]);
        made[2]
    }

    fn names(graph: &Graph) -> Vec<String> {
        let of = |operation: &&Operation| match operation {
            Operation::LineCodes(own) if own.norm.is_some() => "normed codes".into(),
            Operation::LineCodes(own) if own.gate.is_some() => "gated codes".into(),
            own => own.name().to_owned(),
        };
        kernels(graph).iter().map(of).collect()
    }

    fn normed(read_twice: bool) -> Vec<String> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[3, 32]).unwrap();
        let scale = constant(&mut b, &[32], 3);
        let norm = Normalization { kind: NormKind::Rms, first: 1, end: 2, groups: 1, epsilon: 1e-5 };
        let x = b.normalize(x, Some(scale), None, norm).unwrap();
        let codes = coded(&mut b, x);
        b.output("codes", codes);
        if read_twice {
            b.output("x", x);
        }
        names(&optimized(b.finish().unwrap()))
    }

    #[test]
    fn lines_are_normalized_where_they_are_coded() {
        assert_eq!(normed(false), ["normed codes"]);
        assert_eq!(normed(true), ["norm", "line_codes"]);
    }

    /// Codes of a gated part of a product of some rows: of its first columns by the next ones, or the other way round.
    fn gated(rows: u64, swapped: bool) -> Vec<String> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[rows, 8]).unwrap();
        let weights = constant(&mut b, &[8, 64], 3);
        let all = b.product(x, weights, false).unwrap();
        let half = |b: &mut Builder, start: u64| {
            b.slice(all, &[Range::all(rows), Range { start, step: 1, count: 32 }]).unwrap()
        };
        let (one, two) = (half(&mut b, 0), half(&mut b, 32));
        let (gate, up) = if swapped { (two, one) } else { (one, two) };
        let y = b.map(&[gate, up], DType::F32, |p, x| {
            let part = p.call(Function::Sigmoid, &[x[0]]);
            let gate = p.call(Function::Mul, &[x[0], part]);
            p.call(Function::Mul, &[gate, x[1]])
        });
        let codes = coded(&mut b, y.unwrap());
        b.output("codes", codes);
        names(&optimized(b.finish().unwrap()))
    }

    #[test]
    fn lines_are_gated_where_they_are_coded() {
        assert_eq!(gated(1, false), ["matmul", "gated codes"]);
        assert_eq!(gated(5, false), ["matmul", "gated codes"]);
        assert_eq!(gated(5, true), ["matmul", "elementwise", "line_codes"]);
    }
}
