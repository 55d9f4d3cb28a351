//! Giving convolutions and products what follows them: an added value for each filter or column, an added tensor like the
//! result, and an activation go into the kernel.

use std::collections::HashSet;

use halite_ops::{
    Activation, DType, Operation,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    activations::{activation, function_of},
    factors::{Factor, Of},
    linear::{LinearOp, each_after, linear_op},
    merge::{Reader, is_call},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// What is added to sums and activations go into the operation before them.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let copies = copies(region);
    each_after(graph, region, uses, watch, &|graph, before, node| {
        whole(graph, before, node, &copies).or_else(|| beginning(before, node))
    })
}

/// Parts and other orders of tensors, which elementwise operations read where they lie.
fn copies(region: &Region) -> HashSet<TensorId> {
    let mut found = HashSet::new();
    for node in &region.nodes {
        let is_copy = match node.op {
            NodeOp::Operation(Operation::StridedCopy(_)) => true,
            NodeOp::View => found.contains(&node.inputs[0]),
            _ => false,
        };
        found.extend(node.outputs.iter().filter(|_| is_copy));
    }
    found
}

/// What an elementwise node behind such an operation does, as far as it was looked at.
struct Follower<'a> {
    before: &'a Node,
    reader: Reader,
    /// The input that is the operation's result.
    input: usize,
    /// What the operation reads, with what is added.
    inputs: Vec<TensorId>,
    /// What its result is multiplied by.
    factor: Option<Factor>,
}

impl<'a> Follower<'a> {
    fn new(before: &'a Node, node: &Node) -> Option<Self> {
        let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return None };
        let reader = Reader::new(elementwise, &node.inputs);
        let input = reader.input_of(before.outputs[0])?;
        Some(Follower { before, reader, input, inputs: before.inputs.clone(), factor: None })
    }

    /// Where the only thing that becomes of the result is that an operand is added, or multiplied with it: the node that does that, and
    /// the operand.
    fn only(&self, function: Function) -> Option<(usize, Operand)> {
        let (readers, stored) = self.reader.readers(self.input);
        let ([call], false) = (&readers[..], stored) else { return None };
        let node = &self.reader.program.nodes[*call];
        let own = Operand::Input(self.input);
        let other = *node.operands.iter().find(|o| **o != own)?;
        let is_it = is_call(node, function, &[own, other]) || is_call(node, function, &[other, own]);
        is_it.then_some((*call, other))
    }

    /// The same for an input that nothing else reads.
    fn only_input(&self, function: Function) -> Option<(usize, usize)> {
        let (call, Operand::Input(other)) = self.only(function)? else { return None };
        (self.reader.readers(other) == (vec![call], false)).then_some((call, other))
    }

    /// The same for a sum.
    fn sum(&self) -> Option<(usize, usize)> {
        self.only_input(Function::Add)
    }

    /// Whether an input has a value for each filter or column.
    fn is_for_each(&self, input: usize, own: &LinearOp<'_>) -> bool {
        let (_, dtype, dims) = &self.reader.inputs[input];
        let rank = self.reader.inputs[self.input].2.len();
        let Some((at, place)) = rank.checked_sub(dims.len()).zip(rank.checked_sub(own.behind + 1)) else {
            return false;
        };
        let each = |(i, size): (usize, &Size)| *size == if i + at == place { own.values } else { 1.into() };
        *dtype == own.dtype
            && dims.iter().enumerate().all(each)
            && dims.iter().product::<Size>() == own.values
    }

    /// Takes a factor, if that is what follows and nothing but values for each filter or column was added before.
    fn factor(&mut self, own: &LinearOp<'_>) -> bool {
        if self.factor.is_some()
            || own.weights().is_none()
            || own.residual.as_ref().is_some_and(|there| **there)
        {
            return false;
        }
        let of = match self.only(Function::Mul) {
            Some((call, Operand::Constant(Scalar::Float(value)))) => {
                self.reader.replace_by_input(call, self.input, &[]);
                Of::All(value)
            }
            _ => match self.only_input(Function::Mul).filter(|(_, factor)| self.is_for_each(*factor, own)) {
                Some((call, factor)) => {
                    let id = self.reader.inputs[factor].0;
                    self.drop((call, factor));
                    Of::Each(id)
                }
                None => return false,
            },
        };
        self.factor = Some(Factor { of, is_behind_bias: *own.bias });
        true
    }

    /// Takes what a node does with the result and an input out of the expression.
    fn drop(&mut self, (call, input): (usize, usize)) {
        self.reader.replace_by_input(call, self.input, &[]);
        self.reader.drop_input(input);
        self.input -= usize::from(input < self.input);
    }

    /// Takes a sum out of the expression, and the added tensor into the inputs, before the last `behind` of them.
    fn take(&mut self, (call, added): (usize, usize), behind: usize) {
        self.inputs.insert(self.inputs.len() - behind, self.reader.inputs[added].0);
        self.drop((call, added));
    }

    /// Takes an added value for each filter or column, if that is what follows.
    fn bias(&mut self, own: &mut LinearOp<'_>) -> bool {
        let Some(sum) = self.sum().filter(|_| !*own.bias) else { return false };
        let fits = self.is_for_each(sum.1, own);
        // One row and a bias look like two tensors of one shape, and are both.
        if fits {
            self.take(sum, usize::from(own.residual.as_ref().is_some_and(|there| **there)));
            *own.bias = true;
        }
        fits
    }

    /// Takes an added tensor like the result, if that is what follows.
    fn residual(&mut self, own: &mut LinearOp<'_>) -> bool {
        let Some(there) = own.residual.as_mut().filter(|there| !***there) else { return false };
        let Some(sum) = self.sum() else { return false };
        let (result, added) = (&self.reader.inputs[self.input], &self.reader.inputs[sum.1]);
        let fits = added.1 == own.dtype && added.2 == result.2;
        if fits {
            **there = true;
            self.take(sum, 0);
        }
        fits
    }

    /// Takes a tensor like the result that is added at last, behind what else is done with the result; no part of another one, which
    /// would have to be copied.
    fn residual_behind(&mut self, own: &mut LinearOp<'_>, copies: &HashSet<TensorId>) {
        let (Some(there), Some(behind)) = (own.residual.as_mut(), own.residual_behind.as_mut()) else {
            return;
        };
        let [output] = &self.reader.program.outputs[..] else { return };
        let Some((call, before)) = self.reader.program.nodes.split_last() else { return };
        let is_last = output.value == Operand::Node(before.len()) && call.function == Function::Add;
        let (value, added) = match call.operands[..] {
            [value @ Operand::Node(_), Operand::Input(added)]
            | [Operand::Input(added), value @ Operand::Node(_)] => (value, added),
            _ => return,
        };
        let tensor = &self.reader.inputs[added];
        let fits = tensor.1 == own.dtype && tensor.2 == self.reader.inputs[self.input].2;
        let is_read_once = self.reader.readers(added) == (vec![before.len()], false);
        if **there || !is_last || !fits || !is_read_once || added == self.input || copies.contains(&tensor.0)
        {
            return;
        }
        (**there, **behind) = (true, true);
        self.inputs.push(tensor.0);
        self.reader.program.nodes.pop();
        self.reader.program.outputs[0].value = value;
        self.reader.drop_input(added);
        self.input -= usize::from(added < self.input);
    }
}

/// Whether kernels are at hand that add a tensor behind a function: those on matrix units. Others need a dispatch for it, as the
/// graph has one.
fn adds_behind(graph: &Graph, own: &LinearOp<'_>) -> bool {
    graph.matrix_units && own.dtype == DType::F16
}

/// The operation that does all that the elementwise node behind it does.
fn whole(graph: &mut Graph, before: &Node, node: &Node, copies: &HashSet<TensorId>) -> Option<Vec<Node>> {
    let NodeOp::Operation(mut operation) = before.op.clone() else { return None };
    let mut own = linear_op(&mut operation)?;
    let of = |id| (graph.tensor(id).element, graph.tensor(id).count());
    if *own.activation != Activation::None
        || node.outputs.len() != 1
        || of(before.outputs[0]) != of(node.outputs[0])
    {
        return None;
    }
    let mut follower = Follower::new(before, node)?;
    while follower.bias(&mut own) || follower.factor(&own) || follower.residual(&mut own) {}
    if adds_behind(graph, &own) {
        follower.residual_behind(&mut own, copies);
    }
    if follower.reader.inputs.len() != 1 {
        return None;
    }
    *own.activation = function_of(&follower.reader)?;
    let (mut nodes, inputs) = match follower.factor {
        Some(factor) => factor.into_weights(graph, &own, (before, node), follower.inputs)?,
        None => (Vec::new(), follower.inputs),
    };
    let (op, outputs) = (NodeOp::Operation(operation), node.outputs.clone());
    nodes.push(Node { op, inputs, outputs, location: before.location.clone() });
    Some(nodes)
}

/// The convolution with the first steps of the elementwise node behind it, and what is left of that: steps that every
/// kernel does by itself.
fn beginning(before: &Node, node: &Node) -> Option<Vec<Node>> {
    let NodeOp::Operation(mut operation) = before.op.clone() else { return None };
    let mut own = linear_op(&mut operation)?;
    if *own.activation != Activation::None || !own.is_convolution() {
        return None;
    }
    let mut follower = Follower::new(before, node)?;
    let mut changed = follower.bias(&mut own);
    let Follower { before, mut reader, input, inputs, .. } = follower;
    let found = activation(&reader, input).filter(|(.., activation)| activation.limits().is_some());
    if let Some((result, dropped, activation)) = found {
        reader.replace_by_input(result, input, &dropped);
        (*own.activation, changed) = (activation, true);
    }
    if !changed {
        return None;
    }
    let location = before.location.clone();
    let op = NodeOp::Operation(operation);
    let (rest, ids) = reader.into_operation();
    let rest = Node { op: NodeOp::Operation(Operation::Elementwise(rest)), inputs: ids, ..node.clone() };
    Some(vec![Node { op, inputs, outputs: before.outputs.clone(), location }, rest])
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::build::{Builder, QuantWeights, Sliding};

    #[test]
    fn tensors_added_behind_an_activation_go_into_products_on_matrix_units() {
        for (matrix_units, function, behind) in
            [(true, Function::Silu, true), (true, Function::Neg, false), (false, Function::Silu, false)]
        {
            let mut b = Builder::new();
            let x = b.input("x", DType::F16.into(), &[6, 8]).unwrap();
            let weights = constant(&mut b, &[8, 8], 7);
            let weights = b.cast(weights, DType::F16).unwrap();
            let y = b.matmul(x, weights).unwrap();
            let y = b.map(&[y, x], DType::F16, |p, x| {
                let of = p.call(function, &[x[0]]);
                p.call(Function::Add, &[x[1], of])
            });
            b.output("y", y.unwrap());
            let mut graph = b.finish().unwrap();
            graph.matrix_units = matrix_units;
            let graph = optimized(graph);
            let found = kernels(&graph);
            let is_behind =
                |op: &&Operation| matches!(op, Operation::MatMul(op) if op.residual && op.residual_behind);
            assert_eq!(found.iter().any(is_behind), behind, "{graph}");
            assert_eq!(found.len() == 1, behind, "{graph}");
        }
    }

    #[test]
    fn leaky_units_with_slopes_above_0_go_into_convolutions() {
        for (slope, fused) in [(0.01f32, true), (0.0, false), (-0.5, false)] {
            let mut b = Builder::new();
            let x = b.input("x", DType::F32.into(), &[1, 4, 6, 6]).unwrap();
            let taps = constant(&mut b, &[5, 4, 3, 3], 7);
            let sliding = Sliding { strides: vec![1; 2], dilations: vec![1; 2], pads: vec![(1, 1); 2] };
            let y = b.conv(x, taps, None, &sliding, 1).unwrap();
            let y = b.map(&[y], DType::F32, |p, x| p.call(Function::Prelu, &[x[0], slope.into()])).unwrap();
            b.output("y", y);
            let graph = optimized(b.finish().unwrap());
            let found = match kernels(&graph)[..] {
                [Operation::Conv2d(op)] => Some(op.activation.to_string()),
                _ => None,
            };
            assert_eq!(found.is_some(), fused, "{slope}: {graph}");
            if slope > 0.0 {
                assert_eq!(found, Some(format!("leaky_relu_{slope}")));
            }
        }
    }

    #[test]
    fn products_by_packed_weights_take_what_is_added_and_an_activation() {
        // Of three dimensions the product's result is viewed.
        for rows in [vec![3], vec![3, 1]] {
            let [input, output] = [32, 5].map(|last| [&rows[..], &[last]].concat());
            with_all(&input, &output);
        }
    }

    fn with_all(input: &[u64], output: &[u64]) {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), input).unwrap();
        let other = b.input("other", DType::F32.into(), output).unwrap();
        let packed = (0..80).map(|i| i * 37 % 256).collect();
        let packed = b.values(DType::U8, &[5, 16], &Values::Int(packed)).unwrap();
        let scales = constant(&mut b, &[5, 1], 7);
        let weights = QuantWeights { packed, bits: 4, length: 32, scales, zeros: None, group: 32 };
        let product = b.quant_product(x, &weights).unwrap();
        let bias = constant(&mut b, &[5], 9);
        let sum = b.binary(Function::Add, product, bias).unwrap();
        let sum = b.binary(Function::Add, other, sum).unwrap();
        let y = b.unary(Function::Relu, sum).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let [Operation::QuantMatMul(made)] = kernels(&graph)[..] else { panic!("{graph}") };
        assert_eq!((made.bias, made.residual, made.activation), (true, true, Activation::Relu));
    }
}
