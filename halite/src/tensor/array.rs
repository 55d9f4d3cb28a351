//! Conversions between tensors and arrays of the crate `ndarray`.

use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

use super::{Element, Tensor};
use crate::{Error, Result};

impl Tensor {
    /// A tensor on the host with a copy of an array's elements, whatever their order in memory.
    ///
    /// # Errors
    /// None that an array can cause; the type leaves room for limits.
    pub fn from_array<T, S, D>(array: &ArrayBase<S, D>) -> Result<Tensor>
    where
        T: Element,
        S: Data<Elem = T>,
        D: Dimension,
    {
        Tensor::from_vec(array.iter().copied().collect(), array.shape())
    }

    /// A copy of the elements as an array.
    ///
    /// # Errors
    /// They are of another type, or the device fails.
    pub fn to_array<T: Element>(&self) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(IxDyn(self.shape()), self.to_vec()?).map_err(|e| Error::invalid(e.to_string()))
    }
}
