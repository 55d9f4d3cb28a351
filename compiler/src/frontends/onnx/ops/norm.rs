//! Normalizations.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    norm::NormKind,
    pool2d::Pooling,
};
use halite_sizes::Size;

use super::{Import, NodeView, Result, pool};
use crate::{
    build::{Builder, Normalization, Sliding},
    graph::TensorId,
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("BatchNormalization", batch),
    ("GroupNormalization", group),
    ("InstanceNormalization", instance),
    ("LRN", local_response),
    ("LayerNormalization", layer),
    ("LpNormalization", by_norm),
    ("MeanVarianceNormalization", mean_variance),
    ("RMSNormalization", root_mean_square),
];

fn number(value: f32) -> Operand {
    Operand::Constant(Scalar::Float(value.into()))
}

fn batch(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let inputs = [0, 1, 2, 3, 4].map(|i| node.input(i));
    let [x, scale, bias, mean, variance] = inputs;
    let (x, scale, bias, mean, variance) = (x?, scale?, bias?, mean?, variance?);
    if node.int("spatial", 1)? == 0 {
        return Err(node.unsupported("batch normalization of every place by itself (spatial = 0)"));
    }
    let epsilon = node.float("epsilon", 1e-5)?;
    let element = b.element(x);
    // Statistics of a wider type are not rounded to that of the elements.
    let wide = b.element(mean) != element || b.element(scale) != element;
    let x = if wide { b.as_f32(x)? } else { x };
    if !node.since(14) || !node.flag("training_mode", false)? {
        let made = b.batch_norm(x, [mean, variance], Some(scale), Some(bias), epsilon)?;
        return Ok(vec![b.cast(made, element)?]);
    }
    let rank = b.rank(x);
    let axes: Vec<usize> = (0..rank).filter(|d| *d != 1).collect();
    let (own_mean, own_variance) = b.moments(x, &axes)?;
    let channels = b.sizes(x).get(1).map_or(1, |size| size.exact());
    let own_mean = b.reshape(own_mean, &[channels])?;
    let own_variance = b.reshape(own_variance, &[channels])?;
    let made = b.batch_norm(x, [own_mean, own_variance], Some(scale), Some(bias), epsilon)?;
    let momentum = node.float("momentum", 0.9)?;
    let mut running = |old: TensorId, new: TensorId| {
        let element = b.element(old);
        let old = b.as_f32(old)?;
        let made = b.map(&[old, new], DType::F32, |p, x| {
            let kept = p.call(Function::Mul, &[x[0], number(momentum)]);
            let added = p.call(Function::Mul, &[x[1], number(1.0 - momentum)]);
            p.call(Function::Add, &[kept, added])
        })?;
        b.cast(made, element)
    };
    let (mean, variance) = (running(mean, own_mean)?, running(variance, own_variance)?);
    Ok(vec![b.cast(made, element)?, mean, variance])
}

fn instance(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, scale, bias) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let groups = b.sizes(x).get(1).map_or(1, |size| size.exact());
    let epsilon = node.float("epsilon", 1e-5)?;
    let norm = Normalization { kind: NormKind::Group, first: 1, end: 2, groups, epsilon };
    Ok(vec![b.normalize(x, Some(scale), Some(bias), norm)?])
}

fn group(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, scale, bias) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let channels = b.sizes(x).get(1).map_or(0, |size| size.exact());
    let groups = u64::try_from(node.int("num_groups", 0)?).unwrap_or(0);
    if groups == 0 || !channels.is_multiple_of(groups) {
        return Err(node.invalid(format!("{groups} groups of {channels} channels")));
    }
    let mut of_channels = |id: TensorId| {
        // Before version 21 there was one for each group.
        if b.tensor(id).elements() != groups || groups == channels {
            return Ok(id);
        }
        let column = b.reshape(id, &[groups, 1])?;
        let wide = b.expand(column, &[groups, channels / groups])?;
        b.reshape(wide, &[channels])
    };
    let (scale, bias) = (of_channels(scale)?, of_channels(bias)?);
    let epsilon = node.float("epsilon", 1e-5)?;
    let norm = Normalization { kind: NormKind::Group, first: 1, end: 2, groups, epsilon };
    Ok(vec![b.normalize(x, Some(scale), Some(bias), norm)?])
}

/// A scale or bias for the dimensions from `axis` on, to which it is broadcast.
fn for_dims(b: &mut Builder, id: TensorId, dims: &[Size]) -> Result<TensorId> {
    if b.tensor(id).count() == dims.iter().product::<Size>() { Ok(id) } else { b.expand_to(id, dims) }
}

fn layer(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let dims = b.sizes(x).to_vec();
    let axis = node.axis(node.int("axis", -1)?, dims.len())?;
    let scale = node.optional(1).map(|id| for_dims(b, id, &dims[axis..])).transpose()?;
    let bias = node.optional(2).map(|id| for_dims(b, id, &dims[axis..])).transpose()?;
    let epsilon = node.float("epsilon", 1e-5)?;
    let norm = Normalization { kind: NormKind::Group, first: axis, end: dims.len(), groups: 1, epsilon };
    let made = b.normalize(x, scale, bias, norm)?;
    if !node.is_used(1) && !node.is_used(2) {
        return Ok(vec![made]);
    }
    let axes: Vec<usize> = (axis..dims.len()).collect();
    let (mean, variance) = b.moments(x, &axes)?;
    let inverse = b.map(&[variance], DType::F32, |p, x| {
        let sum = p.call(Function::Add, &[x[0], number(epsilon)]);
        p.call(Function::Rsqrt, &[sum])
    })?;
    Ok(vec![made, mean, inverse])
}

fn root_mean_square(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let dims = b.sizes(x).to_vec();
    let axis = node.axis(node.int("axis", -1)?, dims.len())?;
    let scale = for_dims(b, node.input(1)?, &dims[axis..])?;
    let epsilon = node.float("epsilon", 1e-5)?;
    let norm = Normalization { kind: NormKind::Rms, first: axis, end: dims.len(), groups: 1, epsilon };
    Ok(vec![b.normalize(x, Some(scale), None, norm)?])
}

fn mean_variance(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let axes = node.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let axes = node.axes(&axes, b.rank(x))?;
    let element = b.element(x);
    let (mean, variance) = b.moments(x, &axes)?;
    let x = b.as_f32(x)?;
    let made = b.map(&[x, mean, variance], DType::F32, |p, x| {
        let difference = p.call(Function::Sub, &[x[0], x[1]]);
        let deviation = p.call(Function::Sqrt, &[x[2]]);
        // ONNX's function for this operator adds so much to the deviation.
        let deviation = p.call(Function::Add, &[deviation, number(1e-9)]);
        p.call(Function::Div, &[difference, deviation])
    })?;
    Ok(vec![b.cast(made, element)?])
}

fn by_norm(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let axis = node.axis(node.int("axis", -1)?, b.rank(x))?;
    let p = node.int("p", 2)?;
    let Some(p) = u64::try_from(p).ok().filter(|p| matches!(p, 1 | 2)) else {
        return Err(node.invalid(format!("a norm of order {p}")));
    };
    let element = b.element(x);
    let x = b.as_f32(x)?;
    let norm = pool::norm(b, x, p, &[axis])?;
    let made = b.map(&[x, norm], DType::F32, |p, x| {
        let none = p.call(Function::Eq, &[x[1], number(0.0)]);
        let part = p.call(Function::Div, &[x[0], x[1]]);
        p.call(Function::Select, &[none, number(0.0), part])
    })?;
    Ok(vec![b.cast(made, element)?])
}

/// `x / (bias + alpha * mean)^beta`, the mean being that of the squares of `size` neighbouring channels, with zeros beyond
/// the first and the last.
fn local_response(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let (element, dims) = (b.element(x), b.sizes(x).to_vec());
    let size = u64::try_from(node.int("size", 0)?).unwrap_or(0);
    let [images, channels, spatial @ ..] = &dims[..] else {
        return Err(node.invalid(format!("{} has no channels", b.describe(&[x]))));
    };
    if size == 0 {
        return Err(node.invalid("a window of 0 channels"));
    }
    let wide = b.as_f32(x)?;
    let squares = b.binary(Function::Mul, wide, wide)?;
    let squares = b.reshape_to(squares, &[*images, 1.into(), *channels, spatial.iter().product()])?;
    let pads = vec![((size - 1) / 2, size / 2), (0, 0)];
    let sliding = Sliding { pads, ..Sliding::plain(2) };
    let means = b.pool(squares, Pooling::AveragePadded, &[size, 1], &sliding, false)?;
    let means = b.reshape_to(means, &dims)?;
    let (alpha, beta, bias) =
        (node.float("alpha", 1e-4)?, node.float("beta", 0.75)?, node.float("bias", 1.0)?);
    let made = b.map(&[wide, means], DType::F32, |p, x| {
        let part = p.call(Function::Mul, &[x[1], number(alpha)]);
        let sum = p.call(Function::Add, &[part, number(bias)]);
        let power = p.call(Function::Pow, &[sum, number(beta)]);
        p.call(Function::Div, &[x[0], power])
    })?;
    Ok(vec![b.cast(made, element)?])
}
