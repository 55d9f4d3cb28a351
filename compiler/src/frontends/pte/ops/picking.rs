//! Operators that pick elements by index or by a mask: how many a mask picks, data decide.

use halite_ops::DType;

use super::{Node, Result, Table};
use crate::graph::{ElementType, TensorId, elements};

pub(super) const OPERATORS: Table = &[
    ("aten.index_select.default", |n| pick(n, 0, 2)),
    ("aten.embedding.default", |n| rows(n, 0, 1)),
    ("aten.gather.default", pick_each),
    ("aten.index.Tensor", index),
    ("aten.masked_select.default", pick_where),
    ("aten.nonzero.default", coordinates),
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

/// Arguments: input, mask. The elements where the mask holds, as a vector.
fn pick_where(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, mask) = (n.tensor(0)?, n.tensor(1)?);
    let shape = n.b().broadcast(&[x, mask])?;
    let (x, mask) = (n.b().expand(x, &shape)?, n.b().expand(mask, &shape)?);
    let line = n.b().reshape(x, &[elements(&shape)])?;
    let places = places_where(n, mask)?;
    let made = n.b().gather(line, places, 0)?;
    n.finish(made)
}

/// The places of a tensor, in order, at which it is not 0.
fn places_where(n: &mut Node<'_, '_>, x: TensorId) -> Result<TensorId> {
    match n.b().ints(x) {
        Some(known) => {
            let places = known.iter().enumerate().filter(|(_, v)| **v != 0).map(|(place, _)| place as i64);
            let places: Vec<i64> = places.collect();
            n.b().ints_constant(&places)
        }
        None => n.b().places_where(x),
    }
}

/// The coordinates of the elements that are not 0: a row for each.
fn coordinates(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let holds = n.b().cast(x, ElementType::Bool)?;
    let mut columns = Vec::new();
    for places in n.b().coordinates_where(holds)? {
        let column = [n.b().sizes(places)[0], 1.into()];
        columns.push(n.b().reshape_to(places, &column)?);
    }
    let made = n.b().concat(&columns, 1)?;
    n.finish(made)
}

/// Indices of which masks are coordinates, an index for each of their dimensions.
fn without_masks(n: &mut Node<'_, '_>, given: Vec<Option<TensorId>>) -> Result<Vec<Option<TensorId>>> {
    let mut indices = Vec::new();
    for index in given {
        let element = index.map(|id| n.b().element(id));
        match (index, element) {
            (Some(mask), Some(ElementType::Bool | ElementType::Of(DType::U8))) => {
                let holds = n.b().cast(mask, ElementType::Bool)?;
                indices.extend(n.b().coordinates_where(holds)?.into_iter().map(Some));
            }
            _ => indices.push(index),
        }
    }
    Ok(indices)
}

/// Arguments: input, an index tensor, a mask or none for each of the first dimensions.
fn index(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, given) = (n.tensor(0)?, n.tensors(1)?);
    let given = without_masks(n, given)?;
    let places: Vec<usize> =
        given.iter().enumerate().filter(|(_, id)| id.is_some()).map(|(i, _)| i).collect();
    let indices: Vec<TensorId> = given.iter().flatten().copied().collect();
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
    if first == 0 {
        return n.b().gather_nd(x, joined, 0);
    }
    let shape: Vec<u64> = shape.iter().map(|size| size.exact()).collect();
    let dims = n.b().dims(x).to_vec();
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
