//! Owns giving convolutions what follows them: batch normalization goes into the filters, an added value for each filter
//! and an activation into the kernel. Does not own: joining elementwise nodes (`fuse`, which runs in between).

use std::collections::HashMap;

use halite_shaders::{
    Activation, DType, Operation,
    emit::{Expression, Function, Node as Call, Operand, Scalar},
    ops::{
        Layout,
        elementwise::Elementwise,
        norm::{Norm, NormKind},
    },
};

use super::{
    Uses,
    merge::{Reader, is_call},
};
use crate::graph::{ElementType, Graph, Node, NodeOp, Region, Tensor, TensorId};

/// The fields of convolutions that passes change.
struct Conv<'a> {
    bias: &'a mut bool,
    activation: &'a mut Activation,
    /// Number of filters.
    filters: u64,
    /// Dimensions with which a value for each filter lies beside the filters' weights.
    beside: Vec<u64>,
    /// Dimensions of the weights.
    weights: Vec<u64>,
    dtype: DType,
}

fn conv(operation: &mut Operation) -> Option<Conv<'_>> {
    Some(match operation {
        Operation::Conv2d(c) if c.layout == Layout::Nchw => Conv {
            filters: c.filter[0],
            beside: vec![c.filter[0], 1, 1, 1],
            weights: c.filter.into(),
            dtype: c.dtype,
            bias: &mut c.bias,
            activation: &mut c.activation,
        },
        Operation::Conv1d(c) if c.layout == Layout::Nchw => Conv {
            filters: c.filter[0],
            beside: vec![c.filter[0], 1, 1],
            weights: c.filter.into(),
            dtype: c.dtype,
            bias: &mut c.bias,
            activation: &mut c.activation,
        },
        Operation::ConvTranspose2d(c) if c.groups == 1 => Conv {
            filters: c.filter[1],
            beside: vec![1, c.filter[1], 1, 1],
            weights: c.filter.into(),
            dtype: c.dtype,
            bias: &mut c.bias,
            activation: &mut c.activation,
        },
        _ => return None,
    })
}

/// Batch normalization by constants goes into the weights of the convolution before it.
pub(super) fn normalize(graph: &mut Graph, region: &mut Region, uses: &mut Uses) {
    each_after_conv(graph, region, uses, &|graph, before, node| {
        let NodeOp::Kernel(Operation::Norm(norm)) = &node.op else { return None };
        if norm.kind != NormKind::Batch {
            return None;
        }
        fold_norm(graph, norm, before, node)
    });
}

/// What is added for each filter and activations go into the convolution before them.
pub(super) fn finish(graph: &mut Graph, region: &mut Region, uses: &mut Uses) {
    each_after_conv(graph, region, uses, &take_over);
}

/// A rewrite of a convolution and the node behind it: nodes in their place, in order.
type Rewrite = dyn Fn(&mut Graph, &Node, &Node) -> Option<Vec<Node>>;

/// Offers a convolution whose result is read once, and its reader.
fn each_after_conv(graph: &mut Graph, region: &mut Region, uses: &mut Uses, rewrite: &Rewrite) {
    let mut nodes: Vec<Vec<Node>> = region.nodes.drain(..).map(|node| vec![node]).collect();
    let mut makers: HashMap<TensorId, usize> = HashMap::new();
    for index in 0..nodes.len() {
        let node = nodes[index].last().expect("one was put there").clone();
        let before = node.inputs.iter().find_map(|id| {
            let maker = *makers.get(id).filter(|_| uses.count(*id) == 1)?;
            let before = nodes[maker].last()?;
            let NodeOp::Kernel(operation) = &before.op else { return None };
            conv(&mut operation.clone()).is_some().then_some(maker)
        });
        let new = before.and_then(|maker| {
            let before = nodes[maker].last().expect("it was just looked at").clone();
            rewrite(graph, &before, &node).map(|new| (maker, before, new))
        });
        if let Some((maker, before, new)) = new {
            for old in [&before, &node] {
                old.inputs.iter().for_each(|id| uses.remove(*id));
            }
            new.iter().flat_map(|node| &node.inputs).for_each(|id| uses.add(*id));
            nodes[maker].pop();
            nodes[index] = new;
        }
        let outputs = nodes[index].last().map(|node| node.outputs.clone()).unwrap_or_default();
        makers.extend(outputs.into_iter().map(|id| (id, index)));
    }
    region.nodes = nodes.into_iter().flatten().collect();
}

/// The convolution with scaled weights: `(conv(x) + b - mean) * s + beta` with `s = scale / sqrt(variance + epsilon)`.
fn fold_norm(graph: &mut Graph, norm: &Norm, before: &Node, node: &Node) -> Option<Vec<Node>> {
    let NodeOp::Kernel(mut operation) = before.op.clone() else { return None };
    let own = conv(&mut operation)?;
    let constant = |id: &TensorId| graph.tensor(*id).constant.is_some();
    let fits = *own.activation == Activation::None && norm.channels == own.filters && norm.dtype == own.dtype;
    if !fits || !before.inputs[1..].iter().all(constant) || !node.inputs[1..].iter().all(constant) {
        return None;
    }
    let (beside, weights, dtype, filters) = (own.beside, own.weights, own.dtype, own.filters);
    let had_bias = std::mem::replace(own.bias, true);
    let mut rest = node.inputs[3..].iter().copied();
    let (mean, variance) = (node.inputs[1], node.inputs[2]);
    let scale = if norm.scale { rest.next() } else { None };
    let beta = if norm.bias { rest.next() } else { None };

    let mut new = Vec::new();
    let vector = vec![filters];
    let mut s = Maker { graph, new: &mut new, dtype, node };
    let epsilon = norm.epsilon;
    let inputs: Vec<_> =
        [Some(variance), scale].into_iter().flatten().map(|id| (id, vector.clone())).collect();
    let factor = s.make(&inputs, &vector, |p, x| {
        let sum = p.call(Function::Add, &[x[0], epsilon.into()]);
        let inverse = p.call(Function::Rsqrt, &[sum]);
        x.get(1).map_or(inverse, |scale| p.call(Function::Mul, &[*scale, inverse]))
    });
    let filter = s.make(&[(before.inputs[1], weights.clone()), (factor, beside)], &weights, |p, x| {
        p.call(Function::Mul, x)
    });
    let bias = had_bias.then(|| before.inputs[2]);
    let present = [Some(mean), Some(factor), bias, beta];
    let inputs: Vec<_> = present.into_iter().flatten().map(|id| (id, vector.clone())).collect();
    let added = s.make(&inputs, &vector, |p, x| {
        let mut rest = x[2..].iter();
        let bias = if had_bias { rest.next().copied() } else { None };
        let centred = p.call(Function::Sub, &[bias.unwrap_or(0.0.into()), x[0]]);
        let scaled = p.call(Function::Mul, &[centred, x[1]]);
        rest.next().map_or(scaled, |beta| p.call(Function::Add, &[scaled, *beta]))
    });
    let inputs = vec![before.inputs[0], filter, added];
    let (outputs, place) = (node.outputs.clone(), before.place.clone());
    new.push(Node { op: NodeOp::Kernel(operation), inputs, outputs, place });
    Some(new)
}

/// Makes elementwise nodes over constants.
struct Maker<'a> {
    graph: &'a mut Graph,
    new: &'a mut Vec<Node>,
    dtype: DType,
    node: &'a Node,
}

impl Maker<'_> {
    fn make(
        &mut self,
        inputs: &[(TensorId, Vec<u64>)],
        dims: &[u64],
        compute: impl FnOnce(&mut Expression, &[Operand]) -> Operand,
    ) -> TensorId {
        let operands: Vec<Operand> = (0..inputs.len()).map(Operand::Input).collect();
        let mut program = Expression::default();
        let value = compute(&mut program, &operands);
        program.store(value, self.dtype);
        let name = self.node.place.as_str().to_owned();
        let element = ElementType::Of(self.dtype);
        let id = self.graph.add_tensor(Tensor { name, element, dims: dims.to_vec(), constant: None });
        let shapes: Vec<_> = inputs.iter().map(|(_, dims)| (self.dtype, dims.clone())).collect();
        self.new.push(Node {
            op: NodeOp::Kernel(Operation::Elementwise(Elementwise::new(shapes, program))),
            inputs: inputs.iter().map(|(id, _)| *id).collect(),
            outputs: vec![id],
            place: self.node.place.clone(),
        });
        id
    }
}

/// The convolution with the first steps of the elementwise node behind it, and what is left of that.
fn take_over(graph: &mut Graph, before: &Node, node: &Node) -> Option<Vec<Node>> {
    let NodeOp::Kernel(Operation::Elementwise(elementwise)) = &node.op else { return None };
    let NodeOp::Kernel(mut operation) = before.op.clone() else { return None };
    let own = conv(&mut operation)?;
    let mut reader = Reader::new(elementwise, &node.inputs);
    let input = reader.input_of(before.outputs[0])?;
    let mut inputs = before.inputs.clone();
    let channel = graph.tensor(before.outputs[0]).dims.len().checked_sub(own.beside.len() - 1)?;
    let mut input = input;
    let mut changed = false;
    if *own.activation != Activation::None {
        return None;
    }
    let found = if *own.bias { None } else { bias(graph, &reader, input, own.filters, channel) };
    if let Some((call, added)) = found {
        inputs.push(reader.inputs[added].0);
        reader.replace_by_input(call, input, &[]);
        reader.drop_input(added);
        input -= usize::from(added < input);
        (*own.bias, changed) = (true, true);
    }
    if let Some((result, dropped, activation)) = activation(&reader, input) {
        reader.replace_by_input(result, input, &dropped);
        (*own.activation, changed) = (activation, true);
    }
    if !changed {
        return None;
    }
    let place = before.place.clone();
    let op = NodeOp::Kernel(operation);
    let only = reader.program.nodes.is_empty() && reader.inputs.len() == 1 && node.outputs.len() == 1;
    let same = |a: TensorId, b: TensorId| {
        let of = |id| (graph.tensor(id).element, graph.tensor(id).elements());
        of(a) == of(b)
    };
    if only && same(before.outputs[0], node.outputs[0]) {
        return Some(vec![Node { op, inputs, outputs: node.outputs.clone(), place }]);
    }
    let (rest, ids) = reader.into_operation();
    let rest = Node { op: NodeOp::Kernel(Operation::Elementwise(rest)), inputs: ids, ..node.clone() };
    Some(vec![Node { op, inputs, outputs: before.outputs.clone(), place }, rest])
}

/// The node that adds a constant for each filter to the input, and the constant's input.
fn bias(
    graph: &Graph,
    reader: &Reader,
    input: usize,
    filters: u64,
    channel: usize,
) -> Option<(usize, usize)> {
    let (readers, stored) = reader.readers(input);
    let [call] = readers[..] else { return None };
    let node = &reader.program.nodes[call];
    let operands = [Operand::Input(input), *node.operands.iter().find(|o| **o != Operand::Input(input))?];
    let Operand::Input(added) = operands[1] else { return None };
    let turned = [operands[1], operands[0]];
    if stored || !(is_call(node, Function::Add, &operands) || is_call(node, Function::Add, &turned)) {
        return None;
    }
    let (id, dtype, dims) = &reader.inputs[added];
    let rank = reader.inputs[input].2.len();
    let at = rank.checked_sub(dims.len())?;
    let each = |(i, size): (usize, &u64)| *size == if i + at == channel { filters } else { 1 };
    let fits = dims.iter().enumerate().all(each) && crate::graph::elements(dims) == filters;
    let constant = graph.tensor(*id).constant.is_some() && *dtype == reader.inputs[input].1;
    (fits && constant && reader.readers(added) == (vec![call], false)).then_some((call, added))
}

/// The node whose result is an activation of the input, the nodes on the way, and which activation it is.
fn activation(reader: &Reader, input: usize) -> Option<(usize, Vec<usize>, Activation)> {
    let x = Operand::Input(input);
    let (readers, stored) = reader.readers(input);
    let nodes = &reader.program.nodes;
    if stored {
        return None;
    }
    match readers[..] {
        [call] => {
            let limited = limited(reader, call, x).map(|last| (last, vec![call], Activation::Relu6));
            limited.or_else(|| one(&nodes[call], x).map(|activation| (call, Vec::new(), activation)))
        }
        [gate, product] => {
            let both = [x, Operand::Node(gate)];
            let turned = [both[1], both[0]];
            let product_of = |operands: &[Operand]| is_call(&nodes[product], Function::Mul, operands);
            let uses = nodes.iter().flat_map(|n| &n.operands).filter(|o| **o == both[1]).count();
            let outputs = reader.program.outputs.iter().any(|o| o.value == both[1]);
            if uses != 1 || outputs || !(product_of(&both) || product_of(&turned)) {
                return None;
            }
            let activation = match nodes[gate].function {
                Function::Sigmoid => Activation::Silu,
                Function::HardSigmoid if is_sixth(&nodes[gate].operands[1..]) => Activation::HardSwish,
                _ => return None,
            };
            Some((product, vec![gate], activation))
        }
        _ => None,
    }
}

/// The second of two limits, 0 and 6 in either order, whose first is `call` on `x`, when nothing else reads the first.
fn limited(reader: &Reader, call: usize, x: Operand) -> Option<usize> {
    let nodes = &reader.program.nodes;
    let first = Operand::Node(call);
    let mut readers = nodes.iter().enumerate().filter(|(_, node)| node.operands.contains(&first));
    let (last, node) = readers.next()?;
    if readers.next().is_some() || reader.program.outputs.iter().any(|output| output.value == first) {
        return None;
    }
    let [least, most] = [(Function::Max, 0.0), (Function::Min, 6.0)];
    let limits = |call: &Call, (function, limit): (Function, f32), x| is_limit(call, function, x, limit);
    let rising = limits(&nodes[call], least, x) && limits(node, most, first);
    let falling = limits(&nodes[call], most, x) && limits(node, least, first);
    (rising || falling).then_some(last)
}

/// Whether a node is the larger or the smaller of `x` and a constant.
fn is_limit(call: &Call, function: Function, x: Operand, limit: f32) -> bool {
    let limit = Operand::from(limit);
    is_call(call, function, &[x, limit]) || is_call(call, function, &[limit, x])
}

fn one(call: &Call, x: Operand) -> Option<Activation> {
    let (zero, six) = (Operand::from(0.0), Operand::from(6.0));
    let of = |function, operands: &[Operand]| is_call(call, function, operands);
    Some(match () {
        () if of(Function::Relu, &[x]) || is_limit(call, Function::Max, x, 0.0) => Activation::Relu,
        () if of(Function::Clip, &[x, zero, six]) => Activation::Relu6,
        () if of(Function::Silu, &[x]) => Activation::Silu,
        () if of(Function::Sigmoid, &[x]) => Activation::Sigmoid,
        () if of(Function::HardSwish, &[x]) => Activation::HardSwish,
        () => return None,
    })
}

/// Whether a hard sigmoid is the one of hard-swish, `x / 6 + 1 / 2`.
fn is_sixth(operands: &[Operand]) -> bool {
    let near = |operand: Operand, to: f64| match operand {
        Operand::Constant(Scalar::Float(value)) => (value - to).abs() < 1e-6,
        _ => false,
    };
    matches!(operands, [alpha, beta] if near(*alpha, 1.0 / 6.0) && near(*beta, 0.5))
}
