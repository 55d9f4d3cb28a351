//! Dynamic quantization: 8-bit integers with scales and zero points that the range of the elements gives, by XNNPACK's rule
//! (`xnn_f32_qd8_asymmetric_quantization_params`).

use halite_ops::{
    DType,
    expression::{Expression, Function as F, Operand, Type},
    reduce::ReduceKind,
};

use super::{
    Held, Result,
    layout::Dynamic,
    numbers::{integer, number},
};
use crate::build::Builder;

const LEAST: f32 = -128.0;
const MOST: f32 = 127.0;

/// The least and the largest element, of which 0 is always one.
fn ends(p: &mut Expression, x: &[Operand]) -> [Operand; 2] {
    [p.call(F::Min, &[x[0], number(0.0)]), p.call(F::Max, &[x[1], number(0.0)])]
}

/// Integers for elements whose last `dims` dimensions share a scale and a zero point.
pub(super) fn quantized(b: &mut Builder, held: &Held, dims: usize) -> Result<Held> {
    let x = held.in_order(b)?;
    let x = b.as_f32(x)?;
    let rank = b.rank(x);
    if dims == 0 || dims > rank {
        return Err(b.invalid(format!("{dims} of {rank} dimensions are quantized together")));
    }
    let axes: Vec<usize> = (rank - dims..rank).collect();
    let least = b.reduce(ReduceKind::Min, x, &axes, true)?;
    let most = b.reduce(ReduceKind::Max, x, &axes, true)?;
    let steps = b.map(&[least, most], DType::F32, |p, x| {
        let [least, most] = ends(p, x);
        let size = p.call(F::Sub, &[most, least]);
        let steps = p.call(F::Div, &[number(MOST - LEAST), size]);
        let none = p.call(F::Eq, &[size, number(0.0)]);
        p.call(F::Select, &[none, number(1.0), steps])
    })?;
    // The zero point follows from that end of the range that it represents better.
    let zero = b.map(&[least, most, steps], DType::I32, |p, x| {
        let ends = ends(p, x);
        let [low, high] = ends.map(|end| p.call(F::Mul, &[end, x[2]]));
        let errors = [p.call(F::Add, &[number(LEAST), low]), p.call(F::Add, &[number(MOST), high])];
        let sum = p.call(F::Add, &errors);
        let positive = p.call(F::Gt, &[sum, number(0.0)]);
        let choices = [p.call(F::Sub, &[number(LEAST), low]), p.call(F::Sub, &[number(MOST), high])];
        let zero = p.call(F::Select, &[positive, choices[0], choices[1]]);
        let zero = p.call(F::Round, &[zero]);
        let zero = p.call(F::Clip, &[zero, number(LEAST), number(MOST)]);
        p.cast(Type::Of(DType::I32), zero)
    })?;
    let tensor = b.map(&[x, steps, zero], DType::I8, |p, x| {
        let value = p.call(F::Mul, &[x[0], x[1]]);
        let value = p.call(F::Round, &[value]);
        let zero = p.cast(Type::Of(DType::F32), x[2]);
        let value = p.call(F::Add, &[value, zero]);
        let value = p.call(F::Clip, &[value, number(LEAST), number(MOST)]);
        p.cast(Type::Of(DType::I8), value)
    })?;
    let scale = b.map(&[steps], DType::F32, |p, x| p.call(F::Reciprocal, &[x[0]]))?;
    Ok(Held { dynamic: Some(Dynamic { scale, zero }), ..Held::plain(b, tensor) })
}

/// The numbers that such integers stand for.
pub(super) fn floats(b: &mut Builder, held: &Held) -> Result<Held> {
    let Some(Dynamic { scale, zero }) = held.dynamic else {
        return Err(b.unsupported("integers that were quantized dynamically outside of the delegate"));
    };
    let made = b.map(&[held.tensor, scale, zero], DType::F32, |p, x| {
        let value = p.cast(Type::Of(DType::I32), x[0]);
        let value = p.call(F::Sub, &[value, x[2]]);
        let value = p.cast(Type::Of(DType::F32), value);
        p.call(F::Mul, &[value, x[1]])
    })?;
    Ok(held.with(made))
}

/// `(sums - zero * columns) * scale * factor`: what sums of products of such integers with weights stand for, `columns` being
/// the sums of the weights and `factor` their scales.
pub(super) fn of_sums(
    b: &mut Builder,
    sums: crate::graph::TensorId,
    Dynamic { scale, zero }: Dynamic,
    columns: crate::graph::TensorId,
    factor: crate::graph::TensorId,
) -> Result<crate::graph::TensorId> {
    b.map(&[sums, zero, columns, scale, factor], DType::F32, |p, x| {
        let moved = p.call(F::Mul, &[x[1], x[2]]);
        let sum = p.call(F::Sub, &[x[0], moved]);
        let sum = p.cast(Type::Of(DType::F32), sum);
        let scale = p.call(F::Mul, &[x[3], x[4]]);
        p.call(F::Mul, &[sum, scale])
    })
}

/// Zero points as `f32` times scales.
pub(super) fn offsets(b: &mut Builder, Dynamic { scale, zero }: Dynamic) -> Result<crate::graph::TensorId> {
    b.map(&[scale, zero], DType::F32, |p, x| {
        let zero = p.call(F::Add, &[x[1], integer(0)]);
        let zero = p.cast(Type::Of(DType::F32), zero);
        p.call(F::Mul, &[x[0], zero])
    })
}
