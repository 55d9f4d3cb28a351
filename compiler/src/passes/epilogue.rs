//! Giving convolutions and products what follows them: an added value for each filter or column, an added tensor like the
//! result, and an activation go into the kernel.

use halite_ops::{
    Activation, DType, Operation, Slope, Values,
    elementwise::Elementwise,
    expression::{Expression, Function, Node as Call, Operand, Scalar},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    factors::{Factor, Of},
    linear::{LinearOp, each_after, linear_op},
    merge::{Reader, is_call},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Most nodes of an expression that is compared with activations.
const MOST_NODES: usize = 16;

/// What is added to sums and activations go into the operation before them.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    each_after(graph, region, uses, watch, &|graph, before, node| {
        whole(graph, before, node).or_else(|| beginning(before, node))
    })
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
}

/// The operation that does all that the elementwise node behind it does.
fn whole(graph: &mut Graph, before: &Node, node: &Node) -> Option<Vec<Node>> {
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

/// The activation that an expression of one input and one output is.
fn function_of(reader: &Reader) -> Option<Activation> {
    let program = &reader.program;
    let [output] = &program.outputs[..] else { return None };
    if output.value == Operand::Input(0) {
        return Some(Activation::None);
    }
    if let Some((result, dropped, found)) = activation(reader, 0) {
        let last = program.nodes.len() == dropped.len() + 1 && output.value == Operand::Node(result);
        return last.then_some(found);
    }
    same_curve(program)
}

/// The activation with the same curve as an expression of smooth functions, such as the forms of GELU in parts that exporters
/// write. Two such expressions of a few functions that agree at many places are the same. Where results are of 16 bits,
/// constants were rounded to as many, and a quarter of their last place counts as nothing.
fn same_curve(program: &Expression) -> Option<Activation> {
    use Function as F;
    let smooth = |f: Function| {
        matches!(
            f,
            F::Add
                | F::Div
                | F::Erf
                | F::Exp
                | F::Mul
                | F::Neg
                | F::Pow
                | F::Sigmoid
                | F::Silu
                | F::Softplus
                | F::Sub
                | F::Tanh
        )
    };
    if program.nodes.len() > MOST_NODES || !program.nodes.iter().all(|node| smooth(node.function)) {
        return None;
    }
    let halves = program.outputs.iter().all(|output| output.dtype == DType::F16);
    let most = if halves { 2.5e-4 } else { 2e-6 };
    let mut program = program.clone();
    program.outputs.iter_mut().for_each(|output| output.dtype = DType::F32);
    // Places that are exact in f32, with no regular distance from 0; and 0, where quotients have poles.
    let near = (-160..=160).map(|i: i32| f64::from(i) / 16.0 + 1.0 / 128.0);
    let places: Vec<f64> = near.chain([0.0, -30.0, 30.0]).collect();
    let shape = vec![(DType::F32, vec![places.len() as u64])];
    let operation = Operation::Elementwise(Elementwise::new(shape, program));
    crate::backend::check(&operation).ok()?;
    let curve = operation.reference(&[Values::Float(places.clone())]);
    let curve = curve.first()?.floats();
    let off = |activation: Activation| {
        let each = places.iter().zip(&curve).map(|(x, got)| {
            let wanted = activation.apply(*x);
            let off = (got - wanted).abs() / wanted.abs().max(1.0);
            if off.is_nan() { f64::INFINITY } else { off }
        });
        each.fold(0.0, f64::max)
    };
    let nearest = Activation::ALL.into_iter().map(|activation| (off(activation), activation));
    let nearest = nearest.min_by(|(a, _), (b, _)| a.total_cmp(b));
    nearest.filter(|(off, _)| *off <= most).map(|(_, activation)| activation)
}

/// The node whose result is an activation of the input, the nodes on the way, and which activation it is.
pub(super) fn activation(reader: &Reader, input: usize) -> Option<(usize, Vec<usize>, Activation)> {
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
        () if of(Function::Gelu, &[x]) => Activation::Gelu,
        () if of(Function::GeluTanh, &[x]) => Activation::GeluTanh,
        () if of(Function::Tanh, &[x]) => Activation::Tanh,
        () if of(Function::Silu, &[x]) => Activation::Silu,
        () if of(Function::Sigmoid, &[x]) => Activation::Sigmoid,
        () if of(Function::HardSwish, &[x]) => Activation::HardSwish,
        () if of(Function::Mish, &[x]) => Activation::Mish,
        () => return leaky(call, x),
    })
}

/// A leaky ReLU with a slope above 0.
fn leaky(call: &Call, x: Operand) -> Option<Activation> {
    let (Function::Prelu, [of, Operand::Constant(Scalar::Float(slope))]) =
        (call.function, &call.operands[..])
    else {
        return None;
    };
    let slope = (*of == x).then(|| Slope::new(*slope as f32)).flatten()?;
    Some(Activation::LeakyRelu(slope))
}

/// Whether a hard sigmoid is the one of hard-swish, `x / 6 + 1 / 2`.
fn is_sixth(operands: &[Operand]) -> bool {
    let near = |operand: Operand, to: f64| match operand {
        Operand::Constant(Scalar::Float(value)) => (value - to).abs() < 1e-6,
        _ => false,
    };
    matches!(operands, [alpha, beta] if near(*alpha, 1.0 / 6.0) && near(*beta, 0.5))
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::build::{Builder, QuantWeights, Sliding};

    #[test]
    fn curves_are_known_with_constants_as_exact_as_their_type() {
        let gelu = |root: &str, to: &str| {
            let text = format!("div $0 {root}; erf %0; add %1 1.0; mul $0 %2; mul %3 0.5 -> %4:{to}");
            same_curve(&text.parse().unwrap())
        };
        assert_eq!(gelu("1.4142135", "f32"), Some(Activation::Gelu));
        // The root of 2 with 11 bits.
        assert_eq!(gelu("1.4140625", "f32"), None);
        assert_eq!(gelu("1.4140625", "f16"), Some(Activation::Gelu));
        assert_eq!(gelu("1.5", "f16"), None);
        let tanh = "mul $0 $0; mul %0 0.044715; add %1 1.0; mul %2 $0; mul %3 0.7978846; tanh %4; add %5 1.0; \
                    mul %6 $0; mul %7 0.5 -> %8:f16";
        assert_eq!(same_curve(&tanh.parse().unwrap()), Some(Activation::GeluTanh));
        let quick = |factor: &str| format!("mul $0 {factor}; sigmoid %0; mul $0 %1 -> %2:f32");
        assert_eq!(same_curve(&quick("1.702").parse().unwrap()), Some(Activation::QuickGelu));
        assert_eq!(same_curve(&quick("1.7").parse().unwrap()), None);
        let mish = "softplus $0; tanh %0; mul $0 %1 -> %2:f32";
        assert_eq!(same_curve(&mish.parse().unwrap()), Some(Activation::Mish));
        let silu = "neg $0; exp %0; add %1 1.0; div $0 %2 -> %3:f32";
        assert_eq!(same_curve(&silu.parse().unwrap()), Some(Activation::Silu));
        // Poles.
        let poles = ["div 1.0 $0; mul %0 $0; mul %1 $0; tanh %2 -> %3:f32", "div $0 0.0; tanh %0 -> %1:f32"];
        assert!(poles.iter().all(|text| same_curve(&text.parse().unwrap()).is_none()));
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
