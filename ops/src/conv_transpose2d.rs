//! The transposed convolution of images: `out[n, o, y, x] = activation(bias[o] + sum over c, ky, kx of input[n, c, iy,
//! ix] * filter[c, o, ky, kx])`, for the taps with `iy * stride = y + pad - ky * dilation`, and so in x.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    Activation, DType, Op, TensorDesc, Tolerance, Values,
    conv2d::{one, ones},
    convolution::largest_term,
    dtype::f32,
};

/// Transposed convolution of images, as ONNX `ConvTranspose`; all tensors are channels before rows. Sums are `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvTranspose2d {
    /// Images, channels, rows, columns.
    pub input: [Size; 4],
    /// Channels, filters of a group, rows, columns.
    pub filter: [u64; 4],
    /// Rows and columns of the result from one element to the next.
    #[serde(default = "ones")]
    pub strides: [u64; 2],
    /// Rows and columns of the result from one tap to the next.
    #[serde(default = "ones")]
    pub dilations: [u64; 2],
    /// What is cut off the result: top, left, bottom, right.
    #[serde(default)]
    pub pads: [u64; 4],
    /// Rows and columns that are added at the bottom and right.
    #[serde(default)]
    pub output_padding: [u64; 2],
    /// Groups of channels, each with its filters.
    #[serde(default = "one")]
    pub groups: u64,
    /// Type of all tensors: `f32` or `f16`.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Whether there is a third input with a value for each filter.
    #[serde(default)]
    pub bias: bool,
    /// What is applied to results.
    #[serde(default)]
    pub activation: Activation,
}

/// No size may be more, so that kernels can count with 32 bits, also in differences.
const LIMIT: u64 = 1 << 14;

/// The largest length of a result that data decide.
const LENGTH: u64 = 1 << 30;

impl ConvTranspose2d {
    /// A transposed convolution of one group, without padding, bias and activation.
    pub fn new(input: [impl Into<Size>; 4], filter: [u64; 4], strides: [u64; 2], dtype: DType) -> Self {
        ConvTranspose2d {
            input: input.map(Into::into),
            filter,
            strides,
            dilations: ones(),
            pads: [0; 4],
            output_padding: [0; 2],
            groups: 1,
            dtype,
            bias: false,
            activation: Activation::None,
        }
    }

    /// Rows and columns of the result; none where the padding cuts off more than there is.
    fn size(&self) -> Option<[Size; 2]> {
        let size = |d: usize| {
            let reach = self.dilations[d] * (self.filter[d + 2] - 1) + 1;
            let all = (self.input[d + 2] - 1) * self.strides[d] + reach + self.output_padding[d];
            let rest = all - (self.pads[d] + self.pads[d + 2]);
            // Of nothing that data decide, nothing is made.
            (rest.is_data() || rest >= 0).then(|| if rest.is_data() { rest.max(0) } else { rest })
        };
        Some([size(0)?, size(1)?])
    }

    /// Dimensions of the result.
    pub fn output_dims(&self) -> [Size; 4] {
        let [rows, columns] = self.size().unwrap_or_default();
        [self.input[0], Size::from(self.filter[1] * self.groups), rows, columns]
    }

    /// Channels of a group.
    pub fn channels(&self) -> u64 {
        self.input[1].exact() / self.groups
    }

    /// The element that a tap meets.
    fn element(&self, d: usize, place: u64, tap: u64) -> Option<u64> {
        let distance = (place + self.pads[d]).checked_sub(tap * self.dilations[d])?;
        let at = distance / self.strides[d];
        (distance % self.strides[d] == 0 && self.input[d + 2] > at).then_some(at)
    }

    fn sum(&self, [image, filter, row, column]: [u64; 4], inputs: &[Values]) -> f64 {
        let ([_, all, height, width], [_, filters, rows, columns]) =
            (self.input.map(Size::exact), self.filter);
        let mut sum = if self.bias { inputs[2].float(filter as usize) } else { 0.0 };
        for (ky, kx) in (0..rows).flat_map(|ky| (0..columns).map(move |kx| (ky, kx))) {
            let Some((y, x)) = self.element(0, row, ky).zip(self.element(1, column, kx)) else { continue };
            for c in 0..self.channels() {
                let channel = filter / filters * self.channels() + c;
                let at = ((image * all + channel) * height + y) * width + x;
                let weight = ((channel * filters + filter % filters) * rows + ky) * columns + kx;
                sum += inputs[0].float(at as usize) * inputs[1].float(weight as usize);
            }
        }
        sum
    }
}

#[cfg(any(test, feature = "testing"))]
fn samples_of(dtype: DType) -> Vec<ConvTranspose2d> {
    let conv = |input: [u64; 4], filter, strides| ConvTranspose2d::new(input, filter, strides, dtype);
    let base = conv([2, 6, 7, 9], [6, 5, 3, 3], [2, 2]);
    let leaky = Activation::LeakyRelu(crate::Slope::new(0.2).expect("above 0"));
    vec![
        conv([1, 1, 1, 1], [1, 1, 1, 1], [1, 1]),
        base.clone(),
        ConvTranspose2d { pads: [1; 4], output_padding: [1, 1], bias: true, ..base.clone() },
        ConvTranspose2d { dilations: [2, 3], pads: [0, 2, 1, 0], strides: [3, 2], ..base.clone() },
        ConvTranspose2d { dilations: [2, 2], activation: Activation::Relu, ..base.clone() },
        ConvTranspose2d { groups: 3, filter: [6, 4, 2, 2], ..base.clone() },
        ConvTranspose2d { activation: leaky, ..base.clone() },
        ConvTranspose2d { strides: [1, 1], pads: [1; 4], activation: Activation::Silu, ..base.clone() },
        // Strides beyond the kernel leave results without any term; cut off to nothing; no image.
        ConvTranspose2d { strides: [4, 5], bias: true, ..base.clone() },
        conv([1, 16, 14, 14], [16, 8, 4, 4], [2, 2]),
        ConvTranspose2d { pads: [1, 1, 1, 1], ..conv([1, 2, 1, 1], [2, 3, 2, 2], [1, 1]) },
        ConvTranspose2d { input: [0, 6, 2, 2].map(Size::constant), ..base },
        // So many terms that a product of matrices is worth its dispatches: taps that meet, and some that do not.
        ConvTranspose2d {
            pads: [1, 0, 2, 1],
            output_padding: [1, 0],
            bias: true,
            activation: Activation::Relu,
            ..conv([1, 48, 18, 17], [48, 20, 4, 4], [2, 2])
        },
        ConvTranspose2d { dilations: [1, 2], ..conv([2, 64, 17, 19], [64, 18, 3, 2], [2, 3]) },
        // One and two taps a stride apart, in groups, and behind them a function that is no limit.
        ConvTranspose2d {
            pads: [1, 0, 0, 4],
            output_padding: [1, 2],
            groups: 2,
            bias: true,
            activation: Activation::Silu,
            ..conv([2, 6, 9, 11], [6, 12, 3, 5], [2, 3])
        },
        ConvTranspose2d { pads: [1, 2, 2, 1], ..conv([1, 7, 13, 8], [7, 17, 3, 3], [3, 2]) },
    ]
}

impl Op for ConvTranspose2d {
    fn check(&self) -> Result<(), String> {
        if !matches!(self.dtype, DType::F32 | DType::F16) {
            return Err(format!("tensors are f32 or f16, not {}", self.dtype));
        }
        let positive = [&self.filter[2..], &self.strides, &self.dilations];
        let is_large = positive.into_iter().flatten().any(|v| !(1..=LIMIT).contains(v));
        // Kernels count a length that data decide with all their bits.
        let most = |(size, stride): (&Size, &u64)| if size.is_data() { LENGTH / stride } else { LIMIT };
        let mut sizes = self.input[2..].iter().zip(&self.strides);
        if is_large || sizes.any(|of| *of.0 < 1 || *of.0 > most(of)) {
            return Err(format!("rows, columns, strides and dilations are 1 to {LIMIT}"));
        }
        if self.pads.iter().chain(&self.output_padding).any(|v| *v > LIMIT) {
            return Err(format!("padding is at most {LIMIT}"));
        }
        if (0..2).any(|d| self.dilations[d] * self.filter[d + 2] * self.strides[d] > 1 << 28) {
            return Err("the kernel with its dilation and stride reaches too far".into());
        }
        if self.groups == 0 || !self.input[1].is_multiple_of(self.groups) || self.input[1] != self.filter[0] {
            let (channels, filters, groups) = (self.input[1], self.filter[0], self.groups);
            return Err(format!("{channels} channels and filters for {filters} do not make {groups} groups"));
        }
        self.size().map(|_| ()).ok_or_else(|| "the padding cuts off more than there is".into())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let mut inputs = vec![
            TensorDesc::new("input", self.dtype, self.input),
            TensorDesc::new("filter", self.dtype, self.filter),
        ];
        if self.bias {
            inputs.push(TensorDesc::new("bias", self.dtype, [self.filter[1] * self.groups]));
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, self.output_dims())]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        self.dtype.to_string()
    }

    fn flops(&self) -> f64 {
        let elements: f64 = self.input.iter().map(|d| d.as_f64()).product();
        2.0 * elements * (self.filter[1] * self.filter[2] * self.filter[3]) as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let [images, filters, rows, columns] = self.output_dims().map(Size::exact);
        let result = |index: u64| {
            let (at, column) = (index / columns, index % columns);
            let place = [at / rows / filters, at / rows % filters, at % rows, column];
            self.dtype.round(self.activation.apply(self.sum(place, inputs)))
        };
        vec![Values::Float((0..images * filters * rows * columns).map(result).collect())]
    }

    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let terms = self.channels() * self.filter[2] * self.filter[3] + u64::from(self.bias);
        let sum = Tolerance::of_sum(terms, largest_term(magnitudes), DType::F32, self.dtype);
        self.activation.after(sum)
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for ConvTranspose2d {
    fn samples() -> Vec<ConvTranspose2d> {
        [DType::F32, DType::F16].into_iter().flat_map(samples_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_spreads_elements() {
        let op = ConvTranspose2d::new([1, 1, 1, 2], [1, 1, 1, 3], [1, 2], DType::F32);
        let inputs = [Values::Float(vec![1.0, 10.0]), Values::Float(vec![1.0, 2.0, 3.0])];
        assert_eq!(op.reference(&inputs), [Values::Float(vec![1.0, 2.0, 13.0, 20.0, 30.0])]);
        let cut = ConvTranspose2d { pads: [0, 1, 0, 0], output_padding: [0, 1], ..op };
        assert_eq!(cut.reference(&inputs), [Values::Float(vec![2.0, 13.0, 20.0, 30.0, 0.0])]);
    }
}
