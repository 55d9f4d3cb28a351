//! CAST between all types.

use halite_formats::tosa::ElementType as Tosa;
use halite_ops::{DType, expression::Function};

use super::{
    super::{Result, element_of},
    call::Call,
    float8::Float8,
    values::{int, to},
};
use crate::{build::Builder, graph::TensorId};

/// Floats to integers round to nearest even and saturate; integers to smaller ones lose their upper bits; all else is
/// rounded to nearest even once.
pub(super) fn cast(b: &mut Builder, call: &Call<'_>) -> Result<TensorId> {
    let (from, into) = (call.element(0), call.output().element);
    let x = computable(b, from, call.inputs[0])?;
    if let Some(float8) = Float8::of(into) {
        return float8.narrow(b, x);
    }
    let element = element_of(into);
    if from.is_float() && into.is_integer() {
        return b.map(&[x], element, |p, x| {
            let whole = p.call(Function::Round, &[x[0]]);
            p.cast(element.value(), whole)
        });
    }
    if from == Tosa::I32 && into == Tosa::BF16 {
        return rounded_once(b, x);
    }
    b.cast(x, element)
}

/// A tensor in a type that expressions compute with: 8-bit floats as `f32`, all others as they are.
pub(super) fn computable(b: &mut Builder, element: Tosa, tensor: TensorId) -> Result<TensorId> {
    match Float8::of(element) {
        Some(float8) => float8.widen(b, tensor),
        None => Ok(tensor),
    }
}

/// A result in the type that the node's first output has in the file.
pub(super) fn stored(b: &mut Builder, element: Tosa, tensor: TensorId) -> Result<TensorId> {
    match Float8::of(element) {
        Some(float8) => float8.narrow(b, tensor),
        None => b.cast(tensor, element_of(element)),
    }
}

/// 32-bit integers as `bf16`. They pass through `f32`, whose rounding would be the first of two: where it has not enough
/// bits, the lower ones are joined in the last that it keeps (rounding to odd), which leaves the second rounding right.
fn rounded_once(b: &mut Builder, x: TensorId) -> Result<TensorId> {
    let number = |value| int(value, DType::I32);
    b.map(&[x], DType::BF16, |p, x| {
        let low = p.call(Function::And, &[x[0], number(0xFF)]);
        let any = p.call(Function::Ne, &[low, number(0)]);
        let sticky = p.call(Function::Select, &[any, number(0x100), number(0)]);
        let high = p.call(Function::And, &[x[0], number(!0xFF)]);
        let odd = p.call(Function::Or, &[high, sticky]);
        let above = p.call(Function::Ge, &[x[0], number(1 << 24)]);
        let below = p.call(Function::Le, &[x[0], number(-(1 << 24))]);
        let large = p.call(Function::Or, &[above, below]);
        let value = p.call(Function::Select, &[large, odd, x[0]]);
        to(p, DType::F32, value)
    })
}
