//! Operators that move elements: joining, cutting, turning, repeating.

use halite_ops::{expression::Function, pad::Border};

use super::{Node, Result, Table};
use crate::{
    build::Range,
    frontends::pte::value::Passed,
    graph::{TensorId, elements},
};

pub(super) const OPERATORS: Table = &[
    ("aten.cat.default", join),
    ("aten.split_with_sizes_copy.default", split),
    ("aten.slice_copy.Tensor", slice),
    ("aten.slice.Tensor", slice),
    ("aten.select_copy.int", select),
    ("aten.select.int", select),
    ("aten.permute_copy.default", permute),
    ("aten.permute.default", permute),
    ("aten.t_copy.default", turn),
    ("aten.view_copy.default", view),
    ("aten.squeeze_copy.dims", squeeze),
    ("aten.unsqueeze_copy.default", unsqueeze),
    ("aten.expand_copy.default", expand),
    ("aten.repeat.default", repeat),
    ("aten.repeat_interleave.self_int", repeat_elements),
    ("aten.flip.default", flip),
    ("aten.unfold_copy.default", windows),
    ("aten.constant_pad_nd.default", pad),
];

fn dims(n: &mut Node<'_, '_>, tensor: TensorId) -> Vec<u64> {
    n.b().dims(tensor).to_vec()
}

fn whole(dims: &[u64]) -> Vec<Range> {
    dims.iter().map(|size| Range::all(*size)).collect()
}

fn join(n: &mut Node<'_, '_>) -> Result<()> {
    let all: Vec<TensorId> = n.tensors(0)?.into_iter().flatten().collect();
    // PyTorch lets an empty vector be joined with anything.
    let parts: Vec<TensorId> = all.iter().copied().filter(|id| dims(n, *id) != [0]).collect();
    let parts = if parts.is_empty() { all } else { parts };
    let Some(first) = parts.first() else { return Err(n.invalid("nothing is joined")) };
    let rank = dims(n, *first).len();
    let axis = n.axis(1, rank)?;
    let element = n.element()?;
    let parts: Result<Vec<_>> = parts.iter().map(|id| n.b().cast(*id, element)).collect();
    let made = n.b().concat(&parts?, axis)?;
    n.finish(made)
}

/// Arguments: input, sizes, dimension.
fn split(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, sizes) = (n.tensor(0)?, n.sizes(1)?);
    let from = dims(n, x);
    let axis = n.axis(2, from.len())?;
    if sizes.iter().try_fold(0u64, |sum, size| sum.checked_add(*size)) != Some(from[axis]) {
        return Err(n.invalid(format!("dimension {axis} of {from:?} is split into {sizes:?}")));
    }
    let (mut start, mut parts) = (0, Vec::new());
    for size in sizes {
        let mut ranges = whole(&from);
        ranges[axis] = Range { start, step: 1, count: size };
        start += size;
        parts.push(Some(n.b().slice(x, &ranges)?));
    }
    n.finish_list(&parts)
}

/// Arguments: input, dimension, start, end, step. Starts and ends beyond the tensor are those of the tensor.
fn slice(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let from = dims(n, x);
    let axis = n.axis(1, from.len())?;
    let size = from[axis] as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(size).max(0) } else { at.min(size) };
    let step = n.int_or(4, 1)?;
    if let Some(made) = slice_at(n, x, axis, step)? {
        return n.finish(made);
    }
    let (start, end) = (place(n.int_or(2, 0)?), place(n.int_or(3, i64::MAX)?));
    if step < 1 {
        return Err(n.invalid(format!("a slice in steps of {step}")));
    }
    let mut ranges = whole(&from);
    let count = (end - start).max(0) as u64;
    ranges[axis] = Range { start: start as u64, step, count: count.div_ceil(step as u64) };
    let made = n.b().slice(x, &ranges)?;
    n.finish(made)
}

/// A slice from a place on that the device computes, of a size that is known all the same. None for others.
fn slice_at(n: &mut Node<'_, '_>, x: TensorId, axis: usize, step: i64) -> Result<Option<TensorId>> {
    let (Some(Passed::Computed(base, start)), Some(Passed::Computed(other, end))) =
        (n.known(2)?, n.known(3)?)
    else {
        return Ok(None);
    };
    if base != other || step != 1 {
        return Ok(None);
    }
    let count = (end - start).exact();
    let start = n.number_tensor(2)?;
    let along = n.b().count_from(0, count)?;
    let places = n.b().binary(Function::Add, along, start)?;
    n.b().gather(x, places, axis).map(Some)
}

/// Arguments: input, dimension, index.
fn select(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let mut left = dims(n, x);
    let axis = n.axis(1, left.len())?;
    if let Some(Passed::Computed(..)) = n.known(2)? {
        let place = n.number_tensor(2)?;
        let made = n.b().gather(x, place, axis)?;
        return n.finish(made);
    }
    let index = n.axis_of(n.int(2)?, left[axis] as usize)?;
    let mut ranges = whole(&left);
    ranges[axis] = Range { start: index as u64, step: 1, count: 1 };
    let made = n.b().slice(x, &ranges)?;
    left.remove(axis);
    let made = n.b().reshape(made, &left)?;
    n.finish(made)
}

fn permute(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let rank = dims(n, x).len();
    let order = n.axes(1, rank)?;
    let made = n.b().transpose(x, &order)?;
    n.finish(made)
}

fn turn(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let made = if dims(n, x).len() < 2 { x } else { n.b().swap_last(x)? };
    n.finish(made)
}

/// Sizes, one of which may be -1.
fn view(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, sizes) = (n.tensor(0)?, n.ints(1)?);
    let count = n.b().tensor(x).elements();
    let open = sizes.iter().filter(|size| **size == -1).count();
    let known: Option<Vec<u64>> =
        sizes.iter().filter(|s| **s != -1).map(|s| u64::try_from(*s).ok()).collect();
    let known = known.filter(|_| open <= 1).map(|known| elements(&known));
    let Some(known) = known else { return Err(n.invalid(format!("a view of {sizes:?}"))) };
    let rest = count.checked_div(known).unwrap_or(0);
    let sizes: Vec<u64> = sizes.iter().map(|s| u64::try_from(*s).unwrap_or(rest)).collect();
    let made = n.b().reshape(x, &sizes)?;
    n.finish(made)
}

/// Dimensions of more than one element stay.
fn squeeze(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let from = dims(n, x);
    let axes = n.axes(1, from.len())?;
    let left = from.iter().enumerate().filter(|(i, size)| **size != 1 || !axes.contains(i));
    let left: Vec<u64> = left.map(|(_, size)| *size).collect();
    let made = n.b().reshape(x, &left)?;
    n.finish(made)
}

fn unsqueeze(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let mut dims = dims(n, x);
    let axis = n.axis(1, dims.len() + 1)?;
    dims.insert(axis, 1);
    let made = n.b().reshape(x, &dims)?;
    n.finish(made)
}

/// Sizes, of which -1 keeps what is there.
fn expand(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, sizes) = (n.tensor(0)?, n.ints(1)?);
    let from = dims(n, x);
    let Some(lead) = sizes.len().checked_sub(from.len()) else {
        return Err(n.invalid(format!("{from:?} is expanded to {sizes:?}")));
    };
    let size = |(i, size): (usize, &i64)| match u64::try_from(*size) {
        Ok(size) => Some(size),
        Err(_) => i.checked_sub(lead).map(|i| from[i]).filter(|_| *size == -1),
    };
    let to: Option<Vec<u64>> = sizes.iter().enumerate().map(size).collect();
    let Some(to) = to else { return Err(n.invalid(format!("{from:?} is expanded to {sizes:?}"))) };
    let made = n.b().expand(x, &to)?;
    n.finish(made)
}

/// The tensor with each dimension `times` as long, its elements in order again and again.
fn repeat(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, times) = (n.tensor(0)?, n.sizes(1)?);
    let mut from = dims(n, x);
    let Some(lead) = times.len().checked_sub(from.len()) else {
        return Err(n.invalid(format!("{from:?} is repeated {times:?} times")));
    };
    from.splice(0..0, std::iter::repeat_n(1, lead));
    let apart: Vec<u64> = from.iter().flat_map(|size| [1, *size]).collect();
    let together: Vec<u64> = times.iter().zip(&from).flat_map(|(times, size)| [*times, *size]).collect();
    let result: Vec<u64> = together.chunks(2).map(elements).collect();
    let made = n.b().reshape(x, &apart)?;
    let made = n.b().expand(made, &together)?;
    let made = n.b().reshape(made, &result)?;
    n.finish(made)
}

/// Arguments: input, times, dimension. Each element is repeated; without a dimension, those of the flat tensor.
fn repeat_elements(n: &mut Node<'_, '_>) -> Result<()> {
    let (mut x, times) = (n.tensor(0)?, n.size(1)?);
    if n.is_none(2)? {
        let count = n.b().tensor(x).elements();
        x = n.b().reshape(x, &[count])?;
    }
    let mut dims = dims(n, x);
    let axis = if n.is_none(2)? { 0 } else { n.axis(2, dims.len())? };
    let mut apart = dims.clone();
    apart.insert(axis + 1, 1);
    let made = n.b().reshape(x, &apart)?;
    apart[axis + 1] = times;
    let made = n.b().expand(made, &apart)?;
    dims[axis] = dims[axis].saturating_mul(times);
    let made = n.b().reshape(made, &dims)?;
    n.finish(made)
}

fn flip(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let from = dims(n, x);
    let mut ranges = whole(&from);
    for axis in n.axes(1, from.len())? {
        ranges[axis] = Range { start: from[axis].saturating_sub(1), step: -1, count: from[axis] };
    }
    let made = n.b().slice(x, &ranges)?;
    n.finish(made)
}

/// Arguments: input, dimension, size and step of the windows.
fn windows(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let rank = dims(n, x).len();
    let (axis, size, step) = (n.axis(1, rank)?, n.size(2)?, n.size(3)?);
    let made = n.b().windows(x, axis, size, step)?;
    n.finish(made)
}

/// Arguments: input, borders (before and behind, the last dimension first), value.
fn pad(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, told, value) = (n.tensor(0)?, n.ints(1)?, n.optional_float(2)?.unwrap_or(0.0));
    let rank = dims(n, x).len();
    if told.len() % 2 != 0 || told.len() / 2 > rank {
        return Err(n.invalid(format!("borders {told:?} of {rank} dimensions")));
    }
    let mut borders = vec![(0, 0); rank];
    for (pair, border) in told.chunks(2).zip(borders.iter_mut().rev()) {
        *border = (pair[0], pair[1]);
    }
    let made = n.b().pad(x, &borders, Border::Constant, value)?;
    n.finish(made)
}
