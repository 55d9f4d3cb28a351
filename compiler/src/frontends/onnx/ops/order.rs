//! Operators that put elements in order or go along them: extremes, sorting, running sums.

use halite_ops::expression::Function;
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("ArgMax", |b, n| arg_extreme(b, n, false)),
    ("ArgMin", |b, n| arg_extreme(b, n, true)),
    ("CumProd", cumulative_product),
    ("CumSum", cumulative_sum),
    ("TopK", top_k),
];

fn arg_extreme(b: &mut Builder, node: &NodeView<'_>, smallest: bool) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let axis = node.axis(node.int("axis", 0)?, b.rank(data))?;
    let last = node.flag("select_last_index", false)?;
    let mut dims = b.sizes(data).to_vec();
    let places = b.arg_reduce(data, axis, smallest, last)?;
    dims[axis] = 1.into();
    if !node.flag("keepdims", true)? {
        dims.remove(axis);
    }
    Ok(vec![b.reshape_to(places, &dims)?])
}

/// `k` is an attribute before version 10, and an input since.
fn top_k(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let axis = node.axis(node.int("axis", -1)?, b.rank(data))?;
    let length = b.sizes(data)[axis];
    let k = match node.optional(1) {
        Some(k) => b.need_sizes_within(k, "k", length)?.first().copied(),
        None => node.int_if("k")?.map(Size::from),
    };
    let k = k.filter(|k| k.least() >= 0 && k.stays_within(length));
    let k = k.ok_or_else(|| node.invalid("k is missing, negative, or larger than the axis"))?;
    let smallest = !node.flag("largest", true)?;
    Ok(b.top_k(data, axis, k, smallest)?.to_vec())
}

fn axis_input(b: &Builder, node: &NodeView<'_>, rank: usize) -> Result<usize> {
    let axis = b.need_ints(node.input(1)?, "the axis")?;
    node.axis(axis.first().copied().unwrap_or(0), rank)
}

fn cumulative_sum(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let axis = axis_input(b, node, b.rank(data))?;
    let (exclusive, reverse) = (node.flag("exclusive", false)?, node.flag("reverse", false)?);
    Ok(vec![b.cumulative_sum(data, axis, exclusive, reverse)?])
}

/// Products by doubling: after step s each element is the product of the 2^s up to it.
fn cumulative_product(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let mut data = node.input(0)?;
    let dims = b.dims(data).to_vec();
    let axis = axis_input(b, node, dims.len())?;
    let reverse = node.flag("reverse", false)?;
    if node.flag("exclusive", false)? {
        data = shifted(b, data, axis, 1, reverse)?;
    }
    let mut step = 1;
    while step < dims[axis] {
        let other = shifted(b, data, axis, step, reverse)?;
        data = b.binary(Function::Mul, data, other)?;
        step *= 2;
    }
    Ok(vec![data])
}

/// Elements moved along an axis, away from where products begin; 1 where none come from.
fn shifted(b: &mut Builder, data: TensorId, axis: usize, by: u64, reverse: bool) -> Result<TensorId> {
    let mut dims = b.dims(data).to_vec();
    let size = dims[axis];
    let by = by.min(size);
    let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
    ranges[axis] = Range { start: if reverse && by < size { by } else { 0 }, step: 1, count: size - by };
    let kept = b.slice(data, &ranges)?;
    dims[axis] = by;
    let one = b.float(b.element(data), 1.0)?;
    let ones = b.expand(one, &dims)?;
    b.concat(&if reverse { [kept, ones] } else { [ones, kept] }, axis)
}
