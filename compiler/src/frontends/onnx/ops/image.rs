//! Operators on images whose places come from tensors: sampling, regions of interest, deformed convolution; and the images
//! that columns are made of.

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};

use super::{Import, NodeView, Result, window::sizes};
use crate::{
    build::{Between, Builder, Outside, Range, Sliding},
    graph::{TensorId, elements},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("AffineGrid", affine_grid),
    ("Col2Im", columns_to_image),
    ("DeformConv", deformed_conv),
    ("GridSample", grid_sample),
    ("RoiAlign", regions),
];

fn number(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

/// Most elements of a grid or filter that is made while a graph is built.
const MOST_MADE: u64 = 1 << 24;

/// Images with the channels last.
fn channels_last(b: &mut Builder, x: TensorId) -> Result<TensorId> {
    let rank = b.rank(x);
    let order: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    b.transpose(x, &order)
}

fn sum(b: &mut Builder, all: &[TensorId]) -> Result<TensorId> {
    let Some((first, rest)) = all.split_first() else { return Err(b.invalid("a sum of nothing")) };
    rest.iter().try_fold(*first, |sum, next| b.binary(Function::Add, sum, *next))
}

fn grid_sample(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, grid) = (node.input(0)?, node.input(1)?);
    let (dims, places) = (b.dims(x).to_vec(), b.dims(grid).to_vec());
    let rank = dims.len().saturating_sub(2);
    if rank == 0 || places.len() != rank + 2 || places[0] != dims[0] || places[rank + 1] != rank as u64 {
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
    let points = elements(&places[1..=rank]);
    let grid = b.as_f32(grid)?;
    let grid = b.reshape(grid, &[dims[0], points, rank as u64])?;
    let mut coordinates = Vec::new();
    for d in 0..rank {
        // The last coordinate is that of the first dimension.
        let part = Range { start: (rank - 1 - d) as u64, step: 1, count: 1 };
        let own = b.slice(grid, &[Range::all(dims[0]), Range::all(points), part])?;
        let own = b.reshape(own, &[dims[0], points])?;
        let size = dims[d + 2] as f64;
        // From -1 to 1 is from middle to middle of the outermost places, or from edge to edge.
        let (factor, offset) =
            if middle { ((size - 1.0) / 2.0, (size - 1.0) / 2.0) } else { (size / 2.0, (size - 1.0) / 2.0) };
        coordinates.push(b.map(&[own], DType::F32, |p, x| {
            let product = p.call(Function::Mul, &[x[0], number(factor)]);
            p.call(Function::Add, &[product, number(offset)])
        })?);
    }
    let element = b.element(x);
    let images = channels_last(b, x)?;
    let parts = b.neighbours(images, &coordinates, None, between, outside)?;
    let made = sum(b, &parts)?;
    let made = b.transpose(made, &[0, 2, 1])?;
    let made = b.reshape(made, &[&dims[..2], &places[1..=rank]].concat())?;
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

/// Columns are what a transposed convolution spreads: with a filter for each of them that has a single 1.
fn columns_to_image(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let positive = |list: Vec<i64>, what: &str| {
        let sizes: Option<Vec<u64>> =
            list.iter().map(|v| u64::try_from(*v).ok().filter(|v| *v > 0)).collect();
        sizes.ok_or_else(|| node.invalid(format!("{what} is {list:?}")))
    };
    let image = positive(b.need_ints(node.input(1)?, "the shape of the image")?, "the shape of the image")?;
    let block = positive(b.need_ints(node.input(2)?, "the shape of a block")?, "the shape of a block")?;
    let rank = image.len();
    let taps = elements(&block);
    let [images, depth, columns] = *b.dims(x) else {
        return Err(node.invalid(format!("{} holds no columns", b.describe(&[x]))));
    };
    if block.len() != rank || depth % taps != 0 || taps.saturating_mul(taps) > MOST_MADE {
        return Err(node.invalid(format!("blocks of {block:?} in {}", b.describe(&[x]))));
    }
    let (strides, dilations) = (sizes(node, "strides", rank, 1)?, sizes(node, "dilations", rank, 1)?);
    let pads = sizes(node, "pads", 2 * rank, 0)?;
    let sliding =
        Sliding { strides, dilations, pads: (0..rank).map(|d| (pads[d], pads[d + rank])).collect() };
    let places: Option<Vec<u64>> = (0..rank).map(|d| sliding.places(d, image[d], block[d])).collect();
    let Some(places) = places.filter(|places| elements(places) == columns) else {
        return Err(node.invalid(format!("{columns} columns do not make an image of {image:?}")));
    };
    // What no block reaches at the end is added.
    let more: Vec<u64> = (0..rank)
        .map(|d| {
            let reach = sliding.dilations[d] * (block[d] - 1) + 1;
            let padded = image[d] + sliding.pads[d].0 + sliding.pads[d].1;
            padded - ((places[d] - 1) * sliding.strides[d] + reach)
        })
        .collect();
    let identity = (0..taps * taps).map(|i| f64::from(u8::from(i / taps == i % taps))).collect();
    let filter = b.values(DType::F32, &[&[taps, 1], &block[..]].concat(), &Values::Float(identity))?;
    let element = b.element(x);
    let channels = depth / taps;
    let own = b.as_f32(x)?;
    let own = b.reshape(own, &[&[images * channels, taps], &places[..]].concat())?;
    let made = b.conv_transpose(own, filter, None, &sliding, &more, 1)?;
    let made = b.reshape(made, &[&[images, channels], &image[..]].concat())?;
    Ok(vec![b.cast(made, element)?])
}

/// Numbers of a region's samples along one dimension, and their coordinates `[regions, samples]`.
fn region_places(
    b: &mut Builder,
    node: &NodeView<'_>,
    rois: TensorId,
    columns: (u64, u64),
    bins: u64,
    samples: u64,
) -> Result<TensorId> {
    let half =
        node.since(16) && node.string("coordinate_transformation_mode", "half_pixel")? != "output_half_pixel";
    let (scale, offset) = (f64::from(node.float("spatial_scale", 1.0)?), if half { 0.5 } else { 0.0 });
    let regions = b.dims(rois)[0];
    let mut edge = |column: u64| {
        let one = Range { start: column, step: 1, count: 1 };
        let own = b.slice(rois, &[Range::all(regions), one])?;
        b.map(&[own], DType::F32, |p, x| {
            let product = p.call(Function::Mul, &[x[0], number(scale)]);
            p.call(Function::Sub, &[product, number(offset)])
        })
    };
    let (start, end) = (edge(columns.0)?, edge(columns.1)?);
    let points = bins.saturating_mul(samples);
    b.countable(points)?;
    // Where samples are, in bins.
    let at =
        (0..bins * samples).map(|i| (i / samples) as f64 + ((i % samples) as f64 + 0.5) / samples as f64);
    let at = b.values(DType::F32, &[1, bins * samples], &Values::Float(at.collect()))?;
    b.map(&[start, end, at], DType::F32, |p, x| {
        let mut size = p.call(Function::Sub, &[x[1], x[0]]);
        if !half {
            size = p.call(Function::Max, &[size, number(1.0)]);
        }
        let bin = p.call(Function::Div, &[size, number(bins as f64)]);
        let from = p.call(Function::Mul, &[bin, x[2]]);
        p.call(Function::Add, &[x[0], from])
    })
}

fn regions(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, rois, batch) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (dims, count) = (b.dims(x).to_vec(), b.tensor(batch).elements());
    if dims.len() != 4 || b.dims(rois) != [count, 4] {
        return Err(node.invalid(format!("no regions of {}", b.describe(&[x, rois, batch]))));
    }
    let size =
        |name| u64::try_from(node.int(name, 1)?).map_err(|_| node.invalid(format!("{name} is negative")));
    let (rows, columns, samples) =
        (size("output_height")?, size("output_width")?, node.int("sampling_ratio", 0)?);
    let Some(samples) = u64::try_from(samples).ok().filter(|samples| (1..=64).contains(samples)) else {
        return Err(
            node.unsupported("regions with as many samples as their size asks for (sampling_ratio = 0)")
        );
    };
    let element = b.element(x);
    let rois = b.as_f32(rois)?;
    let y = region_places(b, node, rois, (1, 3), rows, samples)?;
    let x_places = region_places(b, node, rois, (0, 2), columns, samples)?;
    let grid = [count, rows * samples, columns * samples];
    let mut spread = |own: TensorId, dims: [u64; 3]| {
        let own = b.reshape(own, &dims)?;
        let own = b.expand(own, &grid)?;
        b.reshape(own, &[grid[0], grid[1] * grid[2]])
    };
    let (y, x_at) = (spread(y, [count, grid[1], 1])?, spread(x_places, [count, 1, grid[2]])?);
    // Farther than a place outside there is nothing.
    let inside = b.map(&[y, x_at], DType::F32, |p, at| {
        let mut all = Operand::Constant(Scalar::Bool(true));
        for (at, size) in at.iter().zip([dims[2], dims[3]]) {
            let behind = p.call(Function::Ge, &[*at, number(-1.0)]);
            let before = p.call(Function::Le, &[*at, number(size as f64)]);
            all = p.call(Function::And, &[all, behind]);
            all = p.call(Function::And, &[all, before]);
        }
        p.call(Function::Select, &[all, number(1.0), number(0.0)])
    })?;
    let inside = b.reshape(inside, &[count, grid[1] * grid[2], 1])?;
    let bases = b.cast(batch, DType::I32)?;
    let bases = b.reshape(bases, &[count, 1])?;
    let images = channels_last(b, x)?;
    let parts = b.neighbours(images, &[y, x_at], Some(bases), Between::Linear, Outside::Border)?;
    let mean = match node.string("mode", "avg")?.as_str() {
        "avg" => true,
        "max" => false,
        other => return Err(node.invalid(format!("mode '{other}' is none that ONNX has"))),
    };
    // The largest is that of weighted elements, not of sums.
    let (join, reduce) =
        if mean { (Function::Add, ReduceKind::Mean) } else { (Function::Max, ReduceKind::Max) };
    let mut made = parts[0];
    for part in &parts[1..] {
        made = b.binary(join, made, *part)?;
    }
    let made = b.binary(Function::Mul, made, inside)?;
    let made = b.reshape(made, &[count, rows, samples, columns, samples, dims[1]])?;
    let made = b.reduce(reduce, made, &[2, 4], false)?;
    let made = b.transpose(made, &[0, 3, 1, 2])?;
    Ok(vec![b.cast(made, element)?])
}

fn deformed_conv(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, w, offset) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (dims, taps) = (b.dims(x).to_vec(), b.dims(w).to_vec());
    let out = b.dims(offset).get(2..).unwrap_or(&[]).to_vec();
    let positive =
        |name| u64::try_from(node.int(name, 1)?).ok().filter(|v| *v > 0).ok_or_else(|| node.invalid(name));
    let (groups, offset_groups) = (positive("group")?, positive("offset_group")?);
    let window = super::window::window(node, dims.get(2..).unwrap_or(&[]), taps.get(2..).unwrap_or(&[]))?;
    let count = elements(&taps[2..]);
    let even = |n: u64, of: u64| n.is_multiple_of(of);
    if dims.len() != 4 || out.len() != 2 || !even(dims[1], offset_groups) || !even(taps[0], groups) {
        return Err(node.unsupported(format!("deformed convolution of {}", b.describe(&[x, w, offset]))));
    }
    let (batch, points) = (dims[0] * offset_groups, count * out[0] * out[1]);
    let wide = [batch, count, 2, out[0] * out[1]];
    let offset = b.as_f32(offset)?;
    let offset = b.reshape(offset, &wide)?;
    let mut coordinates = Vec::new();
    for d in 0..2 {
        let part = Range { start: d as u64, step: 1, count: 1 };
        let own = b.slice(offset, &[Range::all(batch), Range::all(count), part, Range::all(wide[3])])?;
        let own = b.reshape(own, &[batch, points])?;
        let start = |point: u64| {
            let (tap, place) = (point / wide[3], point % wide[3]);
            let (tap, place) =
                if d == 0 { (tap / taps[3], place / out[1]) } else { (tap % taps[3], place % out[1]) };
            (place * window.strides[d] + tap * window.dilations[d]) as f64 - window.pads[d].0 as f64
        };
        if points > MOST_MADE {
            return Err(node.unsupported(format!("a deformed convolution of {points} points")));
        }
        let starts = b.values(DType::F32, &[1, points], &Values::Float((0..points).map(start).collect()))?;
        coordinates.push(b.binary(Function::Add, own, starts)?);
    }
    let channels = dims[1] / offset_groups;
    let images = b.reshape(x, &[batch, channels, dims[2], dims[3]])?;
    let images = channels_last(b, images)?;
    let parts = b.neighbours(images, &coordinates, None, Between::Linear, Outside::Zeros)?;
    let mut made = sum(b, &parts)?;
    if let Some(mask) = node.optional(4) {
        let mask = b.as_f32(mask)?;
        let mask = b.reshape(mask, &[batch, points, 1])?;
        made = b.binary(Function::Mul, made, mask)?;
    }
    // Channels, then taps, are what is summed.
    let made = b.transpose(made, &[0, 2, 1])?;
    let columns = b.reshape(made, &[dims[0], groups, dims[1] / groups * count, wide[3]])?;
    let element = b.element(x);
    let w = b.as_f32(w)?;
    let w = b.reshape(w, &[groups, taps[0] / groups, dims[1] / groups * count])?;
    let made = b.matmul(w, columns)?;
    let mut made = b.reshape(made, &[dims[0], taps[0], out[0], out[1]])?;
    if let Some(bias) = node.optional(3) {
        let bias = b.as_f32(bias)?;
        made = b.add_to_channels(made, bias)?;
    }
    Ok(vec![b.cast(made, element)?])
}
