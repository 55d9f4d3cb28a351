//! Resizing of tensors along any axes: by the kernel where it does, else axis by axis with tables of places or weights.

use halite_ops::{
    DType, Operation, Values,
    axis::{Coordinates, Nearest},
    expression::Function,
    resize::{self, Interpolation},
};
use halite_sizes::Size;

use super::{Builder, Result, order::Line, types::FLOATS};
use crate::graph::{ElementType, TensorId, elements};

/// Most elements of a table of weights.
const MOST_WEIGHTS: u64 = 1 << 26;

/// Most places of a result along an axis whose weights are listed.
const MOST_ROWS: u64 = 1 << 20;

/// Largest denominator of a scale that is taken for a fraction.
const MOST_PARTS: u64 = 4096;

/// Where places of the result are in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// As kernels have it.
    Plain(Coordinates),
    /// Half pixels, with the middle of the source in the middle of the result.
    HalfPixelSymmetric,
    /// A part of the source, whose corners are those of the result.
    Crop,
}

/// A dimension that is resized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResizedAxis {
    /// Which.
    pub axis: usize,
    /// Size of the result.
    pub size: u64,
    /// Places of the result for each of the source.
    pub scale: f64,
    /// First and last place of the part that is resized, as fractions of the source; for [`Placement::Crop`].
    pub part: (f64, f64),
}

/// How a tensor is resized.
#[derive(Clone, Copy, Debug)]
pub struct Resizing {
    /// How elements between places come about.
    pub interpolation: Interpolation,
    /// Where places are.
    pub placement: Placement,
    /// What is nearest.
    pub nearest: Nearest,
    /// The coefficient of cubic interpolation.
    pub cubic: f64,
    /// Whether places outside of the source have no weight.
    pub exclude_outside: bool,
    /// Whether results that are smaller are means of all the places that they stand for.
    pub antialias: bool,
    /// What places outside of the source are, for [`Placement::Crop`].
    pub extrapolation: f64,
}

/// A dimension that is resized, where sizes are open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenAxis {
    /// Which.
    pub axis: usize,
    /// Size of the result.
    pub size: Size,
    /// Places of the source for each of the result, as a fraction; none where that is source by result.
    pub step: Option<(Size, Size)>,
}

/// Weights of places of the source, for one place of the result.
type Weights = Vec<(u64, f64)>;

impl Builder {
    /// A tensor with other sizes. Weights are `f32`; elements that are no floats are truncated, unless the nearest is
    /// wanted. The result has the tensor's type.
    ///
    /// # Errors
    /// An axis is none of the tensor's, or there is nothing to resize.
    pub fn resize(&mut self, tensor: TensorId, axes: &[ResizedAxis], how: &Resizing) -> Result<TensorId> {
        let dims = self.dims(tensor).to_vec();
        for axis in axes {
            let source = self.line(tensor, axis.axis)?.length;
            if source == 0 && axis.size > 0 || !(axis.scale > 0.0 && axis.scale.is_finite()) {
                let (what, size, scale) = (self.describe(&[tensor]), axis.size, axis.scale);
                return Err(self.invalid(format!("{what} is not resized to {size} by {scale}")));
            }
        }
        let changed: Vec<ResizedAxis> =
            axes.iter().copied().filter(|a| how.changes(a, dims[a.axis])).collect();
        if changed.is_empty() {
            return Ok(tensor);
        }
        let element = self.element(tensor);
        let nearest = how.interpolation == Interpolation::Nearest;
        let own = if nearest { tensor } else { self.floats_of(tensor)? };
        if let Some(operation) = self.resize_kernel(own, &changed, how) {
            let mut result = dims;
            changed.iter().for_each(|axis| result[axis.axis] = axis.size);
            let computed = self.element(own);
            let made = self.kernel1(operation, &[own], computed, &result)?;
            return self.cast(made, element);
        }
        let mut made = own;
        for axis in &changed {
            made = if nearest {
                self.nearest_along(made, axis, how)?
            } else {
                self.weighted_along(made, axis, how)?
            };
        }
        let made = self.cast(made, element)?;
        if how.placement == Placement::Crop { self.extrapolate(made, &dims, &changed, how) } else { Ok(made) }
    }

    /// The same where sizes are open. None for what no kernel does for open sizes: antialiasing, parts of the source, more than
    /// three dimensions, and corners that are aligned by a scale that gives no whole sizes.
    ///
    /// # Errors
    /// An axis is none of the tensor's.
    pub fn resize_open(
        &mut self,
        tensor: TensorId,
        axes: &[OpenAxis],
        how: &Resizing,
    ) -> Result<Option<TensorId>> {
        let dims = self.sizes(tensor).to_vec();
        let changes = |axis: &&OpenAxis| axis.step.is_some() || !dims[axis.axis].is(axis.size);
        let changed: Vec<OpenAxis> = axes.iter().filter(changes).copied().collect();
        let Some(first) = changed.iter().map(|axis| axis.axis).min() else { return Ok(Some(tensor)) };
        let Placement::Plain(coordinates) = how.placement else { return Ok(None) };
        let excludes = how.exclude_outside && how.interpolation == Interpolation::Linear;
        // Corners that are aligned are so by the exact product of size and scale, which may be no whole number.
        let is_cut = |axis: &OpenAxis| {
            axis.step.is_some_and(|(step, of)| !(axis.size * step).is(dims[axis.axis] * of))
        };
        let by_scale = coordinates == Coordinates::AlignCorners && changed.iter().any(is_cut);
        if how.antialias || excludes || by_scale || dims.len() - first > 3 {
            return Ok(None);
        }
        let (element, mut result) = (self.element(tensor), dims.clone());
        let mut steps: Vec<(Size, Size)> = dims.iter().map(|_| (1.into(), 1.into())).collect();
        for axis in &changed {
            result[axis.axis] = axis.size;
            steps[axis.axis] = axis.step.unwrap_or((dims[axis.axis], axis.size));
        }
        let nearest = how.interpolation == Interpolation::Nearest;
        let own = if nearest { tensor } else { self.floats_of(tensor)? };
        let (step, step_of) = steps[first..].iter().copied().unzip();
        let images: Size = dims[..first].iter().product();
        let dtype = self.element(own).storage();
        let made = resize::Resize {
            step,
            step_of,
            coordinates,
            nearest: how.nearest,
            cubic: how.cubic.into(),
            exclude_outside: how.exclude_outside,
            ..resize::Resize::new(images, &dims[first..], &result[first..], how.interpolation, dtype)
        };
        let made = self.kernel1(Operation::Resize(made), &[own], dtype.into(), &result)?;
        self.cast(made, element).map(Some)
    }

    fn floats_of(&mut self, tensor: TensorId) -> Result<TensorId> {
        let kept = matches!(self.element(tensor), ElementType::Of(dtype) if FLOATS.contains(&dtype));
        if kept { Ok(tensor) } else { self.as_f32(tensor) }
    }

    /// The kernel's operation, if it does what is asked for.
    fn resize_kernel(&self, tensor: TensorId, axes: &[ResizedAxis], how: &Resizing) -> Option<Operation> {
        let Placement::Plain(coordinates) = how.placement else { return None };
        let excludes = how.exclude_outside && how.interpolation == Interpolation::Linear;
        let dims = self.dims(tensor);
        let first = axes.iter().map(|axis| axis.axis).min()?;
        if how.antialias || excludes || dims.len() - first > 3 {
            return None;
        }
        let input = dims[first..].to_vec();
        let mut output = input.clone();
        let (mut step, mut step_of) = (vec![1u64; input.len()], vec![1; input.len()]);
        for axis in axes {
            let (at, source) = (axis.axis - first, dims[axis.axis]);
            let whole = axis.scale * source as f64;
            let exact = (whole - axis.size as f64).abs() < 1e-3;
            if coordinates == Coordinates::AlignCorners && !exact {
                return None;
            }
            output[at] = axis.size;
            (step[at], step_of[at]) = if exact && axis.size as f64 / source as f64 == axis.scale {
                (source, axis.size)
            } else {
                let (of, by) = fraction(axis.scale)?;
                (by, of)
            };
        }
        // An axis between that stays as it is has steps of 1, which the default of kernels is too.
        let made = resize::Resize {
            step: step.iter().map(Size::from).collect(),
            step_of: step_of.iter().map(Size::from).collect(),
            coordinates,
            nearest: how.nearest,
            cubic: how.cubic.into(),
            exclude_outside: how.exclude_outside,
            ..resize::Resize::new(
                elements(&dims[..first]),
                &input,
                &output,
                how.interpolation,
                self.element(tensor).storage(),
            )
        };
        let operation = Operation::Resize(made);
        crate::backend::check(&operation).is_ok().then_some(operation)
    }

    fn nearest_along(&mut self, tensor: TensorId, axis: &ResizedAxis, how: &Resizing) -> Result<TensorId> {
        self.countable(axis.size)?;
        let source = self.dims(tensor)[axis.axis];
        let last = source as f64 - 1.0;
        let place = |i| {
            let at = how.source_of(axis, source, i);
            let whole = at.floor();
            let up = match how.nearest {
                Nearest::RoundPreferFloor => at - whole > 0.5,
                Nearest::RoundPreferCeil => at - whole >= 0.5,
                Nearest::Floor => false,
                Nearest::Ceil => at > whole,
            };
            (if up { whole + 1.0 } else { whole }).clamp(0.0, last) as i64
        };
        let places = (0..axis.size).map(place).collect();
        let places = self.values(DType::I32, &[axis.size], &Values::Int(places))?;
        self.gather(tensor, places, axis.axis)
    }

    fn weighted_along(&mut self, tensor: TensorId, axis: &ResizedAxis, how: &Resizing) -> Result<TensorId> {
        let Line { outer, length, inner } = self.line(tensor, axis.axis)?;
        let [outer, length, inner] = [outer, length, inner].map(Size::exact);
        if length.saturating_mul(axis.size) > MOST_WEIGHTS || axis.size > MOST_ROWS {
            let reason = format!("resizing {length} places to {} with this kind of coordinates", axis.size);
            return Err(self.unsupported(reason));
        }
        let mut table = vec![0.0; (length * axis.size) as usize];
        for i in 0..axis.size {
            for (place, weight) in how.weights(axis, length, i) {
                table[(i * length + place) as usize] += weight;
            }
        }
        let element = self.element(tensor);
        let table = self.values(element, &[axis.size, length], &Values::Float(table))?;
        let mut dims = self.dims(tensor).to_vec();
        dims[axis.axis] = axis.size;
        let made = if inner == 1 {
            let rows = self.reshape(tensor, &[outer, length])?;
            self.product(rows, table, true)?
        } else {
            let columns = self.reshape(tensor, &[outer, length, inner])?;
            self.matmul(table, columns)?
        };
        self.reshape(made, &dims)
    }

    /// Places of the result that are outside of the source get a constant.
    fn extrapolate(
        &mut self,
        made: TensorId,
        source: &[u64],
        axes: &[ResizedAxis],
        how: &Resizing,
    ) -> Result<TensorId> {
        let element = self.element(made);
        let value = self.float(element, how.extrapolation)?;
        let mut made = made;
        for axis in axes {
            self.countable(axis.size)?;
            let size = source[axis.axis];
            let inside = |i| (0.0..=size as f64 - 1.0).contains(&how.source_of(axis, size, i));
            let inside: Vec<i64> = (0..axis.size).map(|i| inside(i).into()).collect();
            if inside.iter().all(|i| *i == 1) {
                continue;
            }
            let mut dims = vec![1; source.len()];
            dims[axis.axis] = axis.size;
            let inside = self.values(ElementType::Bool, &dims, &Values::Int(inside))?;
            made = self.map(&[inside, made, value], element, |p, x| p.call(Function::Select, x))?;
        }
        Ok(made)
    }
}

impl Resizing {
    /// Whether an axis of so many elements becomes anything else.
    fn changes(&self, axis: &ResizedAxis, source: u64) -> bool {
        self.placement == Placement::Crop || axis.size != source || axis.scale != 1.0
    }

    /// Where place `i` of the result is in the source.
    fn source_of(&self, axis: &ResizedAxis, source: u64, i: u64) -> f64 {
        let (source, i) = (source as f64, i as f64);
        let whole = axis.scale * source;
        let half = (i + 0.5) / axis.scale - 0.5;
        match self.placement {
            Placement::Plain(Coordinates::HalfPixel) => half,
            Placement::Plain(Coordinates::PytorchHalfPixel) if whole == 1.0 => -0.5,
            Placement::Plain(Coordinates::PytorchHalfPixel) => half,
            Placement::Plain(Coordinates::AlignCorners) if whole == 1.0 => 0.0,
            Placement::Plain(Coordinates::AlignCorners) => i * (source - 1.0) / (whole - 1.0),
            Placement::Plain(Coordinates::Asymmetric) => i / axis.scale,
            Placement::HalfPixelSymmetric => source / 2.0 * (1.0 - axis.size as f64 / whole) + half,
            Placement::Crop => {
                let (start, end) = axis.part;
                let at = if whole == 1.0 {
                    (end - start) * (source - 1.0) / 2.0
                } else {
                    i * (end - start) * (source - 1.0) / (whole - 1.0)
                };
                at + start * (source - 1.0)
            }
        }
    }

    /// Weights of places of the source for place `i` of the result.
    fn weights(&self, axis: &ResizedAxis, source: u64, i: u64) -> Weights {
        let at = self.source_of(axis, source, i);
        // With antialiasing a smaller result reaches over as many places as it stands for.
        let narrow = if self.antialias { axis.scale.min(1.0) } else { 1.0 };
        let reach = if self.interpolation == Interpolation::Cubic { 2.0 } else { 1.0 } / narrow;
        let (first, last) = ((at - reach).floor() as i64, (at + reach).ceil() as i64);
        let mut weights: Vec<(i64, f64)> = Vec::new();
        for place in first..=last {
            let distance = ((place as f64 - at) * narrow).abs();
            let weight = match self.interpolation {
                Interpolation::Cubic => cubic(distance, self.cubic),
                Interpolation::Linear | Interpolation::Nearest => (1.0 - distance).max(0.0),
            };
            weights.push((place, weight));
        }
        let inside = |place: i64| (0..source as i64).contains(&place);
        if self.exclude_outside {
            weights.retain(|(place, _)| inside(*place));
        }
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let sum = if sum == 0.0 { 1.0 } else { sum };
        let most = source.saturating_sub(1) as i64;
        weights.into_iter().map(|(place, weight)| (place.clamp(0, most) as u64, weight / sum)).collect()
    }
}

/// The weight of cubic convolution (Keys, 1981) at a distance.
fn cubic(x: f64, a: f64) -> f64 {
    match () {
        () if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        () if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        () => 0.0,
    }
}

/// The fraction with a small denominator that a scale, which was an `f32`, is.
pub fn fraction(scale: f64) -> Option<(u64, u64)> {
    (1..=MOST_PARTS).find_map(|parts| {
        let of = (scale * parts as f64).round();
        let same = (of / parts as f64) as f32 == scale as f32;
        (same && (1.0..1e9).contains(&of)).then_some((of as u64, parts))
    })
}
