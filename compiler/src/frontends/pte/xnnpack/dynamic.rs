//! Dynamic quantization: 8-bit integers with scales and zero points that the range of the elements gives, by XNNPACK's rule
//! (`xnn_f32_qd8_asymmetric_quantization_params`).

use halite_ops::{
    DType,
    expression::{Function as F, Type},
    line_codes::{CodeRule, LineCodes},
};

use super::{Held, Result, layout::Dynamic};
use crate::build::Builder;

/// Integers for elements whose last `dims` dimensions share a scale and a zero point.
pub(super) fn quantized(b: &mut Builder, held: &Held, dims: usize) -> Result<Held> {
    let x = held.in_order(b)?;
    let x = b.as_f32(x)?;
    let rank = b.rank(x);
    if dims == 0 || dims > rank {
        return Err(b.invalid(format!("{dims} of {rank} dimensions are quantized together")));
    }
    let axes: Vec<usize> = (rank - dims..rank).collect();
    let rule = LineCodes { codes: Some(DType::I8), ..LineCodes::new(CodeRule::Steps, -128, 127) };
    let made = b.codes_of_lines(x, &axes, rule)?;
    let Some([scale, zero, tensor]) = made.as_deref() else {
        return Err(b.invalid("the last dimensions are lines, which have a scale, a zero point and codes"));
    };
    let dynamic = Some(Dynamic { scale: *scale, zero: *zero });
    Ok(Held { dynamic, ..Held::plain(b, *tensor) })
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
