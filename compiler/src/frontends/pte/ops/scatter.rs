//! Operators that replace elements by index, which the delegate lacks and ExecuTorch's portable kernels have.

use halite_ops::{DType, Values, expression::Function as F, scatters::Reduction};
use halite_sizes::Size;

use super::{Node, Result, Table, cutting::part};
use crate::graph::{ElementType, TensorId, elements};

pub(super) const OPERATORS: Table = &[
    ("aten.index_put.default", put),
    ("aten.scatter.src", |n| scatter(n, Reduction::None)),
    ("aten.scatter.value", |n| scatter(n, Reduction::None)),
    ("aten.scatter_add.default", |n| scatter(n, Reduction::Add)),
    ("aten.select_scatter.default", replace_one),
    ("aten.slice_scatter.default", replace_part),
    ("aten.masked_scatter.default", replace_where),
];

/// Arguments: input, an index tensor or none for each of the first dimensions, what is put there, whether it is added.
fn put(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, given, element) = (n.tensor(0)?, n.tensors(1)?, n.element()?);
    let (values, added) = (n.tensor(2)?, n.flag(3)?);
    let values = n.b().cast(values, element)?;
    let indices: Vec<TensorId> = given.iter().flatten().copied().collect();
    let places: Vec<usize> =
        given.iter().enumerate().filter(|(_, id)| id.is_some()).map(|(i, _)| i).collect();
    if let [only] = indices[..]
        && matches!(n.b().element(only), ElementType::Bool | ElementType::Of(DType::U8))
    {
        let made = put_where(n, [x, only, values], places[0], added)?;
        return n.finish(made);
    }
    if indices.is_empty() || indices.iter().any(|id| n.b().element(*id) == ElementType::Bool) {
        return Err(n.unsupported("masks among several indices, or no index at all"));
    }
    // The indexed dimensions come first while elements are put.
    let dims = n.b().dims(x).to_vec();
    if places.last().is_some_and(|last| *last >= dims.len()) {
        return Err(n.invalid(format!("indices of the dimensions {places:?} of {dims:?}")));
    }
    let rest: Vec<usize> = (0..dims.len()).filter(|i| !places.contains(i)).collect();
    let order: Vec<usize> = places.iter().chain(&rest).copied().collect();
    let turned = n.b().transpose(x, &order)?;
    let (joined, shape) = join(n, &indices)?;
    let shape: Vec<u64> = shape.iter().map(|size| size.exact()).collect();
    let behind: Vec<u64> = rest.iter().map(|i| dims[*i]).collect();
    let apart = !places.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let values = arranged(n, values, &shape, &behind, if apart { 0 } else { places[0] })?;
    let reduction = if added { Reduction::Add } else { Reduction::None };
    let made = n.b().scatter_nd([turned, joined, values], reduction)?;
    let mut back = vec![0; order.len()];
    for (position, dim) in order.iter().enumerate() {
        back[*dim] = position;
    }
    let made = n.b().transpose(made, &back)?;
    n.finish(made)
}

/// Indices of several dimensions as one tensor `[shape.., dimensions]`, and their common shape.
pub(super) fn join(n: &mut Node<'_, '_>, indices: &[TensorId]) -> Result<(TensorId, Vec<Size>)> {
    let shape = n.b().broadcast_sizes(indices)?;
    let column: Vec<Size> = shape.iter().copied().chain([1.into()]).collect();
    let mut columns = Vec::new();
    for index in n.common(indices)? {
        let index = n.b().expand_to(index, &shape)?;
        columns.push(n.b().reshape_to(index, &column)?);
    }
    Ok((n.b().concat(&columns, shape.len())?, shape))
}

/// Values, which lie as picked elements do (the dimensions of the indices behind `lead` others), with the former first.
fn arranged(
    n: &mut Node<'_, '_>,
    values: TensorId,
    shape: &[u64],
    behind: &[u64],
    lead: usize,
) -> Result<TensorId> {
    let picked = [&behind[..lead], shape, &behind[lead..]].concat();
    let values = n.b().expand(values, &picked)?;
    let new = lead..lead + shape.len();
    let order: Vec<usize> = new.clone().chain((0..picked.len()).filter(|i| !new.contains(i))).collect();
    n.b().transpose(values, &order)
}

/// Puts one value where a mask, which begins at a dimension, holds.
fn put_where(
    n: &mut Node<'_, '_>,
    [x, mask, value]: [TensorId; 3],
    first: usize,
    added: bool,
) -> Result<TensorId> {
    let (dims, own) = (n.b().dims(x).to_vec(), n.b().dims(mask).to_vec());
    if n.b().tensor(value).elements() != 1 {
        return Err(
            n.unsupported("several values are put where a mask holds; how many there are depends on values")
        );
    }
    let Some(behind) = dims.len().checked_sub(first + own.len()) else {
        return Err(n.invalid(format!("a mask of {own:?} for {dims:?}")));
    };
    let wide: Vec<u64> = own.into_iter().chain(std::iter::repeat_n(1, behind)).collect();
    let mask = n.b().reshape(mask, &wide)?;
    let mask = n.b().cast(mask, ElementType::Bool)?;
    let value = n.b().reshape(value, &[])?;
    let element = n.b().element(x);
    n.b().map(&[mask, value, x], element, |p, x| {
        let put = if added { p.call(F::Add, &[x[1], x[2]]) } else { x[1] };
        p.call(F::Select, &[x[0], put, x[2]])
    })
}

/// Arguments: input, dimension, indices, and for each of them the element that is put there, or a number.
fn scatter(n: &mut Node<'_, '_>, reduction: Reduction) -> Result<()> {
    let (x, indices, element) = (n.tensor(0)?, n.tensor(2)?, n.element()?);
    let (dims, places) = (n.b().dims(x).to_vec(), n.b().dims(indices).to_vec());
    if n.b().tensor(indices).elements() == 0 {
        return n.finish(x);
    }
    let scalar = dims.is_empty();
    let axis = n.axis(1, dims.len().max(1))?;
    let updates = match n.float(3) {
        Ok(value) => {
            let value = n.b().float(element, value)?;
            n.b().expand(value, &places)?
        }
        Err(_) => first_of(n, 3, &places)?,
    };
    let updates = n.b().cast(updates, element)?;
    let mut inputs = [x, indices, updates];
    if scalar {
        for input in &mut inputs {
            *input = n.b().reshape(*input, &[1])?;
        }
    }
    let made = n.b().scatter_elements(inputs, axis, reduction)?;
    let made = n.b().reshape(made, &dims)?;
    n.finish(made)
}

/// The first places of an argument in each dimension, as many as are wanted.
fn first_of(n: &mut Node<'_, '_>, i: usize, wanted: &[u64]) -> Result<TensorId> {
    let mut x = n.tensor(i)?;
    let dims = n.b().dims(x).to_vec();
    if dims.len() != wanted.len() || dims.iter().zip(wanted).any(|(own, wanted)| own < wanted) {
        return Err(n.invalid(format!("{wanted:?} indices for {dims:?} elements")));
    }
    for (axis, count) in wanted.iter().enumerate() {
        x = part(n, x, axis, 0, *count)?;
    }
    Ok(x)
}

/// Arguments: input, what is put there, dimension, place.
fn replace_one(n: &mut Node<'_, '_>) -> Result<()> {
    let (mut dims, from) = (n.tensor_dims(0)?, n.tensor(1)?);
    let axis = n.axis(2, dims.len())?;
    let place = n.axis_of(n.int(3)?, dims[axis] as usize)? as u64;
    dims[axis] = 1;
    let from = n.b().reshape(from, &dims)?;
    replace(n, from, axis, place, 1)
}

/// Arguments: input, what is put there, dimension, start, end, step.
fn replace_part(n: &mut Node<'_, '_>) -> Result<()> {
    let (dims, from) = (n.tensor_dims(0)?, n.tensor(1)?);
    let axis = n.axis(2, dims.len())?;
    let (start, step) = (n.int_or(3, 0)?, n.int_or(5, 1)?);
    let size = dims[axis] as i64;
    let start = if start < 0 { start.saturating_add(size).max(0) } else { start.min(size) };
    if step < 1 {
        return Err(n.invalid(format!("a part in steps of {step}")));
    }
    replace(n, from, axis, start as u64, step as u64)
}

/// Puts a tensor into places of the first argument along a dimension.
fn replace(n: &mut Node<'_, '_>, from: TensorId, axis: usize, start: u64, step: u64) -> Result<()> {
    let (x, dims, element) = (n.tensor(0)?, n.tensor_dims(0)?, n.element()?);
    let from = n.b().cast(from, element)?;
    let count = n.b().dims(from).get(axis).copied().unwrap_or(0);
    let end = count.saturating_sub(1).saturating_mul(step).saturating_add(start).saturating_add(1);
    if n.b().rank(from) != dims.len() || count > 0 && end > dims[axis] {
        let what = n.b().describe(&[x, from]);
        return Err(
            n.invalid(format!("part of a tensor is replaced from {start} on in steps of {step}: {what}"))
        );
    }
    if count == 0 {
        return n.finish(x);
    }
    if step == 1 {
        let mut parts = vec![from];
        if start > 0 {
            parts.insert(0, part(n, x, axis, 0, start)?);
        }
        if end < dims[axis] {
            parts.push(part(n, x, axis, end, dims[axis] - end)?);
        }
        let made = n.b().concat(&parts, axis)?;
        return n.finish(made);
    }
    let mut order: Vec<usize> = (0..dims.len()).collect();
    order.swap(0, axis);
    let (x, from) = (n.b().transpose(x, &order)?, n.b().transpose(from, &order)?);
    n.b().countable(count)?;
    let places = (0..count).map(|i| (start + i * step) as i64).collect();
    let places = n.b().values(DType::I64, &[count, 1], &Values::Int(places))?;
    let made = n.b().scatter_nd([x, places, from], Reduction::None)?;
    let made = n.b().transpose(made, &order)?;
    n.finish(made)
}

/// Arguments: input, mask, elements that replace those where the mask holds, one after the other.
fn replace_where(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, mask, from, element) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?, n.element()?);
    let dims = n.b().broadcast(&[x, mask])?;
    let (count, source) = (elements(&dims), n.b().tensor(from).elements());
    let mask = n.b().cast(mask, ElementType::Bool)?;
    let mask = n.b().expand(mask, &dims)?;
    let flat = n.b().reshape(mask, &[count])?;
    let ones = n.b().cast(flat, DType::I32)?;
    let before = n.b().cumulative_sum(ones, 0, true, false)?;
    let (from, source) = (n.b().reshape(from, &[source])?, n.b().cast(x, element)?);
    let from = n.b().cast(from, element)?;
    let picked = n.b().gather(from, before, 0)?;
    let picked = n.b().reshape(picked, &dims)?;
    let made = n.b().select(mask, picked, source)?;
    n.finish(made)
}
