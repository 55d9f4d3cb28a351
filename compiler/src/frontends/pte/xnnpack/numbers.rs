//! Integers for numbers and back, by one scale and one zero point, and limits of numbers.

use halite_formats::pte::XnnType;
use halite_ops::{
    DType,
    expression::{Expression, Function as F, Operand, Scalar, Type},
};

use super::Result;
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

/// The type in which elements are held; those of 4 bits two in a byte.
pub(super) fn element_of(datatype: XnnType) -> ElementType {
    match datatype {
        XnnType::F32 => DType::F32,
        XnnType::F16 => DType::F16,
        XnnType::BF16 => DType::BF16,
        XnnType::I32 => DType::I32,
        XnnType::I8 => DType::I8,
        XnnType::U8 | XnnType::U4 => DType::U8,
    }
    .into()
}

pub(super) fn number(value: f32) -> Operand {
    Operand::Constant(Scalar::Float(f64::from(value)))
}

pub(super) fn integer(value: i32) -> Operand {
    Operand::Constant(Scalar::Int(i64::from(value), DType::I32))
}

/// The range of an 8-bit type.
pub(super) fn range(dtype: DType) -> (i32, i32) {
    if dtype == DType::U8 { (0, 255) } else { (-128, 127) }
}

/// `(q - zero) * scale` as `f32`. Differences are exact.
pub(super) fn dequantized(b: &mut Builder, tensor: TensorId, scale: f32, zero: i32) -> Result<TensorId> {
    b.map(&[tensor], DType::F32, |p, x| {
        let whole = p.cast(Type::Of(DType::I32), x[0]);
        let whole = if zero == 0 { whole } else { p.call(F::Sub, &[whole, integer(zero)]) };
        let value = p.cast(Type::Of(DType::F32), whole);
        p.call(F::Mul, &[value, number(scale)])
    })
}

/// `round(x * (1 / scale)) + zero`, ties to even, as far as an 8-bit type reaches.
pub(super) fn quantized(b: &mut Builder, x: TensorId, scale: f32, zero: i32, to: DType) -> Result<TensorId> {
    if to.size() != 1 {
        return Err(b.unsupported(format!("quantization to {to}; there is i8 and u8")));
    }
    if !(scale.is_finite() && scale > 0.0) {
        return Err(b.invalid(format!("a scale of {scale}")));
    }
    let x = b.as_f32(x)?;
    b.map(&[x], to, |p, x| {
        let value = p.call(F::Mul, &[x[0], number(1.0 / scale)]);
        rounded(p, value, zero, range(to), to)
    })
}

/// A number of steps rounded, moved by the zero point and kept within a range, as an 8-bit type.
pub(super) fn rounded(
    p: &mut Expression,
    value: Operand,
    zero: i32,
    (least, most): (i32, i32),
    to: DType,
) -> Operand {
    let whole = p.call(F::Round, &[value]);
    let moved = p.call(F::Add, &[whole, number(zero as f32)]);
    let kept = p.call(F::Clip, &[moved, number(least as f32), number(most as f32)]);
    p.cast(Type::Of(to), kept)
}

/// The integer that stands for a number.
pub(super) fn integer_of(value: f32, scale: f32, zero: i32, to: DType) -> i32 {
    let (least, most) = range(to);
    let steps = f64::from(value) / f64::from(scale);
    // NaN becomes 0.
    let whole = steps.round_ties_even().clamp(-1e6, 1e6) as i32;
    whole.saturating_add(zero).clamp(least, most)
}

/// Numbers within limits, which may be infinite.
pub(super) fn limited(b: &mut Builder, x: TensorId, limits: Option<[f32; 2]>) -> Result<TensorId> {
    let Some([least, most]) = limits else { return Ok(x) };
    let element = b.element(x);
    let bound = |value: f32| match element {
        ElementType::Of(dtype) if !dtype.is_float() => Operand::Constant(Scalar::Int(value as i64, dtype)),
        _ => number(value),
    };
    match (least > f32::NEG_INFINITY, most < f32::INFINITY) {
        (false, false) => Ok(x),
        (true, false) if least == 0.0 => b.unary(F::Relu, x),
        (low, high) => b.map(&[x], element, |p, x| {
            let mut value = x[0];
            if low {
                value = p.call(F::Max, &[value, bound(least)]);
            }
            if high {
                value = p.call(F::Min, &[value, bound(most)]);
            }
            value
        }),
    }
}
