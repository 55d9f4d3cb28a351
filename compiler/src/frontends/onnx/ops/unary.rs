//! Operators that are a function of one tensor's elements: mathematics and activations.

use halite_ops::expression::{Expression, Function, Operand};

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("Abs", |b, n| unary(b, n, Function::Abs)),
    ("Acos", |b, n| unary(b, n, Function::Acos)),
    ("Acosh", |b, n| unary(b, n, Function::Acosh)),
    ("Asin", |b, n| unary(b, n, Function::Asin)),
    ("Asinh", |b, n| unary(b, n, Function::Asinh)),
    ("Atan", |b, n| unary(b, n, Function::Atan)),
    ("Atanh", |b, n| unary(b, n, Function::Atanh)),
    ("Cosh", |b, n| unary(b, n, Function::Cosh)),
    ("Sinh", |b, n| unary(b, n, Function::Sinh)),
    ("BitwiseNot", |b, n| unary(b, n, Function::Not)),
    ("Ceil", |b, n| unary(b, n, Function::Ceil)),
    ("Celu", celu),
    ("Cos", |b, n| unary(b, n, Function::Cos)),
    ("Elu", |b, n| with_alpha(b, n, Function::Elu, 1.0)),
    ("Erf", |b, n| unary(b, n, Function::Erf)),
    ("Exp", |b, n| unary(b, n, Function::Exp)),
    ("Floor", |b, n| unary(b, n, Function::Floor)),
    ("Gelu", gelu),
    ("HardSigmoid", hard_sigmoid),
    ("HardSwish", |b, n| unary(b, n, Function::HardSwish)),
    ("IsInf", is_inf),
    ("IsNaN", |b, n| test(b, n, Function::IsNan)),
    ("LeakyRelu", |b, n| with_alpha(b, n, Function::Prelu, 0.01)),
    ("Log", |b, n| unary(b, n, Function::Log)),
    ("Mish", |b, n| unary(b, n, Function::Mish)),
    ("Neg", |b, n| unary(b, n, Function::Neg)),
    ("Not", |b, n| unary(b, n, Function::Not)),
    ("Reciprocal", |b, n| unary(b, n, Function::Reciprocal)),
    ("Relu", |b, n| unary(b, n, Function::Relu)),
    ("Round", |b, n| unary(b, n, Function::Round)),
    ("Selu", selu),
    ("Shrink", shrink),
    ("Sigmoid", |b, n| unary(b, n, Function::Sigmoid)),
    ("Sign", |b, n| unary(b, n, Function::Sign)),
    ("Sin", |b, n| unary(b, n, Function::Sin)),
    ("Softplus", |b, n| unary(b, n, Function::Softplus)),
    ("Softsign", softsign),
    ("Sqrt", |b, n| unary(b, n, Function::Sqrt)),
    ("Swish", swish),
    ("Tan", |b, n| unary(b, n, Function::Tan)),
    ("Tanh", |b, n| unary(b, n, Function::Tanh)),
    ("ThresholdedRelu", thresholded_relu),
];

fn unary(b: &mut Builder, node: &NodeView<'_>, function: Function) -> Result<Vec<TensorId>> {
    Ok(vec![b.unary(function, node.input(0)?)?])
}

/// A function of the elements to elements of the same type.
fn map(
    b: &mut Builder,
    node: &NodeView<'_>,
    compute: impl FnOnce(&mut Expression, Operand) -> Operand,
) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let element = b.element(x);
    Ok(vec![b.map(&[x], element, |program, x| compute(program, x[0]))?])
}

fn test(b: &mut Builder, node: &NodeView<'_>, function: Function) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    Ok(vec![b.map(&[x], ElementType::Bool, |program, x| program.call(function, &[x[0]]))?])
}

fn with_alpha(
    b: &mut Builder,
    node: &NodeView<'_>,
    function: Function,
    default: f32,
) -> Result<Vec<TensorId>> {
    let alpha = node.float("alpha", default)?;
    map(b, node, |program, x| program.call(function, &[x, alpha.into()]))
}

fn hard_sigmoid(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (alpha, beta) = (node.float("alpha", 0.2)?, node.float("beta", 0.5)?);
    map(b, node, |program, x| program.call(Function::HardSigmoid, &[x, alpha.into(), beta.into()]))
}

fn gelu(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    match node.string("approximate", "none")?.as_str() {
        "none" => unary(b, node, Function::Gelu),
        "tanh" => unary(b, node, Function::GeluTanh),
        other => Err(node.invalid(format!("there is no approximation '{other}'"))),
    }
}

/// `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
fn celu(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let alpha = node.float("alpha", 1.0)?;
    map(b, node, |program, x| {
        let scaled = program.call(Function::Div, &[x, alpha.into()]);
        let elu = program.call(Function::Elu, &[scaled, 1f32.into()]);
        program.call(Function::Mul, &[elu, alpha.into()])
    })
}

fn selu(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let alpha = node.float("alpha", 1.673_263_2)?;
    let gamma = node.float("gamma", 1.050_701)?;
    map(b, node, |program, x| {
        let elu = program.call(Function::Elu, &[x, alpha.into()]);
        program.call(Function::Mul, &[elu, gamma.into()])
    })
}

fn softsign(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    map(b, node, |program, x| {
        let size = program.call(Function::Abs, &[x]);
        let below = program.call(Function::Add, &[size, 1f32.into()]);
        program.call(Function::Div, &[x, below])
    })
}

/// `x * sigmoid(alpha * x)`.
fn swish(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let alpha = node.float("alpha", 1.0)?;
    if alpha == 1.0 {
        return unary(b, node, Function::Silu);
    }
    map(b, node, |program, x| {
        let scaled = program.call(Function::Mul, &[x, alpha.into()]);
        let gate = program.call(Function::Sigmoid, &[scaled]);
        program.call(Function::Mul, &[x, gate])
    })
}

fn thresholded_relu(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let alpha = node.float("alpha", 1.0)?;
    map(b, node, |program, x| {
        let above = program.call(Function::Gt, &[x, alpha.into()]);
        program.call(Function::Select, &[above, x, 0f32.into()])
    })
}

/// Nothing between minus and plus lambda, and nearer to 0 by the bias beyond. Integers are computed as floats.
fn shrink(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (lambda, bias) = (node.float("lambd", 0.5)?, node.float("bias", 0.0)?);
    let x = node.input(0)?;
    let element = b.element(x);
    let x = b.as_f32(x)?;
    let y = b.map(&[x], halite_ops::DType::F32, |program, x| {
        let x = x[0];
        let below = program.call(Function::Lt, &[x, (-lambda).into()]);
        let above = program.call(Function::Gt, &[x, lambda.into()]);
        let raised = program.call(Function::Add, &[x, bias.into()]);
        let lowered = program.call(Function::Sub, &[x, bias.into()]);
        let upper = program.call(Function::Select, &[above, lowered, 0f32.into()]);
        program.call(Function::Select, &[below, raised, upper])
    })?;
    Ok(vec![b.cast(y, element)?])
}

fn is_inf(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let positive = node.flag("detect_positive", true)?;
    let negative = node.flag("detect_negative", true)?;
    let x = node.input(0)?;
    let y = b.map(&[x], ElementType::Bool, |program, x| {
        let infinite = program.call(Function::IsInf, &[x[0]]);
        let wanted = match (positive, negative) {
            (true, true) => return infinite,
            (true, false) => program.call(Function::Gt, &[x[0], 0f32.into()]),
            (false, true) => program.call(Function::Lt, &[x[0], 0f32.into()]),
            (false, false) => program.call(Function::Ne, &[x[0], x[0]]),
        };
        program.call(Function::And, &[infinite, wanted])
    })?;
    Ok(vec![y])
}
