//! Element types and encodings of tensors, as modules carry them: packed 32-bit numbers, and names.

use std::{fmt, str::FromStr};

use crate::{Status, status};

/// The numerical kind of an element: the top byte of an [`ElementType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the variants are the names of the number formats")]
pub enum ElementKind {
    Opaque = 0,
    Int = 0x10,
    SInt = 0x11,
    UInt = 0x12,
    Bool = 0x13,
    Float = 0x21,
    BFloat = 0x22,
    Complex = 0x23,
    Float8E5M2 = 0x24,
    Float8E4M3FN = 0x25,
    Float8E5M2FNUZ = 0x26,
    Float8E4M3FNUZ = 0x27,
    Float8E8M0FNU = 0x28,
}

/// Element type of a tensor: `(kind << 24) | bit_count`, as compiled modules carry it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementType(pub u32);

#[allow(missing_docs, reason = "the constants are the names of the types")]
impl ElementType {
    pub const NONE: Self = Self(0);
    pub const I8: Self = Self::new(ElementKind::Int, 8);
    pub const I16: Self = Self::new(ElementKind::Int, 16);
    pub const I32: Self = Self::new(ElementKind::Int, 32);
    pub const I64: Self = Self::new(ElementKind::Int, 64);
    pub const SI8: Self = Self::new(ElementKind::SInt, 8);
    pub const SI16: Self = Self::new(ElementKind::SInt, 16);
    pub const SI32: Self = Self::new(ElementKind::SInt, 32);
    pub const SI64: Self = Self::new(ElementKind::SInt, 64);
    pub const UI8: Self = Self::new(ElementKind::UInt, 8);
    pub const UI16: Self = Self::new(ElementKind::UInt, 16);
    pub const UI32: Self = Self::new(ElementKind::UInt, 32);
    pub const UI64: Self = Self::new(ElementKind::UInt, 64);
    pub const I1: Self = Self::new(ElementKind::Bool, 8);
    pub const F16: Self = Self::new(ElementKind::Float, 16);
    pub const F32: Self = Self::new(ElementKind::Float, 32);
    pub const F64: Self = Self::new(ElementKind::Float, 64);
    pub const BF16: Self = Self::new(ElementKind::BFloat, 16);
    pub const CF64: Self = Self::new(ElementKind::Complex, 64);
    pub const CF128: Self = Self::new(ElementKind::Complex, 128);

    /// The type of a kind and a width in bits.
    pub const fn new(kind: ElementKind, bits: u8) -> Self {
        Self(((kind as u32) << 24) | bits as u32)
    }

    /// The numerical kind; `None` for a number no kind has.
    pub fn kind(self) -> Option<ElementKind> {
        KINDS.iter().map(|(kind, _)| *kind).find(|kind| *kind as u32 == self.0 >> 24)
    }

    /// Width of one element in bits.
    pub const fn bit_count(self) -> u32 {
        self.0 & 0xFF
    }

    /// Bytes of one element when each element starts on a byte (dense storage).
    pub const fn byte_count(self) -> u64 {
        self.bit_count().div_ceil(8) as u64
    }

    /// Bytes of a dense row-major tensor of this type; `None` on overflow.
    pub fn dense_byte_length(self, shape: &[u64]) -> Option<u64> {
        let elements = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?;
        Some(elements.checked_mul(self.bit_count().into())?.div_ceil(8))
    }

    /// Whether this is an integer of any signedness, or a bool.
    pub fn is_integer(self) -> bool {
        matches!(
            self.kind(),
            Some(ElementKind::Int | ElementKind::SInt | ElementKind::UInt | ElementKind::Bool)
        )
    }
}

/// How the types of a kind are named.
#[derive(Clone, Copy)]
enum Name {
    /// In full; their elements take 8 bits.
    Full(&'static str),
    /// By these letters and the width in bits.
    Prefix(&'static str),
}

/// Every kind with its names. Of prefixes that begin alike, the longer one comes first.
const KINDS: [(ElementKind, Name); 13] = [
    (ElementKind::Bool, Name::Full("i1")),
    (ElementKind::Float8E5M2, Name::Full("f8E5M2")),
    (ElementKind::Float8E4M3FN, Name::Full("f8E4M3FN")),
    (ElementKind::Float8E5M2FNUZ, Name::Full("f8E5M2FNUZ")),
    (ElementKind::Float8E4M3FNUZ, Name::Full("f8E4M3FNUZ")),
    (ElementKind::Float8E8M0FNU, Name::Full("f8E8M0FNU")),
    (ElementKind::SInt, Name::Prefix("si")),
    (ElementKind::UInt, Name::Prefix("ui")),
    (ElementKind::Int, Name::Prefix("i")),
    (ElementKind::BFloat, Name::Prefix("bf")),
    (ElementKind::Complex, Name::Prefix("cf")),
    (ElementKind::Float, Name::Prefix("f")),
    (ElementKind::Opaque, Name::Prefix(OPAQUE)),
];

const OPAQUE: &str = "*";
/// What people call `i1`.
const BOOL: &str = "bool";
/// What `*` may be written as where a shell would take it for a pattern.
const OPAQUE_IN_SHELLS: &str = "x";

impl fmt::Display for ElementType {
    /// The name in IREE's text form: `f32`, `i1`, `si8`, `bf16`, `cf64`, `*32`. Numbers that no kind has are opaque.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind().unwrap_or(ElementKind::Opaque);
        match KINDS.iter().find(|(of, _)| *of == kind).map_or(Name::Prefix(OPAQUE), |(_, name)| *name) {
            Name::Full(name) => f.write_str(name),
            Name::Prefix(prefix) => write!(f, "{prefix}{}", self.bit_count()),
        }
    }
}

impl FromStr for ElementType {
    type Err = Status;

    /// Reads a name: `f32`, `i8`, `ui16`, `bf16`, `i1` (or `bool`), `f8E4M3FN`, `cf64`, `*32` (or `x32`), …
    /// INVALID_ARGUMENT for anything else.
    fn from_str(text: &str) -> Result<Self, Status> {
        let full =
            |(kind, name): &(ElementKind, Name)| matches!(name, Name::Full(n) if *n == text).then_some(*kind);
        if let Some(kind) = KINDS.iter().find_map(full) {
            return Ok(ElementType::new(kind, 8));
        }
        if text == BOOL {
            return Ok(ElementType::I1);
        }
        let prefixes = KINDS.iter().filter_map(|(kind, name)| match name {
            Name::Prefix(prefix) => Some((*kind, *prefix)),
            Name::Full(_) => None,
        });
        let mut prefixes = prefixes.chain([(ElementKind::Opaque, OPAQUE_IN_SHELLS)]);
        let found = prefixes.find_map(|(kind, prefix)| Some((text.strip_prefix(prefix)?, kind)));
        let Some((digits, kind)) = found else {
            return Err(status!(
                InvalidArgument,
                "unhandled element type prefix in '{text}'; types are i8, si16, ui32, i1, f32, bf16, f8E4M3FN, cf64, …"
            ));
        };
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        match digits.parse::<u8>() {
            Ok(bits) if bits > 0 && plain => Ok(ElementType::new(kind, bits)),
            _ => {
                Err(status!(InvalidArgument, "out of range bit count in '{text}'; it must be from 1 to 255"))
            }
        }
    }
}

impl fmt::Debug for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Encoding of a buffer view's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoding(pub u32);

impl Encoding {
    /// Not known; matches any encoding in assertions.
    pub const OPAQUE: Encoding = Encoding(0);
    /// Dense, last dimension fastest.
    pub const DENSE_ROW_MAJOR: Encoding = Encoding(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_are_those_of_compiled_modules() {
        assert_eq!(ElementType::F32.0, 0x2100_0020);
        assert_eq!(ElementType::I32.0, 0x1000_0020);
        assert_eq!(ElementType::BF16.0, 0x2200_0010);
        assert_eq!(ElementType(0x2100_0020).kind(), Some(ElementKind::Float));
        assert_eq!(ElementType(0xFF00_0020).kind(), None);
    }

    #[test]
    fn names() {
        for (element, name) in [
            (ElementType::F32, "f32"),
            (ElementType::I1, "i1"),
            (ElementType::SI8, "si8"),
            (ElementType::BF16, "bf16"),
            (ElementType::CF64, "cf64"),
            (ElementType::new(ElementKind::Float8E4M3FN, 8), "f8E4M3FN"),
            (ElementType(32), "*32"),
        ] {
            assert_eq!(element.to_string(), name);
        }
    }

    #[test]
    fn every_name_is_read_as_what_it_names() {
        for (kind, _) in KINDS {
            for bits in [8, 16, 64] {
                let element = ElementType::new(kind, bits);
                let read: ElementType = element.to_string().parse().expect("it names itself");
                let full = matches!(kind, ElementKind::Bool) || element.to_string().starts_with("f8");
                assert_eq!(read, if full { ElementType::new(kind, 8) } else { element });
            }
        }
        assert_eq!("x32".parse::<ElementType>().expect("another name of *32"), ElementType(32));
        assert_eq!("bool".parse::<ElementType>().expect("another name of i1"), ElementType::I1);
        for wrong in ["", "g32", "f", "f+8", "i0", "i256", "i1 ", "f8E4M3"] {
            assert!(wrong.parse::<ElementType>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn dense_lengths_round_up_and_do_not_overflow() {
        assert_eq!(ElementType::F32.dense_byte_length(&[2, 3]), Some(24));
        assert_eq!(ElementType::F32.dense_byte_length(&[]), Some(4));
        assert_eq!(ElementType::F32.dense_byte_length(&[5, 0]), Some(0));
        assert_eq!(ElementType::new(ElementKind::Int, 4).dense_byte_length(&[3]), Some(2));
        assert_eq!(ElementType::I8.dense_byte_length(&[1 << 33, 1 << 33]), None);
        assert_eq!(ElementType::I64.dense_byte_length(&[1 << 60]), None);
    }
}
