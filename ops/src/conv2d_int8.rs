//! The convolution of 8-bit images with 8-bit filters: exact 32-bit sums, or 8-bit results by a factor for each filter.
//! The formula is that of ONNX `ConvInteger` and `QLinearConv` with filters whose zero point is 0.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    conv2d::{one, ones},
    convolution::{Convolution, OutputIndex},
    gather::i32,
    window::{Layout, Window},
};

/// Convolution of quantized images. The sum of `(input - input_zero) * filter`, plus the `i32` bias where there is one,
/// wraps in 32 bits; padding adds nothing. It is the result for `out=i32`. Otherwise it is converted to `f32`, multiplied
/// by the filter's `f32` scale (input scale * filter scale / output scale), rounded to the nearest integer, ties to
/// even, and after `output_zero` was added limited to `least` and `most`. A bias of `f32` (in units of the output scale)
/// is added after the multiplication. Results are exact on devices that round conversions, products and sums of `f32` to
/// nearest, as all known ones do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv2dInt8 {
    /// Images, channels, rows, columns, in the order of `layout`.
    pub input: [Size; 4],
    /// Filters, channels of a group, rows, columns; with `nhwc` rows, columns, channels of a group, filters.
    pub filter: [u64; 4],
    /// Rows and columns from one place of the filter to the next.
    #[serde(default = "ones")]
    pub strides: [u64; 2],
    /// Rows and columns from one tap to the next.
    #[serde(default = "ones")]
    pub dilations: [u64; 2],
    /// Padding of the image: top, left, bottom, right.
    #[serde(default)]
    pub pads: [u64; 4],
    /// Groups of channels, each with its filters.
    #[serde(default = "one")]
    pub groups: u64,
    /// Type of the images: `i8` or `u8`. Filters are `i8`.
    pub data: DType,
    /// Type of results: `i32`, `i8` or `u8`.
    pub out: DType,
    /// The value of the images that stands for 0.
    #[serde(default)]
    pub input_zero: i32,
    /// The value of the results that stands for 0.
    #[serde(default)]
    pub output_zero: i32,
    /// The least result, when not that of the type; the zero point makes a rectifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<i32>,
    /// The largest result, when not that of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<i32>,
    /// Whether there is an input with a value for each filter.
    #[serde(default)]
    pub bias: bool,
    /// Its type: `i32`, or `f32` where results are scaled.
    #[serde(default = "i32", skip_serializing_if = "is_i32")]
    pub bias_type: DType,
    /// How images and filters lie.
    #[serde(default)]
    pub layout: Layout,
}

fn is_i32(dtype: &DType) -> bool {
    *dtype == DType::I32
}

impl Conv2dInt8 {
    /// A convolution of one group without padding, bias and zero points.
    pub fn new(input: [impl Into<Size>; 4], filter: [u64; 4], data: DType, out: DType) -> Self {
        Conv2dInt8 {
            input: input.map(Into::into),
            filter,
            strides: ones(),
            dilations: ones(),
            pads: [0; 4],
            groups: 1,
            data,
            out,
            input_zero: 0,
            output_zero: 0,
            least: None,
            most: None,
            bias: false,
            bias_type: DType::I32,
            layout: Layout::Nchw,
        }
    }

    /// The shape of the convolution.
    ///
    /// # Errors
    /// The numbers do not go together.
    pub fn shape(&self) -> Result<Convolution, String> {
        let window = |input, kernel| Window {
            input,
            kernel,
            strides: self.strides,
            dilations: self.dilations,
            pads: self.pads,
            ceil: false,
        };
        Convolution::new(self.input, self.filter, self.groups, self.layout, window)
    }

    fn filters(&self) -> u64 {
        if self.layout == Layout::Nchw { self.filter[0] } else { self.filter[3] }
    }

    /// Whether results are scaled to 8 bits.
    pub fn scaled(&self) -> bool {
        self.out != DType::I32
    }

    /// The range of results.
    pub fn limits(&self) -> (i32, i32) {
        let (least, most) = range(self.out);
        (self.least.unwrap_or(least), self.most.unwrap_or(most))
    }

    /// Index of the scales among the inputs.
    pub fn scales(&self) -> usize {
        2 + usize::from(self.bias)
    }

    fn sum(&self, shape: &Convolution, place: OutputIndex, inputs: &[Values]) -> i32 {
        let whole = self.bias && self.bias_type == DType::I32;
        let start = if whole { inputs[2].int(shape.filter_of(place)) as i32 } else { 0 };
        shape.terms(place).fold(start, |sum, (at, weight)| {
            let element = at.map_or(0, |at| inputs[0].int(at) as i32 - self.input_zero);
            sum.wrapping_add(element.wrapping_mul(inputs[1].int(weight) as i32))
        })
    }
}

fn range(dtype: DType) -> (i32, i32) {
    match dtype {
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        _ => (i32::MIN, i32::MAX),
    }
}

#[cfg(any(test, feature = "testing"))]
fn samples_of(data: DType, out: DType) -> Vec<Conv2dInt8> {
    let conv = |input: [u64; 4], filter| Conv2dInt8::new(input, filter, data, out);
    let zero = |dtype| if dtype == DType::U8 { 121 } else { -7 };
    let (input_zero, output_zero) = (zero(data), if out == DType::I32 { 0 } else { zero(out) });
    let base =
        Conv2dInt8 { input_zero, output_zero, pads: [1; 4], bias: true, ..conv([2, 5, 9, 7], [6, 5, 3, 3]) };
    let least = (out != DType::I32).then_some(output_zero);
    vec![
        conv([1, 1, 1, 1], [1, 1, 1, 1]),
        base.clone(),
        Conv2dInt8 {
            bias_type: if out == DType::I32 { out } else { DType::F32 },
            dilations: [2, 1],
            ..base.clone()
        },
        Conv2dInt8 {
            bias_type: if out == DType::I32 { out } else { DType::F32 },
            filter: [21, 5, 3, 3],
            ..base.clone()
        },
        Conv2dInt8 { strides: [2, 2], least, ..base.clone() },
        Conv2dInt8 {
            groups: 7,
            input: [1, 7, 11, 10].map(Size::constant),
            filter: [7, 1, 3, 3],
            ..base.clone()
        },
        Conv2dInt8 {
            layout: Layout::Nhwc,
            input: [1, 6, 7, 9].map(Size::constant),
            filter: [1, 1, 9, 20],
            ..base.clone()
        },
        Conv2dInt8 { filter: [35, 5, 3, 3], ..base.clone() },
        conv([1, 3, 2, 2], [2, 3, 3, 3]),
        conv([1, 0, 3, 3], [5, 0, 1, 1]),
    ]
    .into_iter()
    .chain(of_single_channels(&base))
    .collect()
}

/// Groups of one channel: two filters for each, a window that is the whole image, and one that is apart and not square.
#[cfg(any(test, feature = "testing"))]
fn of_single_channels(base: &Conv2dInt8) -> [Conv2dInt8; 3] {
    let of = |groups: u64, input: [u64; 4], filter: [u64; 4]| Conv2dInt8 {
        groups,
        input: input.map(Size::from),
        filter,
        ..base.clone()
    };
    [
        Conv2dInt8 { strides: [2, 2], pads: [2; 4], ..of(6, [2, 6, 13, 11], [12, 1, 5, 5]) },
        Conv2dInt8 { strides: [7, 10], pads: [0; 4], ..of(9, [1, 9, 7, 10], [9, 1, 7, 10]) },
        Conv2dInt8 {
            strides: [3, 1],
            dilations: [2, 1],
            pads: [3, 4, 2, 5],
            ..of(3, [1, 3, 15, 18], [3, 1, 4, 9])
        },
    ]
}

impl Op for Conv2dInt8 {
    fn check(&self) -> Result<(), String> {
        if !matches!(self.data, DType::I8 | DType::U8) {
            return Err(format!("images are i8 or u8, not {}", self.data));
        }
        if !matches!(self.out, DType::I32 | DType::I8 | DType::U8) {
            return Err(format!("results are i32, i8 or u8, not {}", self.out));
        }
        let within = |dtype, value| (range(dtype).0..=range(dtype).1).contains(&value);
        if !within(self.data, self.input_zero) || !within(self.out, self.output_zero) {
            return Err("a zero point is not of its tensor's type".into());
        }
        if !self.scaled() && (self.output_zero != 0 || self.least.is_some() || self.most.is_some()) {
            return Err("i32 results have no zero point and no limits".into());
        }
        if self.bias_type != DType::I32 && (self.bias_type != DType::F32 || !self.scaled()) {
            return Err(format!("a bias is i32, or f32 for scaled results, not {}", self.bias_type));
        }
        let (least, most) = self.limits();
        if !within(self.out, least) || !within(self.out, most) || least > most {
            return Err(format!("{least} to {most} is no range of {}", self.out));
        }
        self.shape().map(|_| ())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let mut inputs = vec![
            TensorDesc::new("input", self.data, self.input),
            TensorDesc::new("filter", DType::I8, self.filter),
        ];
        if self.bias {
            inputs.push(TensorDesc::new("bias", self.bias_type, [self.filters()]));
        }
        if self.scaled() {
            inputs.push(TensorDesc::new("scale", DType::F32, [self.filters()]));
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        let dims = self.shape().map_or([Size::constant(0); 4], |shape| shape.output_dims());
        vec![TensorDesc::new("out", self.out, dims)]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.data, &mut self.out]
    }

    fn signature(&self) -> String {
        format!("{}xi8_{}", self.data, self.out)
    }

    fn flops(&self) -> f64 {
        self.shape().map_or(0.0, |shape| shape.flops())
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let Ok(shape) = self.shape() else { return Vec::new() };
        let (least, most) = self.limits();
        let result = |place| {
            let sum = self.sum(&shape, place, inputs);
            if !self.scaled() {
                return i64::from(sum);
            }
            let scale = inputs[self.scales()].float(shape.filter_of(place)) as f32;
            let added = self.bias && self.bias_type == DType::F32;
            let more = if added { inputs[2].float(shape.filter_of(place)) as f32 } else { 0.0 };
            let rounded = (sum as f32 * scale + more).round_ties_even().clamp(-1024.0, 1024.0) as i32;
            i64::from((rounded + self.output_zero).clamp(least, most))
        };
        vec![Values::Int(shape.places().map(result).collect())]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Conv2dInt8 {
    fn samples() -> Vec<Conv2dInt8> {
        let types = [DType::I8, DType::U8]
            .into_iter()
            .flat_map(|data| [DType::I32, DType::I8, DType::U8].map(|out| (data, out)));
        types.flat_map(|(data, out)| samples_of(data, out)).collect()
    }

    /// Scales that spread sums over the range of 8 bits.
    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        if !self.scaled() || index != self.scales() {
            return None;
        }
        let depth = self.shape().map_or(1, |shape| shape.depth()).max(1) as f64;
        let mut scale = || {
            let spread = 0.5 + (random() % (1 << 20)) as f64 / f64::from(1 << 20);
            DType::F32.round(spread / (100.0 * depth.sqrt()))
        };
        Some(Values::Float((0..self.filters()).map(|_| scale()).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_scales_and_rounds_to_even() {
        let op = Conv2dInt8 {
            input_zero: 10,
            output_zero: 100,
            bias: true,
            ..Conv2dInt8::new([1, 1, 1, 4], [1, 1, 1, 1], DType::U8, DType::U8)
        };
        let inputs = [
            Values::Int(vec![10, 11, 12, 255]),
            Values::Int(vec![2]),
            Values::Int(vec![1]),
            Values::Float(vec![0.5]),
        ];
        assert_eq!(op.check(), Ok(()));
        assert_eq!(op.reference(&inputs), [Values::Int(vec![100, 102, 102, 255])]);
        let limited = Conv2dInt8 { most: Some(101), ..op };
        assert_eq!(limited.reference(&inputs), [Values::Int(vec![100, 101, 101, 101])]);
        assert!(Conv2dInt8 { most: Some(-1), ..limited }.check().is_err());
    }

    #[test]
    fn a_bias_of_floats_is_added_to_scaled_sums() {
        let plain = Conv2dInt8::new([1, 1, 1, 3], [1, 1, 1, 1], DType::I8, DType::I8);
        let op = Conv2dInt8 { bias: true, bias_type: DType::F32, output_zero: -3, ..plain };
        let inputs = [
            Values::Int(vec![1, 2, -128]),
            Values::Int(vec![3]),
            Values::Float(vec![0.25]),
            Values::Float(vec![0.25]),
        ];
        assert_eq!(op.check(), Ok(()));
        assert_eq!(op.reference(&inputs), [Values::Int(vec![-2, -1, -99])]);
        assert!(Conv2dInt8 { out: DType::I32, output_zero: 0, ..op.clone() }.check().is_err());
        assert!(Conv2dInt8 { bias_type: DType::F16, ..op }.check().is_err());
    }
}
