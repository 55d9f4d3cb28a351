//! The element types of TOSA, and how constants hold them.

use std::fmt;

/// Type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// One byte, 0 or 1.
    Bool,
    /// Signed 4-bit integer: one sign-extended byte for each element, -7 to 7.
    I4,
    /// Signed 8-bit integer. `RESCALE` alone reads and writes it as unsigned, where its attributes say so.
    I8,
    /// Signed 16-bit integer; `RESCALE` as with [`ElementType::I8`].
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 48-bit integer: eight bytes, sign-extended.
    I48,
    /// Signed 64-bit integer (TOSA 1.1).
    I64,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// 8-bit float of four exponent bits, without infinities (OCP E4M3).
    F8E4M3,
    /// 8-bit float of five exponent bits (OCP E5M2).
    F8E5M2,
}

impl ElementType {
    /// All types.
    pub const ALL: [ElementType; 12] = [
        ElementType::Bool,
        ElementType::I4,
        ElementType::I8,
        ElementType::I16,
        ElementType::I32,
        ElementType::I48,
        ElementType::I64,
        ElementType::F16,
        ElementType::BF16,
        ElementType::F32,
        ElementType::F8E4M3,
        ElementType::F8E5M2,
    ];

    /// Its name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::Bool => "bool",
            ElementType::I4 => "i4",
            ElementType::I8 => "i8",
            ElementType::I16 => "i16",
            ElementType::I32 => "i32",
            ElementType::I48 => "i48",
            ElementType::I64 => "i64",
            ElementType::F16 => "fp16",
            ElementType::BF16 => "bf16",
            ElementType::F32 => "fp32",
            ElementType::F8E4M3 => "fp8e4m3",
            ElementType::F8E5M2 => "fp8e5m2",
        }
    }

    /// Bytes of an element in memory and in constants.
    pub fn size(self) -> u64 {
        match self {
            ElementType::Bool
            | ElementType::I4
            | ElementType::I8
            | ElementType::F8E4M3
            | ElementType::F8E5M2 => 1,
            ElementType::I16 | ElementType::F16 | ElementType::BF16 => 2,
            ElementType::I32 | ElementType::F32 => 4,
            ElementType::I48 | ElementType::I64 => 8,
        }
    }

    /// Whether it is a float type.
    pub fn is_float(self) -> bool {
        matches!(
            self,
            ElementType::F16
                | ElementType::BF16
                | ElementType::F32
                | ElementType::F8E4M3
                | ElementType::F8E5M2
        )
    }

    /// Whether it is an integer type; booleans are none.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != ElementType::Bool
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
