//! Operators that move elements, which the delegate lacks and ExecuTorch's portable kernels have: stacking and taking apart,
//! rolling, diagonals and triangles, borders, strides.

use halite_ops::{
    DType, Values,
    expression::{Function as F, Operand, Scalar},
    pad::Border,
};

use super::{Node, Result, Table, unary::number};
use crate::{
    build::Range,
    graph::{ElementType, TensorId, elements},
};

pub(super) const OPERATORS: Table = &[
    ("aten.stack.default", stack),
    ("aten.split_copy.Tensor", split),
    ("aten.unbind_copy.int", unbind),
    ("aten.narrow_copy.default", narrow),
    ("aten.transpose_copy.int", transpose),
    ("aten.squeeze_copy.dim", squeeze),
    ("aten.squeeze_copy.default", squeeze_all),
    ("aten.roll.default", roll),
    ("aten.diagonal_copy.default", diagonal),
    ("aten.tril.default", |n| triangle(n, F::Le)),
    ("aten.triu.default", |n| triangle(n, F::Ge)),
    ("aten.as_strided_copy.default", strided),
    ("aten.reflection_pad1d.default", |n| pad(n, Border::Reflect)),
    ("aten.reflection_pad2d.default", |n| pad(n, Border::Reflect)),
    ("aten.reflection_pad3d.default", |n| pad(n, Border::Reflect)),
    ("aten.replication_pad1d.default", |n| pad(n, Border::Edge)),
    ("aten.replication_pad2d.default", |n| pad(n, Border::Edge)),
    ("aten.replication_pad3d.default", |n| pad(n, Border::Edge)),
    ("aten.pixel_unshuffle.default", unshuffle),
    ("aten.repeat_interleave.Tensor", repeats),
];

fn whole(dims: &[u64]) -> Vec<Range> {
    dims.iter().map(|size| Range::all(*size)).collect()
}

/// Places `start` to `start + count` of a dimension.
pub(super) fn part(
    n: &mut Node<'_, '_>,
    x: TensorId,
    axis: usize,
    start: u64,
    count: u64,
) -> Result<TensorId> {
    let mut ranges = whole(n.b().dims(x));
    ranges[axis] = Range { start, step: 1, count };
    n.b().slice(x, &ranges)
}

/// Arguments: tensors, the new dimension.
fn stack(n: &mut Node<'_, '_>) -> Result<()> {
    let (parts, element): (Vec<TensorId>, _) = (n.tensors(0)?.into_iter().flatten().collect(), n.element()?);
    let Some(first) = parts.first() else { return Err(n.invalid("nothing is stacked")) };
    let mut dims = n.b().dims(*first).to_vec();
    let axis = n.axis(1, dims.len() + 1)?;
    dims.insert(axis, 1);
    let mut rows = Vec::new();
    for part in parts {
        let part = n.b().cast(part, element)?;
        rows.push(n.b().reshape(part, &dims)?);
    }
    let made = n.b().concat(&rows, axis)?;
    n.finish(made)
}

/// Arguments: input, size of the parts, dimension. The last part may be smaller.
fn split(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, size, dims) = (n.tensor(0)?, n.size(1)?, n.tensor_dims(0)?);
    let axis = n.axis(2, dims.len())?;
    if size == 0 && dims[axis] > 0 || dims[axis].checked_div(size).unwrap_or(0) > MOST {
        return Err(
            n.invalid(format!("dimension {axis} of {dims:?} in parts of {size}; there are up to {MOST}"))
        );
    }
    let (mut parts, mut start) = (Vec::new(), 0);
    while start < dims[axis] || parts.is_empty() {
        let count = size.min(dims[axis] - start);
        parts.push(Some(part(n, x, axis, start, count)?));
        start += count.max(1);
    }
    n.finish_list(&parts)
}

/// Most parts of a tensor.
const MOST: u64 = 1 << 16;

/// Arguments: input, dimension.
fn unbind(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, dims) = (n.tensor(0)?, n.tensor_dims(0)?);
    let axis = n.axis(1, dims.len())?;
    if dims[axis] > MOST {
        return Err(n.unsupported(format!(
            "dimension {axis} of {dims:?} is taken apart; there are up to {MOST} parts"
        )));
    }
    let mut left = dims.clone();
    left.remove(axis);
    let mut parts = Vec::new();
    for start in 0..dims[axis] {
        let row = part(n, x, axis, start, 1)?;
        parts.push(Some(n.b().reshape(row, &left)?));
    }
    n.finish_list(&parts)
}

/// Arguments: input, dimension, first place, how many.
fn narrow(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, dims) = (n.tensor(0)?, n.tensor_dims(0)?);
    let (axis, count) = (n.axis(1, dims.len())?, n.size(3)?);
    let start = match n.int(2)? {
        start if start < 0 => start.saturating_add_unsigned(dims[axis]),
        start => start,
    };
    let start = u64::try_from(start).map_err(|_| n.invalid(format!("place {start} of {dims:?}")))?;
    let made = part(n, x, axis, start, count)?;
    n.finish(made)
}

fn transpose(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, rank) = (n.tensor(0)?, n.tensor_dims(0)?.len());
    if rank == 0 {
        return n.finish(x);
    }
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(n.axis(1, rank)?, n.axis(2, rank)?);
    let made = n.b().transpose(x, &order)?;
    n.finish(made)
}

fn squeeze(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, mut dims) = (n.tensor(0)?, n.tensor_dims(0)?);
    if !dims.is_empty() {
        let axis = n.axis(1, dims.len())?;
        if dims[axis] == 1 {
            dims.remove(axis);
        }
    }
    let made = n.b().reshape(x, &dims)?;
    n.finish(made)
}

fn squeeze_all(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, mut dims) = (n.tensor(0)?, n.tensor_dims(0)?);
    dims.retain(|size| *size != 1);
    let made = n.b().reshape(x, &dims)?;
    n.finish(made)
}

/// Arguments: input, by how many places, dimensions. Without dimensions, the flat tensor is rolled.
fn roll(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, shifts, dims) = (n.tensor(0)?, n.ints(1)?, n.tensor_dims(0)?);
    let mut axes = n.axes(2, dims.len().max(1))?;
    let mut made = x;
    if axes.is_empty() {
        made = n.b().reshape(made, &[elements(&dims)])?;
        axes.push(0);
    }
    if axes.len() != shifts.len() {
        return Err(n.invalid(format!("dimensions {axes:?} are rolled by {shifts:?}")));
    }
    for (axis, shift) in axes.into_iter().zip(shifts) {
        let Some(size) = n.b().dims(made).get(axis).copied().filter(|size| *size > 1) else { continue };
        let back = shift.rem_euclid(size as i64) as u64;
        if back > 0 {
            let halves = [part(n, made, axis, size - back, back)?, part(n, made, axis, 0, size - back)?];
            made = n.b().concat(&halves, axis)?;
        }
    }
    let made = n.b().reshape(made, &dims)?;
    n.finish(made)
}

/// Arguments: input, offset, two dimensions. The diagonal is the last dimension.
fn diagonal(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, offset, dims) = (n.tensor(0)?, n.int(1)?, n.tensor_dims(0)?);
    let (rows, columns) = (n.axis(2, dims.len())?, n.axis(3, dims.len())?);
    if rows == columns {
        return Err(n.invalid(format!("a diagonal of dimension {rows} with itself")));
    }
    let mut order: Vec<usize> = (0..dims.len()).filter(|i| *i != rows && *i != columns).collect();
    order.extend([rows, columns]);
    let (down, across) = (offset.saturating_neg().max(0) as u64, offset.max(0) as u64);
    let count = dims[rows].saturating_sub(down).min(dims[columns].saturating_sub(across));
    let mut made = n.b().transpose(x, &order)?;
    let last = order.len() - 1;
    if count > 0 {
        made = part(n, made, last - 1, down, count)?;
        made = part(n, made, last, across, count)?;
        made = n.b().diagonal(made, last - 1, last)?;
    } else {
        let mut left: Vec<u64> = order[..last - 1].iter().map(|i| dims[*i]).collect();
        left.push(0);
        let element = n.b().element(made);
        made = n.b().constant("", element, &left, bytes::Bytes::new())?;
    }
    n.finish(made)
}

/// Arguments: input, diagonal. What is on one side of it and on it stays, the rest is 0.
fn triangle(n: &mut Node<'_, '_>, side: F) -> Result<()> {
    let (x, offset, dims) = (n.tensor(0)?, n.int_or(1, 0)?, n.tensor_dims(0)?);
    let [.., rows, columns] = dims[..] else {
        return Err(n.invalid(format!("a triangle of {dims:?}")));
    };
    let element = n.b().element(x);
    let down = n.b().count_from(offset, rows)?;
    let down = n.b().reshape(down, &[rows, 1])?;
    let across = n.b().count_from(0, columns)?;
    let inside = n.b().compare(side, across, down)?;
    let zero = match element {
        ElementType::Bool => Operand::Constant(Scalar::Bool(false)),
        ElementType::Of(dtype) if !dtype.is_float() => Operand::Constant(Scalar::Int(0, dtype)),
        ElementType::Of(_) => number(0.0),
    };
    let made = n.b().map(&[inside, x], element, |p, x| p.call(F::Select, &[x[0], x[1], zero]))?;
    n.finish(made)
}

/// Arguments: input, sizes, strides, offset: elements of the flat tensor.
fn strided(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, sizes, strides, start) = (n.tensor(0)?, n.sizes(1)?, n.sizes(2)?, n.int_or(3, 0)?);
    let (count, own) = (elements(&sizes), n.b().tensor(x).elements());
    if strides.len() != sizes.len() {
        return Err(n.invalid(format!("sizes {sizes:?} with strides {strides:?}")));
    }
    n.b().countable(count)?;
    let mut places = vec![start];
    for (size, stride) in sizes.iter().zip(&strides) {
        let stride = i64::try_from(*stride).unwrap_or(i64::MAX);
        let along = |place: &i64| {
            (0..*size as i64).map(|i| place.saturating_add(i.saturating_mul(stride))).collect::<Vec<_>>()
        };
        places = places.iter().flat_map(along).collect();
    }
    if places.iter().any(|place| u64::try_from(*place).map_or(true, |place| place >= own)) {
        return Err(n.invalid(format!(
            "sizes {sizes:?} with strides {strides:?} from {start} on, of {own} elements"
        )));
    }
    let places = n.b().values(DType::I64, &sizes, &Values::Int(places))?;
    let flat = n.b().reshape(x, &[own])?;
    let made = n.b().gather(flat, places, 0)?;
    n.finish(made)
}

/// Arguments: input, borders (before and behind, the last dimension first).
fn pad(n: &mut Node<'_, '_>, border: Border) -> Result<()> {
    let (x, told, rank) = (n.tensor(0)?, n.ints(1)?, n.tensor_dims(0)?.len());
    if told.len() % 2 != 0 || told.len() / 2 > rank {
        return Err(n.invalid(format!("borders {told:?} of {rank} dimensions")));
    }
    let mut borders = vec![(0, 0); rank];
    for (pair, border) in told.chunks(2).zip(borders.iter_mut().rev()) {
        *border = (pair[0], pair[1]);
    }
    let made = n.b().pad(x, &borders, border, 0.0)?;
    n.finish(made)
}

/// Arguments: input, how many pixels become one in each direction.
fn unshuffle(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, r, dims) = (n.tensor(0)?, n.size(1)?, n.tensor_dims(0)?);
    let ([lead @ .., channels, rows, columns], 1..=65_535) = (&dims[..], r) else {
        return Err(n.invalid(format!("pixels of {dims:?} are joined by {r}")));
    };
    if !rows.is_multiple_of(r) || !columns.is_multiple_of(r) {
        return Err(n.invalid(format!("{rows} rows and {columns} columns are no multiples of {r}")));
    }
    let (images, down, across) = (elements(lead), rows / r, columns / r);
    let apart = n.b().reshape(x, &[images, *channels, down, r, across, r])?;
    let turned = n.b().transpose(apart, &[0, 1, 3, 5, 2, 4])?;
    let made = n.b().reshape(turned, &[lead, &[elements(&[*channels, r * r]), down, across]].concat())?;
    n.finish(made)
}

/// Numbers from 0 on, each as often as the argument says, which has to be known.
fn repeats(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let times = n.b().need_ints(x, "how often elements are repeated")?;
    let count = times.iter().fold(0u64, |sum, times| sum.saturating_add((*times).max(0) as u64));
    n.b().countable(count)?;
    let each = |(i, times): (usize, &i64)| std::iter::repeat_n(i as i64, (*times).max(0) as usize);
    let all: Vec<i64> = times.iter().enumerate().flat_map(each).collect();
    let element = n.element()?;
    let made = n.b().values(element, &[count], &Values::Int(all))?;
    n.finish(made)
}
