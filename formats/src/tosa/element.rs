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

/// The value of a float from its bits: exponent bits, bits of the fraction, and whether the largest exponent is for
/// infinities and NaN alone.
fn decode(bits: u64, exponent: u32, fraction: u32, has_infinity: bool) -> f64 {
    let sign = if bits >> (exponent + fraction) & 1 == 1 { -1.0 } else { 1.0 };
    let (most, bias) = ((1u64 << exponent) - 1, (1i32 << (exponent - 1)) - 1);
    let (e, f) = (bits >> fraction & most, bits & ((1 << fraction) - 1));
    let full = f == (1 << fraction) - 1;
    // By its bits: `powi` promises no precision.
    let scale = |power: i32| f64::from_bits(((1023 + power - fraction as i32) as u64) << 52);
    sign * match (e, f) {
        (e, 0) if e == most && has_infinity => f64::INFINITY,
        (e, _) if e == most && (has_infinity || full) => f64::NAN,
        (0, f) => f as f64 * scale(1 - bias),
        (e, f) => ((1u64 << fraction) + f) as f64 * scale(e as i32 - bias),
    }
}

impl ElementType {
    /// The value of an element of a float type; `None` for other types, and for fewer bytes than an element has.
    pub fn float(self, bytes: &[u8]) -> Option<f64> {
        let half = || bytes.first_chunk().map(|bytes| u64::from(u16::from_le_bytes(*bytes)));
        let byte = || bytes.first().map(|byte| u64::from(*byte));
        Some(match self {
            ElementType::F16 => decode(half()?, 5, 10, true),
            ElementType::BF16 => f64::from(f32::from_bits((half()? as u32) << 16)),
            ElementType::F32 => f64::from(f32::from_le_bytes(*bytes.first_chunk()?)),
            ElementType::F8E4M3 => decode(byte()?, 4, 3, false),
            ElementType::F8E5M2 => decode(byte()?, 5, 2, true),
            _ => return None,
        })
    }

    /// The value of an element of an integer type or of a boolean, with its sign; `None` as with [`ElementType::float`].
    pub fn integer(self, bytes: &[u8]) -> Option<i64> {
        Some(match self {
            ElementType::Bool => i64::from(*bytes.first()? != 0),
            ElementType::I4 | ElementType::I8 => i64::from(*bytes.first()? as i8),
            ElementType::I16 => i64::from(i16::from_le_bytes(*bytes.first_chunk()?)),
            ElementType::I32 => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
            ElementType::I48 | ElementType::I64 => i64::from_le_bytes(*bytes.first_chunk()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_their_values() {
        let f16 = |bits: u16| ElementType::F16.float(&bits.to_le_bytes()).unwrap();
        assert_eq!((f16(0x3C00), f16(0xC500), f16(0x7BFF)), (1.0, -5.0, 65504.0));
        assert_eq!((f16(0x0001), f16(0x7C00)), (1.0 / 16_777_216.0, f64::INFINITY));
        assert!(f16(0x7E00).is_nan());
        let e4m3 = |bits: u8| ElementType::F8E4M3.float(&[bits]).unwrap();
        assert_eq!((e4m3(0x38), e4m3(0x7E), e4m3(0x81)), (1.0, 448.0, -1.0 / 512.0));
        assert!(e4m3(0x7F).is_nan());
        let e5m2 = |bits: u8| ElementType::F8E5M2.float(&[bits]).unwrap();
        assert_eq!((e5m2(0x3C), e5m2(0x7B), e5m2(0xFC)), (1.0, 57344.0, f64::NEG_INFINITY));
        assert_eq!(ElementType::BF16.float(&[0xC0, 0x3F]), Some(1.5));
        assert_eq!(ElementType::F32.float(&[0; 3]), None);
    }
}
