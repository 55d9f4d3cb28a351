//! The text form of tensors: `2x2xf32=[1 2][3 4]`.

use halite_abi::ElementType;
use halite_abi::{Result, status};

use super::{HostTensor, byte_length, element::Codec, reserve};
use crate::Shape;

impl HostTensor {
    /// Reads `[dims x]type=[data]`: dimensions separated by `x`; elements separated by blanks, commas or brackets,
    /// which mean nothing; one element fills the tensor; none are zeros. OUT_OF_RANGE for too few or too many.
    pub fn parse(text: &str) -> Result<Self> {
        let (metadata, data) = split(text)?;
        let (element_type, shape) = parse_metadata(metadata)?;
        Self::parse_elements(element_type, shape, data)
    }

    /// Reads the elements of a tensor whose type and shape are known.
    pub fn parse_elements(element_type: ElementType, shape: Shape, text: &str) -> Result<Self> {
        let capacity: u64 = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).unwrap_or(u64::MAX);
        let length = byte_length(element_type, &shape)?;
        let mut tokens = tokens(text);
        let Some(first) = tokens.next() else { return Self::zeros(element_type, shape) };
        let codec = Codec::of(element_type);
        let Some(second) = tokens.next() else { return splat(codec, element_type, shape, first, length) };
        // More elements than tokens cannot be, so the text bounds the allocation too.
        let mut data = reserve(length.min(text.len().saturating_mul(8)))?;
        let mut count = 0;
        for token in [first, second].into_iter().chain(tokens) {
            if count == capacity {
                return Err(status!(
                    OutOfRange,
                    "output data overflow: element_capacity={capacity} < dst_i={count}; more elements are given \
                     than the shape holds"
                ));
            }
            codec.parse(token, element_type, count, &mut data)?;
            count += 1;
        }
        if count < capacity {
            return Err(status!(
                OutOfRange,
                "input data string underflow: dst_i={count} < element_capacity={capacity}; give all elements, or \
                 one to fill the tensor with"
            ));
        }
        Self::new(element_type, shape, data)
    }
}

fn splat(
    codec: Codec,
    element_type: ElementType,
    shape: Shape,
    token: &str,
    length: usize,
) -> Result<HostTensor> {
    let mut pattern = Vec::new();
    codec.parse(token, element_type, 0, &mut pattern)?;
    if let Codec::Packed { bits } = codec {
        for index in 1..8 / bits as u64 {
            codec.parse(token, element_type, index, &mut pattern)?;
        }
    }
    let mut data = reserve(length)?;
    data.extend_from_slice(&pattern[..pattern.len().min(length)]);
    // Doubling: what is there is always a whole number of patterns.
    while data.len() < length {
        let step = data.len().min(length - data.len());
        data.extend_from_within(..step);
    }
    HostTensor::new(element_type, shape, data)
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']')).filter(|t| !t.is_empty())
}

/// Splits at the `=` into type and elements. Without `=` the text must at least have dimensions.
pub(super) fn split(text: &str) -> Result<(&str, &str)> {
    match text.split_once('=') {
        Some(parts) => Ok(parts),
        None if text.contains('x') => Ok((text, "")),
        None => Err(status!(
            InvalidArgument,
            "invalid tensor specification '{text}', requires at least a shape/type (`4x2xf32=...`)"
        )),
    }
}

/// Reads `4x8xf32`; rank 0 is just the type.
pub(super) fn parse_metadata(text: &str) -> Result<(ElementType, Shape)> {
    // The type is what follows the last `x`; opaque types may themselves be written with one (`2xx32`).
    let (dims, type_text) = match text.rsplit_once('x') {
        Some((dims, bits)) if dims.ends_with('x') && bits.bytes().all(|b| b.is_ascii_digit()) => {
            (dims.strip_suffix('x').filter(|d| !d.is_empty()), &text[dims.len()..])
        }
        Some(("", bits)) if bits.bytes().all(|b| b.is_ascii_digit()) && !bits.is_empty() => (None, text),
        Some(("", type_text)) => (None, type_text),
        Some((dims, type_text)) => (Some(dims), type_text),
        None => (None, text),
    };
    let mut shape = Shape::new();
    for (i, dim) in dims.into_iter().flat_map(|d| d.split('x')).enumerate() {
        let digits = !dim.is_empty() && dim.bytes().all(|b| b.is_ascii_digit());
        let value = digits.then(|| dim.parse::<u64>().ok()).flatten();
        shape.push(value.ok_or_else(|| {
            status!(
                InvalidArgument,
                "shape[{i}] invalid value '{dim}' of '{}'; dimensions are whole numbers separated by 'x'",
                dims.unwrap_or_default()
            )
        })?);
    }
    Ok((type_text.parse()?, shape))
}
