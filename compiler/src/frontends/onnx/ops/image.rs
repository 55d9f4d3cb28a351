//! Operators on images whose places come from tensors: sampling, deformed convolution.

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{
    build::{Between, Builder, Outside, Range, SizeOperand},
    graph::{TensorId, elements},
};

pub(super) const OPS: &[(&str, Import)] =
    &[("AffineGrid", affine_grid), ("DeformConv", deformed_conv), ("GridSample", grid_sample)];

pub(super) fn number(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

/// Most elements of a grid that is made while a graph is built.
const MOST_MADE: u64 = 1 << 24;

/// Images with the channels last.
pub(super) fn channels_last(b: &mut Builder, x: TensorId) -> Result<TensorId> {
    let rank = b.rank(x);
    let order: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    b.transpose(x, &order)
}

fn sum(b: &mut Builder, all: &[TensorId]) -> Result<TensorId> {
    let Some((first, rest)) = all.split_first() else { return Err(b.invalid("a sum of nothing")) };
    rest.iter().try_fold(*first, |sum, next| b.binary(Function::Add, sum, *next))
}

pub(super) fn grid_sample(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, grid) = (node.input(0)?, node.input(1)?);
    let (dims, places) = (b.sizes(x).to_vec(), b.sizes(grid).to_vec());
    let rank = dims.len().saturating_sub(2);
    let fits = |places: &[Size]| places[0].agrees(dims[0]) && places[rank + 1].agrees(rank as u64);
    if rank == 0 || places.len() != rank + 2 || !fits(&places) {
        return Err(node.invalid(format!("no samples of {}", b.describe(&[x, grid]))));
    }
    let middle = node.flag("align_corners", false)?;
    let between = match node.string("mode", "linear")?.as_str() {
        "linear" | "bilinear" => Between::Linear,
        "cubic" | "bicubic" => Between::Cubic,
        "nearest" => Between::Nearest,
        other => return Err(node.invalid(format!("mode '{other}' is none that ONNX has"))),
    };
    let outside = match node.string("padding_mode", "zeros")?.as_str() {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Mirror { middle },
        other => return Err(node.invalid(format!("padding_mode '{other}' is none that ONNX has"))),
    };
    let points = places[1..=rank].iter().fold(Size::constant(1), |points, size| points * *size);
    let grid = b.as_f32(grid)?;
    let grid = b.reshape_to(grid, &[dims[0], points, rank.into()])?;
    let mut coordinates = Vec::new();
    for d in 0..rank {
        // The last coordinate is that of the first dimension.
        let part = Range { start: (rank - 1 - d).into(), step: 1, count: 1.into() };
        let own = b.slice(grid, &[Range::all(dims[0]), Range::all(points), part])?;
        let own = b.reshape_to(own, &[dims[0], points])?;
        let size = SizeOperand::new(b, dims[d + 2], DType::F32)?;
        coordinates.push(b.map(&size.with(own), DType::F32, |p, x| {
            // From -1 to 1 is from middle to middle of the outermost places, or from edge to edge.
            let size = size.operand(x);
            let to_last = p.call(Function::Sub, &[size, number(1.0)]);
            let offset = p.call(Function::Mul, &[to_last, number(0.5)]);
            let factor = if middle { offset } else { p.call(Function::Mul, &[size, number(0.5)]) };
            let product = p.call(Function::Mul, &[x[0], factor]);
            p.call(Function::Add, &[product, offset])
        })?);
    }
    let element = b.element(x);
    let images = channels_last(b, x)?;
    let parts = b.neighbours(images, &coordinates, None, between, outside)?;
    let made = sum(b, &parts)?;
    let made = b.transpose(made, &[0, 2, 1])?;
    let made = b.reshape_to(made, &[&dims[..2], &places[1..=rank]].concat())?;
    Ok(vec![b.cast(made, element)?])
}

fn affine_grid(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let theta = node.input(0)?;
    let size = b.need_ints(node.input(1)?, "the size of the grid")?;
    let size: Option<Vec<u64>> = size.iter().map(|v| u64::try_from(*v).ok()).collect();
    let spatial = match size.as_deref() {
        Some([_, _, spatial @ ..]) if matches!(spatial.len(), 2 | 3) => spatial.to_vec(),
        _ => return Err(node.invalid("the size of a grid is that of 2 or 3 dimensions")),
    };
    let (points, rank) = (elements(&spatial), spatial.len());
    if points > MOST_MADE {
        return Err(node.unsupported(format!("a grid of {points} points; there are up to {MOST_MADE}")));
    }
    let middle = node.flag("align_corners", false)?;
    let at = |size: u64, i: u64| {
        let (size, i) = (size as f64, i as f64);
        match () {
            () if !middle => (2.0 * i + 1.0) / size - 1.0,
            () if size <= 1.0 => -1.0,
            () => 2.0 * i / (size - 1.0) - 1.0,
        }
    };
    let mut values = Vec::new();
    for d in (0..rank).rev() {
        let inner = elements(&spatial[d + 1..]).max(1);
        values.extend((0..points).map(|point| at(spatial[d], point / inner % spatial[d])));
    }
    values.extend((0..points).map(|_| 1.0));
    let grid = b.values(DType::F32, &[rank as u64 + 1, points], &Values::Float(values))?;
    let element = b.element(theta);
    let theta = b.as_f32(theta)?;
    let made = b.matmul(theta, grid)?;
    let made = b.transpose(made, &[0, 2, 1])?;
    let images = b.dims(made)[0];
    let made = b.reshape(made, &[&[images], &spatial[..], &[rank as u64]].concat())?;
    Ok(vec![b.cast(made, element)?])
}

fn deformed_conv(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, w, offset) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (dims, taps) = (b.sizes(x).to_vec(), b.dims(w).to_vec());
    let out = b.sizes(offset).get(2..).unwrap_or(&[]).to_vec();
    let positive =
        |name| u64::try_from(node.int(name, 1)?).ok().filter(|v| *v > 0).ok_or_else(|| node.invalid(name));
    let (groups, offset_groups) = (positive("group")?, positive("offset_group")?);
    let window = super::window::window(node, dims.get(2..).unwrap_or(&[]), taps.get(2..).unwrap_or(&[]))?;
    let (taps_in_all, filters) = (elements(&taps[2..]), taps[0]);
    let even = |n: Size, of: u64| n.is_multiple_of(of);
    if dims.len() != 4 || out.len() != 2 || !even(dims[1], offset_groups) || !even(filters.into(), groups) {
        return Err(node.unsupported(format!("deformed convolution of {}", b.describe(&[x, w, offset]))));
    }
    let (batch, count, area) = (dims[0] * offset_groups, Size::from(taps_in_all), out[0] * out[1]);
    let points = count * area;
    let offset = b.as_f32(offset)?;
    let offset = b.reshape_to(offset, &[batch, count, 2.into(), area])?;
    let mut coordinates = Vec::new();
    for d in 0..2 {
        let part = Range { start: d.into(), step: 1, count: 1.into() };
        let own = b.slice(offset, &[Range::all(batch), Range::all(count), part, Range::all(area)])?;
        let own = b.reshape_to(own, &[batch, count, out[0], out[1]])?;
        // Where a window begins, and its taps from there.
        let place = b.line_of_places(DType::F32, out[d])?;
        let place = b.reshape_to(place, &if d == 0 { [out[0], 1.into()] } else { [1.into(), out[1]] })?;
        let tap = |i: u64| (if d == 0 { i / taps[3] } else { i % taps[3] } * window.dilations[d]) as f64;
        let first = window.pads[d].0 as f64;
        let tap = Values::Float((0..taps_in_all).map(|i| tap(i) - first).collect());
        let tap = b.values(DType::F32, &[taps_in_all, 1, 1], &tap)?;
        let stride = window.strides[d] as f64;
        let at = b.map(&[own, place, tap], DType::F32, |p, x| {
            let start = p.call(Function::Mul, &[x[1], number(stride)]);
            let start = p.call(Function::Add, &[start, x[2]]);
            p.call(Function::Add, &[x[0], start])
        })?;
        coordinates.push(b.reshape_to(at, &[batch, points])?);
    }
    let channels = dims[1] / offset_groups;
    let images = b.reshape_to(x, &[batch, channels, dims[2], dims[3]])?;
    let images = channels_last(b, images)?;
    let parts = b.neighbours(images, &coordinates, None, Between::Linear, Outside::Zeros)?;
    let mut made = sum(b, &parts)?;
    if let Some(mask) = node.optional(4) {
        let mask = b.as_f32(mask)?;
        let mask = b.reshape_to(mask, &[batch, points, 1.into()])?;
        made = b.binary(Function::Mul, made, mask)?;
    }
    // Channels, then taps, are what is summed.
    let made = b.transpose(made, &[0, 2, 1])?;
    let depth = dims[1] / groups * count;
    let columns = b.reshape_to(made, &[dims[0], groups.into(), depth, area])?;
    let element = b.element(x);
    let w = b.as_f32(w)?;
    let w = b.reshape_to(w, &[groups.into(), (filters / groups).into(), depth])?;
    let made = b.matmul(w, columns)?;
    let mut made = b.reshape_to(made, &[dims[0], filters.into(), out[0], out[1]])?;
    if let Some(bias) = node.optional(3) {
        let bias = b.as_f32(bias)?;
        made = b.add_to_channels(made, bias)?;
    }
    Ok(vec![b.cast(made, element)?])
}
