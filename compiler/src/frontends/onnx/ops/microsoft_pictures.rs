//! Operators of `com.microsoft` for pictures whose channels come last, as ONNX Runtime's optimizers write them for diffusion models and
//! for convolutions between codes.

use halite_ops::{expression::Function, norm::NormKind};

use super::{
    Import, NodeView, Result, conv::convolution, microsoft_attention::columns, pool::max_pool, quantize,
};
use crate::{
    build::{Builder, Normalization},
    graph::TensorId,
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[
    ("BiasAdd", bias_add),
    ("BiasSplitGelu", split_gelu),
    ("GroupNorm", |b, node| group_norm(b, node, node.input(0)?)),
    ("NhwcConv", conv),
    ("NhwcMaxPool", pool),
    ("QLinearConv", conv_of_codes),
    ("SkipGroupNorm", skip_group_norm),
];

/// Channels go from the last place to the second.
pub(super) fn first(b: &mut Builder, x: TensorId) -> Result<TensorId> {
    let rank = b.rank(x);
    if rank < 3 {
        return Ok(x);
    }
    let order: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    b.transpose(x, &order)
}

/// The other way round.
pub(super) fn last(b: &mut Builder, x: TensorId) -> Result<TensorId> {
    let rank = b.rank(x);
    if rank < 3 {
        return Ok(x);
    }
    let order: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    b.transpose(x, &order)
}

fn bias_add(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let sum = b.binary(Function::Add, node.input(0)?, node.input(1)?)?;
    Ok(vec![b.binary(Function::Add, sum, node.input(2)?)?])
}

/// One half of the channels, times GELU of the other.
fn split_gelu(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let sum = b.binary(Function::Add, node.input(0)?, node.input(1)?)?;
    let width = b.sizes(sum).last().map_or(0, |size| size.exact());
    if !width.is_multiple_of(2) {
        return Err(node.invalid(format!("{width} columns have no halves")));
    }
    let (left, right) = (columns(b, sum, 0, width / 2)?, columns(b, sum, width / 2, width / 2)?);
    let gate = b.unary(Function::Gelu, right)?;
    Ok(vec![b.binary(Function::Mul, left, gate)?])
}

fn group_norm(b: &mut Builder, node: &NodeView<'_>, x: TensorId) -> Result<Vec<TensorId>> {
    let (scale, shift) = (node.input(1)?, node.input(2)?);
    let channels_last = node.flag("channels_last", true)?;
    let moved = if channels_last { first(b, x)? } else { x };
    let channels = b.sizes(moved).get(1).map_or(0, |size| size.exact());
    let groups = u64::try_from(node.int("groups", 0)?).unwrap_or(0);
    if groups == 0 || !channels.is_multiple_of(groups) {
        return Err(node.invalid(format!("{groups} groups of {channels} channels")));
    }
    let epsilon = node.float("epsilon", 1e-5)?;
    let norm = Normalization { kind: NormKind::Group, first: 1, end: 2, groups, epsilon };
    let mut made = b.normalize(moved, Some(scale), Some(shift), norm)?;
    match node.int("activation", 0)? {
        0 => {}
        1 => {
            let element = b.element(made);
            made = b.map(&[made], element, |p, x| {
                let gate = p.call(Function::Sigmoid, &[x[0]]);
                p.call(Function::Mul, &[x[0], gate])
            })?;
        }
        other => return Err(node.unsupported(format!("the activation {other}; there are 0 and 1"))),
    }
    Ok(vec![if channels_last { last(b, made)? } else { made }])
}

/// The same of a sum, which is the second output. What is added may be the same at all places.
fn skip_group_norm(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, mut skip) = (node.input(0)?, node.input(3)?);
    let channels_last = node.flag("channels_last", true)?;
    if b.rank(skip) == 2 {
        let [batch, channels] = *b.sizes(skip) else { return Err(node.invalid("a skip without sizes")) };
        let one = 1.into();
        let dims = if channels_last { [batch, one, one, channels] } else { [batch, channels, one, one] };
        skip = b.reshape_to(skip, &dims)?;
    }
    let mut sum = b.binary(Function::Add, x, skip)?;
    if let Some(bias) = node.optional(4) {
        sum = match channels_last {
            true => b.binary(Function::Add, sum, bias)?,
            false => b.add_to_channels(sum, bias)?,
        };
    }
    let made = group_norm(b, node, sum)?;
    Ok(vec![made[0], sum])
}

/// Filters have their channels last, too.
fn conv(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, w) = (first(b, node.input(0)?)?, first(b, node.input(1)?)?);
    let (sliding, groups) = convolution(b, node, x, w)?;
    let made = b.conv(x, w, node.optional(2), &sliding, groups)?;
    Ok(vec![last(b, made)?])
}

fn pool(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = first(b, node.input(0)?)?;
    let made = max_pool(b, &node.over(x, node.version))?;
    Ok(vec![last(b, made[0])?])
}

/// As ONNX's, but that channels may come last. Filters are as ever.
fn conv_of_codes(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    if !node.flag("channels_last", false)? {
        return quantize::conv(b, node);
    }
    let x = first(b, node.input(0)?)?;
    let made = quantize::conv(b, &node.with(0, x))?;
    Ok(vec![last(b, made[0])?])
}
