//! Operators that move elements, by rules that do not depend on data: transposing, joining, cutting, repeating.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    pad::Border,
};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("CenterCropPad", center_crop_pad),
    ("Concat", concat),
    ("DepthToSpace", depth_to_space),
    ("Pad", pad),
    ("ReverseSequence", reverse_sequence),
    ("SpaceToDepth", space_to_depth),
    ("Split", split),
    ("Tile", tile),
    ("Transpose", transpose),
];

fn transpose(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let rank = b.rank(data);
    let order = match node.ints("perm")? {
        Some(order) => node.axes(&order, rank)?,
        None => (0..rank).rev().collect(),
    };
    Ok(vec![b.transpose(data, &order)?])
}

fn concat(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let all = node.variadic()?;
    let axis = node.int_if("axis")?.ok_or_else(|| node.invalid("the axis is missing"))?;
    let axis = node.axis(axis, b.rank(all[0]))?;
    Ok(vec![b.concat(&all, axis)?])
}

/// Sizes of the parts: given, or as equal as can be, the last one smaller.
fn split_sizes(b: &mut Builder, node: &NodeView<'_>, size: Size) -> Result<Vec<Size>> {
    if let Some(sizes) = node.sizes_of(b, "split", 1, "the sizes of the parts")? {
        if sizes.iter().any(|size| *size < 0) {
            return Err(node.invalid(format!("{sizes:?} are no sizes")));
        }
        return Ok(sizes);
    }
    let default = node.used.len() as i64;
    let count = u64::try_from(node.int("num_outputs", default)?).unwrap_or(0);
    if count == 0 || count > node.used.len() as u64 {
        return Err(node.invalid(format!("{count} parts, and {} outputs", node.used.len())));
    }
    let part = size.div_ceil(count);
    Ok((0..count).map(|index| part.min((size - part * index).max(0))).collect())
}

fn split(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let axis = node.axis(node.int("axis", 0)?, b.rank(data))?;
    let length = b.sizes(data)[axis];
    let sizes = split_sizes(b, node, length)?;
    if !sizes.iter().sum::<Size>().agrees(length) {
        return Err(node.invalid(format!("parts of {sizes:?} are not the {length} there are")));
    }
    let mut start = Size::constant(0);
    let mut parts = Vec::new();
    for count in sizes {
        parts.push(part(b, data, axis, start, count)?);
        start += count;
    }
    Ok(parts)
}

/// `count` places along an axis.
pub(super) fn part(
    b: &mut Builder,
    data: TensorId,
    axis: usize,
    start: impl Into<Size>,
    count: impl Into<Size>,
) -> Result<TensorId> {
    let (start, count) = (start.into(), count.into());
    let mut ranges: Vec<Range<Size>> = b.sizes(data).iter().map(|size| Range::all(*size)).collect();
    let start = if count == 0 { 0.into() } else { start };
    ranges[axis] = Range { start, step: 1, count };
    b.slice(data, &ranges)
}

/// Repeated as often as said in each dimension.
fn tile(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let dims = b.sizes(data).to_vec();
    let (id, what) = (node.input(1)?, "the numbers of repetitions");
    // More dimensions are moved in parts, for which the numbers have to be known.
    let repeats: Vec<Size> = match b.size_values(id) {
        Some(known) => known,
        None if dims.len() > 3 => b.need_ints(id, what)?.into_iter().map(Size::from).collect(),
        None => b.need_sizes(id, what)?,
    };
    if repeats.iter().any(|times| *times < 0) {
        return Err(node.invalid("a number of repetitions is negative"));
    }
    if repeats.len() != dims.len() {
        return Err(node.invalid(format!("{} repetitions of {} dimensions", repeats.len(), dims.len())));
    }
    let pairs = || repeats.iter().zip(&dims);
    let split: Vec<Size> = pairs().flat_map(|(_, size)| [1.into(), *size]).collect();
    let wide: Vec<Size> = pairs().flat_map(|(times, size)| [*times, *size]).collect();
    let result: Vec<Size> = pairs().map(|(times, size)| *times * *size).collect();
    let data = b.reshape_to(data, &split)?;
    let data = b.expand_to(data, &wide)?;
    Ok(vec![b.reshape_to(data, &result)?])
}

/// Number, depth, height and width of an image, which a block size divides.
fn image(b: &Builder, node: &NodeView<'_>) -> Result<([Size; 4], Size)> {
    let block = node.int("blocksize", 0)?;
    let block = u64::try_from(block).ok().filter(|block| (1..1 << 16).contains(block));
    let dims = <[Size; 4]>::try_from(b.sizes(node.input(0)?)).ok();
    match (dims, block) {
        (Some(dims), Some(block)) => Ok((dims, block.into())),
        _ => Err(node.invalid("takes four dimensions and a block size")),
    }
}

fn depth_to_space(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let ([n, c, h, w], s) = image(b, node)?;
    if c % (s * s) != 0 {
        return Err(node.invalid(format!("depth {c} is no multiple of blocks of {s} by {s}")));
    }
    let rest = c / (s * s);
    let (split, order) = match node.string("mode", "DCR")?.as_str() {
        "DCR" => ([n, s, s, rest, h, w], [0, 3, 4, 1, 5, 2]),
        "CRD" => ([n, rest, s, s, h, w], [0, 1, 4, 2, 5, 3]),
        other => return Err(node.invalid(format!("there is no mode '{other}'; it is DCR or CRD"))),
    };
    let data = b.reshape_to(node.input(0)?, &split)?;
    let data = b.transpose(data, &order)?;
    Ok(vec![b.reshape_to(data, &[n, rest, h * s, w * s])?])
}

fn space_to_depth(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let ([n, c, h, w], s) = image(b, node)?;
    if !(h % s).agrees(0) || !(w % s).agrees(0) {
        return Err(node.invalid(format!("{h} by {w} is not made of blocks of {s} by {s}")));
    }
    let data = b.reshape_to(node.input(0)?, &[n, c, h / s, s, w / s, s])?;
    let data = b.transpose(data, &[0, 3, 5, 1, 2, 4])?;
    Ok(vec![b.reshape_to(data, &[n, c * s * s, h / s, w / s])?])
}

fn center_crop_pad(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let dims = b.dims(data).to_vec();
    let wanted = b.need_ints(node.input(1)?, "the shape")?;
    let axes = match node.ints("axes")? {
        Some(axes) => node.axes(&axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    if axes.len() != wanted.len() || wanted.iter().any(|size| *size < 0) {
        return Err(node.invalid(format!("the shape {wanted:?} for {} axes", axes.len())));
    }
    let mut borders = vec![(0, 0); dims.len()];
    for (axis, size) in axes.iter().zip(&wanted) {
        let more = size.saturating_sub(dims[*axis] as i64);
        // An odd place is cut from the end, and added at the end.
        let before = if more < 0 { -(more.unsigned_abs() as i64 / 2) } else { more / 2 };
        borders[*axis] = (before, more - before);
    }
    Ok(vec![b.pad(data, &borders, Border::Constant, 0.0)?])
}

/// Borders are an attribute before version 11, and an input since.
pub(super) fn pad(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let rank = b.rank(data);
    let value = match node.optional(2) {
        Some(value) => b.need_floats(value, "the value of the border")?.first().copied().unwrap_or(0.0),
        None => node.float("value", 0.0)?.into(),
    };
    let axes = match node.optional(3) {
        Some(axes) => node.axes(&b.need_ints(axes, "the axes")?, rank)?,
        None => (0..rank).collect(),
    };
    let border = match node.string("mode", "constant")?.as_str() {
        "constant" => Border::Constant,
        "edge" => Border::Edge,
        "reflect" => Border::Reflect,
        "wrap" => Border::Wrap,
        other => return Err(node.invalid(format!("there is no mode '{other}'"))),
    };
    let open = match node.optional(1) {
        Some(pads) if border == Border::Constant => Some(b.need_sizes(pads, "the borders")?),
        // There has to be an element to repeat, which nothing says of what data decide.
        Some(pads) => b.size_values(pads).filter(|sizes| !sizes.iter().any(|size| size.is_data())),
        None => None,
    };
    let wrong = |count| node.invalid(format!("{count} borders of {} axes", axes.len()));
    if let Some(pads) = open.filter(|pads| pads.iter().any(|size| !size.is_constant())) {
        let mut borders = vec![[Size::constant(0); 2]; rank];
        if pads.len() != 2 * axes.len() {
            return Err(wrong(pads.len()));
        }
        for (index, axis) in axes.iter().enumerate() {
            borders[*axis] = [pads[index], pads[axes.len() + index]];
        }
        return Ok(vec![b.pad_open(data, &borders, border, value)?]);
    }
    let pads =
        node.ints_of(b, "pads", 1, "the borders")?.ok_or_else(|| node.invalid("the borders are missing"))?;
    if pads.len() != 2 * axes.len() {
        return Err(wrong(pads.len()));
    }
    let mut borders = vec![(0, 0); rank];
    for (index, axis) in axes.iter().enumerate() {
        borders[*axis] = (pads[index], pads[axes.len() + index]);
    }
    Ok(vec![b.pad(data, &borders, border, value)?])
}

/// The first places along one axis in reverse order, a number of its own for each place along another.
fn reverse_sequence(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (data, lengths) = (node.input(0)?, node.input(1)?);
    let dims = b.dims(data).to_vec();
    let time = node.axis(node.int("time_axis", 0)?, dims.len())?;
    let batch = node.axis(node.int("batch_axis", 1)?, dims.len())?;
    if time == batch || b.dims(lengths) != [dims[batch]] {
        return Err(node.invalid("there is not one length for each place of the batch axis"));
    }
    // Where each place of (batch, time) is read: length - 1 - t below the length, t elsewhere.
    let places = b.places(DType::I64, &[1, dims[time]])?;
    let lengths = b.cast(lengths, DType::I64)?;
    let lengths = b.reshape(lengths, &[dims[batch], 1])?;
    let from = b.map(&[lengths, places], DType::I64, |program, x| {
        let one = Operand::Constant(Scalar::Int(1, DType::I64));
        let last = program.call(Function::Sub, &[x[0], one]);
        let mirrored = program.call(Function::Sub, &[last, x[1]]);
        let inside = program.call(Function::Lt, &[x[1], x[0]]);
        program.call(Function::Select, &[inside, mirrored, x[1]])
    })?;
    let order: Vec<usize> = if batch < time { vec![0, 1] } else { vec![1, 0] };
    let from = b.transpose(from, &order)?;
    let mut sizes = vec![1; dims.len()];
    (sizes[batch], sizes[time]) = (dims[batch], dims[time]);
    let from = b.reshape(from, &sizes)?;
    let from = b.expand(from, &dims)?;
    let result = b.gather_elements(data, from, time)?;
    Ok(vec![result])
}
