//! Borders around tensors: a constant, the nearest element, a mirror image, or the tensor again.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Exact, Op, TensorDesc, Tolerance, Values,
    dtype::f32,
    moves::{MOST_DIMS, coordinates, count, dense_strides, list, numbers, pick, signed, size_name},
};

/// What is around a tensor. Names are those of ONNX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Border {
    /// A constant.
    #[default]
    Constant,
    /// The nearest element.
    Edge,
    /// Mirrored at the outermost elements, which are there once; again and again where the border is wide.
    Reflect,
    /// The tensor again.
    Wrap,
}

/// A tensor with borders.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// Sizes of the input, 6 at most.
    #[serde(deserialize_with = "list")]
    pub input: Vec<Size>,
    /// Places before the input in each dimension; negative ones cut.
    #[serde(deserialize_with = "signed")]
    pub before: Vec<Size>,
    /// Places behind the input in each dimension; negative ones cut.
    #[serde(deserialize_with = "signed")]
    pub after: Vec<Size>,
    /// What is around.
    #[serde(default)]
    pub border: Border,
    /// The constant.
    #[serde(default)]
    pub value: Exact<f64>,
    /// Type of both tensors.
    #[serde(default = "f32")]
    pub dtype: DType,
}

/// A dimension of the input, of the output, and where the input begins in the output.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Places of the input.
    pub input: Size,
    /// Places of the output.
    pub output: Size,
    /// Places in front of the input; negative when the input begins before the output.
    pub before: Size,
}

impl Pad {
    /// A tensor with a border of zeros.
    pub fn new(input: &[u64], before: &[i64], after: &[i64], dtype: DType) -> Self {
        let input = input.iter().map(Size::from).collect();
        let [before, after] = [before, after].map(|all| all.iter().map(|n| Size::from(*n)).collect());
        Pad { input, before, after, border: Border::Constant, value: Exact(0.0), dtype }
    }

    /// The dimensions.
    pub fn extents(&self) -> Vec<Extent> {
        let borders = self.before.iter().zip(&self.after);
        let extent = |(input, (before, after)): (&Size, (&Size, &Size))| Extent {
            input: *input,
            output: *input + *before + *after,
            before: *before,
        };
        self.input.iter().zip(borders).map(extent).collect()
    }

    fn output_dims(&self) -> Vec<Size> {
        self.extents().iter().map(|e| e.output).collect()
    }

    /// What a kernel adds to a place; see `border.comp`.
    pub fn start(&self, extent: &Extent) -> Size {
        // What is left of what lies in front, counted backwards.
        let cycle = |length: Size| {
            let (length, before) = (length.max(1), extent.before);
            if before.most() <= 0 {
                return -before % length;
            }
            // What may be either is fixed.
            let before = if before.least() < 0 { before.exact_signed().into() } else { before };
            if before < 0 { -before % length } else { before.div_ceil(length) * length - before }
        };
        match self.border {
            Border::Constant | Border::Edge => extent.before,
            Border::Reflect => cycle(extent.input * 2 - 2),
            Border::Wrap => cycle(extent.input),
        }
    }

    /// The coordinate in the input for one in the output, in one dimension.
    fn inside(&self, extent: &Extent, place: u64) -> Option<u64> {
        let (at, size) = (place as i64 - extent.before.exact_signed(), extent.input.exact_signed());
        let coordinate = match self.border {
            Border::Constant => at,
            Border::Edge => at.clamp(0, size - 1),
            Border::Wrap => at.rem_euclid(size),
            Border::Reflect => {
                let place = at.rem_euclid((2 * size - 2).max(1));
                if place < size { place } else { 2 * size - 2 - place }
            }
        };
        (0..size).contains(&coordinate).then_some(coordinate as u64)
    }
}

impl Op for Pad {
    fn check(&self) -> Result<(), String> {
        let lengths = [self.input.len(), self.before.len(), self.after.len()];
        if lengths.iter().any(|n| *n != lengths[0]) || lengths[0] > MOST_DIMS {
            return Err(format!(
                "it has {lengths:?} sizes, borders before and behind; there are as many, {MOST_DIMS} at most"
            ));
        }
        if let Some(d) = self.extents().iter().position(|e| !e.output.is_data() && e.output < 0) {
            return Err(format!("dimension {d} of {} is cut to less than nothing", self.input[d]));
        }
        let stored = Values::from_bytes(self.dtype, &Values::Float(vec![self.value.0]).to_bytes(self.dtype));
        if !self.dtype.is_float() && stored.float(0) != self.value.0 {
            return Err(format!("{} is no value of {}", self.value.0, self.dtype));
        }
        if self.border != Border::Constant && self.extents().iter().any(|e| e.input == 0 && e.output > 0) {
            return Err("there is no element to repeat".into());
        }
        Ok(())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("input", self.dtype, self.input.clone())]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, self.output_dims())]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        size_name(self.dtype)
    }

    fn flops(&self) -> f64 {
        0.0
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let (dims, extents) = (numbers(&self.output_dims()), self.extents());
        let strides = numbers(&dense_strides(&self.input));
        let place = |index| {
            let at = coordinates(index, &dims);
            let inside = at.iter().zip(&extents).map(|(at, extent)| self.inside(extent, *at));
            inside.zip(&strides).map(|(at, stride)| at.map(|at| at * stride)).sum()
        };
        vec![pick(&inputs[0], (0..count(&dims)).map(place), self.dtype.round(self.value.0))]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Pad {
    fn samples() -> Vec<Pad> {
        let borders = [Border::Constant, Border::Edge, Border::Reflect, Border::Wrap];
        let types = [DType::F32, DType::F16, DType::U8, DType::I64, DType::F64, DType::I16];
        let of = |(dtype, border): (DType, Border)| {
            let pad = |input: &[u64], before: &[i64], after: &[i64]| Pad {
                border,
                value: Exact(3.0),
                ..Pad::new(input, before, after, dtype)
            };
            [
                pad(&[7], &[3], &[5]),
                pad(&[2, 3, 5, 6], &[0, 0, 1, 1], &[0, 0, 2, 1]),
                pad(&[3, 4, 16], &[0, 2, 0], &[0, 1, 0]),
                pad(&[3, 4, 16], &[0, 0, 16], &[0, 0, 32]),
                pad(&[9, 8], &[-2, 4], &[1, -3]),
                pad(&[2, 1, 3, 2, 2, 5], &[1, 2, 0, 1, 0, 3], &[1, 0, 2, 1, 1, 0]),
                pad(&[40, 41], &[0, 0], &[0, 0]),
                pad(&[4, 3], &[-2, 0], &[-2, 1]),
            ]
        };
        let mut samples: Vec<Pad> =
            types.into_iter().flat_map(|t| borders.map(|b| (t, b))).flat_map(of).collect();
        samples.extend(types.map(|t| Pad { value: Exact(5.0), ..Pad::new(&[0, 3], &[2, 1], &[1, 0], t) }));
        samples.extend(types.map(|t| Pad { value: Exact(7.0), ..Pad::new(&[], &[], &[], t) }));
        // The value is made of what the type has, the rest is by size.
        let filled = |value, t| Pad { value: Exact(value), ..Pad::new(&[3, 4], &[1, 2], &[0, 3], t) };
        samples.extend(
            [(0.1, DType::F64), (-300.0, DType::I16), (6e4, DType::U16), (5e18, DType::U64)]
                .map(|(value, t)| filled(value, t)),
        );
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_pads() {
        let padded = |border, before, after| {
            let op = Pad { border, value: Exact(9.0), ..Pad::new(&[3], &[before], &[after], DType::F32) };
            op.reference(&[Values::Float(vec![1.0, 2.0, 3.0])])[0].floats()
        };
        assert_eq!(padded(Border::Constant, 1, 2), [9.0, 1.0, 2.0, 3.0, 9.0, 9.0]);
        assert_eq!(padded(Border::Edge, 2, 1), [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(padded(Border::Reflect, 3, 3), [2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0, 2.0]);
        assert_eq!(padded(Border::Wrap, 1, 4), [3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]);
        assert_eq!(padded(Border::Constant, -1, 1), [2.0, 3.0, 9.0]);
    }

    #[test]
    fn borders_that_sizes_decide_fix_nothing() {
        let trace = halite_sizes::Trace::new();
        let _entered = trace.enter();
        let n = trace.symbol("n", 7, 2, 100);
        for (border, wanted) in [(Border::Reflect, 11), (Border::Wrap, 6), (Border::Edge, 1)] {
            let plain = Pad::new(&[7], &[1], &[0], DType::F32);
            let op = Pad { border, input: vec![n], before: vec![n % 3], ..plain };
            assert_eq!(op.start(&op.extents()[0]).signed_value(), wanted, "{border:?}");
        }
        assert!(trace.region().fixed().is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(Pad::new(&[3], &[-2], &[-2], DType::F32).check().is_err());
        let nothing = Pad { border: Border::Edge, ..Pad::new(&[0], &[1], &[0], DType::F32) };
        assert!(nothing.check().unwrap_err().contains("no element"));
        let negative = Pad { value: Exact(-1.0), ..Pad::new(&[1], &[1], &[0], DType::U8) };
        assert_eq!(negative.check(), Err("-1 is no value of u8".to_owned()));
    }
}
