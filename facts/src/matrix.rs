//! Shapes of cooperative matrices, and how the table of GPUs writes them: `16x8x16 f16 f16 f32 f32`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Element type of a cooperative matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each name is the type's name")]
pub enum ComponentType {
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    BF16,
    F8E4M3,
    F8E5M2,
}

/// Types with their names and `VkComponentTypeKHR` numbers (vk.xml).
const TYPES: [(ComponentType, &str, u32); 14] = [
    (ComponentType::F16, "f16", 0),
    (ComponentType::F32, "f32", 1),
    (ComponentType::F64, "f64", 2),
    (ComponentType::I8, "i8", 3),
    (ComponentType::I16, "i16", 4),
    (ComponentType::I32, "i32", 5),
    (ComponentType::I64, "i64", 6),
    (ComponentType::U8, "u8", 7),
    (ComponentType::U16, "u16", 8),
    (ComponentType::U32, "u32", 9),
    (ComponentType::U64, "u64", 10),
    (ComponentType::BF16, "bf16", 1_000_141_000),
    (ComponentType::F8E4M3, "f8e4m3", 1_000_491_002),
    (ComponentType::F8E5M2, "f8e5m2", 1_000_491_003),
];

impl ComponentType {
    /// The type with this `VkComponentTypeKHR`; `None` for one that kernels do not use.
    pub fn from_vulkan(number: u32) -> Option<Self> {
        TYPES.iter().find(|(_, _, n)| *n == number).map(|(t, _, _)| *t)
    }

    /// Its name: `f16`, `u8`, `bf16`.
    pub fn name(self) -> &'static str {
        TYPES.iter().find(|(t, _, _)| *t == self).map_or("?", |(_, name, _)| name)
    }

    fn parse(name: &str) -> Option<Self> {
        TYPES.iter().find(|(_, n, _)| *n == name).map(|(t, _, _)| *t)
    }
}

/// One combination of shape and types that the invocations of a subgroup multiply together: `result = a * b + c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MatrixShape {
    /// Rows of A, C and the result.
    pub m: u32,
    /// Columns of B, C and the result.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
    /// Type of A.
    pub a: ComponentType,
    /// Type of B.
    pub b: ComponentType,
    /// Type of C.
    pub c: ComponentType,
    /// Type of the result.
    pub result: ComponentType,
    /// Whether integer accumulation saturates.
    pub saturating: bool,
}

impl fmt::Display for MatrixShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b, c, r) = (self.a.name(), self.b.name(), self.c.name(), self.result.name());
        let end = if self.saturating { " saturating" } else { "" };
        write!(f, "{}x{}x{} {a} {b} {c} {r}{end}", self.m, self.n, self.k)
    }
}

impl From<MatrixShape> for String {
    fn from(shape: MatrixShape) -> String {
        shape.to_string()
    }
}

impl TryFrom<String> for MatrixShape {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for MatrixShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is no matrix shape: they look like '16x8x16 f16 f16 f32 f32'");
        let mut parts = text.split(' ');
        let mut size = parts.next().unwrap_or_default().split('x').map(str::parse::<u32>);
        let mut next_size = || size.next().and_then(Result::ok).ok_or_else(bad);
        let (m, n, k) = (next_size()?, next_size()?, next_size()?);
        if size.next().is_some() {
            return Err(bad());
        }
        let mut next_type = || parts.next().and_then(ComponentType::parse).ok_or_else(bad);
        let (a, b, c, result) = (next_type()?, next_type()?, next_type()?, next_type()?);
        let saturating = match parts.next() {
            None => false,
            Some("saturating") if parts.next().is_none() => true,
            Some(_) => return Err(bad()),
        };
        Ok(MatrixShape { m, n, k, a, b, c, result, saturating })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_round_trip() {
        for text in
            ["16x8x16 f16 f16 f32 f32", "8x8x32 i8 i8 i32 i32 saturating", "16x16x16 bf16 bf16 f32 f32"]
        {
            assert_eq!(text.parse::<MatrixShape>().unwrap().to_string(), text);
        }
        for bad in
            ["", "16x16 f16 f16 f32 f32", "1x1x1x1 f16 f16 f16 f16", "1x1x1 f16", "1x1x1 f16 f16 f16 f16 sat"]
        {
            assert!(bad.parse::<MatrixShape>().is_err(), "{bad}");
        }
        assert_eq!(ComponentType::from_vulkan(1_000_141_000), Some(ComponentType::BF16));
        assert_eq!(ComponentType::from_vulkan(77), None);
    }
}
