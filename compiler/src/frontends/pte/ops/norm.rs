//! Normalizations and softmax.

use halite_ops::{DType, Values, expression::Function as F, norm::NormKind};
use halite_sizes::Size;

use super::{Node, Result, Table, unary::number};
use crate::{build::Normalization, graph::TensorId};

pub(super) const OPERATORS: Table = &[
    ("aten._native_batch_norm_legit_no_training.default", batch_norm),
    ("aten._native_batch_norm_legit.default", |n| batch_norm_of(n, Some([3, 4]), 5)),
    ("aten._native_batch_norm_legit.no_stats", |n| batch_norm_of(n, None, 3)),
    ("aten.native_layer_norm.default", layer_norm),
    ("aten.native_group_norm.default", group_norm),
    ("et_vk.rms_norm.default", rms_norm),
    ("aten._softmax.default", |n| softmax(n, false)),
    ("aten._log_softmax.default", |n| softmax(n, true)),
];

/// Arguments: input, scale, bias, mean, variance, momentum, epsilon.
fn batch_norm(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, scale, bias) = (n.tensor(0)?, n.optional(1)?, n.optional(2)?);
    let known = [n.tensor(3)?, n.tensor(4)?];
    let epsilon = n.float(6)? as f32;
    let made = n.b().batch_norm(x, known, scale, bias, epsilon)?;
    // Nothing is kept for training, and it is given where it is asked for.
    let mut all = [Some(made), None, None];
    for (k, kept) in all.iter_mut().enumerate().skip(1) {
        if n.wants(k)? {
            *kept = Some(n.b().values(DType::F32, &[0], &Values::Float(Vec::new()))?);
        }
    }
    n.finish_list(&all)
}

/// Arguments: input, scale, bias, at `known` mean and variance, at `own` whether those of the input itself are taken, momentum,
/// epsilon. The running mean and variance, which training keeps, are not given.
fn batch_norm_of(n: &mut Node<'_, '_>, known: Option<[usize; 2]>, own: usize) -> Result<()> {
    let (x, scale, bias) = (n.tensor(0)?, n.optional(1)?, n.optional(2)?);
    let epsilon = n.float(own + 2)? as f32;
    let dims = n.b().dims(x).to_vec();
    if dims.len() < 2 {
        return Err(n.invalid(format!("{dims:?} have no channels")));
    }
    let axes: Vec<usize> = (0..dims.len()).filter(|axis| *axis != 1).collect();
    let moments = match known {
        Some([mean, variance]) if !n.flag(own)? => [n.tensor(mean)?, n.tensor(variance)?],
        _ => {
            let (mean, variance) = n.b().moments(x, &axes)?;
            [n.b().reshape(mean, &[dims[1]])?, n.b().reshape(variance, &[dims[1]])?]
        }
    };
    let made = n.b().batch_norm(x, moments, scale, bias, epsilon)?;
    let reciprocal = n.b().map(&[moments[1]], DType::F32, |p, x| {
        let sum = p.call(F::Add, &[x[0], number(f64::from(epsilon))]);
        p.call(F::Rsqrt, &[sum])
    })?;
    n.finish_list(&[Some(made), Some(moments[0]), Some(reciprocal)])
}

/// Arguments: input, the dimensions that are normalized, scale, bias, epsilon.
fn layer_norm(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, shape, scale, bias) = (n.tensor(0)?, n.extents(1)?, n.optional(2)?, n.optional(3)?);
    let epsilon = n.float(4)? as f32;
    let dims = n.b().sizes(x).to_vec();
    if shape.is_empty() || !dims.ends_with(&shape) {
        return Err(n.invalid(format!("{dims:?} do not end with the normalized {shape:?}")));
    }
    let (first, end) = (dims.len() - shape.len(), dims.len());
    let norm = Normalization { kind: NormKind::Group, first, end, groups: 1, epsilon };
    let made = n.b().normalize(x, scale, bias, norm)?;
    let axes: Vec<usize> = (first..end).collect();
    let [mean, deviation] = moments(n, x, &axes, epsilon)?;
    n.finish_list(&[Some(made), mean, deviation])
}

/// Mean and reciprocal deviation, if somebody reads them.
fn moments(n: &mut Node<'_, '_>, x: TensorId, axes: &[usize], epsilon: f32) -> Result<[Option<TensorId>; 2]> {
    if !n.wants(1)? && !n.wants(2)? {
        return Ok([None; 2]);
    }
    let (mean, variance) = n.b().moments(x, axes)?;
    let reciprocal = n.b().map(&[variance], DType::F32, |p, x| {
        let sum = p.call(F::Add, &[x[0], number(f64::from(epsilon))]);
        p.call(F::Rsqrt, &[sum])
    })?;
    Ok([Some(mean), Some(reciprocal)])
}

/// Arguments: input, scale, bias, images, channels, elements of a channel, groups, epsilon.
fn group_norm(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, scale, bias) = (n.tensor(0)?, n.optional(1)?, n.optional(2)?);
    let (groups, epsilon) = (n.size(6)?, n.float(7)? as f32);
    let dims = n.b().sizes(x).to_vec();
    if dims.len() < 2 || groups == 0 || !dims[1].is_multiple_of(groups) {
        return Err(n.invalid(format!("{groups} groups of {dims:?}")));
    }
    let norm = Normalization { kind: NormKind::Group, first: 1, end: 2, groups, epsilon };
    let made = n.b().normalize(x, scale, bias, norm)?;
    let grouped = [dims[0], groups.into(), dims[1..].iter().product::<Size>() / groups];
    let lines = n.b().reshape_to(x, &grouped)?;
    let [mean, deviation] = moments(n, lines, &[2], epsilon)?;
    let result = [dims[0], groups.into()];
    let mean = mean.map(|id| n.b().reshape_to(id, &result)).transpose()?;
    let deviation = deviation.map(|id| n.b().reshape_to(id, &result)).transpose()?;
    n.finish_list(&[Some(made), mean, deviation])
}

/// Arguments: input, scale, epsilon.
fn rms_norm(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, scale, epsilon) = (n.tensor(0)?, n.tensor(1)?, n.float(2)? as f32);
    let end = n.b().rank(x);
    let Some(first) = end.checked_sub(1) else { return Err(n.invalid("normalization of a scalar")) };
    let norm = Normalization { kind: NormKind::Rms, first, end, groups: 1, epsilon };
    let made = n.b().normalize(x, Some(scale), None, norm)?;
    n.finish(made)
}

fn softmax(n: &mut Node<'_, '_>, log: bool) -> Result<()> {
    let x = n.tensor(0)?;
    let rank = n.b().rank(x);
    if rank == 0 {
        let constant = n.b().float(DType::F32, if log { 0.0 } else { 1.0 })?;
        return n.finish(constant);
    }
    let axis = n.axis(1, rank)?;
    let made = n.b().softmax(x, axis, log)?;
    n.finish(made)
}
