//! Comparison of a result with an expected tensor.

use std::fmt;

use halite_abi::{ElementKind, ElementType};

use super::{HostTensor, describe, element::Codec};

/// How far results may be from what is expected. An element passes when `|actual - expected| <= absolute +
/// relative * |expected|`, when both are NaN, or when both are the same infinity. Integers must be equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Bytes must be equal; the other fields do not matter.
    pub exact: bool,
    /// Absolute tolerance of f16, and of the 8-bit floats only equality.
    pub f16: f64,
    /// Absolute tolerance of bf16.
    pub bf16: f64,
    /// Absolute tolerance of f32, and of the parts of cf64.
    pub f32: f64,
    /// Absolute tolerance of f64, and of the parts of cf128.
    pub f64: f64,
    /// Relative tolerance of all of them.
    pub relative: f64,
}

impl Default for Tolerance {
    /// The defaults of IREE's tools.
    fn default() -> Self {
        Tolerance { exact: false, f16: 0.001, bf16: 0.01, f32: 0.0001, f64: 0.0001, relative: 1e-5 }
    }
}

/// Where a result differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Type or shape.
    Metadata {
        /// Such as `4x8xf32`.
        actual: String,
        /// Such as `4x9xf32`.
        expected: String,
    },
    /// The first element that differs.
    Element {
        /// Its index in row-major order.
        index: u64,
        /// What was computed, as printed.
        actual: String,
        /// What was expected, as printed.
        expected: String,
        /// Type and shape of both.
        metadata: String,
        /// Number of elements that differ, and of all.
        count: (u64, u64),
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Metadata { actual, expected } => write!(
                f,
                "metadata is {actual}; expected that the view matches {expected}; expected that the view is equal \
                 to contents of a view of {expected}"
            ),
            Mismatch::Element { index, actual, expected, metadata, .. } => write!(
                f,
                "element at index {index} ({actual}) does not match the expected ({expected}); expected that the \
                 view is equal to contents of a view of {metadata}"
            ),
        }
    }
}

/// Compares a result with what is expected. A signless integer type equals the signed and the unsigned type of its
/// width, because `.npy` files know no signless integers.
pub fn compare(actual: &HostTensor, expected: &HostTensor, tolerance: &Tolerance) -> Result<(), Mismatch> {
    if actual.shape != expected.shape || !same_type(actual.element_type, expected.element_type) {
        return Err(Mismatch::Metadata { actual: actual.metadata(), expected: expected.metadata() });
    }
    let rule = Rule::of(actual.element_type, tolerance);
    if rule == Rule::Bytes && actual.data == expected.data {
        return Ok(());
    }
    let total = actual.element_count();
    let mut differing = (0..total).filter(|i| !rule.equal(actual, expected, *i));
    let Some(index) = differing.next() else { return Ok(()) };
    let count = differing.count() as u64 + 1;
    Err(Mismatch::Element {
        index,
        actual: actual.element_text(index),
        expected: expected.element_text(index),
        metadata: describe(expected.element_type, &expected.shape),
        count: (count, total),
    })
}

fn same_type(a: ElementType, b: ElementType) -> bool {
    use ElementKind::{Int, SInt, UInt};
    let signless =
        matches!((a.kind(), b.kind()), (Some(Int), Some(SInt | UInt)) | (Some(SInt | UInt), Some(Int)));
    a == b || signless && a.bit_count() == b.bit_count()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// Elements are equal when they print the same, which for whole bytes is equality of bytes.
    Bytes,
    /// Numbers with an absolute and a relative tolerance.
    Near { codec: Codec, parts: u64, absolute: f64, relative: f64 },
}

impl Rule {
    fn of(element_type: ElementType, t: &Tolerance) -> Self {
        let codec = Codec::of(element_type);
        let near = |codec, parts, absolute| Rule::Near { codec, parts, absolute, relative: t.relative };
        match codec {
            _ if t.exact => Rule::Bytes,
            Codec::F16 => near(codec, 1, t.f16),
            Codec::Bf16 => near(codec, 1, t.bf16),
            Codec::F32 => near(codec, 1, t.f32),
            Codec::F64 => near(codec, 1, t.f64),
            Codec::F8(_) => near(codec, 1, 0.0),
            Codec::Hex { .. } if element_type == ElementType::CF64 => near(Codec::F32, 2, t.f32),
            Codec::Hex { .. } if element_type == ElementType::CF128 => near(Codec::F64, 2, t.f64),
            _ => Rule::Bytes,
        }
    }

    fn equal(self, a: &HostTensor, b: &HostTensor, index: u64) -> bool {
        match self {
            Rule::Bytes => {
                let codec = Codec::of(a.element_type);
                match (codec.bytes(&a.data, index), codec.bytes(&b.data, index)) {
                    (Some(x), Some(y)) => x == y,
                    _ => a.element_text(index) == b.element_text(index),
                }
            }
            Rule::Near { codec, parts, absolute, relative } => {
                (index * parts..(index + 1) * parts).all(|i| {
                    match (codec.float(&a.data, i), codec.float(&b.data, i)) {
                        (Some(x), Some(y)) => near(x, y, absolute, relative),
                        _ => false,
                    }
                })
            }
        }
    }
}

/// Whether two numbers are near enough.
pub(super) fn near(actual: f64, expected: f64, absolute: f64, relative: f64) -> bool {
    if actual.is_nan() || expected.is_nan() {
        return actual.is_nan() && expected.is_nan();
    }
    // Infinities first: their difference is NaN, and a relative tolerance would let any number equal one.
    actual == expected
        || expected.is_finite() && (actual - expected).abs() <= absolute + relative * expected.abs()
}

impl Tolerance {
    /// Whether two f32 scalars are near enough.
    pub fn accepts_f32(&self, actual: f32, expected: f32) -> bool {
        if self.exact {
            return actual.to_bits() == expected.to_bits();
        }
        near(actual.into(), expected.into(), self.f32, self.relative)
    }

    /// Whether two f64 scalars are near enough.
    pub fn accepts_f64(&self, actual: f64, expected: f64) -> bool {
        if self.exact {
            return actual.to_bits() == expected.to_bits();
        }
        near(actual, expected, self.f64, self.relative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(actual: &str, expected: &str, tolerance: &Tolerance) -> String {
        let parse = |s| HostTensor::parse(s).unwrap();
        compare(&parse(actual), &parse(expected), tolerance).err().map_or_else(String::new, |m| m.to_string())
    }

    #[test]
    fn messages_are_the_originals() {
        let t = Tolerance::default();
        assert_eq!(
            check("4xf32=2 4 6 8", "4xf32=2 4 6 9", &t),
            "element at index 3 (8) does not match the expected (9); expected that the view is equal to contents of \
             a view of 4xf32"
        );
        assert_eq!(
            check("4x8xf32=1", "4x9xf32=0", &t),
            "metadata is 4x8xf32; expected that the view matches 4x9xf32; expected that the view is equal to \
             contents of a view of 4x9xf32"
        );
        assert!(
            check("3xf32=1 nan 3", "3xf32=1 2 3", &t)
                .contains("index 1 (NAN) does not match the expected (2);")
        );
        assert!(
            check("3xf32=1 1e20 3", "3xf32=1 inf 3", &t)
                .contains("(1E+20) does not match the expected (INF)")
        );
        assert!(
            check("1xcf64=0000803f00000040", "1xcf64=0000803f00000041", &t).contains("(0000803F00000040)")
        );
        assert!(check("2xi1=01 00", "2xi1=01 01", &t).contains("(00) does not match the expected (01)"));
    }

    #[test]
    fn tolerances_by_type() {
        let t = Tolerance::default();
        for (actual, expected) in [
            ("2xf32=1 2", "2xf32=1.0001 2.0001"),
            ("3xf16=1 2 3", "3xf16=1 2.0005 3"),
            ("2xbf16=1 1", "2xbf16=1 1.0078125"),
            ("2xf32=nan inf", "2xf32=nan inf"),
            ("2xi32=1 -2", "2xsi32=1 -2"),
            ("f8E5M2=-0", "f8E5M2=0"),
            ("0x3xf32", "0x3xf32"),
            ("1xcf64=0000803f00000040", "1xcf64=0100803f00000040"),
        ] {
            assert_eq!(check(actual, expected, &t), "");
        }
        for (actual, expected) in [
            ("f32=1", "f32=1.0002"),
            ("f32=-inf", "f32=inf"),
            ("f16=2", "f16=2.0015"),
            ("i32=1", "i32=2"),
            ("i32=1", "f32=1"),
            ("si32=1", "ui32=1"),
            ("f8E4M3FN=1", "f8E4M3FN=1.125"),
        ] {
            assert_ne!(check(actual, expected, &t), "", "{actual} {expected}");
        }
        let exact = Tolerance { exact: true, ..t };
        assert_ne!(check("2xf32=1 2", "2xf32=1 2.00001", &exact), "");
        assert_eq!(check("2xf32=1 nan", "2xf32=1 nan", &exact), "");
        assert!(t.accepts_f32(1.0, 1.00005) && !exact.accepts_f32(1.0, 1.00005) && !t.accepts_f64(1.0, 1.1));
    }

    #[test]
    fn counts_all_differences() {
        let parse = |s| HostTensor::parse(s).unwrap();
        let Err(Mismatch::Element { count, .. }) =
            compare(&parse("4xi32=1 2 3 4"), &parse("4xi32=1 0 3 0"), &Tolerance::default())
        else {
            panic!("must differ")
        };
        assert_eq!(count, (2, 4));
    }
}
