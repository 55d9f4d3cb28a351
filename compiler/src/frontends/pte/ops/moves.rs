//! Operators that move elements: joining, cutting, turning, repeating.

use halite_ops::{expression::Function, pad::Border};
use halite_sizes::Size;

use super::{Node, Result, Table};
use crate::{build::Range, frontends::pte::value::Passed, graph::TensorId};

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

fn sizes(n: &mut Node<'_, '_>, tensor: TensorId) -> Vec<Size> {
    n.b().sizes(tensor).to_vec()
}

fn whole(dims: &[Size]) -> Vec<Range<Size>> {
    dims.iter().map(|size| Range::all(*size)).collect()
}

fn join(n: &mut Node<'_, '_>) -> Result<()> {
    let all: Vec<TensorId> = n.tensors(0)?.into_iter().flatten().collect();
    // PyTorch lets an empty vector be joined with anything.
    let parts: Vec<TensorId> =
        all.iter().copied().filter(|id| sizes(n, *id)[..] != [Size::from(0)]).collect();
    let parts = if parts.is_empty() { all } else { parts };
    let Some(first) = parts.first() else { return Err(n.invalid("nothing is joined")) };
    let rank = n.b().rank(*first);
    let axis = n.axis(1, rank)?;
    let element = n.element()?;
    let parts: Result<Vec<_>> = parts.iter().map(|id| n.b().cast(*id, element)).collect();
    let made = n.b().concat(&parts?, axis)?;
    n.finish(made)
}

/// Arguments: input, sizes, dimension.
fn split(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, parts) = (n.tensor(0)?, n.extents(1)?);
    let from = sizes(n, x);
    let axis = n.axis(2, from.len())?;
    if parts.iter().any(|size| *size < 0) || parts.iter().sum::<Size>() != from[axis] {
        return Err(n.invalid(format!("dimension {axis} of {from:?} is split into {parts:?}")));
    }
    let (mut start, mut made) = (Size::from(0), Vec::new());
    for size in parts {
        let mut ranges = whole(&from);
        ranges[axis] = Range { start: if size == 0 { 0.into() } else { start }, step: 1, count: size };
        start += size;
        made.push(Some(n.b().slice(x, &ranges)?));
    }
    n.finish_list(&made)
}

/// Ends from here on are that of the tensor.
const END: i64 = 1 << 40;

/// Arguments: input, dimension, start, end, step. Starts and ends beyond the tensor are those of the tensor.
fn slice(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let from = sizes(n, x);
    let axis = n.axis(1, from.len())?;
    let step = n.int_or(4, 1)?;
    if step < 1 {
        return Err(n.invalid(format!("a slice in steps of {step}")));
    }
    if let Some(made) = slice_at(n, x, axis, step)? {
        return n.finish(made);
    }
    let size = from[axis];
    let (start, end) = (n.extent_or(2, 0)?, n.extent_or(3, END)?);
    // A place that data decide counts from the front.
    if [start, end].iter().any(|at| at.is_data() && !Size::from(0).stays_within(*at)) {
        return Err(n.invalid(format!("a slice from {start} to {end}")));
    }
    let place = |at: Size| if at < 0 { (at + size).max(0) } else { at.min(size) };
    let start = place(start);
    let end = match end {
        end if end.is_constant() && end.signed_value() >= END => size,
        end => place(end),
    };
    let count = (end - start).max(0).div_ceil(step);
    let start = if count == 0 { 0.into() } else { start };
    let mut ranges = whole(&from);
    ranges[axis] = Range { start, step, count };
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
    let mut left = sizes(n, x);
    let axis = n.axis(1, left.len())?;
    let at = n.known(2)?;
    if matches!(at, Some(Passed::Computed(..))) || at.and_then(Passed::size).is_some_and(Size::is_data) {
        let place = n.number_tensor(2)?;
        let made = n.b().gather(x, place, axis)?;
        return n.finish(made);
    }
    let (told, size) = (n.extent(2)?, left[axis]);
    let index = if told < 0 { told + size } else { told };
    if index < 0 || index >= size {
        return Err(n.invalid(format!("place {told} of {size}")));
    }
    let mut ranges = whole(&left);
    ranges[axis] = Range { start: index, step: 1, count: 1.into() };
    let made = n.b().slice(x, &ranges)?;
    left.remove(axis);
    let made = n.b().reshape_to(made, &left)?;
    n.finish(made)
}

fn permute(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let rank = n.b().rank(x);
    let order = n.axes(1, rank)?;
    let made = n.b().transpose(x, &order)?;
    n.finish(made)
}

fn turn(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let made = if n.b().rank(x) < 2 { x } else { n.b().swap_last(x)? };
    n.finish(made)
}

/// Sizes, one of which may be -1.
fn view(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, mut wanted) = (n.tensor(0)?, n.extents(1)?);
    let rest: Vec<usize> =
        wanted.iter().enumerate().filter(|(_, size)| **size == -1).map(|(i, _)| i).collect();
    rest.iter().for_each(|i| wanted[*i] = 1.into());
    if rest.len() > 1 || wanted.iter().any(|size| *size < 0) {
        return Err(n.invalid(format!("a view of {wanted:?}")));
    }
    if let [rest] = rest[..] {
        let known: Size = wanted.iter().product();
        let count = n.b().tensor(x).count();
        wanted[rest] = if known == 0 { 0.into() } else { count / known };
    }
    let made = n.b().reshape_to(x, &wanted)?;
    n.finish(made)
}

/// Dimensions of more than one element stay.
fn squeeze(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let from = sizes(n, x);
    let axes = n.axes(1, from.len())?;
    let left = from.iter().enumerate().filter(|(i, size)| !axes.contains(i) || **size != 1);
    let left: Vec<Size> = left.map(|(_, size)| *size).collect();
    let made = n.b().reshape_to(x, &left)?;
    n.finish(made)
}

fn unsqueeze(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let mut dims = sizes(n, x);
    let axis = n.axis(1, dims.len() + 1)?;
    dims.insert(axis, 1.into());
    let made = n.b().reshape_to(x, &dims)?;
    n.finish(made)
}

/// Sizes, of which -1 keeps what is there.
fn expand(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, mut to) = (n.tensor(0)?, n.extents(1)?);
    let from = sizes(n, x);
    let wrong = format!("{from:?} is expanded to {to:?}");
    let Some(lead) = to.len().checked_sub(from.len()) else { return Err(n.invalid(wrong)) };
    for (i, size) in to.iter_mut().enumerate() {
        match i.checked_sub(lead) {
            Some(own) if *size == -1 => *size = from[own],
            _ if *size < 0 => return Err(n.invalid(wrong)),
            _ => {}
        }
    }
    let made = n.b().expand_to(x, &to)?;
    n.finish(made)
}

/// The tensor with each dimension `times` as long, its elements in order again and again.
fn repeat(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, times) = (n.tensor(0)?, n.extents(1)?);
    let mut from = sizes(n, x);
    let Some(lead) = times.len().checked_sub(from.len()).filter(|_| times.iter().all(|t| *t >= 0)) else {
        return Err(n.invalid(format!("{from:?} is repeated {times:?} times")));
    };
    from.splice(0..0, std::iter::repeat_n(1.into(), lead));
    let apart: Vec<Size> = from.iter().flat_map(|size| [1.into(), *size]).collect();
    let together: Vec<Size> = times.iter().zip(&from).flat_map(|(times, size)| [*times, *size]).collect();
    let result: Vec<Size> = together.chunks(2).map(|pair| pair.iter().product()).collect();
    let made = n.b().reshape_to(x, &apart)?;
    let made = n.b().expand_to(made, &together)?;
    let made = n.b().reshape_to(made, &result)?;
    n.finish(made)
}

/// Arguments: input, times, dimension. Each element is repeated; without a dimension, those of the flat tensor.
fn repeat_elements(n: &mut Node<'_, '_>) -> Result<()> {
    let (mut x, times) = (n.tensor(0)?, n.extent(1)?);
    if times < 0 {
        return Err(n.invalid(format!("elements are repeated {times} times")));
    }
    if n.is_none(2)? {
        let count = n.b().tensor(x).count();
        x = n.b().reshape_to(x, &[count])?;
    }
    let mut dims = sizes(n, x);
    let axis = if n.is_none(2)? { 0 } else { n.axis(2, dims.len())? };
    let mut apart = dims.clone();
    apart.insert(axis + 1, 1.into());
    let made = n.b().reshape_to(x, &apart)?;
    apart[axis + 1] = times;
    let made = n.b().expand_to(made, &apart)?;
    dims[axis] *= times;
    let made = n.b().reshape_to(made, &dims)?;
    n.finish(made)
}

fn flip(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let from = sizes(n, x);
    let mut ranges = whole(&from);
    for axis in n.axes(1, from.len())? {
        ranges[axis] = Range { start: (from[axis] - 1).max(0), step: -1, count: from[axis] };
    }
    let made = n.b().slice(x, &ranges)?;
    n.finish(made)
}

/// Arguments: input, dimension, size and step of the windows.
fn windows(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let rank = n.b().rank(x);
    let (axis, size, step) = (n.axis(1, rank)?, n.size(2)?, n.size(3)?);
    let made = n.b().windows(x, axis, size, step)?;
    n.finish(made)
}

/// Arguments: input, borders (before and behind, the last dimension first), value.
fn pad(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, told, value) = (n.tensor(0)?, n.ints(1)?, n.optional_float(2)?.unwrap_or(0.0));
    let rank = n.b().rank(x);
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
