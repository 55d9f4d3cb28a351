//! Resizing of images.

use halite_ops::{
    axis::{Coordinates, Nearest},
    resize::Interpolation,
};
use halite_sizes::{Float, FloatFunction, Size};

use super::{Import, NodeView, Result};
use crate::{
    build::{Builder, OpenAxis, Placement, ResizedAxis, Resizing, fraction},
    graph::TensorId,
};

pub(super) const OPS: &[(&str, Import)] = &[("Resize", resize), ("Upsample", upsample)];

/// Of ONNX 11 and 12, and what tf2onnx writes still: the middles of places, not moved back.
const TENSORFLOW_NEAREST: &str = "tf_half_pixel_for_nn";

/// What old operators do: places by the scale alone, and the place before.
pub(super) fn plain(node: &NodeView<'_>) -> Result<Resizing> {
    Ok(Resizing {
        interpolation: interpolation(node)?,
        placement: Placement::Plain(Coordinates::Asymmetric),
        nearest: Nearest::Floor,
        cubic: -0.75,
        exclude_outside: false,
        antialias: false,
        extrapolation: 0.0,
    })
}

fn interpolation(node: &NodeView<'_>) -> Result<Interpolation> {
    match node.string("mode", "nearest")?.as_str() {
        "nearest" => Ok(Interpolation::Nearest),
        "linear" | "bilinear" => Ok(Interpolation::Linear),
        "cubic" => Ok(Interpolation::Cubic),
        other => Err(node.invalid(format!("mode '{other}' is none that ONNX has"))),
    }
}

fn upsample(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let scales = match node.optional(1) {
        Some(id) => b.need_floats(id, "the scales")?,
        None => node.floats("scales")?.unwrap_or_default().into_iter().map(f64::from).collect(),
    };
    by_scales(b, node, &scales, &plain(node)?)
}

pub(super) fn by_scales(
    b: &mut Builder,
    node: &NodeView<'_>,
    scales: &[f64],
    how: &Resizing,
) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let axes: Vec<usize> = (0..b.rank(x)).collect();
    if b.sizes(x).iter().any(|size| !size.is_constant())
        && let Some(open) = by_fractions(b.sizes(x), &axes, scales)
        && let Some(made) = b.resize_open(x, &open, how)?
    {
        return Ok(vec![made]);
    }
    let axes = scaled(b, node, x, &axes, scales)?;
    Ok(vec![b.resize(x, &axes, how)?])
}

/// Axes that are resized by scales that are fractions; none where one is not.
fn by_fractions(own: &[Size], axes: &[usize], scales: &[f64]) -> Option<Vec<OpenAxis>> {
    if scales.len() != axes.len() {
        return None;
    }
    let open = |(axis, scale): (&usize, &f64)| {
        let (of, by) = fraction(*scale)?;
        let step = (*scale != 1.0).then(|| (by.into(), of.into()));
        Some(OpenAxis { axis: *axis, size: own[*axis] * of / by, step })
    };
    axes.iter().zip(scales).map(open).collect()
}

/// Axes that are resized by scales that the model computes of sizes; none where one is no fraction of sizes.
fn by_floats(own: &[Size], axes: &[usize], scales: &[Float]) -> Option<Vec<OpenAxis>> {
    if scales.len() != axes.len() {
        return None;
    }
    let open = |(axis, scale): (&usize, &Float)| {
        let (of, by) = scale.fraction()?;
        if of.is(by) {
            return Some(OpenAxis { axis: *axis, size: own[*axis], step: None });
        }
        let size = Float::call(FloatFunction::Mul, vec![Float::of(own[*axis])?, scale.clone()])?;
        let size = Float::call(FloatFunction::Floor, vec![size])?.truncated()?;
        Some(OpenAxis { axis: *axis, size, step: Some((by, of)) })
    };
    axes.iter().zip(scales).map(open).collect()
}

/// Axes that are resized by scales.
fn scaled(
    b: &Builder,
    node: &NodeView<'_>,
    x: TensorId,
    axes: &[usize],
    scales: &[f64],
) -> Result<Vec<ResizedAxis>> {
    if scales.len() != axes.len() || scales.iter().any(|s| !s.is_finite() || *s <= 0.0) {
        return Err(node.invalid(format!("scales {scales:?} for {} axes", axes.len())));
    }
    let of = |(axis, scale): (&usize, &f64)| {
        // In single precision, as ONNX Runtime and what is computed for open sizes round it.
        let size = (b.dims(x)[*axis] as f32 * *scale as f32).floor() as u64;
        ResizedAxis { axis: *axis, size, scale: *scale, part: (0.0, 1.0) }
    };
    Ok(axes.iter().zip(scales).map(of).collect())
}

pub(super) fn resize(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    if !node.since(11) {
        let scales = b.need_floats(node.input(1)?, "the scales")?;
        return by_scales(b, node, &scales, &plain(node)?);
    }
    let x = node.input(0)?;
    let rank = b.rank(x);
    let axes = match node.ints("axes")? {
        Some(axes) => node.axes(&axes, rank)?,
        None => (0..rank).collect(),
    };
    let given = |input: usize| node.optional(input).filter(|id| b.tensor(*id).elements() > 0);
    let (scales, sizes) = (given(2), given(3));
    if let Some(made) = open(b, node, x, &axes, [scales, sizes])? {
        return Ok(vec![made]);
    }
    let mut resized = match (scales, sizes) {
        (Some(scales), _) => scaled(b, node, x, &axes, &b.need_floats(scales, "the scales")?)?,
        (None, Some(sizes)) => sized(b, node, x, &axes, &b.need_ints(sizes, "the sizes")?)?,
        (None, None) => return Err(node.invalid("there are neither scales nor sizes")),
    };
    let how = manner(node)?;
    if how.placement == Placement::Crop {
        let roi = b.need_floats(node.input(1)?, "the region of interest")?;
        let count = axes.len();
        if roi.len() != 2 * count {
            return Err(node.invalid(format!("a region of {} numbers for {count} axes", roi.len())));
        }
        for (i, axis) in resized.iter_mut().enumerate() {
            axis.part = (roi[i], roi[i + count]);
        }
    }
    Ok(vec![b.resize(x, &resized, &how)?])
}

/// The result where sizes are open; none where all are known, or where it is not computed for open sizes.
fn open(
    b: &mut Builder,
    node: &NodeView<'_>,
    x: TensorId,
    axes: &[usize],
    [scales, sizes]: [Option<TensorId>; 2],
) -> Result<Option<TensorId>> {
    let own = b.sizes(x).to_vec();
    let known = scales.is_some() || sizes.is_none_or(|sizes| b.is_fixed(sizes));
    if known && axes.iter().all(|axis| own[*axis].is_constant()) {
        return Ok(None);
    }
    let mut resized = Vec::new();
    match (scales, sizes) {
        (Some(scales), _) => {
            let made = match b.floats_of_sizes(scales) {
                Some(scales) => by_floats(&own, axes, &scales),
                None => b.floats(scales).and_then(|scales| by_fractions(&own, axes, &scales)),
            };
            let Some(axes) = made else { return Ok(None) };
            resized.extend(axes);
        }
        (None, Some(sizes)) => {
            if node.string("keep_aspect_ratio_policy", "stretch")? != "stretch" {
                return Ok(None);
            }
            let sizes = b.need_sizes(sizes, "the sizes of the result")?;
            if sizes.len() != axes.len() {
                return Err(node.invalid(format!("sizes for {} axes", axes.len())));
            }
            let axis = |(axis, size): (&usize, Size)| OpenAxis { axis: *axis, size, step: None };
            resized.extend(axes.iter().zip(sizes).map(axis));
        }
        (None, None) => return Ok(None),
    }
    b.resize_open(x, &resized, &manner(node)?)
}

/// Axes that are resized to sizes.
fn sized(
    b: &Builder,
    node: &NodeView<'_>,
    x: TensorId,
    axes: &[usize],
    sizes: &[i64],
) -> Result<Vec<ResizedAxis>> {
    let sizes: Option<Vec<u64>> = sizes.iter().map(|size| u64::try_from(*size).ok()).collect();
    let Some(sizes) = sizes.filter(|sizes| sizes.len() == axes.len()) else {
        return Err(node.invalid(format!("sizes for {} axes", axes.len())));
    };
    let source = |axis: usize| b.dims(x)[axis] as f64;
    let scales = axes.iter().zip(&sizes).map(|(axis, size)| *size as f64 / source(*axis));
    let common = match node.string("keep_aspect_ratio_policy", "stretch")?.as_str() {
        "stretch" => None,
        "not_larger" => scales.clone().min_by(f64::total_cmp),
        "not_smaller" => scales.clone().max_by(f64::total_cmp),
        other => return Err(node.invalid(format!("keep_aspect_ratio_policy '{other}'"))),
    };
    let of = |((axis, size), scale): ((&usize, &u64), f64)| match common {
        None => ResizedAxis { axis: *axis, size: *size, scale, part: (0.0, 1.0) },
        Some(scale) => {
            let size = (source(*axis) * scale + 0.5).floor() as u64;
            ResizedAxis { axis: *axis, size, scale, part: (0.0, 1.0) }
        }
    };
    Ok(axes.iter().zip(&sizes).zip(scales).map(of).collect())
}

pub(super) fn manner(node: &NodeView<'_>) -> Result<Resizing> {
    let mode = node.string("coordinate_transformation_mode", "half_pixel")?;
    let placement = match mode.as_str() {
        "half_pixel" => Placement::Plain(Coordinates::HalfPixel),
        "half_pixel_symmetric" => Placement::HalfPixelSymmetric,
        "pytorch_half_pixel" => Placement::Plain(Coordinates::PytorchHalfPixel),
        "align_corners" => Placement::Plain(Coordinates::AlignCorners),
        "asymmetric" => Placement::Plain(Coordinates::Asymmetric),
        "tf_crop_and_resize" => Placement::Crop,
        TENSORFLOW_NEAREST => Placement::Plain(Coordinates::HalfPixel),
        other => return Err(node.unsupported(format!("coordinate_transformation_mode '{other}'"))),
    };
    let nearest = match node.string("nearest_mode", "round_prefer_floor")?.as_str() {
        "round_prefer_floor" => Nearest::RoundPreferFloor,
        "round_prefer_ceil" => Nearest::RoundPreferCeil,
        "floor" => Nearest::Floor,
        "ceil" => Nearest::Ceil,
        other => return Err(node.invalid(format!("nearest_mode '{other}' is none that ONNX has"))),
    };
    let interpolation = interpolation(node)?;
    let nearest = match (mode.as_str(), interpolation, nearest) {
        // What lies before the middle of a place is what is nearest to its beginning, half a place earlier.
        (TENSORFLOW_NEAREST, Interpolation::Nearest, Nearest::Floor) => Nearest::RoundPreferCeil,
        (TENSORFLOW_NEAREST, ..) => {
            return Err(
                node.unsupported(format!("coordinate_transformation_mode '{mode}' but for nearest, floor"))
            );
        }
        _ => nearest,
    };
    Ok(Resizing {
        interpolation,
        placement,
        nearest,
        cubic: node.float("cubic_coeff_a", -0.75)?.into(),
        exclude_outside: node.flag("exclude_outside", false)?,
        antialias: node.flag("antialias", false)?,
        extrapolation: node.float("extrapolation_value", 0.0)?.into(),
    })
}
