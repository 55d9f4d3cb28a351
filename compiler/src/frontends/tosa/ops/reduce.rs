//! Reductions along an axis, and ARGMAX.

use halite_formats::tosa::NanMode;
use halite_ops::{DType, expression::Function, reduce::ReduceKind};

use super::{
    super::Result,
    call::Call,
    cast::{computable, stored},
    values::{float, int, to},
};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

/// A reduction that keeps the axis. Sums of `bf16` are `f32`, as all of floats.
pub(super) fn reduce(b: &mut Builder, call: &Call<'_>, kind: ReduceKind, axis: i64) -> Result<TensorId> {
    let axis = call.axis(b, axis)?;
    b.reduce(kind, call.inputs[0], &[axis], true)
}

/// REDUCE_MAX and REDUCE_MIN; where NaN is ignored, only lines of nothing else become NaN.
pub(super) fn extreme(
    b: &mut Builder,
    call: &Call<'_>,
    kind: ReduceKind,
    axis: i64,
    nan: NanMode,
) -> Result<TensorId> {
    let x = call.inputs[0];
    let element = b.element(x);
    if !element.is_float() || nan == NanMode::Propagate {
        return reduce(b, call, kind, axis);
    }
    let axis = call.axis(b, axis)?;
    let none = if kind == ReduceKind::Max { f64::NEG_INFINITY } else { f64::INFINITY };
    let numbers = b.map(&[x], element, |p, x| {
        let is_nan = p.call(Function::IsNan, &[x[0]]);
        p.call(Function::Select, &[is_nan, float(none), x[0]])
    })?;
    let any = b.map(&[x], DType::I32, |p, x| {
        let is_nan = p.call(Function::IsNan, &[x[0]]);
        p.call(Function::Select, &[is_nan, int(0, DType::I32), int(1, DType::I32)])
    })?;
    let most = b.reduce(kind, numbers, &[axis], true)?;
    let any = b.reduce(ReduceKind::Max, any, &[axis], true)?;
    b.map(&[most, any], element, |p, x| {
        let has = p.call(Function::Gt, &[x[1], int(0, DType::I32)]);
        p.call(Function::Select, &[has, x[0], float(f64::NAN)])
    })
}

/// REDUCE_ALL and REDUCE_ANY: the least and the largest of 0 and 1.
pub(super) fn booleans(b: &mut Builder, call: &Call<'_>, kind: ReduceKind, axis: i64) -> Result<TensorId> {
    let axis = call.axis(b, axis)?;
    let numbers = b.cast(call.inputs[0], DType::I32)?;
    let made = b.reduce(kind, numbers, &[axis], true)?;
    b.cast(made, ElementType::Bool)
}

/// ARGMAX: the first of the largest. The first NaN is larger than all, or each is less than all.
pub(super) fn argmax(b: &mut Builder, call: &Call<'_>, axis: i64, nan: NanMode) -> Result<TensorId> {
    let axis = call.axis(b, axis)?;
    let x = computable(b, call.element(0), call.inputs[0])?;
    let x = if b.element(x).is_float() && nan == NanMode::Ignore { ordered(b, x)? } else { x };
    let places = b.arg_reduce(x, axis, false, false)?;
    let mut dims = b.dims(places).to_vec();
    dims.remove(axis);
    if dims.is_empty() && call.output().shape == [1] {
        // SPIR-V has no tensors without dimensions.
        dims.push(1);
    }
    let places = b.reshape(places, &dims)?;
    stored(b, call.output().element, places)
}

/// Integers in the order of floats, 0 and -0 being one, and NaN the least.
fn ordered(b: &mut Builder, x: TensorId) -> Result<TensorId> {
    let x = b.as_f32(x)?;
    let dims = b.dims(x).to_vec();
    let bits = b.view(x, DType::I32.into(), &dims)?;
    let number = |value| int(value, DType::I32);
    b.map(&[bits], DType::I32, |p, x| {
        let magnitude = p.call(Function::And, &[x[0], number(0x7FFF_FFFF)]);
        let negative = p.call(Function::Lt, &[x[0], number(0)]);
        let negated = p.call(Function::Neg, &[magnitude]);
        let key = p.call(Function::Select, &[negative, negated, magnitude]);
        let is_nan = p.call(Function::Gt, &[magnitude, number(0x7F80_0000)]);
        let key = p.call(Function::Select, &[is_nan, number(i64::from(i32::MIN)), key]);
        to(p, DType::I32, key)
    })
}
