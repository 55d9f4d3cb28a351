//! Functions of two tensors, or of a tensor and a number, that the delegate lacks and ExecuTorch's portable kernels have: bits,
//! remainders, quotients that are whole, angles.

use halite_ops::expression::{Function as F, Operand};

use super::{
    Node, Result, Table,
    binary::{divide_to_whole, function, quotient},
    unary::number,
};
use crate::graph::{ElementType, TensorId};

pub(super) const OPERATORS: Table = &[
    ("aten.atan2.default", angle),
    ("aten.bitwise_and.Scalar", |n| function(n, F::And)),
    ("aten.bitwise_or.Scalar", |n| function(n, F::Or)),
    ("aten.bitwise_xor.Scalar", |n| function(n, F::Xor)),
    ("aten.__lshift__.Tensor", |n| function(n, F::Shl)),
    ("aten.__lshift__.Scalar", |n| function(n, F::Shl)),
    ("aten.__rshift__.Tensor", |n| function(n, F::Shr)),
    ("aten.__rshift__.Scalar", |n| function(n, F::Shr)),
    ("aten.bitwise_left_shift.Tensor", |n| function(n, F::Shl)),
    ("aten.bitwise_left_shift.Tensor_Scalar", |n| function(n, F::Shl)),
    ("aten.bitwise_right_shift.Tensor", |n| function(n, F::Shr)),
    ("aten.bitwise_right_shift.Tensor_Scalar", |n| function(n, F::Shr)),
    ("aten.clamp.Tensor", clamp),
    ("aten.div.Scalar_mode", divide_to_whole),
    ("aten.floor_divide.default", |n| quotient(n, true)),
    ("aten.floor_divide.Scalar", |n| quotient(n, true)),
    ("aten.fmod.Tensor", |n| function(n, F::Fmod)),
    ("aten.fmod.Scalar", |n| function(n, F::Fmod)),
    ("aten.remainder.Tensor", |n| function(n, F::Mod)),
    ("aten.remainder.Scalar", |n| function(n, F::Mod)),
    ("aten.pow.Scalar", power_of_number),
    ("aten.rsub.Scalar", subtract_from_number),
    ("aten.fill.Scalar", fill),
    ("aten.fill.Tensor", fill),
    ("aten.masked_fill.Scalar", fill_where),
    ("aten.masked_fill.Tensor", fill_where),
    ("aten.copy.default", |n| {
        let (to, from) = (n.tensor_dims(0)?, n.tensor(1)?);
        let made = n.b().expand(from, &to)?;
        n.finish(made)
    }),
];

/// The angle of a point, of which the arguments are the second and the first coordinate.
fn angle(n: &mut Node<'_, '_>) -> Result<()> {
    let (y, x, element) = (n.tensor(0)?, n.tensor(1)?, n.element()?);
    let (y, x) = (n.b().cast(y, element)?, n.b().cast(x, element)?);
    let made = n.b().map(&[y, x], element, |p, at| {
        let (y, x, zero) = (at[0], at[1], number(0.0));
        let ratio = p.call(F::Div, &[y, x]);
        let half = p.call(F::Atan, &[ratio]);
        let is_low = p.call(F::Lt, &[y, zero]);
        let turn = |size: f64| [number(-size), number(size)];
        let [low, high] = turn(std::f64::consts::PI);
        let shift = p.call(F::Select, &[is_low, low, high]);
        let turned = p.call(F::Add, &[half, shift]);
        let is_left = p.call(F::Lt, &[x, zero]);
        let beside = p.call(F::Select, &[is_left, turned, half]);
        // On the axis itself the ratio is infinite or, at the origin, not a number.
        let side = p.call(F::Sign, &[y]);
        let above = p.call(F::Mul, &[side, number(std::f64::consts::FRAC_PI_2)]);
        let is_axis = p.call(F::Eq, &[x, zero]);
        p.call(F::Select, &[is_axis, above, beside])
    })?;
    n.finish(made)
}

/// Arguments: input, tensors of least and greatest values, each of which may be none.
fn clamp(n: &mut Node<'_, '_>) -> Result<()> {
    let element = n.element()?;
    let (mut made, bounds) = (n.tensor(0)?, [(n.optional(1)?, F::Max), (n.optional(2)?, F::Min)]);
    made = n.b().cast(made, element)?;
    for (bound, of) in bounds {
        if let Some(bound) = bound {
            let bound = n.b().cast(bound, element)?;
            made = n.b().binary(of, made, bound)?;
        }
    }
    n.finish(made)
}

/// A function of a number and a tensor, in the type of the result.
fn of_number(n: &mut Node<'_, '_>, value: usize, x: usize) -> Result<[TensorId; 2]> {
    let (value, x, element) = (n.float(value)?, n.tensor(x)?, n.element()?);
    Ok([n.b().float(element, value)?, n.b().cast(x, element)?])
}

fn power_of_number(n: &mut Node<'_, '_>) -> Result<()> {
    let [base, x] = of_number(n, 0, 1)?;
    let made = n.b().binary(F::Pow, base, x)?;
    n.finish(made)
}

/// Arguments: what is subtracted, the number, a factor of what is subtracted.
fn subtract_from_number(n: &mut Node<'_, '_>) -> Result<()> {
    let [value, x] = of_number(n, 1, 0)?;
    let (alpha, element) = (n.optional_float(2)?.unwrap_or(1.0), n.element()?);
    let alpha = n.b().float(element, alpha)?;
    let made = n.b().map(&[value, x, alpha], element, |p, of| {
        let product = p.call(F::Mul, &[of[1], of[2]]);
        p.call(F::Sub, &[of[0], product])
    })?;
    n.finish(made)
}

/// A number or a tensor of one element, in a type.
fn one(n: &mut Node<'_, '_>, i: usize, element: ElementType) -> Result<TensorId> {
    match n.float(i) {
        Ok(value) => n.b().float(element, value),
        Err(_) => {
            let value = n.tensor(i)?;
            n.b().cast(value, element)
        }
    }
}

fn fill(n: &mut Node<'_, '_>) -> Result<()> {
    let (dims, element) = (n.tensor_dims(0)?, n.element()?);
    let value = one(n, 1, element)?;
    let made = n.b().expand(value, &dims)?;
    n.finish(made)
}

/// Arguments: input, where it is replaced, by what.
fn fill_where(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, mask, element) = (n.tensor(0)?, n.tensor(1)?, n.element()?);
    let (x, mask) = (n.b().cast(x, element)?, n.b().cast(mask, ElementType::Bool)?);
    let value = one(n, 2, element)?;
    let made = n.b().map(&[mask, value, x], element, |p, x: &[Operand]| p.call(F::Select, x))?;
    n.finish(made)
}
