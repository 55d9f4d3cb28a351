//! Functions of one tensor, and conversions.

use halite_ops::expression::{Expression, Function as F, Operand, Scalar};

use super::{Node, Result, Table};
use crate::graph::{ElementType, TensorId};

pub(super) const OPERATORS: Table = &[
    ("aten.abs.default", |n| function(n, F::Abs)),
    ("aten.bitwise_not.default", |n| function(n, F::Not)),
    ("aten.cos.default", |n| function(n, F::Cos)),
    ("aten.exp.default", |n| function(n, F::Exp)),
    ("aten.hardsigmoid.default", |n| {
        floats(n, |p, x| p.call(F::HardSigmoid, &[x, number(1.0 / 6.0), number(0.5)]))
    }),
    ("aten.hardswish.default", |n| function(n, F::HardSwish)),
    ("aten.log.default", |n| function(n, F::Log)),
    ("aten.log10.default", |n| {
        floats(n, |p, x| {
            let log = p.call(F::Log, &[x]);
            p.call(F::Mul, &[log, number(std::f64::consts::LOG10_E)])
        })
    }),
    ("aten.logical_not.default", logical_not),
    ("aten.neg.default", |n| function(n, F::Neg)),
    ("aten.relu.default", |n| function(n, F::Relu)),
    ("aten.relu6.default", |n| clip(n, Some(0.0), Some(6.0))),
    ("aten.round.default", |n| function(n, F::Round)),
    ("aten.rsqrt.default", |n| function(n, F::Rsqrt)),
    ("aten.sigmoid.default", |n| function(n, F::Sigmoid)),
    ("aten.sin.default", |n| function(n, F::Sin)),
    ("aten.sqrt.default", |n| function(n, F::Sqrt)),
    ("aten.tan.default", |n| function(n, F::Tan)),
    ("aten.tanh.default", |n| function(n, F::Tanh)),
    ("aten.clamp.default", clamp),
    ("aten.hardtanh.default", clamp),
    ("aten.gelu.default", gelu),
    ("aten.hardshrink.default", hard_shrink),
    ("aten.leaky_relu.default", leaky_relu),
    ("aten._to_copy.default", copy),
    ("aten.alias_copy.default", copy),
    ("aten.clone.default", copy),
    ("aten._conj_physical.default", copy),
    ("aten.detach_copy.default", copy),
    ("aten.lift_fresh_copy.default", copy),
    ("et_copy._h2d_copy.default", copy),
    ("et_copy._d2h_copy.default", copy),
    ("dim_order_ops._clone_dim_order.default", copy),
    ("dim_order_ops._to_dim_order_copy.default", copy),
    ("et_vk.prepack.default", copy),
];

pub(super) fn number(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

/// The same elements, in the type of the result.
fn copy(n: &mut Node<'_, '_>) -> Result<()> {
    let made = n.tensor(0)?;
    n.finish(made)
}

/// A function whose result has the type of its argument; of integers it is a float where the file says so.
pub(super) fn function(n: &mut Node<'_, '_>, function: F) -> Result<()> {
    let (mut x, element) = (n.tensor(0)?, n.element()?);
    if element.is_float() && !n.b().element(x).is_float() {
        x = n.b().cast(x, element)?;
    }
    let made = n.b().unary(function, x)?;
    n.finish(made)
}

/// An expression of floats.
fn floats(n: &mut Node<'_, '_>, compute: impl FnOnce(&mut Expression, Operand) -> Operand) -> Result<()> {
    let (x, element) = (n.tensor(0)?, n.element()?);
    let x = n.b().cast(x, element)?;
    let made = n.b().map(&[x], element, |p, x| compute(p, x[0]))?;
    n.finish(made)
}

fn logical_not(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let truth = n.b().cast(x, ElementType::Bool)?;
    let made = n.b().unary(F::Not, truth)?;
    n.finish(made)
}

fn clamp(n: &mut Node<'_, '_>) -> Result<()> {
    let (least, most) = (n.optional_float(1)?, n.optional_float(2)?);
    clip(n, least, most)
}

fn clip(n: &mut Node<'_, '_>, least: Option<f64>, most: Option<f64>) -> Result<()> {
    let x = n.tensor(0)?;
    let made = limit(n, x, least, most)?;
    n.finish(made)
}

/// The elements within bounds, the upper one being the stronger; integers by the integers within them.
pub(super) fn limit(
    n: &mut Node<'_, '_>,
    x: TensorId,
    least: Option<f64>,
    most: Option<f64>,
) -> Result<TensorId> {
    let element = n.b().element(x);
    let bound = |value: f64, whole: f64| match element {
        ElementType::Of(dtype) if !dtype.is_float() => Operand::Constant(Scalar::Int(whole as i64, dtype)),
        _ => number(value),
    };
    match (least, most) {
        (Some(0.0), None) => n.b().unary(F::Relu, x),
        _ => n.b().map(&[x], element, |p, x| {
            let mut value = x[0];
            if let Some(least) = least {
                value = p.call(F::Max, &[value, bound(least, least.ceil())]);
            }
            if let Some(most) = most {
                value = p.call(F::Min, &[value, bound(most, most.floor())]);
            }
            value
        }),
    }
}

/// The delegate's own shaders take the approximation by `tanh` for both; the exact one is what the model asked for.
fn gelu(n: &mut Node<'_, '_>) -> Result<()> {
    match n.text(1)? {
        "tanh" => function(n, F::GeluTanh),
        "none" | "" => function(n, F::Gelu),
        other => Err(n.invalid(format!("the approximation {other:?}; there are \"none\" and \"tanh\""))),
    }
}

fn hard_shrink(n: &mut Node<'_, '_>) -> Result<()> {
    let lambda = n.float(1)?;
    floats(n, |p, x| {
        let size = p.call(F::Abs, &[x]);
        let inside = p.call(F::Le, &[size, number(lambda)]);
        p.call(F::Select, &[inside, number(0.0), x])
    })
}

fn leaky_relu(n: &mut Node<'_, '_>) -> Result<()> {
    let slope = n.float(1)?;
    floats(n, |p, x| p.call(F::Prelu, &[x, number(slope)]))
}
