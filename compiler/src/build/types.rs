//! The types that operations compute with: what a tensor is cast to where kernels lack its type.

use halite_ops::DType;

use super::{Builder, Result};
use crate::graph::{ElementType, TensorId};

/// The types of floats that matrix kernels take, besides others.
pub(super) const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16];

/// The type, of those that kernels take, in which values of `element` are computed: the type itself, or the widest of its
/// kind. 64-bit integers become 32-bit ones, so that values beyond 32 bits wrap.
pub(super) fn nearest(element: ElementType, among: &[DType]) -> Option<DType> {
    let dtype = element.storage();
    let order: &[DType] = match element {
        ElementType::Bool => &[DType::U8, DType::I32],
        ElementType::Of(_) if dtype.is_float() => &[DType::F32],
        ElementType::Of(_) if dtype.name().starts_with('u') && dtype.size() >= 4 => &[DType::U32, DType::I32],
        ElementType::Of(_) => &[DType::I32],
    };
    let itself = (element != ElementType::Bool).then_some(dtype);
    itself.into_iter().chain(order.iter().copied()).find(|dtype| among.contains(dtype))
}

impl Builder {
    /// The tensor in a type that kernels take; see [`nearest`]. `what` is the operation, for the message.
    ///
    /// # Errors
    /// There is no type among them that holds such values.
    pub(super) fn in_type_of(&mut self, tensor: TensorId, among: &[DType], what: &str) -> Result<TensorId> {
        let element = self.element(tensor);
        match nearest(element, among) {
            Some(dtype) => self.cast(tensor, dtype),
            None => {
                let types: Vec<_> = among.iter().map(|dtype| dtype.name()).collect();
                Err(self.unsupported(format!("{what} of {element}; there is {}", types.join(", "))))
            }
        }
    }
}
