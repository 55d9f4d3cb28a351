//! The convolution of signals: that of images with one row.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    Activation, DType, Op, TensorDesc, Tolerance, Values,
    conv2d::{Conv2d, one},
    dtype::f32,
    window::Layout,
};

/// Convolution of signals, as [`Conv2d`] with one row: the same kernels, types and rules of padding.
///
/// [`Conv2d`]: super::conv2d::Conv2d
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv1d {
    /// Signals, channels, elements; with `nhwc` signals, elements, channels.
    pub input: [Size; 3],
    /// Filters, channels of a group, taps; with `nhwc` taps, channels of a group, filters.
    pub filter: [u64; 3],
    /// Elements from one place of the filter to the next.
    #[serde(default = "one")]
    pub stride: u64,
    /// Elements from one tap to the next.
    #[serde(default = "one")]
    pub dilation: u64,
    /// Zeros before and after the signal.
    #[serde(default)]
    pub pads: [u64; 2],
    /// Groups of channels, each with its filters.
    #[serde(default = "one")]
    pub groups: u64,
    /// Type of all tensors: `f32` or `f16`.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Whether there is a third input with a value for each filter.
    #[serde(default)]
    pub bias: bool,
    /// Whether there is a last input like the result, which is added to it before the activation.
    #[serde(default)]
    pub residual: bool,
    /// What is applied to results.
    #[serde(default)]
    pub activation: Activation,
    /// How signals and filters lie; there are no rows.
    #[serde(default)]
    pub layout: Layout,
}

impl Conv1d {
    /// A convolution of one group without padding, bias and activation.
    pub fn new(input: [impl Into<Size>; 3], filter: [u64; 3], dtype: DType) -> Self {
        let (activation, layout) = (Activation::None, Layout::Nchw);
        Conv1d {
            input: input.map(Into::into),
            filter,
            stride: 1,
            dilation: 1,
            pads: [0; 2],
            groups: 1,
            dtype,
            bias: false,
            residual: false,
            activation,
            layout,
        }
    }

    /// The same with one row.
    pub fn images(&self) -> Conv2d {
        let ([a, b, c], [d, e, f]) = (self.input, self.filter);
        let (input, filter) = match self.layout {
            Layout::Nchw => ([a, b, 1.into(), c], [d, e, 1, f]),
            Layout::Nhwc => ([a, 1.into(), b, c], [1, d, e, f]),
        };
        Conv2d {
            input,
            filter,
            strides: [1, self.stride],
            dilations: [1, self.dilation],
            pads: [0, self.pads[0], 0, self.pads[1]],
            groups: self.groups,
            dtype: self.dtype,
            bias: self.bias,
            residual: self.residual,
            residual_behind: false,
            activation: self.activation,
            layout: self.layout,
            filter_fragments: false,
            read: None,
            written: None,
        }
    }
}

impl Op for Conv1d {
    fn check(&self) -> Result<(), String> {
        self.images().check()
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let mut inputs = self.images().inputs();
        inputs[0].dims = self.input.into();
        inputs[1].dims = self.filter.map(Into::into).into();
        if self.residual {
            let last = inputs.len() - 1;
            inputs[last].dims = self.outputs().remove(0).dims;
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        let mut outputs = self.images().outputs();
        outputs[0].dims.remove(if self.layout == Layout::Nchw { 2 } else { 1 });
        outputs
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        self.images().signature()
    }

    fn flops(&self) -> f64 {
        self.images().flops()
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.images().reference(inputs)
    }

    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        self.images().tolerance(magnitudes)
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Conv1d {
    fn samples() -> Vec<Conv1d> {
        let of = |dtype| {
            let conv = |input: [u64; 3], filter| Conv1d::new(input, filter, dtype);
            let last = Conv1d { layout: Layout::Nhwc, ..conv([2, 30, 5], [4, 5, 9]) };
            [
                conv([1, 1, 1], [1, 1, 1]),
                Conv1d { pads: [1, 1], bias: true, ..conv([2, 6, 101], [13, 6, 3]) },
                Conv1d { stride: 2, dilation: 2, pads: [3, 0], ..conv([1, 4, 67], [6, 4, 5]) },
                Conv1d {
                    groups: 8,
                    pads: [3, 3],
                    activation: Activation::Silu,
                    ..conv([1, 8, 70], [8, 1, 4])
                },
                Conv1d {
                    bias: true,
                    residual: true,
                    activation: Activation::Relu,
                    ..conv([1, 6, 50], [9, 6, 3])
                },
                Conv1d { bias: true, ..last },
                Conv1d {
                    pads: [1, 1],
                    activation: Activation::LeakyRelu(crate::Slope::new(0.1).expect("above 0")),
                    ..conv([1, 6, 50], [9, 6, 3])
                },
                conv([1, 2, 2], [2, 2, 3]),
            ]
        };
        [DType::F32, DType::F16].into_iter().flat_map(of).collect()
    }
}
