//! Owns the types of elements in graphs. Does not own: the types that kernels compute with.

use std::fmt;

use halite_ops::{DType, expression};

/// Type of the elements of a tensor: booleans are told apart from the bytes that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// True or false, in a byte of 1 or 0.
    Bool,
    /// A number.
    Of(DType),
}

impl ElementType {
    /// How it lies in memory.
    pub fn storage(self) -> DType {
        match self {
            ElementType::Bool => DType::U8,
            ElementType::Of(dtype) => dtype,
        }
    }

    /// The type of its values in expressions.
    pub fn value(self) -> expression::Type {
        match self {
            ElementType::Bool => expression::Type::Bool,
            ElementType::Of(dtype) => expression::Type::Of(dtype),
        }
    }

    /// Whether it is a float type.
    pub fn is_float(self) -> bool {
        matches!(self, ElementType::Of(dtype) if dtype.is_float())
    }
}

impl From<DType> for ElementType {
    fn from(dtype: DType) -> Self {
        ElementType::Of(dtype)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementType::Bool => f.write_str("bool"),
            ElementType::Of(dtype) => dtype.fmt(f),
        }
    }
}

/// Number of elements of a tensor with these dimensions; `u64::MAX` when it does not fit.
pub fn elements(dims: &[u64]) -> u64 {
    dims.iter().fold(1u64, |n, d| n.saturating_mul(*d))
}

/// Bytes that a buffer for a tensor of so many bytes has: kernels read and write whole words.
pub fn storage_bytes(bytes: u64) -> u64 {
    bytes.saturating_add(3) & !3
}
