//! Reductions over any axes, running sums, and places of extremes.

use halite_ops::{
    DType, Operation,
    arg_reduce::ArgReduce,
    cumulative_sum::CumulativeSum,
    expression::{Function, Operand, Scalar},
    reduce::{Reduce, ReduceKind},
};
use halite_sizes::Size;

use super::{Builder, Result, order::Line, types::FLOATS};
use crate::graph::{ElementType, TensorId};

/// Types that kernels reduce.
const REDUCED: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::I64, DType::U64];

/// Types of which kernels make running sums.
const SUMMED: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::I32];

impl Builder {
    /// Reduces axes, which stay with one element where `keep`. The result has the type of the tensor. Floats are summed as
    /// `f32`, and `f64` is computed so; integers wrap, small ones at 32 bits, and means and norms of them are truncated.
    ///
    /// # Errors
    /// An axis is none of the tensor's.
    pub fn reduce(
        &mut self,
        kind: ReduceKind,
        tensor: TensorId,
        axes: &[usize],
        keep: bool,
    ) -> Result<TensorId> {
        let dims = self.sizes(tensor).to_vec();
        if let Some(axis) = axes.iter().find(|axis| **axis >= dims.len()) {
            let what = self.describe(&[tensor]);
            return Err(self.invalid(format!("axis {axis} of {what} is reduced, which has {}", dims.len())));
        }
        let one = Size::constant(1);
        let kept: Vec<Size> =
            (0..dims.len()).map(|i| if axes.contains(&i) { one } else { dims[i] }).collect();
        let left: Vec<Size> = (0..dims.len()).filter(|i| !axes.contains(i)).map(|i| dims[i]).collect();
        let element = self.element(tensor);
        let own = self.in_type_of(tensor, REDUCED, "a reduction")?;
        let (own, dims, range) = self.joined_axes(own, axes)?;
        let (outer, length, inner) = spans(&dims, range);
        let made = self.reduce_line(kind, own, Line { outer, length, inner })?;
        let made = self.cast(made, element)?;
        self.reshape_to(made, if keep { &kept } else { &left })
    }

    /// The tensor with the axes as neighbours: itself, its dimensions and the range of the axes. Dimensions of one element
    /// in between do not matter.
    fn joined_axes(
        &mut self,
        tensor: TensorId,
        axes: &[usize],
    ) -> Result<(TensorId, Vec<Size>, (usize, usize))> {
        let dims = self.sizes(tensor).to_vec();
        let wide: Vec<usize> = (0..dims.len()).filter(|i| axes.contains(i) && dims[*i] != 1).collect();
        let Some((first, last)) = wide.first().copied().zip(wide.last().copied()) else {
            return Ok((tensor, dims, (0, 0)));
        };
        if (first..=last).all(|i| dims[i] == 1 || axes.contains(&i)) {
            return Ok((tensor, dims, (first, last + 1)));
        }
        let mut order: Vec<usize> = (0..dims.len()).filter(|i| !wide.contains(i)).collect();
        order.extend(&wide);
        let moved = self.transpose(tensor, &order)?;
        let dims = self.sizes(moved).to_vec();
        let range = (dims.len() - wide.len(), dims.len());
        Ok((moved, dims, range))
    }

    fn reduce_line(&mut self, kind: ReduceKind, tensor: TensorId, line: Line) -> Result<TensorId> {
        let dtype = self.element(tensor).storage();
        let of = |kind| {
            Operation::Reduce(Reduce {
                kind,
                outer: line.outer,
                length: line.length,
                inner: line.inner,
                dtype,
            })
        };
        let result = [line.outer, line.inner];
        if dtype.is_float() {
            return self.kernel1(of(kind), &[tensor], dtype.into(), &result);
        }
        let through_f32 = |b: &mut Self, kind| {
            let floats = b.cast(tensor, DType::F32)?;
            let made = b.reduce_line(kind, floats, line)?;
            b.cast(made, dtype)
        };
        match kind {
            ReduceKind::Mean => {
                let sum = self.kernel1(of(ReduceKind::Sum), &[tensor], dtype.into(), &result)?;
                let count = Operand::Constant(Scalar::Int(line.length.exact_signed(), dtype));
                self.map(&[sum], dtype, |p, x| p.call(Function::Div, &[x[0], count]))
            }
            ReduceKind::L2 | ReduceKind::LogSum | ReduceKind::LogSumExp => through_f32(self, kind),
            _ => self.kernel1(of(kind), &[tensor], dtype.into(), &result),
        }
    }

    /// The places, `i64`, of the largest or smallest elements along an axis, which stays with one element. Of equal ones the
    /// first, or the last.
    ///
    /// # Errors
    /// The axis is none of the tensor's, or has no elements.
    pub fn arg_reduce(
        &mut self,
        tensor: TensorId,
        axis: usize,
        smallest: bool,
        last: bool,
    ) -> Result<TensorId> {
        let line = self.line(tensor, axis)?;
        let mut dims = self.sizes(tensor).to_vec();
        dims[axis] = 1.into();
        let tensor = self.ordered(tensor)?;
        let (dtype, indices) = (self.element(tensor).storage(), DType::I64);
        let Line { outer, length, inner } = line;
        let made = ArgReduce { outer, length, inner, smallest, last, dtype, indices };
        self.kernel1(Operation::ArgReduce(made), &[tensor], indices.into(), &dims)
    }

    /// Sums of all elements up to each one along an axis; types as in [`Builder::reduce`].
    ///
    /// # Errors
    /// The axis is none of the tensor's.
    pub fn cumulative_sum(
        &mut self,
        tensor: TensorId,
        axis: usize,
        exclusive: bool,
        reverse: bool,
    ) -> Result<TensorId> {
        let Line { outer, length, inner } = self.line(tensor, axis)?;
        let (element, dims) = (self.element(tensor), self.sizes(tensor).to_vec());
        let own = self.in_type_of(tensor, SUMMED, "a running sum")?;
        let dtype = self.element(own).storage();
        let made = CumulativeSum { outer, length, inner, exclusive, reverse, dtype };
        let made = self.kernel1(Operation::CumulativeSum(made), &[own], dtype.into(), &dims)?;
        self.cast(made, element)
    }

    /// Mean and variance (without Bessel's correction) over axes, which stay with one element, as `f32`.
    ///
    /// # Errors
    /// An axis is none of the tensor's.
    pub fn moments(&mut self, tensor: TensorId, axes: &[usize]) -> Result<(TensorId, TensorId)> {
        let floats = self.as_f32(tensor)?;
        let mean = self.reduce(ReduceKind::Mean, floats, axes, true)?;
        let differences = self.binary(Function::Sub, floats, mean)?;
        let squares = self.binary(Function::Mul, differences, differences)?;
        Ok((mean, self.reduce(ReduceKind::Mean, squares, axes, true)?))
    }

    /// Whether the tensor's elements are of a type that is summed as it is.
    pub fn is_float_of_kernels(&self, tensor: TensorId) -> bool {
        matches!(self.element(tensor), ElementType::Of(dtype) if FLOATS.contains(&dtype))
    }
}

/// Elements before, in and behind a range of dimensions.
fn spans(dims: &[Size], (first, end): (usize, usize)) -> (Size, Size, Size) {
    let count = |dims: &[Size]| dims.iter().product();
    (count(&dims[..first]), count(&dims[first..end]), count(&dims[end..]))
}
