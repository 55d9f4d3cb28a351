//! The element types of programs as graphs have them.

use halite_formats::pte::{DataType, ScalarType};
use halite_ops::DType;

use crate::graph::ElementType;

/// The type of a plan's tensor, if graphs have it.
pub(super) fn element_of(scalar: ScalarType) -> Option<ElementType> {
    Some(match scalar {
        ScalarType::BOOL => ElementType::Bool,
        ScalarType::BYTE => DType::U8.into(),
        ScalarType::CHAR => DType::I8.into(),
        ScalarType::SHORT => DType::I16.into(),
        ScalarType::INT => DType::I32.into(),
        ScalarType::LONG => DType::I64.into(),
        ScalarType::HALF => DType::F16.into(),
        ScalarType::BFLOAT16 => DType::BF16.into(),
        ScalarType::FLOAT => DType::F32.into(),
        ScalarType::DOUBLE => DType::F64.into(),
        _ => return None,
    })
}

/// The type of a tensor inside of a delegate.
pub(super) fn element_inside(data: DataType) -> ElementType {
    match data {
        DataType::Bool => ElementType::Bool,
        DataType::UInt8 => DType::U8.into(),
        DataType::Int8 => DType::I8.into(),
        DataType::Int32 => DType::I32.into(),
        DataType::Int64 => DType::I64.into(),
        DataType::Float16 => DType::F16.into(),
        DataType::Float32 => DType::F32.into(),
        DataType::Float64 => DType::F64.into(),
    }
}

/// The largest 16-bit float.
const LARGEST_HALF: f64 = 65_504.0;

/// A number of the file as an element of a type. Masks are often the least 32-bit float: in a delegate that computes in halves it is
/// the least of these and not infinite, so that rows of which all is masked have a softmax.
pub(super) fn finite_in(element: ElementType, value: f64) -> f64 {
    let half = element == DType::F16.into() && value.is_finite();
    if half { value.clamp(-LARGEST_HALF, LARGEST_HALF) } else { value }
}
