//! Owns borders around tensors: a constant, the nearest element, a mirror image, or the tensor again.

use serde::{Deserialize, Serialize};

use super::{
    Op,
    conv2d::f32,
    moves::{
        MOST_DIMS, Mover, coordinates, dense_strides, factor, list, narrow_all, pick, product, six, size_name,
    },
};
use crate::{DType, Params, Plan, Slot, TensorDesc, Tolerance, Unfit, Values};

/// What is around a tensor. Names are those of ONNX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// Sizes of the input, 6 at most.
    #[serde(deserialize_with = "list")]
    pub input: Vec<u64>,
    /// Places before the input in each dimension; negative ones cut.
    #[serde(deserialize_with = "list")]
    pub before: Vec<i64>,
    /// Places behind the input in each dimension; negative ones cut.
    #[serde(deserialize_with = "list")]
    pub after: Vec<i64>,
    /// What is around.
    #[serde(default)]
    pub border: Border,
    /// The constant.
    #[serde(default)]
    pub value: f64,
    /// Type of both tensors.
    #[serde(default = "f32")]
    pub dtype: DType,
}

/// A dimension of the input, of the output, and where the input begins in the output.
#[derive(Clone, Copy, Debug)]
struct Extent {
    input: i64,
    output: i64,
    before: i64,
}

impl Pad {
    /// A tensor with a border of zeros.
    pub fn new(input: &[u64], before: &[i64], after: &[i64], dtype: DType) -> Self {
        let (input, before, after) = (input.to_vec(), before.to_vec(), after.to_vec());
        Pad { input, before, after, border: Border::Constant, value: 0.0, dtype }
    }

    pub(crate) fn samples() -> Vec<Pad> {
        let borders = [Border::Constant, Border::Edge, Border::Reflect, Border::Wrap];
        let types = [DType::F32, DType::F16, DType::U8, DType::I64, DType::F64, DType::I16];
        let of = |(dtype, border): (DType, Border)| {
            let pad = |input: &[u64], before: &[i64], after: &[i64]| Pad {
                border,
                value: 3.0,
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
        samples.extend(types.map(|t| Pad { value: 5.0, ..Pad::new(&[0, 3], &[2, 1], &[1, 0], t) }));
        samples.extend(types.map(|t| Pad { value: 7.0, ..Pad::new(&[], &[], &[], t) }));
        // The value is made of what the type has, the rest is by size.
        let filled = |value, t| Pad { value, ..Pad::new(&[3, 4], &[1, 2], &[0, 3], t) };
        samples.extend(
            [(0.1, DType::F64), (-300.0, DType::I16), (6e4, DType::U16), (5e18, DType::U64)]
                .map(|(value, t)| filled(value, t)),
        );
        samples
    }

    fn extents(&self) -> Vec<Extent> {
        let borders = self.before.iter().zip(&self.after);
        let extent = |(size, (before, after)): (&u64, (&i64, &i64))| {
            let input = i64::try_from(*size).unwrap_or(i64::MAX);
            let output = input.saturating_add(*before).saturating_add(*after);
            Extent { input, output, before: *before }
        };
        self.input.iter().zip(borders).map(extent).collect()
    }

    fn output_dims(&self) -> Vec<u64> {
        self.extents().iter().map(|e| u64::try_from(e.output).unwrap_or(0)).collect()
    }

    /// As few dimensions as possible, one at least. Neighbours without borders become one, and with a constant also a
    /// dimension with a border and those without inside of it.
    fn merged(&self) -> Vec<Extent> {
        let mut merged: Vec<Extent> = Vec::new();
        for next in self.extents() {
            let bare = |e: &Extent| e.before == 0 && e.input == e.output;
            let joins = |last: &Extent| bare(&next) && (bare(last) || self.border == Border::Constant);
            match merged.last_mut() {
                Some(last) if joins(last) => {
                    let times = |value: i64| value.saturating_mul(next.input);
                    let Extent { input, output, before } = *last;
                    *last = Extent { input: times(input), output: times(output), before: times(before) };
                }
                _ => merged.push(next),
            }
        }
        if merged.is_empty() { vec![Extent { input: 1, output: 1, before: 0 }] } else { merged }
    }

    /// What a kernel adds to a place; see `border.comp`.
    fn start(&self, extent: &Extent) -> i64 {
        match self.border {
            Border::Constant | Border::Edge => extent.before,
            Border::Reflect => (-extent.before).rem_euclid((2 * extent.input - 2).max(1)),
            Border::Wrap => (-extent.before).rem_euclid(extent.input.max(1)),
        }
    }

    fn bordered(&self, build: &str, params: &Params) -> Result<Plan, Unfit> {
        narrow_all(self.inputs().into_iter().chain(self.outputs()))?;
        let factor = factor(params.get("unit")?, self.dtype)? as i64;
        let mut extents = self.merged();
        let inner = extents.last_mut().expect("there is one at least");
        if factor > 1 {
            let Extent { input, output, before } = *inner;
            let bare = before == 0 && input == output;
            let whole = [input, output, before].iter().all(|v| v % factor == 0);
            if !whole || !(bare || self.border == Border::Constant) {
                return Err(Unfit(format!("moves {factor} elements at a time, which borders cut")));
            }
            *inner = Extent { input: input / factor, output: output / factor, before: before / factor };
        }
        let starts: Vec<i64> = extents.iter().map(|e| self.start(e)).collect();
        let inputs: Vec<i64> = extents.iter().map(|e| e.input).collect();
        let sizes: Vec<u64> = extents.iter().map(|e| e.output as u64).collect();
        let mut push: Vec<u32> = six(&inputs).into_iter().chain(six(&starts)).collect();
        let value = Values::Float(vec![self.value]).to_bytes(self.dtype);
        let pattern: Vec<u8> = value.iter().copied().cycle().take(16).collect();
        push.extend(pattern.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)));
        let mover = Mover::new(build, params, &sizes)?;
        Ok(Plan::of(mover.step(&[self.border as u32], &push, vec![Slot::Input(0), Slot::Output(0)])?))
    }

    /// The coordinate in the input for one in the output, in one dimension.
    fn inside(&self, extent: &Extent, place: u64) -> Option<u64> {
        let (at, size) = (place as i64 - extent.before, extent.input);
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
        if let Some(d) = self.extents().iter().position(|e| e.output < 0) {
            return Err(format!("dimension {d} of {} is cut to less than nothing", self.input[d]));
        }
        let stored = Values::from_bytes(self.dtype, &Values::Float(vec![self.value]).to_bytes(self.dtype));
        if !self.dtype.is_float() && stored.float(0) != self.value {
            return Err(format!("{} is no value of {}", self.value, self.dtype));
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

    fn signature(&self) -> String {
        size_name(self.dtype)
    }

    fn flops(&self) -> f64 {
        0.0
    }

    fn twin(&self, inputs: &[Values]) -> Vec<Values> {
        let (dims, extents) = (self.output_dims(), self.extents());
        let strides = dense_strides(&self.input);
        let place = |index| {
            let at = coordinates(index, &dims);
            let inside = at.iter().zip(&extents).map(|(at, extent)| self.inside(extent, *at));
            inside.zip(&strides).map(|(at, stride)| at.map(|at| at * stride.unsigned_abs())).sum()
        };
        vec![pick(&inputs[0], (0..product(&dims)).map(place), self.dtype.round(self.value))]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }

    fn plan(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "border" => self.bordered(build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twin_pads() {
        let padded = |border, before, after| {
            let op = Pad { border, value: 9.0, ..Pad::new(&[3], &[before], &[after], DType::F32) };
            op.twin(&[Values::Float(vec![1.0, 2.0, 3.0])])[0].floats()
        };
        assert_eq!(padded(Border::Constant, 1, 2), [9.0, 1.0, 2.0, 3.0, 9.0, 9.0]);
        assert_eq!(padded(Border::Edge, 2, 1), [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(padded(Border::Reflect, 3, 3), [2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0, 2.0]);
        assert_eq!(padded(Border::Wrap, 1, 4), [3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]);
        assert_eq!(padded(Border::Constant, -1, 1), [2.0, 3.0, 9.0]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(Pad::new(&[3], &[-2], &[-2], DType::F32).check().is_err());
        let nothing = Pad { border: Border::Edge, ..Pad::new(&[0], &[1], &[0], DType::F32) };
        assert!(nothing.check().unwrap_err().contains("no element"));
        let negative = Pad { value: -1.0, ..Pad::new(&[1], &[1], &[0], DType::U8) };
        assert_eq!(negative.check(), Err("-1 is no value of u8".to_owned()));
    }
}
