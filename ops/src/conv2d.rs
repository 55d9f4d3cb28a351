//! The convolution of images with float elements: `out[n, o, y, x] = activation(bias[o] + sum over c, ky, kx of input[n,
//! c, y * stride + ky * dilation - pad, …] * filter[o, c, ky, kx] + residual[n, o, y, x])`.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    Activation, DType, Op, Operation, TensorDesc, Tolerance, Values,
    convolution::{Convolution, largest_term},
    dtype::f32,
    epilogue, fragments,
    matmul::MatMul,
    runs::{self, Apart, Runs},
    window::{Layout, Window},
};

/// Convolution of images, with groups; depthwise is as many groups as channels. Sums are `f32`. Padding is of zeros
/// that are multiplied like elements: an infinite weight makes NaN of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv2d {
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
    /// Zeros around the image: top, left, bottom, right.
    #[serde(default)]
    pub pads: [u64; 4],
    /// Groups of channels, each with its filters.
    #[serde(default = "one")]
    pub groups: u64,
    /// Type of all tensors: `f32` or `f16`.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Whether there is a third input with a value for each filter.
    #[serde(default)]
    pub bias: bool,
    /// Whether there is a last input like the result, which is added to it.
    #[serde(default)]
    pub residual: bool,
    /// Whether it is added behind the activation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub residual_behind: bool,
    /// What is applied to results.
    #[serde(default)]
    pub activation: Activation,
    /// How images and filters lie.
    #[serde(default)]
    pub layout: Layout,
    /// Whether the filters are the right operand of a product, with a row for each tap and channel, in the order of [`crate::fragments`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub filter_fragments: bool,
    /// How the images lies in a larger tensor, which is read instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Runs>,
    /// Where the result is written in a larger tensor, of which the rest stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Runs>,
}

pub(super) fn one() -> u64 {
    1
}

pub(super) fn ones() -> [u64; 2] {
    [1, 1]
}

impl Conv2d {
    /// A convolution of one group without padding, bias and activation.
    pub fn new(input: [impl Into<Size>; 4], filter: [u64; 4], dtype: DType) -> Self {
        Conv2d {
            input: input.map(Into::into),
            filter,
            strides: ones(),
            dilations: ones(),
            pads: [0; 4],
            groups: 1,
            dtype,
            bias: false,
            residual: false,
            residual_behind: false,
            activation: Activation::None,
            layout: Layout::Nchw,
            filter_fragments: false,
            read: None,
            written: None,
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

    /// The product of images by filters that it is where a filter covers its image. Both have the same inputs and results, which lie
    /// alike.
    pub fn product(&self) -> Option<MatMul> {
        let shape = self.shape().ok().filter(Convolution::is_product)?;
        Some(MatMul {
            rhs_transposed: self.layout == Layout::Nchw,
            rhs_fragments: self.filter_fragments,
            bias: self.bias,
            residual: self.residual,
            residual_behind: self.residual_behind,
            activation: self.activation,
            read: self.read,
            written: self.written,
            ..MatMul::new(shape.images, shape.filters, shape.depth(), self.dtype, self.dtype)
        })
    }

    /// The images by themselves.
    fn images(&self) -> TensorDesc {
        TensorDesc::new("input", self.dtype, self.input)
    }

    /// The result by itself.
    pub fn result(&self) -> TensorDesc {
        let dims = self.known().map_or([Size::constant(0); 4], |shape| shape.output_dims());
        TensorDesc::new("out", self.dtype, dims)
    }

    /// Whether filters in fragments are possible.
    fn check_fragments(&self) -> Result<(), String> {
        let shape = self.shape()?;
        let is_whole = [shape.depth(), shape.filters].iter().all(|size| size.is_multiple_of(fragments::SIDE));
        if self.dtype == DType::F16 && self.layout == Layout::Nhwc && is_whole {
            return Ok(());
        }
        let side = fragments::SIDE;
        Err(format!(
            "filters in fragments are those of f16 for channels that lie last, with multiples of {side} terms and filters in a group"
        ))
    }

    /// The shape of an operation that was checked.
    fn known(&self) -> Option<Convolution> {
        self.shape().ok()
    }
}

#[cfg(any(test, feature = "testing"))]
fn samples_of(dtype: DType) -> Vec<Conv2d> {
    let conv = |input: [u64; 4], filter| Conv2d::new(input, filter, dtype);
    let same = |c: Conv2d| Conv2d { pads: [1, 1, 1, 1], ..c };
    let wide = same(conv([2, 5, 9, 37], [13, 5, 3, 3]));
    let mut samples = vec![
        conv([1, 1, 1, 1], [1, 1, 1, 1]),
        wide.clone(),
        Conv2d { strides: [2, 2], bias: true, activation: Activation::Relu6, ..wide.clone() },
        Conv2d { dilations: [2, 3], pads: [1, 4, 2, 0], bias: true, ..wide.clone() },
        // Pointwise, with and without a stride, and more pixels than a tile.
        Conv2d { bias: true, activation: Activation::Silu, ..conv([1, 20, 13, 11], [35, 20, 1, 1]) },
        conv([2, 8, 8, 8], [16, 8, 1, 1]),
        Conv2d { strides: [2, 2], ..conv([1, 17, 9, 9], [6, 17, 1, 1]) },
        // Pointwise with limits, several images and groups; planes and filters that are whole quads, and such that are not.
        Conv2d { bias: true, activation: Activation::Relu6, ..conv([2, 20, 6, 6], [30, 20, 1, 1]) },
        Conv2d { bias: true, activation: Activation::Relu, groups: 2, ..conv([1, 14, 5, 7], [48, 7, 1, 1]) },
        // More filters and places than a tile, sums that are no multiple of one.
        same(Conv2d { bias: true, ..conv([1, 3, 9, 8], [67, 3, 3, 3]) }),
        Conv2d { groups: 2, strides: [2, 1], ..conv([2, 14, 7, 11], [34, 7, 2, 3]) },
        // As many tiles as kernels for large results want, with few results in each; sums in several parts.
        Conv2d { bias: true, activation: Activation::Relu6, ..conv([52, 8, 9, 8], [130, 8, 1, 1]) },
        same(Conv2d { strides: [2, 2], ..conv([16, 24, 13, 17], [80, 24, 3, 3]) }),
        // So many terms that workgroups share them, in parts that are not all of one length.
        same(Conv2d { bias: true, activation: Activation::Silu, ..conv([2, 100, 5, 4], [35, 100, 3, 3]) }),
        // Several blocks of channels, tiles of filters and of places, and rows of results that are not as wide as those of the image.
        Conv2d {
            dilations: [2, 1],
            pads: [1, 2, 0, 1],
            bias: true,
            activation: Activation::Silu,
            ..conv([2, 40, 11, 13], [70, 40, 2, 3])
        },
        // Depthwise, with one and two filters for each channel, and grouped.
        same(Conv2d {
            groups: 6,
            bias: true,
            activation: Activation::Relu,
            ..conv([2, 6, 15, 17], [6, 1, 3, 3])
        }),
        same(Conv2d { groups: 3, strides: [2, 2], ..conv([1, 3, 14, 19], [3, 1, 3, 3]) }),
        Conv2d { groups: 4, pads: [2, 2, 2, 2], ..conv([1, 4, 7, 6], [8, 1, 5, 5]) },
        Conv2d {
            groups: 3,
            bias: true,
            strides: [2, 2],
            pads: [1, 2, 2, 1],
            ..conv([2, 3, 13, 16], [3, 1, 5, 5])
        },
        same(Conv2d {
            groups: 2,
            bias: true,
            activation: Activation::Relu6,
            ..conv([1, 2, 9, 12], [2, 1, 7, 7])
        }),
        Conv2d { groups: 2, strides: [2, 2], pads: [3, 3, 3, 3], ..conv([1, 2, 17, 15], [4, 1, 7, 7]) },
        Conv2d { groups: 2, strides: [3, 1], dilations: [1, 2], ..conv([1, 2, 13, 19], [2, 1, 4, 6]) },
        same(Conv2d { groups: 2, activation: Activation::HardSwish, ..conv([1, 6, 8, 7], [10, 3, 3, 3]) }),
        // Groups of some channels: several of them in sixteen filters, with and without rest, and more channels than sixteen.
        same(Conv2d { groups: 5, bias: true, residual: true, ..conv([2, 40, 9, 19], [40, 8, 3, 3]) }),
        same(Conv2d {
            groups: 2,
            strides: [2, 1],
            bias: true,
            activation: Activation::Silu,
            ..conv([1, 48, 10, 11], [48, 24, 3, 3])
        }),
        Conv2d { groups: 5, dilations: [1, 2], pads: [2, 3, 1, 4], ..conv([1, 20, 13, 35], [10, 4, 5, 3]) },
        // Few places of several images, in groups of many filters; and points.
        same(Conv2d {
            groups: 2,
            strides: [2, 2],
            bias: true,
            residual: true,
            activation: Activation::HardSwish,
            ..conv([3, 36, 5, 5], [40, 18, 3, 3])
        }),
        Conv2d { groups: 2, bias: true, ..conv([3, 68, 2, 2], [34, 34, 1, 1]) },
        // A kernel as in the first layer of networks, and one of even size with padding on one side.
        Conv2d {
            strides: [2, 2],
            pads: [3, 3, 3, 3],
            bias: true,
            activation: Activation::Relu,
            ..conv([1, 3, 21, 26], [30, 3, 7, 7])
        },
        Conv2d { pads: [0, 0, 1, 1], activation: Activation::Sigmoid, ..conv([1, 2, 6, 6], [4, 2, 2, 2]) },
        // What is added to results: through every kernel above, with and without a function that is no limit.
        same(Conv2d { residual: true, activation: Activation::Relu, ..conv([2, 16, 9, 11], [16, 16, 3, 3]) }),
        same(Conv2d { residual: true, bias: true, strides: [2, 2], ..conv([1, 18, 9, 14], [32, 18, 3, 3]) }),
        Conv2d {
            residual: true,
            bias: true,
            activation: Activation::Relu6,
            ..conv([2, 20, 6, 6], [30, 20, 1, 1])
        },
        Conv2d {
            residual: true,
            groups: 2,
            activation: Activation::GeluTanh,
            ..conv([1, 14, 5, 7], [48, 7, 1, 1])
        },
        same(Conv2d { activation: Activation::Gelu, ..conv([1, 8, 10, 9], [17, 8, 3, 3]) }),
        same(Conv2d {
            residual: true,
            bias: true,
            activation: Activation::Tanh,
            ..conv([2, 100, 5, 4], [35, 100, 3, 3])
        }),
        same(Conv2d { residual: true, groups: 6, ..conv([1, 6, 15, 17], [6, 1, 3, 3]) }),
        Conv2d {
            strides: [2, 2],
            pads: [3, 3, 3, 3],
            residual: true,
            activation: Activation::Silu,
            ..conv([1, 3, 21, 26], [30, 3, 7, 7])
        },
        // One place: a product of few rows, with long and short sums, and a kernel as large as the image.
        Conv2d { bias: true, activation: Activation::Relu, ..conv([1, 100, 1, 1], [24, 100, 1, 1]) },
        Conv2d {
            bias: true,
            residual: true,
            activation: Activation::Sigmoid,
            ..conv([2, 9, 1, 1], [33, 9, 1, 1])
        },
        Conv2d { bias: true, activation: Activation::Silu, ..conv([3, 40, 3, 5], [18, 40, 3, 5]) },
        Conv2d { dilations: [2, 3], ..conv([1, 1100, 1, 1], [6, 1100, 1, 1]) },
        // Places of 1x1 that are no whole words, with channels that are.
        Conv2d {
            bias: true,
            residual: true,
            activation: Activation::Relu,
            ..conv([2, 40, 7, 7], [33, 40, 1, 1])
        },
        Conv2d { bias: true, activation: Activation::HardSwish, ..conv([1, 72, 6, 10], [70, 72, 1, 1]) },
        Conv2d { bias: true, ..conv([3, 296, 4, 6], [20, 296, 1, 1]) },
        // Windows with strides of 1 and channels in eights, with dilation and padding of one side, and several images.
        same(Conv2d {
            bias: true,
            residual: true,
            activation: Activation::Relu,
            ..conv([2, 40, 7, 7], [33, 40, 3, 3])
        }),
        Conv2d { dilations: [2, 3], pads: [1, 3, 3, 3], bias: true, ..conv([1, 16, 9, 13], [20, 16, 3, 3]) },
        // The same where most of the neighbours a dilation apart are there, and few of them are not.
        Conv2d {
            dilations: [2, 3],
            pads: [1, 3, 3, 2],
            bias: true,
            groups: 2,
            ..conv([2, 6, 23, 25], [28, 3, 3, 3])
        },
        Conv2d { pads: [0, 2, 1, 2], ..conv([1, 8, 11, 10], [18, 8, 2, 5]) },
        same(Conv2d { activation: Activation::Silu, ..conv([1, 72, 16, 14], [70, 72, 3, 3]) }),
        // More padding than image; no place, no image, no filter, no channel.
        Conv2d { pads: [4, 4, 4, 4], ..conv([1, 2, 1, 2], [3, 2, 3, 3]) },
        Conv2d { residual: true, ..conv([1, 2, 2, 2], [3, 2, 3, 3]) },
        conv([0, 2, 4, 4], [3, 2, 3, 3]),
        conv([1, 2, 4, 4], [0, 2, 3, 3]),
        Conv2d { bias: true, ..conv([1, 0, 4, 4], [3, 0, 3, 3]) },
    ];
    let last = Conv2d { layout: Layout::Nhwc, ..conv([2, 9, 10, 5], [3, 3, 5, 11]) };
    samples.push(Conv2d { pads: [1, 1, 1, 1], bias: true, activation: Activation::Relu, ..last.clone() });
    let leaky = Activation::LeakyRelu(crate::Slope::new(0.1).expect("above 0"));
    samples.push(Conv2d { pads: [1, 1, 1, 1], bias: true, activation: leaky, ..last.clone() });
    samples.push(Conv2d { bias: true, activation: leaky, ..conv([1, 20, 13, 11], [35, 20, 1, 1]) });
    samples.push(same(Conv2d { residual: true, activation: leaky, ..conv([1, 72, 16, 14], [72, 72, 3, 3]) }));
    for activation in [Activation::Mish, Activation::QuickGelu] {
        samples.push(Conv2d { bias: true, activation, ..conv([1, 20, 13, 11], [35, 20, 1, 1]) });
        samples.push(same(Conv2d { bias: true, activation, ..conv([1, 12, 9, 8], [12, 12, 3, 3]) }));
    }
    samples.push(same(Conv2d { groups: 12, activation: leaky, ..conv([1, 12, 9, 8], [12, 1, 3, 3]) }));
    samples.push(Conv2d { groups: 5, strides: [1, 2], filter: [3, 3, 1, 10], ..last.clone() });
    samples.push(Conv2d { filter: [1, 1, 5, 11], residual: true, ..last.clone() });
    samples.push(Conv2d { filter: [3, 2, 5, 33], dilations: [1, 2], ..last });
    samples
}

impl Op for Conv2d {
    fn check(&self) -> Result<(), String> {
        if !matches!(self.dtype, DType::F32 | DType::F16) {
            return Err(format!("tensors are f32 or f16, not {}", self.dtype));
        }
        self.shape()?;
        if self.residual_behind && !self.residual {
            return Err("there is no tensor that is added behind the activation".into());
        }
        if self.filter_fragments {
            self.check_fragments()?;
        }
        self.read.map_or(Ok(()), |runs| runs.check(&self.images()))?;
        self.written.map_or(Ok(()), |runs| runs.check(&self.result()))
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let mut inputs = vec![
            self.read.map_or(self.images(), |runs| runs.whole(self.images())),
            TensorDesc::new("filter", self.dtype, self.filter),
        ];
        if self.bias {
            let filters = if self.layout == Layout::Nchw { self.filter[0] } else { self.filter[3] };
            inputs.push(TensorDesc::new("bias", self.dtype, [filters]));
        }
        if self.residual {
            inputs.push(TensorDesc { name: "residual", ..self.result() });
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![self.written.map_or(self.result(), |runs| runs.whole(self.result()))]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        self.dtype.to_string()
    }

    fn flops(&self) -> f64 {
        self.known().map_or(0.0, |shape| shape.flops())
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.reference_over(inputs, &runs::zeros(&self.outputs()))
    }

    fn updates(&self, _output: usize) -> bool {
        self.written.is_some()
    }

    fn apart(&self) -> Option<Apart> {
        Apart::of(
            Operation::Conv2d(Conv2d { read: None, written: None, ..self.clone() }),
            self.read,
            self.written,
        )
    }

    fn reference_over(&self, inputs: &[Values], before: &[Values]) -> Vec<Values> {
        let inputs = &runs::first_taken(self.read, inputs);
        let Some(shape) = self.known() else { return Vec::new() };
        let residual = inputs.last().filter(|_| self.residual);
        let [terms, filters] = [shape.depth() as usize, (shape.groups * shape.filters) as usize];
        let weight_at = |weight: usize| match self.filter_fragments {
            true => fragments::place(terms, weight / filters, weight % filters),
            false => weight,
        };
        let result = |(at, place)| {
            let start = if self.bias { inputs[2].float(shape.filter_of(place)) } else { 0.0 };
            let residual = residual.map_or(0.0, |residual| residual.float(at));
            let (before, behind) = epilogue::sides(residual, self.residual_behind);
            let start = start + before;
            let sum = shape.terms(place).fold(start, |sum, (at, weight)| {
                sum + at.map_or(0.0, |at| inputs[0].float(at)) * inputs[1].float(weight_at(weight))
            });
            self.dtype.round(self.activation.apply(sum) + behind)
        };
        let results = vec![Values::Float(shape.places().enumerate().map(result).collect())];
        runs::first_put(self.written, results, before)
    }

    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let terms =
            self.known().map_or(0, |shape| shape.depth()) + u64::from(self.bias) + u64::from(self.residual);
        let largest = largest_term(magnitudes);
        let mut sum = Tolerance::of_sum(terms, largest, DType::F32, self.dtype);
        sum.absolute +=
            epilogue::rounded_between(self.dtype, self.residual, self.activation, terms.into(), largest);
        self.activation.after(sum)
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Conv2d {
    fn samples() -> Vec<Conv2d> {
        [DType::F32, DType::F16].into_iter().flat_map(samples_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_convolves() {
        let op =
            Conv2d { pads: [1, 1, 0, 0], bias: true, ..Conv2d::new([1, 1, 2, 2], [1, 1, 2, 2], DType::F32) };
        let floats = |v: &[f64]| Values::Float(v.to_vec());
        let (input, filter) = (floats(&[1.0, 2.0, 3.0, 4.0]), floats(&[1.0, 10.0, 100.0, 1000.0]));
        let expected = floats(&[1000.5, 2100.5, 3010.5, 4321.5]);
        assert_eq!(op.reference(&[input.clone(), filter.clone(), floats(&[0.5])])[0], expected);
        let added = Conv2d { residual: true, activation: Activation::Relu, ..op.clone() };
        let residual = floats(&[-2000.0, 1.0, 0.0, 1.0]);
        let expected_sums = floats(&[0.0, 2101.5, 3010.5, 4322.5]);
        assert_eq!(
            added.reference(&[input.clone(), filter.clone(), floats(&[0.5]), residual])[0],
            expected_sums
        );
        let last = Conv2d {
            layout: Layout::Nhwc,
            input: [1, 2, 2, 1].map(Size::constant),
            filter: [2, 2, 1, 1],
            ..op
        };
        assert_eq!(last.reference(&[input, filter, floats(&[0.5])])[0], expected);
    }

    #[test]
    fn groups_have_their_own_channels() {
        let op = Conv2d { groups: 2, ..Conv2d::new([1, 2, 1, 1], [4, 1, 1, 1], DType::F32) };
        let inputs = [Values::Float(vec![1.0, 2.0]), Values::Float(vec![3.0, 4.0, 5.0, 6.0])];
        assert_eq!(op.reference(&inputs), [Values::Float(vec![3.0, 4.0, 10.0, 12.0])]);
        let wrong = Conv2d { groups: 3, ..op };
        assert!(wrong.check().unwrap_err().contains("3 groups"));
    }
}
