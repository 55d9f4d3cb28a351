//! The types of elements in graphs.

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

/// The element type of modules. Integers of modules have no sign unless they are unsigned.
impl From<ElementType> for halite_abi::ElementType {
    fn from(element: ElementType) -> Self {
        match element {
            ElementType::Bool => Self::I1,
            ElementType::Of(DType::F64) => Self::F64,
            ElementType::Of(DType::F32) => Self::F32,
            ElementType::Of(DType::F16) => Self::F16,
            ElementType::Of(DType::BF16) => Self::BF16,
            ElementType::Of(DType::I8) => Self::I8,
            ElementType::Of(DType::I16) => Self::I16,
            ElementType::Of(DType::I32) => Self::I32,
            ElementType::Of(DType::I64) => Self::I64,
            ElementType::Of(DType::U8) => Self::UI8,
            ElementType::Of(DType::U16) => Self::UI16,
            ElementType::Of(DType::U32) => Self::UI32,
            ElementType::Of(DType::U64) => Self::UI64,
        }
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
