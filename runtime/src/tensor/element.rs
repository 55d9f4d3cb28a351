//! One element as text and as a number, for every element type.

use half::{bf16, f16};
use halite_abi::{ElementKind, ElementType};
use halite_abi::{Result, Status, status};

use super::{
    float8::Float8,
    number::{parse_f32, parse_f64, parse_i128, push_g},
};

/// How elements of a type are stored and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// Whole-byte integer; `bytes` is 1, 2, 4 or 8.
    Int {
        bytes: usize,
        kind: ElementKind,
    },
    F16,
    Bf16,
    F32,
    F64,
    F8(Float8),
    /// Written as the hexadecimal of its bytes.
    Hex {
        bytes: usize,
    },
    /// Less than a byte wide (1, 2 or 4 bits), packed from the low end; written as the hexadecimal of one byte.
    Packed {
        bits: usize,
    },
    /// A width that no dense layout is defined for.
    Unsupported,
}

impl Codec {
    pub(super) fn of(element_type: ElementType) -> Self {
        use ElementKind::{BFloat, Float, Int, SInt, UInt};
        let bits = element_type.bit_count() as usize;
        match (element_type.kind(), bits) {
            (Some(kind @ (Int | SInt | UInt)), 8 | 16 | 32 | 64) => Codec::Int { bytes: bits / 8, kind },
            (Some(Float), 16) => Codec::F16,
            (Some(BFloat), 16) => Codec::Bf16,
            (Some(Float), 32) => Codec::F32,
            (Some(Float), 64) => Codec::F64,
            (Some(kind), 8) if Float8::of(kind).is_some() => {
                Float8::of(kind).map_or(Codec::Unsupported, Codec::F8)
            }
            (_, 1 | 2 | 4) => Codec::Packed { bits },
            (_, n) if n > 0 && n.is_multiple_of(8) => Codec::Hex { bytes: n / 8 },
            _ => Codec::Unsupported,
        }
    }

    /// Appends the bytes of element `index`, read from `token`. Packed types fill one byte together.
    pub(super) fn parse(
        self,
        token: &str,
        element_type: ElementType,
        index: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let bad = || invalid_element(token, element_type, index);
        match self {
            Codec::Int { bytes, kind } => {
                let value = parse_i128(token).filter(|v| integer_fits(*v, kind, bytes)).ok_or_else(bad)?;
                out.extend_from_slice(&value.to_le_bytes()[..bytes]);
            }
            Codec::F16 => {
                out.extend(f16::from_f32(parse_f32(token).ok_or_else(bad)?).to_le_bytes());
            }
            Codec::Bf16 => {
                out.extend(bf16::from_f32(parse_f32(token).ok_or_else(bad)?).to_le_bytes());
            }
            Codec::F32 => out.extend(parse_f32(token).ok_or_else(bad)?.to_le_bytes()),
            Codec::F64 => out.extend(parse_f64(token).ok_or_else(bad)?.to_le_bytes()),
            Codec::F8(format) => out.push(format.encode(parse_f32(token).ok_or_else(bad)?.into())),
            Codec::Hex { .. } if element_type == ElementType::I1 && truth(token).is_some() => {
                out.extend(truth(token));
            }
            Codec::Hex { bytes } => parse_hex(token, bytes, element_type, out)?,
            Codec::Packed { bits } => {
                let mut byte = Vec::with_capacity(1);
                parse_hex(token, 1, element_type, &mut byte)?;
                let value = byte.first().copied().filter(|v| v >> bits == 0).ok_or_else(bad)?;
                let shift = (index as usize % (8 / bits)) * bits;
                match out.last_mut() {
                    Some(last) if shift > 0 => *last |= value << shift,
                    _ => out.push(value),
                }
            }
            Codec::Unsupported => {
                return Err(status!(
                    Unimplemented,
                    "elements of type {element_type} have no text form; give raw bytes with '=@file.bin'"
                ));
            }
        }
        Ok(())
    }

    /// Appends element `index` as text; nothing when it lies beyond the data.
    pub(super) fn format(self, data: &[u8], index: u64, out: &mut String) {
        match self {
            Codec::Int { kind, .. } => {
                if let Some(bytes) = self.bytes(data, index) {
                    out.push_str(&integer(bytes, kind).to_string());
                }
            }
            Codec::Hex { .. } => {
                for byte in self.bytes(data, index).into_iter().flatten() {
                    out.push_str(&format!("{byte:02X}"));
                }
            }
            Codec::Packed { bits } => {
                let per_byte = 8 / bits as u64;
                if let Some(byte) = usize::try_from(index / per_byte).ok().and_then(|i| data.get(i)) {
                    let shift = (index % per_byte) as usize * bits;
                    out.push_str(&format!("{:02X}", byte >> shift & ((1 << bits) - 1)));
                }
            }
            Codec::Unsupported => {}
            _ => {
                if let Some(value) = self.float(data, index) {
                    push_g(value, true, out);
                }
            }
        }
    }

    /// Element `index` of a floating-point type.
    pub(super) fn float(self, data: &[u8], index: u64) -> Option<f64> {
        let bytes = self.bytes(data, index)?;
        Some(match self {
            Codec::F16 => f16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
            Codec::Bf16 => bf16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
            Codec::F32 => f32::from_le_bytes(bytes.try_into().ok()?).into(),
            Codec::F64 => f64::from_le_bytes(bytes.try_into().ok()?),
            Codec::F8(format) => format.decode(*bytes.first()?),
            _ => return None,
        })
    }

    /// Bytes of element `index`, for types of whole bytes.
    pub(super) fn bytes(self, data: &[u8], index: u64) -> Option<&[u8]> {
        let size = match self {
            Codec::Int { bytes, .. } | Codec::Hex { bytes } => bytes,
            Codec::F16 | Codec::Bf16 => 2,
            Codec::F32 => 4,
            Codec::F64 => 8,
            Codec::F8(_) => 1,
            Codec::Packed { .. } | Codec::Unsupported => return None,
        };
        let start = usize::try_from(index).ok()?.checked_mul(size)?;
        data.get(start..start.checked_add(size)?)
    }
}

/// Element `index` of dense data as a number: exact for all floats and for integers below 2^53. `None` beyond the
/// end and for types that are not one number (complex, opaque).
pub fn element_to_f64(element_type: ElementType, data: &[u8], index: u64) -> Option<f64> {
    let codec = Codec::of(element_type);
    match codec {
        Codec::Int { kind, .. } => codec.bytes(data, index).map(|b| integer(b, kind) as f64),
        Codec::Hex { bytes: 1 } if element_type == ElementType::I1 => {
            codec.bytes(data, index).map(|b| f64::from(u8::from(b != [0])))
        }
        _ => codec.float(data, index),
    }
}

/// What an integer type accepts. Signless types accept both readings; 32 and 64 bits also take the negative
/// reading of unsigned values, as people write `-1` for all ones.
fn integer_fits(value: i128, kind: ElementKind, bytes: usize) -> bool {
    let bits = 8 * bytes as u32;
    let signed = -(1i128 << (bits - 1))..1i128 << (bits - 1);
    let unsigned = 0..1i128 << bits;
    match (kind, bytes) {
        (ElementKind::SInt, 1 | 2) => signed.contains(&value),
        (ElementKind::UInt, 1 | 2) => unsigned.contains(&value),
        (ElementKind::Int | ElementKind::SInt, 8) => signed.contains(&value),
        _ => signed.contains(&value) || unsigned.contains(&value),
    }
}

fn integer(bytes: &[u8], kind: ElementKind) -> i128 {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unused = 128 - 8 * bytes.len() as u32;
    let value = i128::from_le_bytes(wide);
    if kind == ElementKind::UInt { value } else { value << unused >> unused }
}

/// A truth value as people write it. The originals know the digits of a byte alone, `00` and `01`.
fn truth(token: &str) -> Option<u8> {
    match token {
        "0" | "false" => Some(0),
        "1" | "true" => Some(1),
        _ => None,
    }
}

fn parse_hex(token: &str, bytes: usize, element_type: ElementType, out: &mut Vec<u8>) -> Result<()> {
    if token.len() != 2 * bytes {
        return Err(status!(
            InvalidArgument,
            "binary hex element count mismatch: buffer length={} < expected={}; elements of type {element_type} \
             are written as the {} hexadecimal digits of their bytes, such as '{}'",
            token.len(),
            2 * bytes,
            2 * bytes,
            "01".repeat(bytes)
        ));
    }
    for pair in token.as_bytes().chunks_exact(2) {
        let digit = |c: u8| char::from(c).to_digit(16);
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
            return Err(status!(InvalidArgument, "'{token}' is not hexadecimal (type {element_type})"));
        };
        out.push((high << 4 | low) as u8);
    }
    Ok(())
}

fn invalid_element(token: &str, element_type: ElementType, index: u64) -> Status {
    let shown: String = token.chars().take(40).collect();
    status!(
        InvalidArgument,
        "element {index} '{shown}' is not a number of type {element_type} or is out of its range"
    )
}
