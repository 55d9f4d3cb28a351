//! The element types of TOSA as graphs hold them.

use halite_formats::tosa;
use halite_ops::DType;

use crate::graph::ElementType;

/// How a graph holds a type: 4-bit integers as bytes and 48-bit integers in 64 bits, with their signs; 8-bit floats as
/// their bits, in `u8`.
pub fn element_of(element: tosa::ElementType) -> ElementType {
    match element {
        tosa::ElementType::Bool => ElementType::Bool,
        tosa::ElementType::I4 | tosa::ElementType::I8 => DType::I8.into(),
        tosa::ElementType::I16 => DType::I16.into(),
        tosa::ElementType::I32 => DType::I32.into(),
        tosa::ElementType::I48 | tosa::ElementType::I64 => DType::I64.into(),
        tosa::ElementType::F16 => DType::F16.into(),
        tosa::ElementType::BF16 => DType::BF16.into(),
        tosa::ElementType::F32 => DType::F32.into(),
        tosa::ElementType::F8E4M3 | tosa::ElementType::F8E5M2 => DType::U8.into(),
    }
}
