//! Operators that pick elements by index.

use super::{Node, Result, Table};
use crate::graph::{ElementType, TensorId, elements};

pub(super) const OPERATORS: Table = &[
    ("aten.index_select.default", |n| pick(n, 0, 2)),
    ("aten.embedding.default", |n| rows(n, 0, 1)),
    ("aten.gather.default", pick_each),
    ("aten.index.Tensor", index),
];

/// Slices along the dimension that argument 1 tells.
fn pick(n: &mut Node<'_, '_>, data: usize, indices: usize) -> Result<()> {
    let (data, indices) = (n.tensor(data)?, n.tensor(indices)?);
    let rank = n.b().rank(data);
    let axis = n.axis(1, rank)?;
    let count = n.b().tensor(indices).count();
    let indices = n.b().reshape_to(indices, &[count])?;
    let made = n.b().gather(data, indices, axis)?;
    n.finish(made)
}

fn rows(n: &mut Node<'_, '_>, table: usize, indices: usize) -> Result<()> {
    let (table, indices) = (n.tensor(table)?, n.tensor(indices)?);
    let made = n.b().gather(table, indices, 0)?;
    n.finish(made)
}

/// Arguments: input, dimension, indices.
fn pick_each(n: &mut Node<'_, '_>) -> Result<()> {
    let (data, indices) = (n.tensor(0)?, n.tensor(2)?);
    let rank = n.b().rank(data);
    let axis = n.axis(1, rank)?;
    let made = n.b().gather_elements(data, indices, axis)?;
    n.finish(made)
}

/// Arguments: input, an index tensor or none for each of the first dimensions. Index tensors are next to each other.
fn index(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, given) = (n.tensor(0)?, n.tensors(1)?);
    let places: Vec<usize> =
        given.iter().enumerate().filter(|(_, id)| id.is_some()).map(|(i, _)| i).collect();
    let indices: Vec<TensorId> = given.iter().flatten().copied().collect();
    if indices.iter().any(|id| n.b().element(*id) == ElementType::Bool) {
        return Err(n.unsupported("picking by a mask, whose size depends on values"));
    }
    let neighbours = places.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let Some(first) = places.first().copied() else {
        return Err(n.invalid("no index at all"));
    };
    if !neighbours {
        let made = pick_apart(n, x, &indices, &places)?;
        return n.finish(made);
    }
    if let [only] = indices[..] {
        let made = n.b().gather(x, only, first)?;
        return n.finish(made);
    }
    let made = pick_together(n, x, &indices, first)?;
    n.finish(made)
}

/// Elements by an index each in dimensions that are not next to each other: the new dimensions come first.
fn pick_apart(n: &mut Node<'_, '_>, x: TensorId, indices: &[TensorId], places: &[usize]) -> Result<TensorId> {
    let rank = n.b().rank(x);
    let order: Vec<usize> = places.iter().copied().chain((0..rank).filter(|i| !places.contains(i))).collect();
    let turned = n.b().transpose(x, &order)?;
    let (joined, _) = super::scatter::join(n, indices)?;
    n.b().gather_nd(turned, joined, 0)
}

/// Elements by several indices each, of the dimensions from `first` on.
fn pick_together(n: &mut Node<'_, '_>, x: TensorId, indices: &[TensorId], first: usize) -> Result<TensorId> {
    let (joined, shape) = super::scatter::join(n, indices)?;
    let dims = n.b().dims(x).to_vec();
    if first == 0 {
        return n.b().gather_nd(x, joined, 0);
    }
    // The dimensions before come behind while elements are picked.
    let end = first + indices.len();
    let order: Vec<usize> = (first..dims.len()).chain(0..first).collect();
    let turned = n.b().transpose(x, &order)?;
    let picked = n.b().gather_nd(turned, joined, 0)?;
    let (new, behind) = (elements(&shape), elements(&dims[end..]));
    let flat = n.b().reshape(picked, &[new * behind, elements(&dims[..first])])?;
    let back = n.b().swap_last(flat)?;
    n.b().reshape(back, &[&dims[..first], &shape, &dims[end..]].concat())
}
