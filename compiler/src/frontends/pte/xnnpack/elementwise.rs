//! Functions of elements, softmax, and conversions.

use halite_formats::pte::{XnnBinary, XnnNode, XnnUnary};
use halite_ops::{
    DType,
    expression::{Expression, Function as F, Operand},
};

use super::{Held, Result, Values, layout::alike, numbers::number};

pub(super) fn unary(v: &mut Values<'_>, node: &XnnNode, function: XnnUnary) -> Result<()> {
    let x = v.operand(node, 0)?;
    let x = v.floats(x)?;
    let element = v.builder.element(x.tensor);
    // Integers have functions of their own, or are computed as floats.
    let whole = matches!(function, XnnUnary::Abs | XnnUnary::Negate | XnnUnary::Square | XnnUnary::Clamp);
    let own = if element.is_float() || whole { x.tensor } else { v.builder.as_f32(x.tensor)? };
    let element = v.builder.element(own);
    let made = match function {
        XnnUnary::Clamp => own,
        _ => v.builder.map(&[own], element, |p, x| call(p, function, x[0]))?,
    };
    v.finish(node, x.with(made))
}

fn call(p: &mut Expression, function: XnnUnary, x: Operand) -> Operand {
    let function = match function {
        XnnUnary::Abs => F::Abs,
        XnnUnary::Ceiling => F::Ceil,
        XnnUnary::Clamp => return x,
        XnnUnary::Cos => F::Cos,
        XnnUnary::Elu { alpha } => return p.call(F::Elu, &[x, number(alpha)]),
        XnnUnary::Exp => F::Exp,
        XnnUnary::Floor => F::Floor,
        XnnUnary::Gelu => F::Gelu,
        XnnUnary::HardSwish => F::HardSwish,
        XnnUnary::LeakyRelu { slope } => return p.call(F::Prelu, &[x, number(slope)]),
        XnnUnary::Log => F::Log,
        XnnUnary::Negate => F::Neg,
        XnnUnary::ReciprocalSquareRoot => F::Rsqrt,
        XnnUnary::Sigmoid => F::Sigmoid,
        XnnUnary::Sin => F::Sin,
        XnnUnary::Square => return p.call(F::Mul, &[x, x]),
        XnnUnary::SquareRoot => F::Sqrt,
        XnnUnary::Tanh => F::Tanh,
    };
    p.call(function, &[x])
}

/// Two operands as floats, or both as integers, in one order of dimensions.
fn pair(v: &mut Values<'_>, node: &XnnNode) -> Result<(Vec<crate::graph::TensorId>, Vec<usize>)> {
    let ids = [v.operand(node, 0)?, v.operand(node, 1)?];
    let mut all = [v.floats(ids[0])?, v.floats(ids[1])?];
    let elements = [0, 1].map(|i| v.builder.element(all[i].tensor));
    if elements[0] != elements[1] {
        for held in &mut all {
            let tensor = v.builder.cast(held.tensor, DType::F32)?;
            *held = held.with(tensor);
        }
    }
    alike(&mut v.builder, &all)
}

pub(super) fn binary(v: &mut Values<'_>, node: &XnnNode, function: XnnBinary) -> Result<()> {
    let (tensors, order) = pair(v, node)?;
    let function = match function {
        XnnBinary::Add => F::Add,
        XnnBinary::Divide => F::Div,
        XnnBinary::Maximum => F::Max,
        XnnBinary::Minimum => F::Min,
        XnnBinary::Multiply => F::Mul,
        XnnBinary::Subtract => F::Sub,
    };
    let made = v.builder.binary(function, tensors[0], tensors[1])?;
    v.finish(node, Held::ordered(made, &order))
}

pub(super) fn prelu(v: &mut Values<'_>, node: &XnnNode) -> Result<()> {
    let (tensors, order) = pair(v, node)?;
    let made = v.builder.binary(F::Prelu, tensors[0], tensors[1])?;
    v.finish(node, Held::ordered(made, &order))
}

pub(super) fn softmax(v: &mut Values<'_>, node: &XnnNode) -> Result<()> {
    let x = v.operand(node, 0)?;
    let x = v.floats(x)?;
    let Some(axis) = x.order.last().copied() else {
        return Err(v.builder.invalid("a softmax of one number"));
    };
    let made = v.builder.softmax(x.tensor, axis, false)?;
    v.finish(node, x.with(made))
}

pub(super) fn convert(v: &mut Values<'_>, node: &XnnNode) -> Result<()> {
    let (x, to) = (v.operand(node, 0)?, v.result(node)?);
    if v.same(x, to) {
        let held = v.value(x)?;
        return v.finish_held(node, held);
    }
    let x = v.floats(x)?;
    v.finish(node, x)
}
