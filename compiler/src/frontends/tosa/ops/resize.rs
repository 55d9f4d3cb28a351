//! RESIZE: nearest or between four places, one axis after the other.

use halite_formats::tosa::{ElementType as Tosa, ResizeMode};
use halite_ops::{DType, Values, expression::Function};

use super::{
    super::{Result, element_of},
    call::Call,
    cast::stored,
    rules,
};
use crate::{build::Builder, graph::TensorId};

/// The largest numerator of a scale.
const MOST_NUMERATOR: i64 = 1 << 11;

/// Where the places of one axis of the result lie in the image.
struct Axis {
    /// The place before or at each.
    first: Vec<i64>,
    /// The one behind, within the image.
    second: Vec<i64>,
    /// How far from the first to the second, in `unit` parts.
    rest: Vec<i64>,
    unit: i64,
}

impl Axis {
    /// `size` places of the image; the scale is `numerator / denominator`.
    fn new(
        b: &Builder,
        call: &Call<'_>,
        size: u64,
        [numerator, denominator]: [i64; 2],
        offset: i64,
        border: i64,
    ) -> Result<Axis> {
        let wrong =
            |what: &str| b.invalid(format!("RESIZE of {size} places by {numerator}/{denominator}: {what}"));
        if !(1..=MOST_NUMERATOR).contains(&numerator) || !(1..16 * numerator).contains(&denominator) {
            return Err(wrong("numerators are 1 to 2048, and denominators less than 16 times as much"));
        }
        let reach = -16 * numerator..16 * numerator;
        if !reach.contains(&offset) || !reach.contains(&border) {
            return Err(wrong("offset and border are less than 16 times the numerator"));
        }
        if numerator / denominator > rules::MOST_SCALE {
            return Err(b.unsupported(format!(
                "{} by {numerator}/{denominator}; level 8K has {} at most",
                call.name(),
                rules::MOST_SCALE
            )));
        }
        let last = i64::try_from(size).ok().and_then(|size| size.checked_sub(1));
        let reach =
            last.and_then(|last| last.checked_mul(numerator)?.checked_sub(offset)?.checked_add(border));
        let (Some(last), Some(reach)) = (last, reach.filter(|reach| *reach >= 0)) else {
            return Err(wrong("nothing is left of it"));
        };
        let count = reach / denominator + 1;
        b.countable(count as u64)?;
        let mut axis = Axis { first: Vec::new(), second: Vec::new(), rest: Vec::new(), unit: numerator };
        for place in 0..count {
            let Some(at) = place.checked_mul(denominator).and_then(|at| at.checked_add(offset)) else {
                return Err(wrong("places beyond 64 bits"));
            };
            let before = at.div_euclid(numerator);
            axis.first.push(before.clamp(0, last));
            axis.second.push((before + 1).clamp(0, last));
            axis.rest.push(at.rem_euclid(numerator));
        }
        Ok(axis)
    }

    /// The nearer place of each.
    fn nearest(&self) -> Vec<i64> {
        let each = self.first.iter().zip(&self.second).zip(&self.rest);
        each.map(|((first, second), rest)| if 2 * rest >= self.unit { *second } else { *first }).collect()
    }
}

/// RESIZE. Bilinear results of integers are not divided by the scale.
pub(super) fn resize(
    b: &mut Builder,
    call: &Call<'_>,
    mode: ResizeMode,
    scale: [i64; 4],
    offset: [i64; 2],
    border: [i64; 2],
) -> Result<TensorId> {
    let [_, height, width, _] = call.dims(b, 0)?;
    let (element, out) = (call.element(0), call.output().element);
    let widens = element.is_integer() && mode == ResizeMode::Bilinear;
    if widens == (element == out) && element.is_integer() {
        let mode = if widens { "BILINEAR" } else { "NEAREST" };
        return Err(b.invalid(format!("RESIZE {mode} of {element} to {out}")));
    }
    let rows = Axis::new(b, call, height, [scale[0], scale[1]], offset[0], border[0])?;
    let columns = Axis::new(b, call, width, [scale[2], scale[3]], offset[1], border[1])?;
    let x = call.inputs[0];
    if mode == ResizeMode::Nearest {
        let x = picked(b, x, rows.nearest(), 1)?;
        return picked(b, x, columns.nearest(), 2);
    }
    let kept = match element {
        Tosa::I8 | Tosa::I16 => element_of(out).storage(),
        _ => DType::F32,
    };
    let x = b.cast(x, kept)?;
    let x = between(b, x, &rows, 1)?;
    let x = between(b, x, &columns, 2)?;
    stored(b, out, x)
}

/// Places of an axis.
fn picked(b: &mut Builder, x: TensorId, places: Vec<i64>, axis: usize) -> Result<TensorId> {
    if places.iter().copied().eq(0..b.dims(x)[axis] as i64) {
        return Ok(x);
    }
    let indices = b.values(DType::I32, &[places.len() as u64], &Values::Int(places))?;
    b.gather(x, indices, axis)
}

/// `first * (unit - rest) + second * rest`, of floats in parts of one.
fn between(b: &mut Builder, x: TensorId, axis: &Axis, dim: usize) -> Result<TensorId> {
    let (first, second) = (picked(b, x, axis.first.clone(), dim)?, picked(b, x, axis.second.clone(), dim)?);
    let kept = b.element(x).storage();
    let mut dims = vec![1; b.dims(x).len() - dim];
    dims[0] = axis.rest.len() as u64;
    let part = |rest: i64| rest as f64 / axis.unit as f64;
    let weights = |near: bool| {
        let rests = axis.rest.iter().map(|rest| if near { axis.unit - rest } else { *rest });
        if kept.is_float() { Values::Float(rests.map(part).collect()) } else { Values::Int(rests.collect()) }
    };
    let near = b.values(kept, &dims, &weights(true))?;
    let far = b.values(kept, &dims, &weights(false))?;
    b.map(&[first, second, near, far], kept, |p, x| {
        let before = p.call(Function::Mul, &[x[0], x[2]]);
        let behind = p.call(Function::Mul, &[x[1], x[3]]);
        p.call(Function::Add, &[before, behind])
    })
}
