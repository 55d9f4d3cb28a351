//! Pools, and images of other sizes.

use halite_formats::pte::{XnnNode, XnnPool};
use halite_ops::{
    DType,
    axis::{Coordinates, Nearest},
    expression::{Function as F, Operand, Scalar},
    pool2d::Pooling,
    reduce::ReduceKind,
    resize::Interpolation,
};

use super::{Held, Result, Values};
use crate::{
    build::{Placement, ResizedAxis, Resizing, Sliding},
    graph::TensorId,
};

/// Padding is what makes results as large as images, divided by the stride.
pub(super) const SAME_PADDING: u32 = 4;
const ALIGN_CORNERS: u32 = 8;
/// Places as TensorFlow 1 had them.
const LEGACY_PLACES: u32 = 4;

/// How a window slides over images with channels first.
pub(super) fn sliding(
    v: &Values<'_>,
    x: TensorId,
    flags: u32,
    [top, right, bottom, left]: [u32; 4],
    [kernel, strides, dilations]: [[u32; 2]; 3],
) -> Result<Sliding> {
    if kernel.iter().chain(&strides).chain(&dilations).any(|size| *size == 0) {
        return Err(v.builder.invalid(format!(
            "a window of {kernel:?}, {strides:?} apart, with elements {dilations:?} apart"
        )));
    }
    let wide = |pair: [u32; 2]| pair.map(u64::from).to_vec();
    let mut pads = vec![(u64::from(top), u64::from(bottom)), (u64::from(left), u64::from(right))];
    if flags & SAME_PADDING != 0 {
        for (d, pad) in pads.iter_mut().enumerate() {
            let size = v.builder.dims(x)[d + 2];
            let [kernel, stride, dilation] = [kernel[d], strides[d], dilations[d]].map(u64::from);
            let reach = size.div_ceil(stride).saturating_sub(1) * stride + (kernel - 1) * dilation + 1;
            let all = reach.saturating_sub(size);
            *pad = (all / 2, all - all / 2);
        }
    }
    Ok(Sliding { strides: wide(strides), dilations: wide(dilations), pads })
}

fn window(v: &Values<'_>, x: TensorId, flags: u32, numbers: &XnnPool) -> Result<Sliding> {
    // Of means the file has no distances.
    let dilations = numbers.dilations.map(|dilation| dilation.max(1));
    sliding(v, x, flags, numbers.pads, [numbers.kernel, numbers.strides, dilations])
}

pub(super) fn largest(v: &mut Values<'_>, node: &XnnNode, numbers: &XnnPool) -> Result<()> {
    let (x, to) = (v.operand(node, 0)?, v.result(node)?);
    // The largest integer stands for the largest number.
    let held = node.limits.is_none() && v.same(x, to);
    let x = if held { v.value(x)? } else { v.floats(x)? };
    let x = x.channels_first(&mut v.builder)?;
    let window = window(v, x, node.flags, numbers)?;
    let made = v.builder.pool(x, Pooling::Max, &numbers.kernel.map(u64::from), &window, false)?;
    let made = Held::of_channels_first(made);
    if held { v.finish_held(node, made) } else { v.finish(node, made) }
}

pub(super) fn mean(v: &mut Values<'_>, node: &XnnNode, numbers: &XnnPool) -> Result<()> {
    let x = v.operand(node, 0)?;
    let x = v.floats(x)?.channels_first(&mut v.builder)?;
    let window = window(v, x, node.flags, numbers)?;
    let made = v.builder.pool(x, Pooling::Average, &numbers.kernel.map(u64::from), &window, false)?;
    v.finish(node, Held::of_channels_first(made))
}

/// The largest of each window, and its place in it, counted row by row.
pub(super) fn places(v: &mut Values<'_>, node: &XnnNode, numbers: &XnnPool) -> Result<()> {
    let x = v.operand(node, 0)?;
    let x = v.floats(x)?.channels_first(&mut v.builder)?;
    let window = window(v, x, node.flags, numbers)?;
    let kernel = numbers.kernel.map(u64::from);
    let made = v.builder.pool(x, Pooling::Max, &kernel, &window, false)?;
    let (dims, result) = (v.builder.dims(x).to_vec(), v.builder.dims(made)[2..].to_vec());
    let found = v.builder.max_pool_indices(x, &kernel, &window, &result, false)?;
    let number = |value: u64| Operand::Constant(Scalar::Int(value as i64, DType::I64));
    // Windows lie side by side, so that a place in the padded image gives that in its window.
    let inside = v.builder.map(&[found], DType::I64, |p, x| {
        let column = p.call(F::Mod, &[x[0], number(dims[3])]);
        let row = p.call(F::Div, &[x[0], number(dims[3])]);
        let row = p.call(F::Mod, &[row, number(dims[2])]);
        let mut part = |place, before, size| {
            let place = p.call(F::Add, &[place, number(before)]);
            p.call(F::Mod, &[place, number(size)])
        };
        let row = part(row, window.pads[0].0, kernel[0]);
        let column = part(column, window.pads[1].0, kernel[1]);
        let row = p.call(F::Mul, &[row, number(kernel[1])]);
        p.call(F::Add, &[row, column])
    })?;
    let [_, places] = node.outputs[..] else { return Err(v.builder.invalid("a pool has two results")) };
    v.finish(node, Held::of_channels_first(made))?;
    v.finish_as(places, Held::of_channels_first(inside))
}

pub(super) fn global_mean(v: &mut Values<'_>, node: &XnnNode) -> Result<()> {
    let x = v.operand(node, 0)?;
    let x = v.floats(x)?;
    let [.., rows, columns, _] = x.order[..] else {
        let dims = x.sizes(&v.builder);
        return Err(v.builder.invalid(format!("{dims:?} are no images")));
    };
    let made = v.builder.reduce(ReduceKind::Mean, x.tensor, &[rows, columns], true)?;
    v.finish(node, x.with(made))
}

pub(super) fn resize(v: &mut Values<'_>, node: &XnnNode, size: [u32; 2]) -> Result<()> {
    let x = v.operand(node, 0)?;
    let x = v.floats(x)?.channels_first(&mut v.builder)?;
    let coordinates = match node.flags {
        flags if flags & ALIGN_CORNERS != 0 => Coordinates::AlignCorners,
        flags if flags & LEGACY_PLACES != 0 => Coordinates::Asymmetric,
        _ => Coordinates::HalfPixel,
    };
    let how = Resizing {
        interpolation: Interpolation::Linear,
        placement: Placement::Plain(coordinates),
        nearest: Nearest::Floor,
        cubic: 0.0,
        exclude_outside: false,
        antialias: false,
        extrapolation: 0.0,
    };
    let dims = v.builder.dims(x).to_vec();
    let axis = |d: usize| {
        let size = u64::from(size[d]);
        ResizedAxis { axis: d + 2, size, scale: size as f64 / dims[d + 2] as f64, part: (0.0, 1.0) }
    };
    let made = v.builder.resize(x, &[axis(0), axis(1)], &how)?;
    v.finish(node, Held::of_channels_first(made))
}
