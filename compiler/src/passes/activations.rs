//! Which activation an expression is.

use halite_ops::{
    Activation, DType, Operation, Slope, Values,
    elementwise::Elementwise,
    expression::{Expression, Function, Node as Call, Operand, Scalar},
};

use super::merge::{Reader, is_call};

/// Most nodes of an expression that is compared with activations.
const MOST_NODES: usize = 16;

/// The activation that an expression of one input and one output is.
pub(super) fn function_of(reader: &Reader) -> Option<Activation> {
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
    use super::*;

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
}
