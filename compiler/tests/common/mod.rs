//! What tests of this crate share: NumPy files, and how close values are.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use halite_compiler::graph::ElementType;
use halite_ops::{DType, Values};

/// A tensor from a `.npy` file.
pub struct Array {
    /// Type of its elements.
    pub element: ElementType,
    /// Dimensions, the innermost last.
    pub dims: Vec<u64>,
    /// Little-endian elements.
    pub bytes: Vec<u8>,
}

impl Array {
    /// Reads a file of version 1 with a contiguous array.
    pub fn read(path: &Path) -> Array {
        let file = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(file.starts_with(b"\x93NUMPY\x01"), "{} is no .npy of version 1", path.display());
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        let header = std::str::from_utf8(&file[10..10 + length]).expect("the header is ASCII");
        let field =
            |name: &str| header.split(&format!("'{name}': ")).nth(1).expect("the header has the field");
        assert!(field("fortran_order").starts_with("False"), "{}", path.display());
        let shape = field("shape").split(['(', ')']).nth(1).expect("a tuple");
        let dims =
            shape.split(',').map(str::trim).filter(|d| !d.is_empty()).map(|d| d.parse().expect("a size"));
        let element = match field("descr").split('\'').nth(1).expect("a type") {
            "<f4" => DType::F32.into(),
            "<f2" => DType::F16.into(),
            "<f8" => DType::F64.into(),
            "<i8" => DType::I64.into(),
            "<i4" => DType::I32.into(),
            "|u1" => DType::U8.into(),
            "|i1" => DType::I8.into(),
            "|b1" => ElementType::Bool,
            other => panic!("{}: type {other}", path.display()),
        };
        Array { element, dims: dims.collect(), bytes: file[10 + length..].to_vec() }
    }

    /// Its elements.
    pub fn values(&self) -> Values {
        Values::from_bytes(self.element.storage(), &self.bytes)
    }
}

/// The largest difference between values, or where one is further off than `atol + rtol * |wanted|`.
pub fn compare(found: &Values, wanted: &Values, atol: f64, rtol: f64) -> Result<f64, String> {
    if found.len() != wanted.len() {
        return Err(format!("{} elements, not {}", found.len(), wanted.len()));
    }
    let mut largest = 0.0f64;
    for i in 0..found.len() {
        let (a, b) = (found.float(i), wanted.float(i));
        let same = a == b || a.is_nan() && b.is_nan();
        let difference = if same { 0.0 } else { (a - b).abs() };
        // What is no number is near nothing.
        if difference.is_nan() || difference > atol + rtol * b.abs() {
            return Err(format!("element {i} is {a}, not {b}"));
        }
        largest = largest.max(difference);
    }
    Ok(largest)
}
