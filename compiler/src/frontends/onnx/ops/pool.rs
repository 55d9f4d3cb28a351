//! Pooling.

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
    pad::Border,
    pool2d::Pooling,
    reduce::ReduceKind,
    scatters::Reduction,
};
use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    window::{sizes, window},
};
use crate::{
    build::Builder,
    graph::{TensorId, elements},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("AveragePool", average_pool),
    ("GlobalAveragePool", |b, node| global(b, node, ReduceKind::Mean)),
    ("GlobalLpPool", global_lp_pool),
    ("GlobalMaxPool", |b, node| global(b, node, ReduceKind::Max)),
    ("LpPool", lp_pool),
    ("MaxPool", max_pool),
    ("MaxUnpool", max_unpool),
];

fn spatial(b: &Builder, node: &NodeView<'_>) -> Result<(TensorId, Vec<Size>)> {
    let x = node.input(0)?;
    match b.sizes(x) {
        [_, _, spatial @ ..] if !spatial.is_empty() => Ok((x, spatial.to_vec())),
        _ => Err(node.invalid(format!("{} has no dimensions to pool", b.describe(&[x])))),
    }
}

fn kernel(node: &NodeView<'_>, rank: usize) -> Result<Vec<u64>> {
    if !node.has("kernel_shape") {
        return Err(node.invalid("there is no kernel_shape"));
    }
    sizes(node, "kernel_shape", rank, 1)
}

pub(super) fn average_pool(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, input) = spatial(b, node)?;
    let kernel = kernel(node, input.len())?;
    let sliding = window(node, &input, &kernel)?;
    let padded = node.flag("count_include_pad", false)?;
    let kind = if padded { Pooling::AveragePadded } else { Pooling::Average };
    Ok(vec![b.pool(x, kind, &kernel, &sliding, node.flag("ceil_mode", false)?)?])
}

fn lp_pool(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, input) = spatial(b, node)?;
    let kernel = kernel(node, input.len())?;
    let sliding = window(node, &input, &kernel)?;
    let p = order(node)?;
    Ok(vec![b.norm_pool(x, p, &kernel, &sliding, node.flag("ceil_mode", false)?)?])
}

fn order(node: &NodeView<'_>) -> Result<u64> {
    let p = node.int("p", 2)?;
    u64::try_from(p).map_err(|_| node.invalid(format!("a norm of order {p}")))
}

pub(super) fn max_pool(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, input) = spatial(b, node)?;
    let kernel = kernel(node, input.len())?;
    let sliding = window(node, &input, &kernel)?;
    let made = b.pool(x, Pooling::Max, &kernel, &sliding, node.flag("ceil_mode", false)?)?;
    if !node.is_used(1) {
        return Ok(vec![made]);
    }
    let out = b.dims(made)[2..].to_vec();
    let column_major = node.int("storage_order", 0)? == 1;
    Ok(vec![made, b.max_pool_indices(x, &kernel, &sliding, &out, column_major)?])
}

pub(super) fn global(b: &mut Builder, node: &NodeView<'_>, kind: ReduceKind) -> Result<Vec<TensorId>> {
    let (x, input) = spatial(b, node)?;
    let axes: Vec<usize> = (2..input.len() + 2).collect();
    Ok(vec![b.reduce(kind, x, &axes, true)?])
}

fn global_lp_pool(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, input) = spatial(b, node)?;
    let axes: Vec<usize> = (2..input.len() + 2).collect();
    Ok(vec![norm(b, x, order(node)?, &axes)?])
}

/// The norm of an order over axes, which stay with one element.
pub(super) fn norm(b: &mut Builder, x: TensorId, p: u64, axes: &[usize]) -> Result<TensorId> {
    match p {
        1 => return b.reduce(ReduceKind::L1, x, axes, true),
        2 => return b.reduce(ReduceKind::L2, x, axes, true),
        _ => {}
    }
    let element = b.element(x);
    let x = b.as_f32(x)?;
    let power = |p: f32| Operand::Constant(Scalar::Float(p.into()));
    let powers = b.map(&[x], DType::F32, |e, x| {
        let size = e.call(Function::Abs, &[x[0]]);
        e.call(Function::Pow, &[size, power(p as f32)])
    })?;
    let sums = b.reduce(ReduceKind::Sum, powers, axes, true)?;
    let roots = b.map(&[sums], DType::F32, |e, x| e.call(Function::Pow, &[x[0], power(1.0 / p as f32)]))?;
    b.cast(roots, element)
}

/// Elements at the places where they were the largest of windows, zeros elsewhere.
fn max_unpool(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, input) = spatial(b, node)?;
    let indices = node.input(1)?;
    let kernel = kernel(node, input.len())?;
    let sliding = window(node, &input, &kernel)?;
    let lead = b.dims(x)[..2].to_vec();
    let size = |d: usize| {
        let (before, behind) = sliding.pads[d];
        let size = input[d].exact();
        let whole = size.saturating_sub(1).saturating_mul(sliding.strides[d]).saturating_add(kernel[d]);
        whole.checked_sub(before)?.checked_sub(behind)
    };
    let inferred: Option<Vec<u64>> = (0..input.len()).map(size).collect();
    let inferred = inferred.ok_or_else(|| node.invalid("the padding cuts off more than there is"))?;
    let full = [&lead[..], &inferred].concat();
    let wanted = match node.optional(2) {
        None => full.clone(),
        Some(id) => {
            let sizes: Option<Vec<u64>> =
                b.need_ints(id, "output_shape")?.iter().map(|v| u64::try_from(*v).ok()).collect();
            sizes
                .filter(|sizes| sizes.len() == full.len())
                .ok_or_else(|| node.invalid("output_shape is no shape of the result"))?
        }
    };
    let element = b.element(x);
    let zero = b.values(element, &[], &Values::Int(vec![0]))?;
    let zeros = b.expand(zero, &[elements(&full)])?;
    let count = b.tensor(x).elements();
    let (flat, places) = (b.reshape(x, &[count])?, b.reshape(indices, &[count, 1])?);
    let made = b.scatter_nd([zeros, places, flat], Reduction::None)?;
    let made = b.reshape(made, &full)?;
    // A larger result has zeros behind.
    let borders: Vec<(i64, i64)> =
        wanted.iter().zip(&full).map(|(w, f)| (0, *w as i64 - *f as i64)).collect();
    Ok(vec![b.pad(made, &borders, Border::Constant, 0.0)?])
}
