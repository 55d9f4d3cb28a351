//! Convolutions of images and volumes, of each channel, and transposed ones, in all types.

use halite_formats::tosa::{Conv, ElementType as Tosa};
use halite_ops::{DType, expression::Function, pad::Border};

use super::{
    super::{Result, element_of},
    call::Call,
    cast::{computable, stored},
    rules,
    taps::{Line, convolved, has_special, spread},
    values::{int, to, zero_point},
};
use crate::{
    build::{Builder, BytesLess, Range, Sliding},
    graph::TensorId,
};

/// Most terms of a sum of products of `u8` and of `i8` less a zero point that 32 bits hold.
const MOST_TERMS: u64 = (1 << 31) / (255 * 256);

/// CONV2D.
pub(super) fn conv2d(b: &mut Builder, call: &Call<'_>, conv: &Conv) -> Result<TensorId> {
    let sliding = sliding(b, call, conv)?;
    let [_, rows, columns, _] = call.dims(b, 1)?;
    check_reach(b, call, &sliding, &[rows, columns])?;
    if let Some(made) = of_pixels(b, call, conv, &sliding)? {
        return Ok(made);
    }
    let filter = b.transpose(call.inputs[1], &[1, 2, 3, 0])?;
    if let Some(made) = by_taps(b, call, filter, &sliding, false)? {
        return Ok(made);
    }
    finished(b, call, conv, call.inputs[0], filter, &sliding, 1)
}

/// A convolution of images of one pixel by filters of one tap, as a product: exporters write linear layers so, with a row for each
/// image, and kernels for convolutions share work among the pixels of an image only. `None` for others, and for types whose
/// product would be rounded before the bias, or has no kernel.
fn of_pixels(b: &mut Builder, call: &Call<'_>, conv: &Conv, sliding: &Sliding) -> Result<Option<TensorId>> {
    let ([images, height, width, channels], [filters, rows, columns, terms]) =
        (call.dims(b, 0)?, call.dims(b, 1)?);
    let is_padded = sliding.pads.iter().any(|pads| *pads != (0, 0));
    let element = call.element(0);
    let kept_wide = !matches!(element, Tosa::F16 | Tosa::I16);
    if [height, width, rows, columns] != [1; 4] || channels != terms || is_padded || !kept_wide {
        return Ok(None);
    }
    let bias = bias(b, call, filters)?;
    let x = b.reshape(call.inputs[0], &[images, channels])?;
    let weights = b.reshape(call.inputs[1], &[filters, channels])?;
    let sums = if element == Tosa::I8 {
        let weights = b.transpose(weights, &[1, 0])?;
        let [x_zero, zero] = [conv.input_zero, conv.weight_zero].map(|zero| zero_point(b, zero));
        let sums = b.product_of_bytes(x, x_zero?, weights, zero?)?;
        b.binary(Function::Add, sums, bias)?
    } else {
        let (x, weights) = (computable(b, element, x)?, computable(b, call.element(1), weights)?);
        let [x, weights, bias] = [x, weights, bias].map(|tensor| b.as_f32(tensor));
        let sums = b.product(x?, weights?, true)?;
        let sums = b.binary(Function::Add, sums, bias?)?;
        stored(b, call.output().element, sums)?
    };
    b.reshape(sums, &[images, 1, 1, filters]).map(Some)
}

/// The bias, one for each filter.
fn bias(b: &mut Builder, call: &Call<'_>, filters: u64) -> Result<TensorId> {
    let bias = call.inputs[2];
    if ![1, filters].contains(&b.tensor(bias).elements()) {
        let what = b.describe(&[bias]);
        return Err(b.invalid(format!("{}: {what} is no bias of {filters} filters", call.name())));
    }
    b.expand(bias, &[filters])
}

/// DEPTHWISE_CONV2D: as many groups as channels.
pub(super) fn depthwise(b: &mut Builder, call: &Call<'_>, conv: &Conv) -> Result<TensorId> {
    let sliding = sliding(b, call, conv)?;
    let [rows, columns, channels, each] = call.dims(b, 1)?;
    check_reach(b, call, &sliding, &[rows, columns])?;
    if let Some(made) = by_taps(b, call, call.inputs[1], &sliding, true)? {
        return Ok(made);
    }
    let filter = b.reshape(call.inputs[1], &[rows, columns, 1, channels.saturating_mul(each)])?;
    finished(b, call, conv, call.inputs[0], filter, &sliding, channels)
}

/// CONV3D: each place of the depth is an image, whose channels are those of all taps in depth.
pub(super) fn conv3d(b: &mut Builder, call: &Call<'_>, conv: &Conv) -> Result<TensorId> {
    let sliding = sliding(b, call, conv)?;
    let [_, taps, rows, columns, channels] = call.dims(b, 1)?;
    check_reach(b, call, &sliding, &[taps, rows, columns])?;
    let filters = b.dims(call.inputs[1])[0];
    let filter = b.transpose(call.inputs[1], &[1, 2, 3, 4, 0])?;
    if let Some(made) = by_taps(b, call, filter, &sliding, false)? {
        return Ok(made);
    }
    let filter = b.transpose(filter, &[1, 2, 0, 3, 4])?;
    let filter = b.reshape(filter, &[rows, columns, taps.saturating_mul(channels), filters])?;
    let [images, depth, height, width, _] = call.dims(b, 0)?;
    let Some(places) = sliding.places(0, depth, taps) else {
        return Err(b.invalid(format!("{}: {taps} taps do not fit in a depth of {depth}", call.name())));
    };
    let border = (sliding.pads[0].0 as i64, sliding.pads[0].1 as i64);
    let borders = [(0, 0), border, (0, 0), (0, 0), (0, 0)];
    let padded = b.pad(call.inputs[0], &borders, Border::Constant, conv.input_zero as f64)?;
    let mut parts = Vec::new();
    for tap in 0..taps {
        let mut ranges: Vec<Range> = b.dims(padded).iter().map(|size| Range::all(*size)).collect();
        let start = tap * sliding.dilations[0];
        ranges[1] = Range { start, step: sliding.strides[0] as i64, count: places };
        parts.push(b.slice(padded, &ranges)?);
    }
    let joined = b.concat(&parts, 4)?;
    let merged = [images.saturating_mul(places), height, width, taps.saturating_mul(channels)];
    let x = b.reshape(joined, &merged)?;
    let inner = Sliding {
        strides: sliding.strides[1..].to_vec(),
        dilations: sliding.dilations[1..].to_vec(),
        pads: sliding.pads[1..].to_vec(),
    };
    let made = finished(b, call, conv, x, filter, &inner, 1)?;
    let out = b.dims(made).to_vec();
    b.reshape(made, &[&[images, places], &out[1..]].concat())
}

/// TRANSPOSE_CONV2D: a convolution of images with zeros between their elements by mirrored filters.
pub(super) fn transposed(b: &mut Builder, call: &Call<'_>, conv: &Conv) -> Result<TensorId> {
    let [filters, rows, columns, channels] = call.dims(b, 1)?;
    let strides = call.sizes(b, &conv.stride, "a stride")?;
    let plain = Sliding { strides: strides.clone(), ..Sliding::plain(2) };
    if conv.pad.len() != 4 || !plain.has_dims(2) {
        let reason = format!("{} pads by {:?} with strides {strides:?}", call.name(), conv.pad);
        return Err(b.invalid(reason));
    }
    check_reach(b, call, &plain, &[rows, columns])?;
    for pad in &conv.pad {
        rules::at_most(b, call, "a pad", pad.unsigned_abs(), rules::MOST_KERNEL)?;
    }
    let [_, height, width, _] = call.dims(b, 0)?;
    let mut x = call.inputs[0];
    let mut pads = Vec::new();
    for (d, taps) in [rows, columns].into_iter().enumerate() {
        x = spread(b, x, d + 1, strides[d], conv.input_zero)?;
        let side = |pad: i64| u64::try_from(pad.saturating_add(taps as i64 - 1)).ok();
        let Some(both) = side(conv.pad[2 * d]).zip(side(conv.pad[2 * d + 1])) else {
            let reason = format!("{} by {taps} taps cuts {:?} off", call.name(), conv.pad);
            return Err(b.invalid(reason));
        };
        pads.push(both);
    }
    let turned = b.transpose(call.inputs[1], &[1, 2, 3, 0])?;
    let line = |d: usize, size: u64, taps: u64| {
        let grown = (size as i64 - 1).saturating_mul(strides[d] as i64) + taps as i64;
        let results = grown.saturating_add(conv.pad[2 * d]).saturating_add(conv.pad[2 * d + 1]);
        let results = u64::try_from(results).unwrap_or(0);
        Line { stride: 1, spread: strides[d], dilation: -1, first: -conv.pad[2 * d], results }
    };
    let lines = [line(0, height, rows), line(1, width, columns)];
    if let Some(made) = without_padding(b, call, turned, &lines, false)? {
        return Ok(made);
    }
    let mirrored = [
        Range::all(filters),
        Range { start: rows - 1, step: -1, count: rows },
        Range { start: columns - 1, step: -1, count: columns },
        Range::all(channels),
    ];
    let filter = b.slice(call.inputs[1], &mirrored)?;
    let filter = b.transpose(filter, &[1, 2, 3, 0])?;
    let sliding = Sliding { pads, ..Sliding::plain(2) };
    finished(b, call, conv, x, filter, &sliding, 1)
}

/// The convolution by taps, if the weights need that: where there is padding that they must not meet.
fn by_taps(
    b: &mut Builder,
    call: &Call<'_>,
    filter: TensorId,
    sliding: &Sliding,
    depthwise: bool,
) -> Result<Option<TensorId>> {
    if sliding.pads.iter().all(|pads| *pads == (0, 0)) {
        return Ok(None);
    }
    let (dims, taps) = (b.dims(call.inputs[0]), b.dims(filter));
    let line = |d: usize| {
        let results = sliding.places(d, dims[d + 1], taps[d])?;
        let (stride, dilation) = (sliding.strides[d], sliding.dilations[d] as i64);
        Some(Line { stride, spread: 1, dilation, first: -(sliding.pads[d].0 as i64), results })
    };
    match (0..sliding.pads.len()).map(line).collect::<Option<Vec<_>>>() {
        Some(lines) => without_padding(b, call, filter, &lines, depthwise),
        None => Ok(None),
    }
}

fn without_padding(
    b: &mut Builder,
    call: &Call<'_>,
    filter: TensorId,
    lines: &[Line],
    depthwise: bool,
) -> Result<Option<TensorId>> {
    let element = call.element(0);
    if !has_special(b, call.inputs[1], call.element(1)) {
        return Ok(None);
    }
    let x = computable(b, element, call.inputs[0])?;
    let filter = computable(b, call.element(1), filter)?;
    let [x, filter, bias] = [x, filter, call.inputs[2]].map(|tensor| b.as_f32(tensor));
    let Some(sums) = convolved(b, x?, filter?, lines, depthwise)? else { return Ok(None) };
    let made = b.binary(Function::Add, sums, bias?)?;
    stored(b, call.output().element, made).map(Some)
}

/// The attributes as numbers without sign.
fn sliding(b: &Builder, call: &Call<'_>, conv: &Conv) -> Result<Sliding> {
    let pads = call.sizes(b, &conv.pad, "a pad")?;
    let sliding = Sliding {
        strides: call.sizes(b, &conv.stride, "a stride")?,
        dilations: call.sizes(b, &conv.dilation, "a dilation")?,
        pads: pads.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
    };
    let rank = b.dims(call.inputs[0]).len().saturating_sub(2);
    if !sliding.has_dims(rank) {
        return Err(b.invalid(format!("{} of {rank} dimensions slides by {sliding:?}", call.name())));
    }
    Ok(sliding)
}

/// Whether the numbers keep the level's bounds.
fn check_reach(b: &Builder, call: &Call<'_>, sliding: &Sliding, taps: &[u64]) -> Result<()> {
    for (d, taps) in taps.iter().enumerate() {
        let reach = taps.saturating_mul(sliding.dilations[d]);
        rules::bounded(b, call, "a kernel with its dilation", reach, rules::MOST_KERNEL)?;
        rules::bounded(b, call, "a stride", sliding.strides[d], rules::MOST_STRIDE)?;
        let (before, after) = sliding.pads[d];
        for pad in [before, after] {
            rules::at_most(b, call, "a pad", pad, rules::MOST_KERNEL)?;
        }
    }
    Ok(())
}

/// The convolution with its bias, in the type of the node's output.
fn finished(
    b: &mut Builder,
    call: &Call<'_>,
    conv: &Conv,
    x: TensorId,
    filter: TensorId,
    sliding: &Sliding,
    groups: u64,
) -> Result<TensorId> {
    let filters = b.dims(filter)[3];
    let bias = bias(b, call, filters)?;
    let (element, out) = (call.element(0), call.output().element);
    if element == Tosa::I16 {
        return of_i16(b, conv, x, filter, call.inputs[2], sliding, groups);
    }
    if element == Tosa::I8 {
        let zeros = [conv.input_zero, conv.weight_zero].map(i32::try_from);
        let [Ok(input), Ok(weight)] = zeros else {
            return Err(b.invalid(format!("{}: zero points beyond 32 bits", call.name())));
        };
        let (x, filter) = (BytesLess { tensor: x, zero: input }, BytesLess { tensor: filter, zero: weight });
        return b.conv_of_bytes_nhwc(x, filter, Some(bias), sliding, groups);
    }
    // What kernels do not convolve is held by `f32` without loss.
    let (x, filter) = (computable(b, element, x)?, computable(b, call.element(1), filter)?);
    let kept = if element == Tosa::F16 { DType::F16 } else { DType::F32 };
    let [x, filter, bias] = [x, filter, bias].map(|tensor| b.cast(tensor, kept));
    let made = b.conv_nhwc(x?, filter?, Some(bias?), sliding, groups)?;
    stored(b, out, made)
}

/// 16-bit integers as two bytes each, `x = 256 * high + low`: two convolutions of bytes, joined in 64 bits.
fn of_i16(
    b: &mut Builder,
    conv: &Conv,
    x: TensorId,
    filter: TensorId,
    bias: TensorId,
    sliding: &Sliding,
    groups: u64,
) -> Result<TensorId> {
    let terms: u64 = b.dims(filter)[..3].iter().fold(1, |n, size| n.saturating_mul(*size));
    if terms > MOST_TERMS {
        return Err(b.unsupported(format!(
            "a convolution of i16 with {terms} terms in a sum; there are {MOST_TERMS} at most: split the channels"
        )));
    }
    let zero = i32::try_from(conv.weight_zero).ok().filter(|_| conv.input_zero == 0);
    let Some(zero) = zero else {
        let zeros = [conv.input_zero, conv.weight_zero];
        return Err(b.invalid(format!("a convolution of i16 with zero points {zeros:?}; the first is 0")));
    };
    let [high, low] = bytes_of_i16(b, x)?;
    let taps = BytesLess { tensor: filter, zero };
    let [high, low] = [high, low]
        .map(|x| b.conv_of_bytes_nhwc(BytesLess { tensor: x, zero: 0 }, taps, None, sliding, groups));
    joined(b, &[(high?, 8), (low?, 0)], Some(bias))
}

/// The upper byte of each element, as `i8`, and the lower one, as `u8`.
pub(super) fn bytes_of_i16(b: &mut Builder, x: TensorId) -> Result<[TensorId; 2]> {
    let high = b.map(&[x], DType::I8, |p, x| {
        let upper = p.call(Function::Shr, &[x[0], int(8, DType::I16)]);
        to(p, DType::I8, upper)
    })?;
    let low = b.cast(x, DType::U8)?;
    Ok([high, low])
}

/// The sum, as `i64`, of 32-bit integers that are shifted to the left, and of `more`.
pub(super) fn joined(b: &mut Builder, parts: &[(TensorId, i64)], more: Option<TensorId>) -> Result<TensorId> {
    let ids: Vec<_> = parts.iter().map(|part| part.0).chain(more).collect();
    let element = element_of(Tosa::I48);
    b.map(&ids, element, |p, x| {
        let mut sum = int(0, DType::I64);
        for (place, value) in x.iter().enumerate() {
            let wide = to(p, DType::I64, *value);
            let amount = parts.get(place).map_or(0, |part| part.1);
            let moved = p.call(Function::Shl, &[wide, int(amount, DType::I64)]);
            sum = p.call(Function::Add, &[sum, moved]);
        }
        sum
    })
}
