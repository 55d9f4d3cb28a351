//! Functions of one tensor that the delegate lacks and ExecuTorch's portable kernels have.

use halite_ops::expression::{Expression, Function as F, Operand};

use super::{
    Node, Result, Table,
    unary::{function, number},
};
use crate::{build::Range, graph::ElementType};

pub(super) const OPERATORS: Table = &[
    ("aten.acos.default", |n| function(n, F::Acos)),
    ("aten.acosh.default", |n| function(n, F::Acosh)),
    ("aten.asin.default", |n| function(n, F::Asin)),
    ("aten.asinh.default", |n| function(n, F::Asinh)),
    ("aten.atan.default", |n| function(n, F::Atan)),
    ("aten.atanh.default", |n| function(n, F::Atanh)),
    ("aten.ceil.default", |n| rounded(n, F::Ceil)),
    ("aten.cosh.default", |n| function(n, F::Cosh)),
    ("aten.elu.default", elu),
    ("aten.erf.default", |n| function(n, F::Erf)),
    ("aten.exp2.default", |n| curve(n, |p, x| p.call(F::Pow, &[number(2.0), x]))),
    ("aten.expm1.default", |n| curve(n, exp_minus_one)),
    ("aten.floor.default", |n| rounded(n, F::Floor)),
    ("aten.glu.default", gated),
    ("aten.isinf.default", |n| test(n, F::IsInf)),
    ("aten.isnan.default", |n| test(n, F::IsNan)),
    ("aten.log1p.default", |n| curve(n, log_of_one_more)),
    ("aten.log2.default", |n| {
        curve(n, |p, x| {
            let log = p.call(F::Log, &[x]);
            p.call(F::Mul, &[log, number(std::f64::consts::LOG2_E)])
        })
    }),
    ("aten.logit.default", logit),
    ("aten.mish.default", |n| function(n, F::Mish)),
    ("aten.reciprocal.default", |n| function(n, F::Reciprocal)),
    ("aten.selu.default", |n| function(n, F::Selu)),
    ("aten.sign.default", |n| function(n, F::Sign)),
    ("aten.silu.default", |n| function(n, F::Silu)),
    ("aten.sinh.default", |n| function(n, F::Sinh)),
    ("aten.square.default", |n| curve(n, |p, x| p.call(F::Mul, &[x, x]))),
    ("aten.trunc.default", truncate),
];

/// An expression of floats; integers are made floats first.
fn curve(n: &mut Node<'_, '_>, compute: impl FnOnce(&mut Expression, Operand) -> Operand) -> Result<()> {
    let (x, element) = (n.tensor(0)?, n.element()?);
    let x = n.b().cast(x, element)?;
    let made = n.b().map(&[x], element, |p, x| compute(p, x[0]))?;
    n.finish(made)
}

/// A function that changes nothing of integers.
fn rounded(n: &mut Node<'_, '_>, of: F) -> Result<()> {
    let x = n.tensor(0)?;
    if n.b().element(x).is_float() {
        return function(n, of);
    }
    n.finish(x)
}

/// The next integer towards zero.
fn truncate(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let element = n.b().element(x);
    if !element.is_float() {
        return n.finish(x);
    }
    let made = n.b().map(&[x], element, |p, x| {
        let (floor, ceil) = (p.call(F::Floor, x), p.call(F::Ceil, x));
        let below = p.call(F::Lt, &[x[0], number(0.0)]);
        p.call(F::Select, &[below, ceil, floor])
    })?;
    n.finish(made)
}

/// Whether elements are something that only floats are.
fn test(n: &mut Node<'_, '_>, of: F) -> Result<()> {
    let x = n.tensor(0)?;
    if n.b().element(x).is_float() {
        let made = n.b().map(&[x], ElementType::Bool, |p, x| p.call(of, x))?;
        return n.finish(made);
    }
    let dims = n.b().dims(x).to_vec();
    let no = n.b().float(ElementType::Bool, 0.0)?;
    let made = n.b().expand(no, &dims)?;
    n.finish(made)
}

/// A polynomial with these coefficients, the highest first.
fn polynomial(p: &mut Expression, x: Operand, coefficients: &[f64]) -> Operand {
    let (first, rest) = coefficients.split_first().expect("a polynomial has coefficients");
    rest.iter().fold(number(*first), |sum, coefficient| {
        let product = p.call(F::Mul, &[sum, x]);
        p.call(F::Add, &[product, number(*coefficient)])
    })
}

/// One of two values, the first where |x| is below a bound.
fn near_zero(p: &mut Expression, x: Operand, bound: f64, [near, far]: [Operand; 2]) -> Operand {
    let size = p.call(F::Abs, &[x]);
    let is_near = p.call(F::Lt, &[size, number(bound)]);
    p.call(F::Select, &[is_near, near, far])
}

/// `e^x - 1`, by its Taylor series where the difference would lose digits.
fn exp_minus_one(p: &mut Expression, x: Operand) -> Operand {
    let factorials = [5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0].map(|f| 1.0 / f);
    let series = polynomial(p, x, &factorials);
    let near = p.call(F::Mul, &[series, x]);
    let power = p.call(F::Exp, &[x]);
    let far = p.call(F::Sub, &[power, number(1.0)]);
    near_zero(p, x, 0.5, [near, far])
}

/// `log(1 + x)`, where the sum would lose digits by the series of `2 atanh(x / (2 + x))`.
fn log_of_one_more(p: &mut Expression, x: Operand) -> Operand {
    let below = p.call(F::Add, &[x, number(2.0)]);
    let s = p.call(F::Div, &[x, below]);
    let square = p.call(F::Mul, &[s, s]);
    let odd = [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0].map(|f| 2.0 / f);
    let series = polynomial(p, square, &odd);
    let near = p.call(F::Mul, &[series, s]);
    let sum = p.call(F::Add, &[x, number(1.0)]);
    let far = p.call(F::Log, &[sum]);
    near_zero(p, x, 0.5, [near, far])
}

/// Arguments: input, alpha, scale, and the scale of what is below 0.
fn elu(n: &mut Node<'_, '_>) -> Result<()> {
    let (alpha, scale) = (n.float(1)?, n.optional_float(2)?.unwrap_or(1.0));
    let inner = n.optional_float(3)?.unwrap_or(1.0);
    curve(n, |p, x| {
        let scaled = p.call(F::Mul, &[x, number(inner)]);
        let power = exp_minus_one(p, scaled);
        let below = p.call(F::Mul, &[power, number(alpha)]);
        let positive = p.call(F::Gt, &[x, number(0.0)]);
        let made = p.call(F::Select, &[positive, x, below]);
        p.call(F::Mul, &[made, number(scale)])
    })
}

/// Arguments: input, and by how much it is kept away from 0 and 1.
fn logit(n: &mut Node<'_, '_>) -> Result<()> {
    let epsilon = n.optional_float(1)?;
    curve(n, |p, x| {
        let x = match epsilon {
            Some(epsilon) => p.call(F::Clip, &[x, number(epsilon), number(1.0 - epsilon)]),
            None => x,
        };
        let rest = p.call(F::Sub, &[number(1.0), x]);
        let ratio = p.call(F::Div, &[x, rest]);
        p.call(F::Log, &[ratio])
    })
}

/// Arguments: input, dimension. The first half times the sigmoid of the second.
fn gated(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let (dims, element) = (n.b().dims(x).to_vec(), n.b().element(x));
    let axis = n.axis(1, dims.len())?;
    if !dims[axis].is_multiple_of(2) {
        return Err(n.invalid(format!("dimension {axis} of {dims:?} has no halves")));
    }
    let count = dims[axis] / 2;
    let mut halves = Vec::new();
    for start in [0, count] {
        let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
        ranges[axis] = Range { start, step: 1, count };
        halves.push(n.b().slice(x, &ranges)?);
    }
    let made = n.b().map(&halves, element, |p, x| {
        let gate = p.call(F::Sigmoid, &[x[1]]);
        p.call(F::Mul, &[x[0], gate])
    })?;
    n.finish(made)
}
