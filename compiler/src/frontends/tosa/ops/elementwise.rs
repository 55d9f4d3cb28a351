//! Operators on each element: arithmetic, bits, comparisons, choices.

use halite_formats::tosa::{ElementType as Tosa, NanMode, Scalar};
use halite_ops::{
    DType,
    expression::{Function, Operand},
};

use super::{
    super::Result,
    call::Call,
    values::{float, int, range, saturated, to},
};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

/// A function of one tensor.
pub(super) fn unary(b: &mut Builder, call: &Call<'_>, function: Function) -> Result<TensorId> {
    b.unary(function, call.inputs[0])
}

/// A function of two tensors of one type.
pub(super) fn binary(b: &mut Builder, call: &Call<'_>, function: Function) -> Result<TensorId> {
    b.binary(function, call.inputs[0], call.inputs[1])
}

/// A comparison, false of NaN.
pub(super) fn compare(b: &mut Builder, call: &Call<'_>, function: Function) -> Result<TensorId> {
    b.compare(function, call.inputs[0], call.inputs[1])
}

/// MAXIMUM and MINIMUM.
pub(super) fn extreme(
    b: &mut Builder,
    call: &Call<'_>,
    function: Function,
    nan: NanMode,
) -> Result<TensorId> {
    let element = b.element(call.inputs[0]);
    let ignores = element.is_float() && nan == NanMode::Ignore;
    b.map(call.inputs, element, |p, x| {
        let both = p.call(function, &x[..2]);
        if !ignores {
            return both;
        }
        let [first, second] = [0, 1].map(|i| p.call(Function::IsNan, &[x[i]]));
        let other = p.call(Function::Select, &[second, x[0], both]);
        p.call(Function::Select, &[first, x[1], other])
    })
}

/// CLAMP; where NaN is ignored it becomes the lower limit.
pub(super) fn clamp(
    b: &mut Builder,
    call: &Call<'_>,
    min: Scalar,
    max: Scalar,
    nan: NanMode,
) -> Result<TensorId> {
    let element = b.element(call.inputs[0]);
    let limit = |scalar: Scalar| match scalar {
        Scalar::Int(value) => int(value, element.storage()),
        Scalar::Float(value) => float(value),
    };
    let (low, high) = (limit(min), limit(max));
    let fits = |operand: Operand| matches!(operand, Operand::Constant(c) if c.type_of().is_float() == element.is_float());
    if !fits(low) || !fits(high) {
        return Err(b.invalid(format!("CLAMP of {element} between {min:?} and {max:?}")));
    }
    b.map(call.inputs, element, |p, x| {
        let mut value = x[0];
        if element.is_float() && nan == NanMode::Ignore {
            let is_nan = p.call(Function::IsNan, &[value]);
            value = p.call(Function::Select, &[is_nan, low, value]);
        }
        p.call(Function::Clip, &[value, low, high])
    })
}

/// MUL: of small integers in 32 bits; with a shift in 64, rounded half up.
pub(super) fn mul(b: &mut Builder, call: &Call<'_>, shift: i64) -> Result<TensorId> {
    let element = b.element(call.inputs[0]);
    if element.is_float() {
        return binary(b, call, Function::Mul);
    }
    if shift != 0 && (call.element(0) != Tosa::I32 || !(0..=63).contains(&shift)) {
        return Err(
            b.invalid(format!("MUL of {element} with a shift of {shift}; it is 0, or up to 63 for i32"))
        );
    }
    let wide = if shift > 0 { DType::I64 } else { DType::I32 };
    b.map(call.inputs, DType::I32, |p, x| {
        let (left, right) = (to(p, wide, x[0]), to(p, wide, x[1]));
        let product = p.call(Function::Mul, &[left, right]);
        if shift == 0 {
            return product;
        }
        let rounded = p.call(Function::Add, &[product, int(1 << (shift - 1), wide)]);
        let moved = p.call(Function::Shr, &[rounded, int(shift, wide)]);
        to(p, DType::I32, moved)
    })
}

/// NEGATE, with zero points of 8-bit integers, saturated.
pub(super) fn negate(
    b: &mut Builder,
    call: &Call<'_>,
    input_zero: i64,
    output_zero: i64,
) -> Result<TensorId> {
    let element = b.element(call.inputs[0]);
    if element.is_float() {
        return unary(b, call, Function::Neg);
    }
    b.map(call.inputs, element, |p, x| {
        let wide = to(p, DType::I64, x[0]);
        let negated = p.call(Function::Sub, &[int(input_zero, DType::I64), wide]);
        saturated(p, negated, output_zero, element.storage())
    })
}

/// ARITHMETIC_RIGHT_SHIFT; `round` adds the last bit that is shifted out.
pub(super) fn arithmetic_right_shift(b: &mut Builder, call: &Call<'_>, round: bool) -> Result<TensorId> {
    let element = b.element(call.inputs[0]);
    let number = |value| int(value, element.storage());
    b.map(call.inputs, element, |p, x| {
        let moved = p.call(Function::Shr, &x[..2]);
        if !round {
            return moved;
        }
        let before = p.call(Function::Sub, &[x[1], number(1)]);
        let last = p.call(Function::Shr, &[x[0], before]);
        let last = p.call(Function::And, &[last, number(1)]);
        let any = p.call(Function::Gt, &[x[1], number(0)]);
        let carry = p.call(Function::Select, &[any, last, number(0)]);
        p.call(Function::Add, &[moved, carry])
    })
}

/// LOGICAL_RIGHT_SHIFT: of the bits as an unsigned number of the same width.
pub(super) fn logical_right_shift(b: &mut Builder, call: &Call<'_>) -> Result<TensorId> {
    let element = b.element(call.inputs[0]);
    let bits = match element.storage() {
        DType::I8 => DType::U8,
        DType::I16 => DType::U16,
        _ => DType::U32,
    };
    b.map(call.inputs, element, |p, x| {
        let (value, amount) = (to(p, bits, x[0]), to(p, bits, x[1]));
        let moved = p.call(Function::Shr, &[value, amount]);
        to(p, element.storage(), moved)
    })
}

/// CLZ: the zeros before the first one, 32 of 0, by halves.
pub(super) fn leading_zeros(b: &mut Builder, call: &Call<'_>) -> Result<TensorId> {
    let number = |value| int(value, DType::U32);
    b.map(call.inputs, DType::I32, |p, x| {
        let mut rest = to(p, DType::U32, x[0]);
        let mut count = number(32);
        for half in [16, 8, 4, 2, 1] {
            let upper = p.call(Function::Shr, &[rest, number(half)]);
            let any = p.call(Function::Ne, &[upper, number(0)]);
            let fewer = p.call(Function::Sub, &[count, number(half)]);
            count = p.call(Function::Select, &[any, fewer, count]);
            rest = p.call(Function::Select, &[any, upper, rest]);
        }
        // What is left is 0 or 1.
        let count = p.call(Function::Sub, &[count, rest]);
        to(p, DType::I32, count)
    })
}

/// SELECT.
pub(super) fn select(b: &mut Builder, call: &Call<'_>) -> Result<TensorId> {
    b.select(call.inputs[0], call.inputs[1], call.inputs[2])
}

/// TABLE: of 256 entries one for each byte; of 513 the line between two.
pub(super) fn table(b: &mut Builder, call: &Call<'_>) -> Result<TensorId> {
    let [x, table] = *call.inputs else { unreachable!("the number of inputs was checked") };
    let wide = b.element(x) == ElementType::Of(DType::I16);
    let entries = if wide { 513 } else { 256 };
    if b.tensor(table).elements() != entries {
        let what = b.describe(&[x, table]);
        return Err(b.invalid(format!("TABLE of {what}; the table has {entries} entries")));
    }
    let element = b.element(table).storage();
    let whole = |value| int(value, DType::I32);
    if !wide {
        return b.map_with(&[x], &[table], element, |p, x, table| {
            let value = to(p, DType::I32, x[0]);
            let place = p.call(Function::Sub, &[value, whole(range(DType::I8).0)]);
            p.lookup(element, place, table[0])
        });
    }
    b.map_with(&[x], &[table], DType::I32, |p, x, table| {
        let value = to(p, DType::I32, x[0]);
        let offset = p.call(Function::Sub, &[value, whole(range(DType::I16).0)]);
        let place = p.call(Function::Shr, &[offset, whole(7)]);
        let next = p.call(Function::Add, &[place, whole(1)]);
        let [first, second] = [place, next].map(|place| {
            let entry = p.lookup(element, place, table[0]);
            to(p, DType::I32, entry)
        });
        let part = p.call(Function::And, &[value, whole(127)]);
        let rise = p.call(Function::Sub, &[second, first]);
        let rise = p.call(Function::Mul, &[rise, part]);
        let base = p.call(Function::Shl, &[first, whole(7)]);
        p.call(Function::Add, &[base, rise])
    })
}
