//! Tensors in host memory: their text form (parse and print as IREE's tools do), `.npy` and raw files, and comparison
//! with tolerances.
//!
//! Text, files and expected values come from people and programs we do not trust: nothing here panics on them, and
//! nothing allocates more than the caller asked for or the file holds.

mod compare;
mod element;
mod float8;
mod input;
pub mod npy;
mod number;
mod print;
mod text;

use halite_abi::ElementType;
use halite_abi::{Result, Status, status};

pub use compare::{Mismatch, Tolerance, compare};
pub use element::element_to_f64;
pub use input::{ArgumentKind, HostValue, InputReader};
pub use number::{format_g, parse_f32, parse_f64, parse_i32, parse_i64};
pub use print::Printed;

use crate::Shape;

/// A dense row-major tensor in host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor {
    /// Type of one element.
    pub element_type: ElementType,
    /// Dimensions, outermost first; empty for rank 0.
    pub shape: Shape,
    /// Little-endian elements; exactly [`ElementType::dense_byte_length`] bytes.
    pub data: Vec<u8>,
}

impl HostTensor {
    /// A tensor of these bytes. INVALID_ARGUMENT when their number does not fit type and shape.
    pub fn new(element_type: ElementType, shape: impl Into<Shape>, data: Vec<u8>) -> Result<Self> {
        let shape = shape.into();
        let expected = byte_length(element_type, &shape)?;
        if data.len() != expected {
            return Err(status!(
                InvalidArgument,
                "a tensor {} holds {expected} bytes but {} were given",
                describe(element_type, &shape),
                data.len()
            ));
        }
        Ok(HostTensor { element_type, shape, data })
    }

    /// A tensor of zeros. RESOURCE_EXHAUSTED when the host has no memory for it.
    pub fn zeros(element_type: ElementType, shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        let length = byte_length(element_type, &shape)?;
        let data = halite_abi::room::zeros(length).map_err(|_| no_memory(length))?;
        Ok(HostTensor { element_type, shape, data })
    }

    /// Number of elements.
    pub fn element_count(&self) -> u64 {
        self.shape.iter().fold(1u64, |n, d| n.saturating_mul(*d))
    }

    /// Shape and type as text, such as `4x8xf32`.
    pub fn metadata(&self) -> String {
        describe(self.element_type, &self.shape)
    }

    /// Text form `4x8xf32=[...]`, with at most `max_elements` elements; what is cut shows as `...`.
    pub fn display(&self, max_elements: u64) -> Printed<'_> {
        Printed::new(self, max_elements)
    }

    /// Element `index` as text, as [`HostTensor::display`] prints it; empty beyond the end.
    pub fn element_text(&self, index: u64) -> String {
        let mut text = String::new();
        element::Codec::of(self.element_type).format(&self.data, index, &mut text);
        text
    }
}

/// Shape and type as text, such as `4x8xf32`; `f32` for rank 0.
pub fn describe(element_type: ElementType, shape: &[u64]) -> String {
    let mut text = String::new();
    for dim in shape {
        text.push_str(&format!("{dim}x"));
    }
    text + &element_type.to_string()
}

/// Bytes of a dense tensor, as a host size.
fn byte_length(element_type: ElementType, shape: &[u64]) -> Result<usize> {
    element_type.dense_byte_length(shape).and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
        status!(
            OutOfRange,
            "size of tensor {} overflows the host's address space",
            describe(element_type, shape)
        )
    })
}

/// An empty vector with room for `length` bytes.
fn reserve(length: usize) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    data.try_reserve_exact(length).map_err(|_| no_memory(length))?;
    Ok(data)
}

fn no_memory(length: usize) -> Status {
    status!(ResourceExhausted, "no host memory for a tensor of {length} bytes")
}

#[cfg(test)]
mod tests;
