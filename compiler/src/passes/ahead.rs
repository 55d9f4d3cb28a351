//! Batch normalization by constants that only convolutions of one tap read goes into their weights: `sum over c of w[o, c] * ((x[c] -
//! mean[c]) * s[c] + beta[c])` with `s = scale / sqrt(variance + epsilon)`. With more taps it could not, where these see zeros of the
//! padding.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    DType, Operation,
    conv2d::Conv2d,
    expression::{Expression, Function, Operand},
    norm::{Norm, NormKind},
    window::Layout,
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    constants::{self, Constants},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Rewrites them.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let found = found(graph, region, uses);
    if found.is_empty() {
        return Ok(());
    }
    uses.subtract(&Uses::of(region));
    let mut folded: HashMap<TensorId, Folded> = HashMap::new();
    let mut nodes = Vec::with_capacity(region.nodes.len());
    for node in std::mem::take(&mut region.nodes) {
        watch.check()?;
        let made = node.outputs.first().filter(|id| found.contains(id)).copied();
        if let (Some(made), NodeOp::Operation(Operation::Norm(norm))) = (made, &node.op) {
            folded.insert(made, Folded::write(graph, &mut nodes, norm, &node));
            continue;
        }
        match node.inputs.first().and_then(|id| folded.get(id)) {
            Some(norm) => norm.fold(graph, &mut nodes, node),
            None => nodes.push(node),
        }
    }
    region.nodes = nodes;
    uses.extend(&Uses::of(region));
    Ok(())
}

/// Results of such normalizations.
fn found(graph: &Graph, region: &Region, uses: &Uses) -> HashSet<TensorId> {
    let is_norm = |node: &&Node| matches!(&node.op, NodeOp::Operation(Operation::Norm(norm)) if norm.kind == NormKind::Batch);
    let norms: Vec<&Node> = region.nodes.iter().filter(is_norm).collect();
    if norms.is_empty() {
        return HashSet::new();
    }
    let known = constants::known(graph, region);
    let is_known = |id: &TensorId| graph.tensor(*id).constant.is_some() || known.contains(id);
    let mut readers: HashMap<TensorId, Vec<&Node>> = HashMap::new();
    for node in &region.nodes {
        node.inputs.iter().for_each(|id| readers.entry(*id).or_default().push(node));
    }
    let folds = |node: &&Node| {
        let (NodeOp::Operation(Operation::Norm(norm)), Some(made)) = (&node.op, node.outputs.first()) else {
            return false;
        };
        let all = readers.get(made).map_or(&[][..], Vec::as_slice);
        let reads = |reader: &&Node| {
            one_tap(reader).is_some_and(|op| {
                let [_, channels, rows, columns] = op.input;
                let own = &reader.inputs[1..2 + usize::from(op.bias)];
                op.dtype == norm.dtype
                    && channels.is(norm.channels.into())
                    && norm.spatial.is(rows * columns)
                    && own.iter().all(is_known)
            })
        };
        norm.order.is_none()
            && !all.is_empty()
            && uses.count(*made) == all.len()
            && all.iter().all(reads)
            && node.inputs[1..].iter().all(|id| graph.tensor(*id).constant.is_some())
    };
    norms.into_iter().filter(folds).map(|node| node.outputs[0]).collect()
}

/// The convolution that a node is, if it has one tap of all channels and no zeros around its images.
fn one_tap(node: &Node) -> Option<&Conv2d> {
    let NodeOp::Operation(Operation::Conv2d(op)) = &node.op else { return None };
    let fits = op.layout == Layout::Nchw && op.groups == 1 && op.filter[2..] == [1, 1] && op.pads == [0; 4];
    fits.then_some(op)
}

/// A normalization that goes: `x * factor + added` for each channel, in 32 bits.
struct Folded {
    input: TensorId,
    factor: TensorId,
    added: TensorId,
}

impl Folded {
    fn write(graph: &mut Graph, nodes: &mut Vec<Node>, norm: &Norm, node: &Node) -> Folded {
        let channels = vec![Size::from(norm.channels)];
        let own = |id: TensorId| (id, norm.dtype, channels.clone());
        let mut rest = node.inputs[3..].iter().copied();
        let scale = if norm.scale { rest.next() } else { None };
        let bias = if norm.bias { rest.next() } else { None };
        let mut made = Constants { graph, nodes, node };
        let parts: Vec<_> = [Some(node.inputs[2]), scale].into_iter().flatten().map(own).collect();
        let factor = made.elementwise(&parts, DType::F32, &channels, |p, x| {
            let sum = p.call(Function::Add, &[x[0], norm.epsilon.0.into()]);
            let inverse = p.call(Function::Rsqrt, &[sum]);
            x.get(1).map_or(inverse, |scale| p.call(Function::Mul, &[inverse, *scale]))
        });
        let mut parts = vec![own(node.inputs[1]), (factor, DType::F32, channels.clone())];
        parts.extend(bias.map(own));
        let added = made.elementwise(&parts, DType::F32, &channels, |p, x| {
            let shifted = p.call(Function::Mul, &[x[0], x[1]]);
            let none = Operand::from(0.0);
            p.call(Function::Sub, &[x.get(2).copied().unwrap_or(none), shifted])
        });
        Folded { input: node.inputs[0], factor, added }
    }

    /// The convolution with the normalization in its weights.
    fn fold(&self, graph: &mut Graph, nodes: &mut Vec<Node>, node: Node) {
        let Some(op) = one_tap(&node).cloned() else {
            // Only such ones were found.
            nodes.push(node);
            return;
        };
        let [filters, channels] = [op.filter[0], op.filter[1]].map(Size::from);
        let one = Size::constant(1);
        let (all, beside) = (vec![filters, channels, one, one], vec![one, channels, one, one]);
        let mut made = Constants { graph, nodes, node: &node };
        let weights = (node.inputs[1], op.dtype, all.clone());
        let product = |p: &mut Expression, x: &[Operand]| p.call(Function::Mul, x);
        let scaled = [weights.clone(), (self.factor, DType::F32, beside.clone())];
        let filter = made.elementwise(&scaled, op.dtype, &all, product);
        let terms = made.elementwise(&[weights, (self.added, DType::F32, beside)], DType::F32, &all, product);
        let sums = made.sums(terms, [filters, channels, one]);
        let mut parts = vec![(sums, DType::F32, vec![filters])];
        parts.extend(op.bias.then(|| (node.inputs[2], op.dtype, vec![filters])));
        let bias = made.elementwise(&parts, op.dtype, &[filters], |p, x| match x {
            [sums, bias] => p.call(Function::Add, &[*sums, *bias]),
            _ => x[0],
        });
        let mut inputs = vec![self.input, filter, bias];
        inputs.extend(&node.inputs[2 + usize::from(op.bias)..]);
        let op = NodeOp::Operation(Operation::Conv2d(Conv2d { bias: true, ..op }));
        nodes.push(Node { op, inputs, ..node });
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{constant, kernels, norm, optimized},
        *,
    };
    use crate::build::{Builder, Sliding};

    /// Whether a norm is left before two convolutions of so many taps, of which the second has its own norm behind it.
    fn is_left(taps: u64, groups: u64, another_reader: bool) -> bool {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 4, 5, 4]).unwrap();
        let y = norm(&mut b, x, 5);
        let around = (taps / 2, taps / 2);
        let sliding = Sliding { strides: vec![1; 2], dilations: vec![1; 2], pads: vec![around; 2] };
        let conv = |b: &mut Builder, seed: u64, has_bias: bool| {
            let filters = constant(b, &[6, 4 / groups, taps, taps], seed);
            let bias = has_bias.then(|| constant(b, &[6], seed + 1));
            b.conv(y, filters, bias, &sliding, groups).unwrap()
        };
        let (first, second) = (conv(&mut b, 1, true), conv(&mut b, 7, false));
        let second = norm(&mut b, second, 9);
        b.output("first", first);
        b.output("second", second);
        if another_reader {
            let more = b.view(y, DType::F32.into(), &[40, 4]).unwrap();
            b.output("more", more);
        }
        let graph = optimized(b.finish().unwrap());
        kernels(&graph).iter().any(|op| matches!(op, Operation::Norm(_)))
    }

    #[test]
    fn norms_go_into_the_convolutions_of_one_tap_behind_them() {
        assert!(!is_left(1, 1, false));
    }

    #[test]
    fn others_stay() {
        assert_eq!([is_left(3, 1, false), is_left(1, 2, false), is_left(1, 1, true)], [true; 3]);
    }
}
