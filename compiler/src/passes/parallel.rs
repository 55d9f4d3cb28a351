//! Convolutions of one image whose results are added become one convolution, with the sum of their filters. Networks whose blocks have
//! several branches while they are trained are full of them. A batch normalization of the image is such a branch, too: of one tap, which
//! reads its own channel. A number that is added goes into the bias, as sums that begin with zero have one.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    Activation, DType, Operation,
    conv2d::Conv2d,
    elementwise::Elementwise,
    expression::{Expression, Function, Operand},
    norm::{Norm, NormKind},
    pad::{Border, Pad},
    window::Layout,
};
use halite_sizes::Size;

use super::{Result, Uses, affine};
use crate::{
    control::Watch,
    graph::{ElementType, Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Merges such branches, two at a time. The sums of filters are nodes over constants, which a session computes when it loads a module.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let mut nodes: Vec<Vec<Node>> = region.nodes.drain(..).map(|node| vec![node]).collect();
    let mut makers: HashMap<TensorId, usize> = HashMap::new();
    let mut weights = Weights::default();
    for index in 0..nodes.len() {
        watch.check()?;
        let sum = nodes[index].last().filter(|node| is_sum(node)).cloned();
        if let Some(sum) = sum {
            let made = |id: &TensorId| makers.get(id).copied().filter(|_| uses.count(*id) == 1);
            let places: Vec<usize> = sum.inputs.iter().filter_map(made).collect();
            let branches: Vec<Node> =
                places.iter().filter_map(|place| nodes[*place].last().cloned()).collect();
            let new = match &branches[..] {
                [a, b] => weights.merged(graph, [a, b], &sum),
                [a] => weights.with_number(graph, a, &sum),
                _ => None,
            };
            if let Some(new) = new {
                let gone = branches.iter().chain([&sum]);
                gone.for_each(|old| old.inputs.iter().for_each(|id| uses.remove(*id)));
                new.iter().flat_map(|node| &node.inputs).for_each(|id| uses.add(*id));
                places.iter().for_each(|place| drop(nodes[*place].pop()));
                nodes[index] = new;
            }
        }
        nodes[index].iter().for_each(|node| weights.learn(graph, node));
        let outputs = nodes[index].last().map(|node| node.outputs.clone()).unwrap_or_default();
        makers.extend(outputs.into_iter().map(|id| (id, index)));
    }
    region.nodes = nodes.into_iter().flatten().collect();
    Ok(())
}

/// Whether a node adds two tensors of the same sizes, or of one element.
fn is_sum(node: &Node) -> bool {
    let NodeOp::Operation(Operation::Elementwise(op)) = &node.op else { return false };
    let [(dtype, a), (_, b)] = &op.inputs.0[..] else { return false };
    let fits = |dims: &[Size]| *dims == op.dims() || dims.iter().all(|size| *size == 1);
    let mut program = Expression::default();
    let value = program.call(Function::Add, &[Operand::Input(0), Operand::Input(1)]);
    program.store(value, *dtype);
    let sum = Elementwise::new([(*dtype, a.clone()), (*dtype, b.clone())], program);
    fits(a) && fits(b) && *op == sum
}

/// Tensors that depend on constants alone, besides those that are constants.
#[derive(Default)]
struct Weights(HashSet<TensorId>);

impl Weights {
    /// Adds what a node computes of constants.
    fn learn(&mut self, graph: &Graph, node: &Node) {
        let is_plain = matches!(node.op, NodeOp::Operation(_) | NodeOp::View);
        let fixed = node.outputs.iter().all(|id| graph.tensor(*id).shape.is_constant());
        if is_plain && fixed && !node.inputs.is_empty() && self.are_known(graph, &node.inputs) {
            self.0.extend(&node.outputs);
        }
    }

    fn are_known(&self, graph: &Graph, ids: &[TensorId]) -> bool {
        ids.iter().all(|id| graph.tensor(*id).constant.is_some() || self.0.contains(id))
    }

    /// The nodes in the place of two branches and their sum, the convolution last.
    fn merged(&self, graph: &mut Graph, branches: [&Node; 2], sum: &Node) -> Option<Vec<Node>> {
        let [a, b] = branches;
        [(a, b), (b, a)].into_iter().find_map(|(main, other)| {
            let conv = self.convolution(graph, main)?;
            let branch = self.branch(graph, conv, other).filter(|_| main.inputs[0] == other.inputs[0])?;
            Some(Merger { conv, main, branch, other, sum, new: Vec::new(), graph: &mut *graph }.nodes())
        })
    }

    /// The nodes in the place of a convolution and its sum with a constant of one element.
    fn with_number(&self, graph: &mut Graph, main: &Node, sum: &Node) -> Option<Vec<Node>> {
        let conv = self.convolution(graph, main).filter(|conv| conv.bias)?;
        let number = *sum.inputs.iter().find(|id| **id != main.outputs[0])?;
        let is_number = graph.tensor(number).count() == 1 && self.are_known(graph, &[number]);
        let same = graph.tensor(main.outputs[0]).sizes() == graph.tensor(sum.outputs[0]).sizes();
        if !is_number || !same {
            return None;
        }
        let (branch, new) = (Branch::Number(number), Vec::new());
        Some(Merger { conv, main, branch, other: sum, sum, new, graph }.nodes())
    }

    /// A convolution by known weights that does nothing with its sums.
    fn convolution<'a>(&self, graph: &Graph, node: &'a Node) -> Option<&'a Conv2d> {
        let NodeOp::Operation(Operation::Conv2d(op)) = &node.op else { return None };
        let is_plain = !op.residual && op.activation == Activation::None && op.layout == Layout::Nchw;
        let is_alone = op.read.is_none() && op.written.is_none();
        (is_plain && is_alone && self.are_known(graph, &node.inputs[1..])).then_some(op)
    }

    /// What a node is beside a convolution.
    fn branch(&self, graph: &Graph, conv: &Conv2d, node: &Node) -> Option<Branch> {
        if let Some(other) = self.convolution(graph, node) {
            let same = (other.input, other.groups, other.strides, other.dtype)
                == (conv.input, conv.groups, conv.strides, conv.dtype);
            let taps = [0, 1].map(|d| first_tap(conv, other, d));
            let [y, x] = [taps[0]?, taps[1]?];
            return same.then(|| Branch::Convolution { op: other.clone(), taps: [y, x] });
        }
        let NodeOp::Operation(Operation::Norm(norm)) = &node.op else { return None };
        let sizes = <[Size; 4]>::try_from(graph.tensor(*node.inputs.first()?).sizes()).ok()?;
        let is_known = norm.kind == NormKind::Batch && norm.order.is_none() && norm.dtype == conv.dtype;
        let same = sizes == conv.input && sizes[0].is(norm.batch) && sizes[1].is(norm.channels.into());
        let keeps = conv.filter[0] == norm.channels && conv.strides == [1, 1];
        let taps = [0, 1].map(|d| {
            let tap = conv.pads[d].checked_div(conv.dilations[d])?;
            (tap * conv.dilations[d] == conv.pads[d] && tap < conv.filter[2 + d]).then_some(tap)
        });
        let [y, x] = [taps[0]?, taps[1]?];
        (is_known && same && keeps && self.are_known(graph, &node.inputs[1..]))
            .then(|| Branch::Norm { norm: norm.clone(), tap: [y, x] })
    }
}

/// Where the first tap of a smaller convolution lies among those of a larger one; `None` where its taps are not some of those.
fn first_tap(conv: &Conv2d, other: &Conv2d, d: usize) -> Option<u64> {
    let (size, inner) = (conv.filter[2 + d], other.filter[2 + d]);
    if inner > 1 && conv.dilations[d] != other.dilations[d] {
        return None;
    }
    let distance = conv.pads[d].checked_sub(other.pads[d])?;
    let first = distance.checked_div(conv.dilations[d])?;
    (first * conv.dilations[d] == distance && first.checked_add(inner)? <= size).then_some(first)
}

/// What is added to a convolution.
#[derive(Clone)]
enum Branch {
    /// A convolution of the same image, with this one of the taps as its first.
    Convolution { op: Conv2d, taps: [u64; 2] },
    /// A batch normalization of the image, which is its value at a tap of its own channel.
    Norm { norm: Norm, tap: [u64; 2] },
    /// One element for all results.
    Number(TensorId),
}

/// What makes one convolution of two branches.
struct Merger<'a> {
    graph: &'a mut Graph,
    conv: &'a Conv2d,
    main: &'a Node,
    branch: Branch,
    other: &'a Node,
    sum: &'a Node,
    new: Vec<Node>,
}

impl Merger<'_> {
    fn nodes(mut self) -> Vec<Node> {
        let biases = |op: &Conv2d, node: &Node| op.bias.then(|| node.inputs[2]);
        let own = biases(self.conv, self.main);
        let branch = self.branch.clone();
        let (filter, more) = match &branch {
            Branch::Convolution { op, taps } => (self.with_taps(op, *taps), biases(op, self.other)),
            Branch::Norm { norm, tap } => {
                let (filter, bias) = self.with_channels(norm, *tap);
                (filter, Some(bias))
            }
            Branch::Number(number) => (self.main.inputs[1], Some(*number)),
        };
        let bias = match (own, more) {
            (Some(a), Some(b)) => {
                let dims = vec![self.conv.filter[0]];
                let beside = if matches!(branch, Branch::Number(_)) { Vec::new() } else { dims.clone() };
                let vectors = [(self.conv.dtype, a, dims), (self.conv.dtype, b, beside)];
                Some(self.compute(&vectors, |p, x| p.call(Function::Add, x)))
            }
            (a, b) => a.or(b),
        };
        let op = Conv2d { bias: bias.is_some(), ..self.conv.clone() };
        let inputs = [Some(self.main.inputs[0]), Some(filter), bias].into_iter().flatten().collect();
        let op = NodeOp::Operation(Operation::Conv2d(op));
        let (outputs, location) = (self.sum.outputs.clone(), self.main.location.clone());
        self.new.push(Node { op, inputs, outputs, location });
        self.new
    }

    /// The filters, with those of another convolution added to some of their taps.
    fn with_taps(&mut self, other: &Conv2d, [y, x]: [u64; 2]) -> TensorId {
        let (dtype, size, inner) = (self.conv.dtype, self.conv.filter, other.filter);
        let mut added = self.other.inputs[1];
        if size != inner {
            let pad = Pad {
                input: inner.map(Size::from).to_vec(),
                before: [0, 0, y, x].map(Size::from).to_vec(),
                after: [0, 0, size[2] - inner[2] - y, size[3] - inner[3] - x].map(Size::from).to_vec(),
                border: Border::default(),
                value: Default::default(),
                dtype,
            };
            added = self.push(Operation::Pad(pad), vec![added], dtype, &size);
        }
        let both = [(dtype, self.main.inputs[1], size.to_vec()), (dtype, added, size.to_vec())];
        self.compute(&both, |p, x| p.call(Function::Add, x))
    }

    /// The filters, with the factor of each channel added to its own tap, and what is added to each channel.
    fn with_channels(&mut self, norm: &Norm, [y, x]: [u64; 2]) -> (TensorId, TensorId) {
        let (dtype, [filters, of_group, rows, columns]) = (self.conv.dtype, self.conv.filter);
        let mut rest = self.other.inputs[3..].iter().copied();
        let scale = if norm.scale { rest.next() } else { None };
        let beta = if norm.bias { rest.next() } else { None };
        let factor = affine::factor(self.graph, self.other, norm, [Some(self.other.inputs[2]), scale]);
        let factors = factor.outputs[0];
        self.new.push(factor);

        let own: Vec<f32> = (0..filters).map(|filter| (filter % of_group) as f32).collect();
        let all: Vec<f32> = (0..of_group).map(|channel| channel as f32).collect();
        let taps = (0..rows * columns).map(|at| f32::from(u8::from(at == y * columns + x))).collect();
        let inputs = [
            (dtype, self.main.inputs[1], self.conv.filter.to_vec()),
            (DType::F32, factors, vec![filters, 1, 1, 1]),
            (DType::F32, self.constant(own), vec![filters, 1, 1, 1]),
            (DType::F32, self.constant(all), vec![1, of_group, 1, 1]),
            (DType::F32, self.constant(taps), vec![1, 1, rows, columns]),
        ];
        let filter = self.compute(&inputs, |p, x| {
            let is_own = p.call(Function::Eq, &[x[2], x[3]]);
            let value = p.call(Function::Select, &[is_own, x[1], 0.0.into()]);
            let at_tap = p.call(Function::Mul, &[value, x[4]]);
            p.call(Function::Add, &[x[0], at_tap])
        });
        let vector = vec![filters];
        let mut inputs =
            vec![(dtype, self.other.inputs[1], vector.clone()), (DType::F32, factors, vector.clone())];
        inputs.extend(beta.map(|beta| (dtype, beta, vector)));
        let bias = self.compute(&inputs, |p, x| {
            let moved = p.call(Function::Mul, &x[..2]);
            p.call(Function::Sub, &[x.get(2).copied().unwrap_or(0.0.into()), moved])
        });
        (filter, bias)
    }

    /// A vector of constants.
    fn constant(&mut self, values: Vec<f32>) -> TensorId {
        let shape = Shape::new([values.len() as u64]);
        let name = self.sum.location.as_str().to_owned();
        let mut tensor = Tensor::new(name, ElementType::Of(DType::F32), shape);
        tensor.constant = Some(values.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>().into());
        self.graph.add_tensor(tensor)
    }

    /// Computes a tensor of the convolution's type, with the dimensions that the first input has.
    fn compute(
        &mut self,
        inputs: &[(DType, TensorId, Vec<u64>)],
        compute: impl FnOnce(&mut Expression, &[Operand]) -> Operand,
    ) -> TensorId {
        let operands: Vec<Operand> = (0..inputs.len()).map(Operand::Input).collect();
        let (mut program, dtype) = (Expression::default(), self.conv.dtype);
        let value = compute(&mut program, &operands);
        program.store(value, dtype);
        let shapes: Vec<_> = inputs.iter().map(|(dtype, _, dims)| (*dtype, dims.clone())).collect();
        let dims = inputs.first().map(|(_, _, dims)| dims.clone()).unwrap_or_default();
        let ids = inputs.iter().map(|(_, id, _)| *id).collect();
        self.push(Operation::Elementwise(Elementwise::new(shapes, program)), ids, dtype, &dims)
    }

    fn push(&mut self, operation: Operation, inputs: Vec<TensorId>, dtype: DType, dims: &[u64]) -> TensorId {
        let location = self.main.location.clone();
        let name = location.as_str().to_owned();
        let id = self.graph.add_tensor(Tensor::new(
            name,
            ElementType::Of(dtype),
            Shape::new(dims.iter().copied()),
        ));
        self.new.push(Node { op: NodeOp::Operation(operation), inputs, outputs: vec![id], location });
        id
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::build::{Builder, Sliding};

    /// Convolutions of `x` with kernels and groups, and a normalization of it if so, added; how many are left.
    fn left(kernels_of: &[(u64, u64)], has_norm: bool, used_twice: bool) -> usize {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 8, 9, 7]).unwrap();
        let mut all = Vec::new();
        for (seed, (size, groups)) in (3..).zip(kernels_of) {
            let filter = constant(&mut b, &[8, 8 / groups, *size, *size], seed);
            let bias = constant(&mut b, &[8], seed + 9);
            let around = (size / 2, size / 2);
            let sliding = Sliding { pads: vec![around; 2], ..Sliding::plain(2) };
            all.push(b.conv(x, filter, Some(bias), &sliding, *groups).unwrap());
        }
        if has_norm {
            let [mean, scale, beta] = [2, 3, 4].map(|seed| constant(&mut b, &[8], seed));
            let variance = b.values(DType::F32, &[8], &Values::Float(vec![0.5; 8])).unwrap();
            all.push(b.batch_norm(x, [mean, variance], Some(scale), Some(beta), 1e-2).unwrap());
        }
        let y = all[1..].iter().fold(all[0], |sum, branch| b.binary(Function::Add, sum, *branch).unwrap());
        let y = b.unary(Function::Relu, y).unwrap();
        b.output("y", y);
        if used_twice {
            b.output("first", all[0]);
        }
        let graph = optimized(b.finish().unwrap());
        let of_images = |op: &&&Operation| {
            matches!(op, Operation::Conv2d(_))
                || matches!(op, Operation::Elementwise(op) if op.dims().len() == 4 && op.dims()[0] == 2)
        };
        kernels(&graph).iter().filter(of_images).count()
    }

    #[test]
    fn branches_become_one_convolution() {
        assert_eq!(left(&[(3, 1), (1, 1)], true, false), 1);
        assert_eq!(left(&[(1, 1), (3, 1)], false, false), 1);
        assert_eq!(left(&[(3, 8), (3, 8), (1, 8)], true, false), 1);
        assert_eq!(left(&[(3, 2), (5, 2)], true, false), 1);
    }

    #[test]
    fn a_number_goes_into_the_bias() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 4, 5, 6]).unwrap();
        let (filter, bias) = (constant(&mut b, &[4, 4, 1, 1], 1), constant(&mut b, &[4], 2));
        let y = b.conv(x, filter, Some(bias), &Sliding::plain(2), 1).unwrap();
        let zero = b.values(DType::F32, &[], &Values::Float(vec![0.0])).unwrap();
        let y = b.binary(Function::Add, zero, y).unwrap();
        let y = b.unary(Function::Neg, y).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let names: Vec<&str> = kernels(&graph).iter().map(|op| op.name()).collect();
        // The bias, the convolution, and what becomes of its results.
        assert_eq!(names, ["elementwise", "conv2d", "elementwise"], "{graph}");
        let Operation::Elementwise(last) = kernels(&graph)[2] else { panic!("{graph}") };
        assert_eq!(last.inputs.0.len(), 1, "{graph}");
    }

    #[test]
    fn others_stay() {
        // Groups that differ, and a branch that is an output, too.
        assert_eq!(left(&[(3, 1), (3, 8)], false, false), 2);
        assert_eq!(left(&[(3, 1), (1, 1)], false, true), 2);
    }

    #[test]
    fn taps_lie_in_those_of_the_larger_one() {
        let of = |size: u64, pad: u64, dilation: u64| Conv2d {
            pads: [pad; 4],
            dilations: [dilation; 2],
            ..Conv2d::new([1, 4, 9, 9], [4, 4, size, size], DType::F32)
        };
        assert_eq!(first_tap(&of(3, 1, 1), &of(1, 0, 1), 0), Some(1));
        assert_eq!(first_tap(&of(7, 3, 1), &of(3, 1, 1), 0), Some(2));
        assert_eq!(first_tap(&of(3, 2, 2), &of(1, 0, 1), 0), Some(1), "a tap has no dilation");
        assert_eq!(first_tap(&of(3, 2, 2), &of(3, 1, 1), 0), None);
        assert_eq!(first_tap(&of(3, 1, 2), &of(1, 0, 1), 0), None, "it lies between two taps");
        assert_eq!(first_tap(&of(1, 0, 1), &of(3, 1, 1), 0), None);
        assert_eq!(first_tap(&of(3, 0, 1), &of(1, 0, 1), 0), Some(0));
    }
}
