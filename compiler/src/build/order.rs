//! What works along one axis in order: softmax, sorting, the first k.

use halite_ops::{DType, Operation, softmax::Softmax, sort::Sort, top_k::TopK};
use halite_sizes::Size;

use super::{Builder, Result, types::FLOATS};
use crate::graph::TensorId;

/// Types whose elements kernels put in order.
const ORDERED: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::I8, DType::U8];

/// An axis of a tensor: elements before it, of it, and behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) outer: Size,
    pub(super) length: Size,
    pub(super) inner: Size,
}

impl Builder {
    /// What an axis of a tensor is.
    pub(super) fn line(&self, tensor: TensorId, axis: usize) -> Result<Line> {
        let dims = self.sizes(tensor);
        match dims.get(axis) {
            Some(length) => Ok(Line {
                outer: dims[..axis].iter().product(),
                length: *length,
                inner: dims[axis + 1..].iter().product(),
            }),
            None => Err(self.invalid(format!("{} has no axis {axis}", self.describe(&[tensor])))),
        }
    }

    /// The tensor in a type that has an order for kernels; 64-bit integers wrap.
    pub(super) fn ordered(&mut self, tensor: TensorId) -> Result<TensorId> {
        self.in_type_of(tensor, ORDERED, "an order")
    }

    /// Softmax along an axis, or its logarithm.
    ///
    /// # Errors
    /// The axis is none of the tensor's, or its elements are no floats.
    pub fn softmax(&mut self, tensor: TensorId, axis: usize, log: bool) -> Result<TensorId> {
        let Line { outer, length, inner } = self.line(tensor, axis)?;
        let (element, dims) = (self.element(tensor), self.sizes(tensor).to_vec());
        let own = self.in_type_of(tensor, FLOATS, "a softmax")?;
        let dtype = self.element(own).storage();
        let made = Softmax { outer, length, inner, log, mask_rows: 0.into(), mask_heads: 1.into(), dtype };
        let made = self.kernel1(Operation::Softmax(made), &[own], dtype.into(), &dims)?;
        self.cast(made, element)
    }

    /// Elements along an axis in order, and where they were, as `i64`. Equal elements stay in order.
    ///
    /// # Errors
    /// The axis is none of the tensor's.
    pub fn sort(&mut self, tensor: TensorId, axis: usize, descending: bool) -> Result<[TensorId; 2]> {
        let Line { outer, length, inner } = self.line(tensor, axis)?;
        let (element, dims) = (self.element(tensor), self.sizes(tensor).to_vec());
        let own = self.ordered(tensor)?;
        let (dtype, indices) = (self.element(own).storage(), DType::I64);
        let made = Sort { outer, length, inner, descending, dtype, indices };
        let results = [(dtype.into(), dims.clone()), (indices.into(), dims)];
        let made = self.kernel(Operation::Sort(made), &[own], &results)?;
        Ok([self.cast(made[0], element)?, made[1]])
    }

    /// The `k` largest or smallest elements along an axis in order, and where they were, as `i64`.
    ///
    /// # Errors
    /// The axis is none of the tensor's, or there are fewer elements.
    pub fn top_k(
        &mut self,
        tensor: TensorId,
        axis: usize,
        k: impl Into<Size>,
        smallest: bool,
    ) -> Result<[TensorId; 2]> {
        let Line { outer, length, inner } = self.line(tensor, axis)?;
        let (element, mut dims) = (self.element(tensor), self.sizes(tensor).to_vec());
        let k = k.into();
        dims[axis] = k;
        let own = self.ordered(tensor)?;
        let (dtype, indices) = (self.element(own).storage(), DType::I64);
        let made = TopK { outer, length, inner, k, smallest, dtype, indices };
        let results = [(dtype.into(), dims.clone()), (indices.into(), dims)];
        let made = self.kernel(Operation::TopK(made), &[own], &results)?;
        Ok([self.cast(made[0], element)?, made[1]])
    }
}
