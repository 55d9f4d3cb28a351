//! Convolutions.

use super::{
    Import, NodeView, Result,
    window::{AutoPad, sizes, window},
};
use crate::{
    build::{Builder, Sliding},
    graph::TensorId,
};

pub(super) const OPS: &[(&str, Import)] =
    &[("Conv", conv), ("ConvInteger", conv_integer), ("ConvTranspose", conv_transpose)];

pub(super) const MICROSOFT: &[(&str, Import)] = &[("ConvTransposeWithDynamicPads", with_dynamic_pads)];

fn conv(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, w) = (node.input(0)?, node.input(1)?);
    let (sliding, groups) = convolution(b, node, x, w)?;
    let x = b.with_size(x, 1, b.dims(w)[1].saturating_mul(groups))?;
    let made = b.conv(x, w, node.optional(2), &sliding, groups)?;
    b.remember_conv(made, [x, w], node.optional(2), &sliding, groups);
    Ok(vec![made])
}

/// The window and the groups of a convolution of two tensors.
pub(super) fn convolution(
    b: &Builder,
    node: &NodeView<'_>,
    x: TensorId,
    w: TensorId,
) -> Result<(Sliding, u64)> {
    let (input, taps) = (b.sizes(x), b.dims(w));
    if input.len() < 3 || taps.len() != input.len() {
        return Err(node.invalid(format!("no convolution of {}", b.describe(&[x, w]))));
    }
    let kernel = sizes_or(node, "kernel_shape", &taps[2..])?;
    if kernel != taps[2..] {
        return Err(node.invalid(format!("kernel_shape {kernel:?} for filters {}", b.describe(&[w]))));
    }
    Ok((window(node, &input[2..], &kernel)?, groups(node)?))
}

fn groups(node: &NodeView<'_>) -> Result<u64> {
    let groups = node.int("group", 1)?;
    u64::try_from(groups).ok().filter(|g| *g > 0).ok_or_else(|| node.invalid(format!("{groups} groups")))
}

fn sizes_or(node: &NodeView<'_>, name: &str, default: &[u64]) -> Result<Vec<u64>> {
    if node.has(name) { sizes(node, name, default.len(), 0) } else { Ok(default.to_vec()) }
}

fn conv_integer(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, w) = (node.input(0)?, node.input(1)?);
    let (sliding, groups) = convolution(b, node, x, w)?;
    Ok(vec![b.conv_of_bytes(x, node.optional(2), w, node.optional(3), &sliding, groups)?])
}

fn conv_transpose(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    transposed(b, node, node.optional(2), None)
}

/// With pads as an input, which must be known.
fn with_dynamic_pads(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let pads = b.need_ints(node.input(2)?, "the pads")?;
    let known: Option<Vec<u64>> = pads.iter().map(|v| u64::try_from(*v).ok()).collect();
    let sides = 2 * b.rank(node.input(0)?).saturating_sub(2);
    let known = known.filter(|all| all.len() == sides);
    let known = known.ok_or_else(|| node.invalid(format!("{pads:?} are not {sides} pads")))?;
    transposed(b, node, node.optional(3), Some(known))
}

/// A transposed convolution; pads are those of the attribute, if none are given.
fn transposed(
    b: &mut Builder,
    node: &NodeView<'_>,
    bias: Option<TensorId>,
    given: Option<Vec<u64>>,
) -> Result<Vec<TensorId>> {
    let (x, w) = (node.input(0)?, node.input(1)?);
    let (input, taps) = (b.sizes(x).to_vec(), b.dims(w).to_vec());
    if input.len() < 3 || taps.len() != input.len() {
        return Err(node.invalid(format!("no transposed convolution of {}", b.describe(&[x, w]))));
    }
    let x = b.with_size(x, 1, taps[0])?;
    let rank = input.len() - 2;
    let (strides, dilations) = (sizes(node, "strides", rank, 1)?, sizes(node, "dilations", rank, 1)?);
    let mut more = sizes(node, "output_padding", rank, 0)?;
    if strides.contains(&0) || dilations.contains(&0) || taps[2..].contains(&0) {
        return Err(node.invalid("strides, dilations and filters are at least 1"));
    }
    let auto = AutoPad::of(node)?;
    let wanted = match auto {
        _ if node.has("output_shape") => Some(output_shape(node, rank)?),
        AutoPad::SameLower | AutoPad::SameUpper => {
            Some((0..rank).map(|d| input[d + 2].exact().saturating_mul(strides[d])).collect())
        }
        AutoPad::NotSet | AutoPad::Valid => None,
    };
    let pads = match wanted {
        None if auto == AutoPad::Valid => vec![(0, 0); rank],
        None => {
            let all = given.map_or_else(|| sizes(node, "pads", 2 * rank, 0), Ok)?;
            (0..rank).map(|d| (all[d], all[d + rank])).collect()
        }
        Some(wanted) => {
            let mut pads = Vec::new();
            for d in 0..rank {
                let reach = dilations[d].saturating_mul(taps[d + 2] - 1).saturating_add(1);
                let whole =
                    input[d + 2].exact().saturating_sub(1).saturating_mul(strides[d]).saturating_add(reach);
                let whole = whole.saturating_add(more[d]);
                // What is wanted beyond is added behind.
                more[d] = more[d].saturating_add(wanted[d].saturating_sub(whole));
                pads.push(auto.halves(whole.saturating_sub(wanted[d])));
            }
            pads
        }
    };
    let sliding = Sliding { strides, dilations, pads };
    Ok(vec![b.conv_transpose(x, w, bias, &sliding, &more, groups(node)?)?])
}

/// The spatial sizes that are asked for; old models give those of images and channels too.
fn output_shape(node: &NodeView<'_>, rank: usize) -> Result<Vec<u64>> {
    let list = node.ints("output_shape")?.unwrap_or_default();
    let spatial = list.len().checked_sub(rank).map(|first| &list[first..]);
    let sizes: Option<Vec<u64>> = spatial.and_then(|s| s.iter().map(|v| u64::try_from(*v).ok()).collect());
    sizes.ok_or_else(|| node.invalid(format!("output_shape {list:?} is not {rank} sizes")))
}
