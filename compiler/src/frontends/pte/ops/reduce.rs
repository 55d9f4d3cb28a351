//! Reductions along dimensions.

use halite_ops::{DType, expression::Function as F, reduce::ReduceKind};
use halite_sizes::Size;

use super::{Node, Result, Table, unary::number};

pub(super) const OPERATORS: Table = &[
    ("aten.mean.dim", |n| reduce(n, ReduceKind::Mean)),
    ("aten.sum.dim_IntList", |n| reduce(n, ReduceKind::Sum)),
    ("aten.amax.default", |n| reduce(n, ReduceKind::Max)),
    ("aten.amin.default", |n| reduce(n, ReduceKind::Min)),
    ("aten.argmax.default", |n| place(n, false)),
    ("aten.argmin.default", |n| place(n, true)),
    ("aten.var.dim", variance),
];

/// The dimensions that are reduced: all where none is told.
fn axes(n: &mut Node<'_, '_>, rank: usize) -> Result<Vec<usize>> {
    let mut axes = n.axes(1, rank)?;
    axes.sort_unstable();
    axes.dedup();
    Ok(if axes.is_empty() { (0..rank).collect() } else { axes })
}

pub(super) fn reduce(n: &mut Node<'_, '_>, kind: ReduceKind) -> Result<()> {
    let x = n.tensor(0)?;
    let rank = n.b().rank(x);
    let (axes, keep) = (axes(n, rank)?, n.flag(2)?);
    // A sum or mean of integers or booleans has the type of the result.
    let own = n.b().element(x);
    let x = if own.is_float() || matches!(kind, ReduceKind::Max | ReduceKind::Min) {
        x
    } else {
        let element = n.element()?;
        n.b().cast(x, element)?
    };
    let made = n.b().reduce(kind, x, &axes, keep)?;
    n.finish(made)
}

/// Arguments: input, dimension, whether it stays. Without a dimension, the place among all elements.
fn place(n: &mut Node<'_, '_>, smallest: bool) -> Result<()> {
    let x = n.tensor(0)?;
    let dims = n.b().sizes(x).to_vec();
    let keep = n.flag(2)?;
    let (x, axis, result) = if n.is_none(1)? || dims.is_empty() {
        let count = n.b().tensor(x).count();
        let flat = n.b().reshape_to(x, &[count])?;
        (flat, 0, if keep { vec![1.into(); dims.len()] } else { Vec::new() })
    } else {
        let axis = n.axis(1, dims.len())?;
        let mut result = dims.clone();
        if keep {
            result[axis] = 1.into();
        } else {
            result.remove(axis);
        }
        (x, axis, result)
    };
    let made = n.b().arg_reduce(x, axis, smallest, false)?;
    let made = n.b().reshape_to(made, &result)?;
    n.finish(made)
}

/// Arguments: input, dimensions, whether the sum is divided by one less than the number of elements, whether they stay.
fn variance(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let dims = n.b().sizes(x).to_vec();
    let (axes, unbiased, keep) = (axes(n, dims.len())?, n.flag(2)?, n.flag(3)?);
    let count = axes.iter().map(|axis| dims[*axis].exact()).product::<u64>();
    let (_, variance) = n.b().moments(x, &axes)?;
    // Of one element, the unbiased variance is 0 / 0.
    let factor = if unbiased { count as f64 / (count as f64 - 1.0) } else { 1.0 };
    let made = n.b().map(&[variance], DType::F32, |p, x| p.call(F::Mul, &[x[0], number(factor)]))?;
    let left = (0..dims.len()).filter(|i| keep || !axes.contains(i));
    let result: Vec<Size> = left.map(|i| if axes.contains(&i) { 1.into() } else { dims[i] }).collect();
    let made = n.b().reshape_to(made, &result)?;
    n.finish(made)
}
