//! Short words for the expressions of importers: constants, conversions, scaled integers.

use halite_ops::{
    DType, Values,
    expression::{Expression, Function, Operand, Scalar, Type},
};

use super::super::Result;
use crate::{build::Builder, graph::TensorId};

/// A constant of an integer type.
pub(super) fn int(value: i64, dtype: DType) -> Operand {
    Operand::Constant(Scalar::Int(value, dtype))
}

/// A constant float.
pub(super) fn float(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

/// A value as another type.
pub(super) fn to(p: &mut Expression, dtype: DType, x: Operand) -> Operand {
    p.cast(Type::Of(dtype), x)
}

/// The least and the largest value of an integer type of at most 32 bits.
pub(super) fn range(dtype: DType) -> (i64, i64) {
    let bits = dtype.size() * 8;
    if dtype.is_signed() { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// `value * multiplier / 2^shift`, rounded half up: `apply_scale_32` and `apply_scale_16` of the specification, all `i64`.
/// `twice` rounds first at bit 31, away from zero, where the shift is larger.
pub(super) fn scaled(
    p: &mut Expression,
    value: Operand,
    multiplier: Operand,
    shift: Operand,
    twice: bool,
) -> Operand {
    let wide = |value| int(value, DType::I64);
    let before = p.call(Function::Sub, &[shift, wide(1)]);
    let mut half = p.call(Function::Shl, &[wide(1), before]);
    if twice {
        let positive = p.call(Function::Ge, &[value, wide(0)]);
        let first = p.call(Function::Select, &[positive, wide(1 << 30), wide(-(1 << 30))]);
        let deep = p.call(Function::Gt, &[shift, wide(31)]);
        let first = p.call(Function::Select, &[deep, first, wide(0)]);
        half = p.call(Function::Add, &[half, first]);
    }
    let product = p.call(Function::Mul, &[value, multiplier]);
    let sum = p.call(Function::Add, &[product, half]);
    p.call(Function::Shr, &[sum, shift])
}

/// The same where it is rounded once, the shift is at least 33 and the product fits `i64`: only its high word decides. Value and
/// result are `i32`, as the shift is.
pub(super) fn scaled_deep(
    p: &mut Expression,
    value: Operand,
    multiplier: Operand,
    shift: Operand,
) -> Operand {
    let word = |value| int(value, DType::I32);
    let [value, multiplier] = [value, multiplier].map(|factor| to(p, DType::I64, factor));
    let product = p.call(Function::Mul, &[value, multiplier]);
    let above = p.call(Function::Shr, &[product, int(32, DType::I64)]);
    let high = to(p, DType::I32, above);
    let before = p.call(Function::Sub, &[shift, word(33)]);
    let half = p.call(Function::Shl, &[word(1), before]);
    let sum = p.call(Function::Add, &[high, half]);
    let rest = p.call(Function::Sub, &[shift, word(32)]);
    p.call(Function::Shr, &[sum, rest])
}

/// An `i64` plus a zero point, as far as an integer type reaches.
pub(super) fn saturated(p: &mut Expression, value: Operand, zero: i64, dtype: DType) -> Operand {
    saturated_from(p, value, zero, DType::I64, dtype)
}

/// The same of a value of type `from`, which holds the sum.
pub(super) fn saturated_from(
    p: &mut Expression,
    value: Operand,
    zero: i64,
    from: DType,
    dtype: DType,
) -> Operand {
    let (least, most) = range(dtype);
    let moved = p.call(Function::Add, &[value, int(zero, from)]);
    let kept = p.call(Function::Clip, &[moved, int(least, from), int(most, from)]);
    to(p, dtype, kept)
}

/// A zero point as a tensor; none of 0.
pub(super) fn zero_point(b: &mut Builder, zero: i64) -> Result<Option<TensorId>> {
    if zero == 0 {
        return Ok(None);
    }
    b.values(DType::I8, &[], &Values::Int(vec![zero])).map(Some)
}
