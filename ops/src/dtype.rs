//! The element types of tensors: names, sizes, rounding.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// Type of the elements of a tensor. Names are those of NumPy and ONNX, shortened.
///
/// All of them are types in memory, which kernels that move elements take by their size alone. What kernels compute with is
/// less: `f64` is read as the nearest `f32` and written from one, `i16` and `u16` are computed in 32 bits and wrap where
/// they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// 32-bit float.
    F32,
    /// 16-bit float (IEEE 754 binary16).
    F16,
    /// The upper half of a 32-bit float.
    BF16,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 8-bit integer; also booleans, as 0 and 1.
    U8,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 64-bit integer.
    I64,
    /// 64-bit float.
    F64,
    /// Signed 16-bit integer.
    I16,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 64-bit integer.
    U64,
}

/// The type that operations have where their text names none.
pub(crate) fn f32() -> DType {
    DType::F32
}

impl DType {
    /// All types.
    pub const ALL: [DType; 12] = [
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I8,
        DType::U8,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::F64,
        DType::I16,
        DType::U16,
        DType::U64,
    ];

    /// Its short name, such as `f16`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I64 => "i64",
            DType::F64 => "f64",
            DType::I16 => "i16",
            DType::U16 => "u16",
            DType::U64 => "u64",
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> u64 {
        match self {
            DType::I8 | DType::U8 => 1,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::I64 | DType::F64 | DType::U64 => 8,
        }
    }

    /// Whether it is a float type.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16 | DType::BF16 | DType::F64)
    }

    /// Whether it is a float type that kernels have in registers or shared memory, or widen to one without loss: all but
    /// `f64`.
    pub fn is_small_float(self) -> bool {
        self.is_float() && self != DType::F64
    }

    /// Whether it is a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// Distance from 1 to the next larger value of a float type; 0 for integers.
    pub fn epsilon(self) -> f64 {
        match self {
            DType::F32 => f64::from(f32::EPSILON),
            DType::F16 => f16::EPSILON.to_f64(),
            DType::BF16 => bf16::EPSILON.to_f64(),
            DType::F64 => f64::EPSILON,
            _ => 0.0,
        }
    }

    /// Smallest positive normal value of a float type; 0 for integers. GPUs may flush what is smaller.
    pub fn min_normal(self) -> f64 {
        match self {
            DType::F32 => f64::from(f32::MIN_POSITIVE),
            DType::F16 => f16::MIN_POSITIVE.to_f64(),
            DType::BF16 => bf16::MIN_POSITIVE.to_f64(),
            DType::F64 => f64::MIN_POSITIVE,
            _ => 0.0,
        }
    }

    /// The nearest value of a float type, ties to even; out of range becomes infinite.
    pub fn round(self, value: f64) -> f64 {
        match self {
            DType::F32 => f64::from(value as f32),
            DType::F16 => f16_of(value).to_f64(),
            DType::BF16 => bf16_of(value).to_f64(),
            _ => value,
        }
    }
}

/// The nearest value, ties to even. `f16::from_f64` leaves lower bits out before it looks for ties.
pub(crate) fn f16_of(value: f64) -> f16 {
    f16::from_f32(odd(value))
}

/// As [`f16_of`].
pub(crate) fn bf16_of(value: f64) -> bf16 {
    bf16::from_f32(odd(value))
}

/// The next value towards zero with its last bit set where something was lost, so that a second rounding to at most 22 bits
/// finds what one alone would have found (rounding to odd).
fn odd(value: f64) -> f32 {
    let near = value as f32;
    if value.is_nan() || f64::from(near) == value {
        return near;
    }
    let larger = f64::from(near).abs() > value.abs();
    f32::from_bits((near.to_bits() - u32::from(larger)) | 1)
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats_are_rounded_once() {
        let above = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        assert_eq!((DType::BF16.round(above), DType::BF16.round(-above)), (1.007_812_5, -1.007_812_5));
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-45);
        assert_eq!(DType::F16.round(above), 1.0 + 2f64.powi(-10));
        assert_eq!(DType::F16.round(1.0 + 2f64.powi(-11)), 1.0);
        assert_eq!(DType::F16.round(65_519.999), 65_504.0);
        assert_eq!(DType::F16.round(65_520.0), f64::INFINITY);
        assert_eq!(DType::BF16.round(1e300), f64::INFINITY);
        assert_eq!(DType::F16.round(2f64.powi(-25) * 1.000_000_001), 2f64.powi(-24));
    }
}
