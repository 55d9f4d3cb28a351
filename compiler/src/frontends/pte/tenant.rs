//! What is known of a tensor that is kept from call to call, wherever a program has it.

use bytes::Bytes;

use crate::graph::ElementType;

/// A tensor that is kept from call to call, without its name.
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    pub(super) element: ElementType,
    /// Its dimensions as operators see it.
    pub(super) dims: Vec<u64>,
    /// What it begins with, in the order of these dimensions; zeros where there is nothing.
    pub(super) first: Option<Bytes>,
    /// Whether rows of several heads, `[batch, rows, heads, size]`, are appended to it. It is held with heads before rows then, as
    /// attention reads it.
    pub(super) by_heads: bool,
}

/// Data that are not all zeros.
pub(super) fn not_zeros(bytes: Bytes) -> Option<Bytes> {
    bytes.iter().any(|byte| *byte != 0).then_some(bytes)
}

/// Whether a tensor of these dimensions can be held with heads before rows.
pub(super) fn has_heads(element: ElementType, dims: &[u64]) -> bool {
    dims.len() == 4 && matches!(element, ElementType::Of(dtype) if dtype.is_small_float())
}
