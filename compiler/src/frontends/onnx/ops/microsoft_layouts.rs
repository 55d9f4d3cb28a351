//! Operators of ONNX Runtime over other orders of dimensions: `com.microsoft.nchwc`, which it saves for its own processor (see
//! [`super::super::blocked`]), and `com.ms.internal.nhwc`, which it saves for drivers that have channels last.

use halite_ops::{pad::Border, reduce::ReduceKind};
use halite_sizes::Size;

use super::{
    super::blocked::SIZE,
    Import, NodeView, Result, find,
    microsoft::{activated, fused_conv},
    microsoft_pictures::{first, last},
    pool, resize,
};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

/// `com.microsoft.nchwc`. Its pools are those of this version of ONNX.
const POOLS: i64 = 12;

pub(super) const BLOCKED: &[(&str, Import)] = &[
    ("AveragePool", |b, node| pool::average_pool(b, &node.over(node.input(0)?, POOLS))),
    ("Conv", blocked_conv),
    ("GlobalAveragePool", |b, node| pool::global(b, node, ReduceKind::Mean)),
    ("GlobalMaxPool", |b, node| pool::global(b, node, ReduceKind::Max)),
    ("MaxPool", |b, node| pool::max_pool(b, &node.over(node.input(0)?, POOLS))),
    ("ReorderInput", reorder_input),
    ("ReorderOutput", reorder_output),
    ("Upsample", upsample),
];

/// `com.ms.internal.nhwc`: versions are those of ONNX, filters too.
pub(super) const CHANNELS_LAST: &[(&str, Import)] = &[
    ("AveragePool", |b, node| channels_last(b, node, "AveragePool")),
    ("BatchNormalization", |b, node| channels_last(b, node, "BatchNormalization")),
    ("Conv", |b, node| channels_last(b, node, "Conv")),
    ("ConvTranspose", |b, node| channels_last(b, node, "ConvTranspose")),
    ("DepthToSpace", |b, node| channels_last(b, node, "DepthToSpace")),
    ("GlobalAveragePool", |b, node| channels_last(b, node, "GlobalAveragePool")),
    ("GlobalLpPool", |b, node| channels_last(b, node, "GlobalLpPool")),
    ("GlobalMaxPool", |b, node| channels_last(b, node, "GlobalMaxPool")),
    ("GridSample", |b, node| channels_last(b, node, "GridSample")),
    ("InstanceNormalization", |b, node| channels_last(b, node, "InstanceNormalization")),
    ("LRN", |b, node| channels_last(b, node, "LRN")),
    ("LpPool", |b, node| channels_last(b, node, "LpPool")),
    ("MaxPool", |b, node| channels_last(b, node, "MaxPool")),
    ("QLinearConv", |b, node| channels_last(b, node, "QLinearConv")),
    ("SpaceToDepth", |b, node| channels_last(b, node, "SpaceToDepth")),
    // Sizes and scales are given in the order of the dimensions.
    ("Resize", resize::resize),
];

/// ONNX's operator with channels first, between transposes that later passes take out.
fn channels_last(b: &mut Builder, node: &NodeView<'_>, operator: &str) -> Result<Vec<TensorId>> {
    if node.is_used(1) {
        return Err(node.unsupported("a second result with channels last"));
    }
    let import = find("", operator).ok_or_else(|| node.unsupported(operator))?;
    let x = first(b, node.input(0)?)?;
    let made = import(b, &node.with(0, x))?[0];
    let made = activated(b, node, made)?;
    Ok(vec![last(b, made)?])
}

/// How many channels lie together.
fn block(node: &NodeView<'_>) -> Result<u64> {
    u64::try_from(node.int(SIZE, 0)?)
        .ok()
        .filter(|size| *size > 0)
        .ok_or_else(|| node.unsupported("channels in blocks inside of a function"))
}

/// Channels up to the next multiple of a block.
fn reorder_input(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (mut x, block) = (node.input(0)?, block(node)?);
    if node.flag("channels_last", false)? {
        x = first(b, x)?;
    }
    let [_, channels, _, _] = *b.sizes(x) else {
        return Err(node.invalid(format!("{} is no picture", b.describe(&[x]))));
    };
    let more = channels.exact().next_multiple_of(block) - channels.exact();
    let borders = [(0, 0), (0, more as i64), (0, 0), (0, 0)];
    Ok(vec![b.pad(x, &borders, Border::Constant, 0.0)?])
}

/// Those that the model has.
fn reorder_output(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let wanted = u64::try_from(node.int("channels", 0)?).unwrap_or(0);
    let [batch, channels, rows, columns] = *b.sizes(x) else {
        return Err(node.invalid(format!("{} is no picture", b.describe(&[x]))));
    };
    if wanted == 0 || wanted > channels.exact() {
        return Err(node.invalid(format!("{wanted} channels of {}", b.describe(&[x]))));
    }
    let part = Range { start: 0.into(), step: 1, count: Size::constant(wanted as i64) };
    let made = b.slice(x, &[Range::all(batch), part, Range::all(rows), Range::all(columns)])?;
    Ok(vec![if node.flag("channels_last", false)? { last(b, made)? } else { made }])
}

/// As `FusedConv`, with filters in the order of ONNX.
fn blocked_conv(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (w, block) = (node.input(1)?, block(node)?);
    let dims = b.dims(w).to_vec();
    let &[made, taken, rows, columns] = &dims[..] else {
        return Err(node.invalid(format!("{} are no filters of pictures", b.describe(&[w]))));
    };
    if made % block != 0 {
        return Err(node.invalid(format!("{made} channels are not in blocks of {block}")));
    }
    // Few channels, and each alone, are read as they are: only those that are made lie in blocks then.
    let inner = if taken % block == 0 { block } else { 1 };
    let apart = [made / block, taken / inner, rows, columns, inner, block];
    let w = b.reshape(w, &apart)?;
    let w = b.transpose(w, &[0, 5, 1, 4, 2, 3])?;
    let w = b.reshape(w, &dims)?;
    fused_conv(b, &node.with(1, w))
}

fn upsample(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let scales: Vec<f64> = node.ints("scales")?.unwrap_or_default().into_iter().map(|v| v as f64).collect();
    let mut how = resize::plain(node)?;
    if node.string("mode", "nearest")? != "nearest" {
        how.placement = resize::manner(&node.of_version(13))?.placement;
    }
    resize::by_scales(b, node, &scales, &how)
}
