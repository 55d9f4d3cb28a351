//! Functions of two tensors, which broadcast, and choices between tensors.

use halite_ops::expression::{Function as F, Operand, Scalar};

use super::{Node, Result, Table, unary::number};
use crate::graph::{ElementType, TensorId};

pub(super) const OPERATORS: Table = &[
    ("aten.add.Tensor", |n| scaled(n, F::Add)),
    ("aten.sub.Tensor", |n| scaled(n, F::Sub)),
    ("aten.mul.Tensor", |n| function(n, F::Mul)),
    ("aten.div.Tensor", |n| function(n, F::Div)),
    ("aten.div.Tensor_mode", divide_to_whole),
    ("aten.minimum.default", |n| function(n, F::Min)),
    ("aten.maximum.default", |n| function(n, F::Max)),
    ("aten.pow.Tensor_Tensor", |n| function(n, F::Pow)),
    ("aten.pow.Tensor_Scalar", |n| with_number(n, F::Pow)),
    ("aten.add.Scalar", |n| scaled(n, F::Add)),
    ("aten.sub.Scalar", |n| scaled(n, F::Sub)),
    ("aten.mul.Scalar", |n| with_number(n, F::Mul)),
    ("aten.div.Scalar", |n| with_number(n, F::Div)),
    ("aten.eq.Tensor", |n| compare(n, F::Eq)),
    ("aten.ne.Tensor", |n| compare(n, F::Ne)),
    ("aten.lt.Tensor", |n| compare(n, F::Lt)),
    ("aten.le.Tensor", |n| compare(n, F::Le)),
    ("aten.gt.Tensor", |n| compare(n, F::Gt)),
    ("aten.ge.Tensor", |n| compare(n, F::Ge)),
    ("aten.eq.Scalar", |n| compare(n, F::Eq)),
    ("aten.ne.Scalar", |n| compare(n, F::Ne)),
    ("aten.lt.Scalar", |n| compare(n, F::Lt)),
    ("aten.le.Scalar", |n| compare(n, F::Le)),
    ("aten.gt.Scalar", |n| compare(n, F::Gt)),
    ("aten.ge.Scalar", |n| compare(n, F::Ge)),
    ("aten.bitwise_and.Tensor", |n| function(n, F::And)),
    ("aten.bitwise_or.Tensor", |n| function(n, F::Or)),
    ("aten.bitwise_xor.Tensor", |n| function(n, F::Xor)),
    ("aten.logical_and.default", |n| logical(n, F::And)),
    ("aten.logical_or.default", |n| logical(n, F::Or)),
    ("aten.logical_xor.default", |n| logical(n, F::Xor)),
    ("aten.where.self", choose),
];

/// Both operands in the type of the result. The second may be a number.
fn operands(n: &mut Node<'_, '_>) -> Result<[TensorId; 2]> {
    let element = n.element()?;
    let (a, b) = (n.tensor(0)?, second(n, Some(element))?);
    Ok([n.b().cast(a, element)?, n.b().cast(b, element)?])
}

/// The second operand; a number as a tensor of a type, or of the one in which it is exact.
fn second(n: &mut Node<'_, '_>, element: Option<ElementType>) -> Result<TensorId> {
    if let Ok(number) = n.float(1) {
        let own = n.tensor(0)?;
        let own = n.b().element(own);
        let exact = if number.fract() == 0.0 && own != ElementType::Bool {
            own
        } else {
            halite_ops::DType::F32.into()
        };
        return n.b().float(element.unwrap_or(exact), number);
    }
    n.tensor(1)
}

pub(super) fn function(n: &mut Node<'_, '_>, function: F) -> Result<()> {
    let [a, b] = operands(n)?;
    let made = n.b().binary(function, a, b)?;
    n.finish(made)
}

/// A function of a tensor and a number, which is as exact as the expression and not rounded to the tensor's type.
fn with_number(n: &mut Node<'_, '_>, function: F) -> Result<()> {
    let (x, element, value) = (n.tensor(0)?, n.element()?, n.float(1)?);
    let x = n.b().cast(x, element)?;
    let value = constant(element, value);
    let made = n.b().map(&[x], element, |p, x| p.call(function, &[x[0], value]))?;
    n.finish(made)
}

/// A number in expressions of a type.
fn constant(element: ElementType, value: f64) -> Operand {
    match element {
        ElementType::Of(dtype) if !dtype.is_float() => Operand::Constant(Scalar::Int(value as i64, dtype)),
        _ => number(value),
    }
}

/// `a + alpha * b`, or the difference.
fn scaled(n: &mut Node<'_, '_>, function: F) -> Result<()> {
    let (alpha, element) = (n.float(2)?, n.element()?);
    let [a, b] = operands(n)?;
    let factor = (alpha != 1.0).then(|| constant(element, alpha));
    let made = n.b().map(&[a, b], element, |p, x| {
        let b = factor.map_or(x[1], |factor| p.call(F::Mul, &[x[1], factor]));
        p.call(function, &[x[0], b])
    })?;
    n.finish(made)
}

pub(super) fn divide_to_whole(n: &mut Node<'_, '_>) -> Result<()> {
    let down = match n.text(2)? {
        "floor" => true,
        "trunc" => false,
        "" => return function(n, F::Div),
        other => return Err(n.invalid(format!("the rounding {other:?}; there are \"floor\" and \"trunc\""))),
    };
    quotient(n, down)
}

/// The quotient of both operands as a whole number, the next one down or towards zero.
pub(super) fn quotient(n: &mut Node<'_, '_>, down: bool) -> Result<()> {
    let element = n.element()?;
    let [a, b] = operands(n)?;
    let made = n.b().map(&[a, b], element, |p, x| match (element.is_float(), down) {
        (true, true) => {
            let quotient = p.call(F::Div, x);
            p.call(F::Floor, &[quotient])
        }
        (true, false) => {
            let quotient = p.call(F::Div, x);
            let (floor, ceil) = (p.call(F::Floor, &[quotient]), p.call(F::Ceil, &[quotient]));
            let below = p.call(F::Lt, &[quotient, number(0.0)]);
            p.call(F::Select, &[below, ceil, floor])
        }
        (false, true) => {
            let rest = p.call(F::Mod, x);
            let whole = p.call(F::Sub, &[x[0], rest]);
            p.call(F::Div, &[whole, x[1]])
        }
        (false, false) => p.call(F::Div, x),
    })?;
    n.finish(made)
}

fn compare(n: &mut Node<'_, '_>, function: F) -> Result<()> {
    let (a, b) = (n.tensor(0)?, second(n, None)?);
    let both = n.common(&[a, b])?;
    let made = n.b().compare(function, both[0], both[1])?;
    n.finish(made)
}

fn logical(n: &mut Node<'_, '_>, function: F) -> Result<()> {
    let (a, b) = (n.tensor(0)?, n.tensor(1)?);
    let a = n.b().cast(a, ElementType::Bool)?;
    let b = n.b().cast(b, ElementType::Bool)?;
    let made = n.b().binary(function, a, b)?;
    n.finish(made)
}

fn choose(n: &mut Node<'_, '_>) -> Result<()> {
    let (condition, a, b) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
    let element = n.element()?;
    let condition = n.b().cast(condition, ElementType::Bool)?;
    let (a, b) = (n.b().cast(a, element)?, n.b().cast(b, element)?);
    let made = n.b().select(condition, a, b)?;
    n.finish(made)
}
