//! Convolutions and pooling of images whose channels lie last, with filters of rows x columns x channels of a group x filters.

use halite_ops::{
    DType, Operation,
    conv2d::Conv2d,
    conv2d_int8::Conv2dInt8,
    expression::{Function, Operand, Scalar},
    pool2d::{Pool2d, Pooling},
    window::Layout,
};

use super::{Builder, Result, Sliding};
use crate::graph::{ElementType, TensorId};

/// Bytes to convolve, less what counts as zero in them.
#[derive(Clone, Copy, Debug)]
pub struct BytesLess {
    /// Images or filters.
    pub tensor: TensorId,
    /// What counts as zero.
    pub zero: i32,
}

impl Builder {
    /// Convolution of `f32` or `f16`, whose sums are `f32`, with a bias for each filter; all tensors are of one type.
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn conv_nhwc(
        &mut self,
        x: TensorId,
        filter: TensorId,
        bias: Option<TensorId>,
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        let (input, taps) = (self.four(x)?, self.four(filter)?);
        let (strides, dilations, pads) = self.planar(sliding)?;
        let dtype = self.element(x).storage();
        let bias_given = bias.is_some();
        let made = Operation::Conv2d(Conv2d {
            strides,
            dilations,
            pads,
            groups,
            bias: bias_given,
            layout: Layout::Nhwc,
            ..Conv2d::new(input, taps, dtype)
        });
        let inputs: Vec<_> = [x, filter].into_iter().chain(bias).collect();
        self.checked(made, &inputs, dtype)
    }

    /// Convolution of bytes with filters of `i8`, each less its zero point, as exact `i32` sums that wrap; with an `i32` bias
    /// for each filter. Padding adds nothing.
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn conv_of_bytes_nhwc(
        &mut self,
        x: BytesLess,
        filter: BytesLess,
        bias: Option<TensorId>,
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        let sums = self.byte_sums(x, filter.tensor, bias, sliding, groups)?;
        if filter.zero == 0 {
            return Ok(sums);
        }
        // The sum of (w - z) * x is that of w * x less z times that of x, which a filter of ones gives for each group.
        let [rows, columns, channels, filters] = self.four(filter.tensor)?;
        let one = self.float(DType::I8, 1.0)?;
        let ones = self.expand(one, &[rows, columns, channels, groups])?;
        let of_group = self.byte_sums(x, ones, None, sliding, groups)?;
        let out = self.four(sums)?;
        let each = filters / groups.max(1);
        let apart = self.reshape(of_group, &[out[0], out[1], out[2], groups, 1])?;
        let grouped = self.reshape(sums, &[out[0], out[1], out[2], groups, each])?;
        let factor = Operand::Constant(Scalar::Int(i64::from(filter.zero), DType::I32));
        let made = self.map(&[grouped, apart], DType::I32, |p, x| {
            let product = p.call(Function::Mul, &[x[1], factor]);
            p.call(Function::Sub, &[x[0], product])
        })?;
        self.reshape(made, &out)
    }

    fn byte_sums(
        &mut self,
        x: BytesLess,
        filter: TensorId,
        bias: Option<TensorId>,
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        let (input, taps) = (self.four(x.tensor)?, self.four(filter)?);
        let (strides, dilations, pads) = self.planar(sliding)?;
        let bias_given = bias.is_some();
        let data = self.element(x.tensor).storage();
        let made = Operation::Conv2dInt8(Conv2dInt8 {
            strides,
            dilations,
            pads,
            groups,
            input_zero: x.zero,
            bias: bias_given,
            layout: Layout::Nhwc,
            ..Conv2dInt8::new(input, taps, data, DType::I32)
        });
        let inputs: Vec<_> = [x.tensor, filter].into_iter().chain(bias).collect();
        self.checked(made, &inputs, DType::I32)
    }

    /// Pooling of `f32` or `f16`. Padding counts for nothing, also in means, if `kind` is not one that counts it.
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn pool_nhwc(
        &mut self,
        x: TensorId,
        kind: Pooling,
        kernel: [u64; 2],
        sliding: &Sliding,
    ) -> Result<TensorId> {
        let input = self.four(x)?;
        let (strides, dilations, pads) = self.planar(sliding)?;
        let dtype = self.element(x).storage();
        let made = Operation::Pool2d(Pool2d {
            strides,
            dilations,
            pads,
            layout: Layout::Nhwc,
            ..Pool2d::new(input, kernel, kind, dtype)
        });
        self.checked(made, &[x], dtype)
    }

    /// An operation with one output of its own dimensions.
    fn checked(&mut self, made: Operation, inputs: &[TensorId], dtype: DType) -> Result<TensorId> {
        crate::backend::check(&made).map_err(|reason| self.invalid(reason))?;
        let dims = made.outputs()[0].dims.clone();
        self.kernel1(made, inputs, ElementType::Of(dtype), &dims)
    }

    fn four(&self, tensor: TensorId) -> Result<[u64; 4]> {
        let what = || self.invalid(format!("{} is no image or filter", self.describe(&[tensor])));
        self.dims(tensor).try_into().map_err(|_| what())
    }

    /// Strides, dilations and pads over rows and columns.
    fn planar(&self, sliding: &Sliding) -> Result<([u64; 2], [u64; 2], [u64; 4])> {
        if !sliding.has_dims(2) {
            return Err(self.invalid(format!("{sliding:?} slides not over rows and columns")));
        }
        let two = |list: &[u64]| [list[0], list[1]];
        let [(top, bottom), (left, right)] = [sliding.pads[0], sliding.pads[1]];
        Ok((two(&sliding.strides), two(&sliding.dilations), [top, left, bottom, right]))
    }
}
