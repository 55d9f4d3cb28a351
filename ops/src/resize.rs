//! Resizing of images: nearest, linear and cubic, in one to three dimensions.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Exact, Op, TensorDesc, Tolerance, Values,
    axis::{Axis, Coordinates, Line, Nearest},
    dtype::f32,
    moves::{coordinates, count, list, numbers, pick, product, size_name},
};

/// How elements between places come about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// The nearest element.
    #[default]
    Nearest,
    /// Linear between neighbours, in each dimension.
    Linear,
    /// Cubic convolution of four neighbours, in each dimension.
    Cubic,
}

/// Images with other numbers of places. Outside of an image its outermost elements continue. Coordinates are exact
/// fractions, so that what is nearest does not depend on the rounding of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    /// Images times channels.
    pub images: Size,
    /// Sizes of an image, one to three.
    #[serde(deserialize_with = "list")]
    pub input: Vec<Size>,
    /// Sizes of a resized image.
    #[serde(deserialize_with = "list")]
    pub output: Vec<Size>,
    /// Places of the input per place of the output, as a fraction, where that is not input by output: numerators. A scale of
    /// ONNX is the reciprocal.
    #[serde(default, deserialize_with = "list")]
    pub step: Vec<Size>,
    /// Denominators of `step`.
    #[serde(default, deserialize_with = "list")]
    pub step_of: Vec<Size>,
    /// How elements between places come about.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Where places are.
    #[serde(default)]
    pub coordinates: Coordinates,
    /// What is nearest, for that interpolation.
    #[serde(default)]
    pub nearest: Nearest,
    /// The coefficient of cubic interpolation.
    #[serde(default = "cubic")]
    pub cubic: Exact<f64>,
    /// Whether places outside of an image have no weight in cubic interpolation.
    #[serde(default)]
    pub exclude_outside: bool,
    /// Type of both tensors: a float, or for the nearest element any of 1, 2 or 4 bytes.
    #[serde(default = "f32")]
    pub dtype: DType,
}

fn cubic() -> Exact<f64> {
    Exact(-0.75)
}

impl Resize {
    /// Images of a type between two sizes.
    pub fn new(
        images: impl Into<Size>,
        input: &[impl Into<Size> + Copy],
        output: &[impl Into<Size> + Copy],
        interpolation: Interpolation,
        dtype: DType,
    ) -> Self {
        Resize {
            images: images.into(),
            input: input.iter().map(|size| (*size).into()).collect(),
            output: output.iter().map(|size| (*size).into()).collect(),
            step: Vec::new(),
            step_of: Vec::new(),
            interpolation,
            coordinates: Coordinates::HalfPixel,
            nearest: Nearest::RoundPreferFloor,
            cubic: cubic(),
            exclude_outside: false,
            dtype,
        }
    }

    /// The dimensions that are resized.
    pub fn lines(&self) -> Vec<Line> {
        let sizes = self.input.iter().zip(&self.output).enumerate();
        let line = |(d, (input, output)): (usize, (&Size, &Size))| {
            let step = self.step.get(d).zip(self.step_of.get(d)).map_or((*input, *output), |(n, d)| (*n, *d));
            Line::new(*input, *output, step, self.coordinates)
        };
        sizes.map(line).collect()
    }

    /// The same as numbers.
    fn axes(&self) -> Vec<Axis> {
        let number = |size: Size| i128::from(size.exact_signed());
        let axis = |line: Line| Axis {
            source: line.source.exact(),
            result: line.result.exact(),
            factor: number(line.factor),
            start: number(line.start),
            divisor: number(line.divisor),
        };
        self.lines().into_iter().map(axis).collect()
    }

    /// Neighbours in a dimension.
    pub fn taps(&self) -> u32 {
        if self.interpolation == Interpolation::Cubic { 4 } else { 2 }
    }

    /// Places in a dimension with their weights.
    fn weights(&self, axis: &Axis, place: u64) -> Vec<(u64, f64)> {
        let (whole, part) = axis.before(place);
        if self.interpolation == Interpolation::Linear {
            return vec![(axis.inside(whole), 1.0 - part), (axis.inside(whole + 1), part)];
        }
        let a = self.cubic.0;
        let kernel = |x: f64| match x.abs() {
            x if x <= 1.0 => (a + 2.0) * x * x * x - (a + 3.0) * x * x + 1.0,
            x if x < 2.0 => a * x * x * x - 5.0 * a * x * x + 8.0 * a * x - 4.0 * a,
            _ => 0.0,
        };
        let there = |place: i64| !self.exclude_outside || axis.inside(place) as i64 == place;
        let weight = |tap: i64| if there(whole + tap) { kernel(part - tap as f64) } else { 0.0 };
        let sum: f64 = if self.exclude_outside { (-1..3).map(weight).sum() } else { 1.0 };
        (-1..3).map(|tap| (axis.inside(whole + tap), weight(tap) / sum)).collect()
    }

    /// An element by the weights of each dimension.
    fn weighted(&self, input: &Values, image: u64, at: &[u64]) -> f64 {
        let mut terms = vec![(image, 1.0)];
        for (axis, place) in self.axes().iter().zip(at) {
            let weights = self.weights(axis, *place);
            let spread = |(index, weight): &(u64, f64)| {
                let (index, weight) = (*index * axis.source, *weight);
                weights.iter().map(move |(place, w)| (index + place, weight * w)).collect::<Vec<_>>()
            };
            terms = terms.iter().flat_map(spread).collect();
        }
        terms.iter().map(|(index, weight)| weight * input.float(*index as usize)).sum()
    }
}

impl Op for Resize {
    fn check(&self) -> Result<(), String> {
        let dims = self.input.len();
        if !(1..=3).contains(&dims) || dims != self.output.len() {
            return Err(format!(
                "images have 1 to 3 dimensions, as many resized, not {dims} and {}",
                self.output.len()
            ));
        }
        let steps = [self.step.len(), self.step_of.len()];
        if steps.iter().any(|n| *n != steps[0]) || !(steps[0] == 0 || steps[0] == dims) {
            return Err(format!("steps are given for each of {dims} dimensions or for none, not {steps:?}"));
        }
        if self.step.iter().chain(&self.step_of).any(|n| *n == 0) {
            return Err("a step is not 0".into());
        }
        if product(&self.input) == 0 && product(&self.output) > 0 {
            return Err("an image without elements cannot be resized".into());
        }
        match self.interpolation {
            Interpolation::Nearest if self.dtype.size() > 4 => {
                Err(format!("elements have 1, 2 or 4 bytes, not those of {}", self.dtype))
            }
            Interpolation::Linear | Interpolation::Cubic if !self.dtype.is_small_float() => {
                Err(format!("elements between others are f32, f16 or bf16, not {}", self.dtype))
            }
            _ => Ok(()),
        }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("input", self.dtype, [&[self.images], &self.input[..]].concat())]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, [&[self.images], &self.output[..]].concat())]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        match self.interpolation {
            Interpolation::Nearest => format!("nearest_{}", size_name(self.dtype)),
            Interpolation::Linear => format!("linear_{}", self.dtype),
            Interpolation::Cubic => format!("cubic_{}", self.dtype),
        }
    }

    fn flops(&self) -> f64 {
        if self.interpolation == Interpolation::Nearest {
            return 0.0;
        }
        let terms = f64::from(self.taps()).powi(self.input.len() as i32);
        2.0 * terms * self.images.as_f64() * product(&self.output).as_f64()
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let dims = numbers(&[&[self.images], &self.output[..]].concat());
        let axes = self.axes();
        let all = 0..count(&dims);
        if self.interpolation != Interpolation::Nearest {
            let value = |index| {
                let at = coordinates(index, &dims);
                self.dtype.round(self.weighted(&inputs[0], at[0], &at[1..]))
            };
            return vec![Values::Float(all.map(value).collect())];
        }
        let place = |index| {
            let at = coordinates(index, &dims);
            let places = axes.iter().zip(&at[1..]);
            Some(
                places.fold(at[0], |place, (axis, at)| place * axis.source + axis.nearest(*at, self.nearest)),
            )
        };
        vec![pick(&inputs[0], all.map(place), 0.0)]
    }

    /// Weights come of a quotient, which a device may have off by 2.5 units in the last place (Vulkan specification,
    /// precision of SPIR-V instructions), and at most four multiply-adds; their magnitudes sum to at most 2 in a dimension
    /// (1.5 with the usual coefficients), and twice that where places outside are left out. Four covers the products.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        if self.interpolation == Interpolation::Nearest {
            return Tolerance::EXACT;
        }
        let terms = u64::from(self.taps()).pow(self.input.len() as u32);
        Tolerance::of_sum(terms, 4.0 * magnitudes[0], DType::F32, self.dtype)
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Resize {
    fn samples() -> Vec<Resize> {
        use Coordinates::{AlignCorners, Asymmetric, HalfPixel, PytorchHalfPixel};
        use Nearest::{Ceil, Floor, RoundPreferCeil, RoundPreferFloor};
        let mut samples = Vec::new();
        let nearest = [DType::F32, DType::F16, DType::U8].map(|t| (Interpolation::Nearest, t));
        let floats = [DType::F32, DType::F16, DType::BF16];
        let weighted = [Interpolation::Linear, Interpolation::Cubic].map(|i| floats.map(|t| (i, t)));
        for (interpolation, dtype) in nearest.into_iter().chain(weighted.into_iter().flatten()) {
            let op = |images: u64, input: &[u64], output: &[u64]| {
                Resize::new(images, input, output, interpolation, dtype)
            };
            for coordinates in [HalfPixel, PytorchHalfPixel, AlignCorners, Asymmetric] {
                for nearest in [RoundPreferFloor, RoundPreferCeil, Floor, Ceil] {
                    let of = |resize: Resize| Resize { coordinates, nearest, ..resize };
                    if interpolation == Interpolation::Nearest || nearest == RoundPreferFloor {
                        samples.push(of(op(3, &[5, 7], &[10, 9])));
                        samples.push(of(op(2, &[13], &[5])));
                    }
                }
                let of = |resize: Resize| Resize { coordinates, ..resize };
                samples.push(of(op(2, &[3, 4, 5], &[5, 1, 7])));
                samples.push(of(op(1, &[1, 3], &[4, 2])));
            }
            samples.push(op(0, &[3, 3], &[6, 6]));
            samples.push(op(1, &[3, 3], &[0, 6]));
            samples.push(Resize { exclude_outside: true, cubic: Exact(-0.5), ..op(2, &[6, 5], &[9, 12]) });
            // Channels that come last.
            if interpolation == Interpolation::Nearest {
                samples.push(op(2, &[5, 4, 16], &[10, 8, 16]));
                samples.push(op(1, &[3, 7, 24], &[5, 7, 24]));
                samples.push(Resize { coordinates: Asymmetric, nearest: Floor, ..op(2, &[3, 40], &[6, 40]) });
            }
            // A scale of 0.6, which leaves 2 of 4 places.
            samples.push(Resize {
                step: vec![5.into(); 2],
                step_of: vec![3.into(); 2],
                ..op(1, &[4, 4], &[2, 2])
            });
        }
        // So many results that invocations have several.
        samples.push(Resize::new(1, &[511, 700], &[1025, 1100], Interpolation::Nearest, DType::F32));
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(input: &[f64], output: u64, change: impl Fn(Resize) -> Resize) -> Vec<f64> {
        let op = Resize::new(1, &[input.len()], &[output], Interpolation::Linear, DType::F32);
        change(op).reference(&[Values::Float(input.to_vec())])[0].floats()
    }

    #[test]
    fn the_reference_resizes() {
        assert_eq!(of(&[1.0, 2.0], 4, |op| op), [1.0, 1.25, 1.75, 2.0]);
        let aligned = of(&[1.0, 2.0], 3, |op| Resize { coordinates: Coordinates::AlignCorners, ..op });
        assert_eq!(aligned, [1.0, 1.5, 2.0]);
        let nearest = of(&[1.0, 2.0], 4, |op| Resize { interpolation: Interpolation::Nearest, ..op });
        assert_eq!(nearest, [1.0, 1.0, 2.0, 2.0]);
        // Cubic convolution gives straight lines back, inside.
        let line: Vec<f64> = (0..8).map(f64::from).collect();
        let cubic =
            of(&line, 16, |op| Resize { interpolation: Interpolation::Cubic, cubic: Exact(-0.5), ..op });
        assert!((cubic[7] - 3.25).abs() < 1e-6, "{cubic:?}");
    }
}
