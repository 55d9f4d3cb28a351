//! What is computed of lines of elements that the delegate lacks and ExecuTorch's portable kernels have: truths, extremes,
//! products, variances, running sums, orders, distances.

use halite_ops::{DType, Values, expression::Function as F, reduce::ReduceKind};

use super::{Node, Result, Table, unary::number};
use crate::graph::{ElementType, TensorId, elements};

pub(super) const OPERATORS: Table = &[
    ("aten.any.default", |n| truth(n, None, None, true)),
    ("aten.any.dim", |n| truth(n, Some(1), Some(2), true)),
    ("aten.any.dims", |n| truth(n, Some(1), Some(2), true)),
    ("aten.all.default", |n| truth(n, None, None, false)),
    ("aten.all.dim", |n| truth(n, Some(1), Some(2), false)),
    ("aten.all.dims", |n| truth(n, Some(1), Some(2), false)),
    ("aten.mean.default", |n| whole(n, ReduceKind::Mean)),
    ("aten.sum.default", |n| whole(n, ReduceKind::Sum)),
    ("aten.prod.default", |n| whole(n, ReduceKind::Prod)),
    ("aten.max.default", |n| whole(n, ReduceKind::Max)),
    ("aten.min.default", |n| whole(n, ReduceKind::Min)),
    ("aten.prod.dim_int", |n| super::reduce::reduce(n, ReduceKind::Prod)),
    ("aten.max.dim", |n| extreme(n, false)),
    ("aten.min.dim", |n| extreme(n, true)),
    ("aten.var.correction", |n| spread(n, false)),
    ("aten.var_mean.correction", |n| spread(n, true)),
    ("aten.cumsum.default", running_sum),
    ("aten.sort.default", |n| order(n, 1)),
    ("aten.sort.stable", |n| order(n, 2)),
    ("aten.topk.default", largest),
    ("aten._cdist_forward.default", distances),
    ("aten._pdist_forward.default", own_distances),
];

/// The dimensions that argument `i` tells, a number or a list: all where it is none.
fn axes(n: &Node<'_, '_>, i: Option<usize>, rank: usize) -> Result<Vec<usize>> {
    let told = match i {
        Some(i) if !n.is_none(i)? => n.ints(i)?,
        _ => Vec::new(),
    };
    // A dimension of a tensor without any may still be told.
    if rank == 0 {
        return Ok(Vec::new());
    }
    let mut axes: Vec<usize> = told.into_iter().map(|axis| n.axis_of(axis, rank)).collect::<Result<_>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(if axes.is_empty() { (0..rank).collect() } else { axes })
}

fn rank(n: &mut Node<'_, '_>) -> Result<usize> {
    Ok(n.tensor_dims(0)?.len())
}

/// Whether any or all elements are true.
fn truth(n: &mut Node<'_, '_>, dims: Option<usize>, keep: Option<usize>, any: bool) -> Result<()> {
    let (x, rank) = (n.tensor(0)?, rank(n)?);
    let axes = axes(n, dims, rank)?;
    let keep = match keep {
        Some(keep) => n.flag(keep)?,
        None => false,
    };
    let truth = n.b().cast(x, ElementType::Bool)?;
    let ones = n.b().cast(truth, DType::I32)?;
    let kind = if any { ReduceKind::Sum } else { ReduceKind::Min };
    let made = n.b().reduce(kind, ones, &axes, keep)?;
    let made = n.b().cast(made, ElementType::Bool)?;
    n.finish(made)
}

/// A reduction of all elements, in the type of the result.
fn whole(n: &mut Node<'_, '_>, kind: ReduceKind) -> Result<()> {
    let (x, rank, element) = (n.tensor(0)?, rank(n)?, n.element()?);
    let axes = axes(n, None, rank)?;
    let x = n.b().cast(x, element)?;
    let made = n.b().reduce(kind, x, &axes, false)?;
    n.finish(made)
}

/// Dimensions without one of them, or with one place there.
fn without(dims: &[u64], axis: usize, keep: bool) -> Vec<u64> {
    let mut result = dims.to_vec();
    if keep {
        result[axis] = 1;
    } else {
        result.remove(axis);
    }
    result
}

/// Arguments: input, dimension, whether it stays. Gives the largest or smallest elements, and where they are.
fn extreme(n: &mut Node<'_, '_>, smallest: bool) -> Result<()> {
    let (x, dims) = (n.tensor(0)?, n.tensor_dims(0)?);
    if dims.is_empty() {
        let place = n.b().float(DType::I64, 0.0)?;
        return n.finish_list(&[Some(x), Some(place)]);
    }
    let (axis, keep) = (n.axis(1, dims.len())?, n.flag(2)?);
    let kind = if smallest { ReduceKind::Min } else { ReduceKind::Max };
    let made = n.b().reduce(kind, x, &[axis], keep)?;
    let places = match n.wants(1)? {
        true => {
            let places = n.b().arg_reduce(x, axis, smallest, false)?;
            Some(n.b().reshape(places, &without(&dims, axis, keep))?)
        }
        false => None,
    };
    n.finish_list(&[Some(made), places])
}

/// Arguments: input, dimensions, what is subtracted from the number of elements before the sum of squares is divided by it,
/// whether dimensions stay. Gives the variance, and where `mean` the mean behind it.
fn spread(n: &mut Node<'_, '_>, mean: bool) -> Result<()> {
    let (x, dims) = (n.tensor(0)?, n.tensor_dims(0)?);
    let (axes, keep) = (axes(n, Some(1), dims.len())?, n.flag(3)?);
    let correction = n.optional_float(2)?.unwrap_or(1.0);
    let count: f64 = axes.iter().map(|axis| dims[*axis] as f64).product();
    let (middle, variance) = n.b().moments(x, &axes)?;
    // With fewer elements than are subtracted there is no variance.
    let factor = count / (count - correction).max(0.0);
    let variance = n.b().map(&[variance], DType::F32, |p, x| p.call(F::Mul, &[x[0], number(factor)]))?;
    let left = (0..dims.len()).filter(|i| keep || !axes.contains(i));
    let result: Vec<u64> = left.map(|i| if axes.contains(&i) { 1 } else { dims[i] }).collect();
    let variance = n.b().reshape(variance, &result)?;
    if !mean {
        return n.finish(variance);
    }
    let middle = n.b().reshape(middle, &result)?;
    n.finish_list(&[Some(variance), Some(middle)])
}

/// Arguments: input, dimension.
fn running_sum(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, rank, element) = (n.tensor(0)?, rank(n)?, n.element()?);
    let x = n.b().cast(x, element)?;
    if rank == 0 {
        return n.finish(x);
    }
    let axis = n.axis(1, rank)?;
    let made = n.b().cumulative_sum(x, axis, false, false)?;
    n.finish(made)
}

/// Arguments: input, at `dim` the dimension and behind it whether the largest come first.
fn order(n: &mut Node<'_, '_>, dim: usize) -> Result<()> {
    let (x, rank) = (n.tensor(0)?, rank(n)?);
    if rank == 0 {
        let place = n.b().float(DType::I64, 0.0)?;
        return n.finish_list(&[Some(x), Some(place)]);
    }
    let (axis, descending) = (n.axis(dim, rank)?, n.flag(dim + 1)?);
    let made = n.b().sort(x, axis, descending)?;
    n.finish_list(&made.map(Some))
}

/// Arguments: input, how many, dimension, whether the largest ones.
fn largest(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, k, dims) = (n.tensor(0)?, n.size(1)?, n.tensor_dims(0)?);
    if dims.is_empty() {
        let place = n.b().float(DType::I64, 0.0)?;
        return n.finish_list(&[Some(x), Some(place)]);
    }
    let (axis, smallest) = (n.axis(2, dims.len())?, !n.flag(3)?);
    if k > dims[axis] {
        return Err(n.invalid(format!("{k} of {} elements", dims[axis])));
    }
    if k == 0 {
        let mut result = dims;
        result[axis] = 0;
        let element = n.b().element(x);
        let none = n.b().constant("", element, &result, bytes::Bytes::new())?;
        let places = n.b().constant("", DType::I64.into(), &result, bytes::Bytes::new())?;
        return n.finish_list(&[Some(none), Some(places)]);
    }
    let made = n.b().top_k(x, axis, k, smallest)?;
    n.finish_list(&made.map(Some))
}

/// Distances of rows of `[.., p, m]` and `[.., r, m]` by the norm `order`: `[.., p, r]`.
fn norms(n: &mut Node<'_, '_>, [a, b]: [TensorId; 2], order: f64) -> Result<TensorId> {
    let apart = |dims: &[u64], at: usize| {
        let mut dims = dims.to_vec();
        dims.insert(dims.len() - at, 1);
        dims
    };
    let (left, right) = (n.b().dims(a).to_vec(), n.b().dims(b).to_vec());
    if left.len() < 2 || right.len() < 2 {
        return Err(n.invalid(format!("distances of rows of {left:?} and {right:?}")));
    }
    let (a, b) = (n.b().as_f32(a)?, n.b().as_f32(b)?);
    let (a, b) = (n.b().reshape(a, &apart(&left, 1))?, n.b().reshape(b, &apart(&right, 2))?);
    let power = n.b().map(&[a, b], DType::F32, |p, x| {
        let difference = p.call(F::Sub, x);
        let size = p.call(F::Abs, &[difference]);
        match order {
            0.0 => {
                let differs = p.call(F::Ne, &[difference, number(0.0)]);
                p.call(F::Select, &[differs, number(1.0), number(0.0)])
            }
            1.0 | f64::INFINITY => size,
            2.0 => p.call(F::Mul, &[size, size]),
            order => p.call(F::Pow, &[size, number(order)]),
        }
    })?;
    let last = n.b().rank(power) - 1;
    let kind = if order == f64::INFINITY { ReduceKind::Max } else { ReduceKind::Sum };
    let sum = n.b().reduce(kind, power, &[last], false)?;
    if [0.0, 1.0, f64::INFINITY].contains(&order) {
        return Ok(sum);
    }
    n.b().map(&[sum], DType::F32, |p, x| match order {
        2.0 => p.call(F::Sqrt, x),
        order => p.call(F::Pow, &[x[0], number(1.0 / order)]),
    })
}

/// Arguments: two tensors of rows, the norm.
fn distances(n: &mut Node<'_, '_>) -> Result<()> {
    let (a, b, order) = (n.tensor(0)?, n.tensor(1)?, n.float(2)?);
    let made = norms(n, [a, b], order)?;
    n.finish(made)
}

/// Arguments: rows, the norm. Distances of each two of them.
fn own_distances(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, order) = (n.tensor(0)?, n.optional_float(1)?.unwrap_or(2.0));
    let all = norms(n, [x, x], order)?;
    let rows = n.tensor_dims(0)?[0];
    let count = elements(&[rows, rows.saturating_sub(1)]) / 2;
    n.b().countable(count)?;
    let pairs = (0..rows as i64).flat_map(|i| (i + 1..rows as i64).map(move |j| i * rows as i64 + j));
    let places = n.b().values(DType::I32, &[count], &Values::Int(pairs.collect()))?;
    let flat = n.b().reshape(all, &[rows * rows])?;
    let made = n.b().gather(flat, places, 0)?;
    n.finish(made)
}
