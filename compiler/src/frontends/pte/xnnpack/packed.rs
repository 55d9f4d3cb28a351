//! Weights of 4 bits as bytes, and weights with scales for blocks as floats.

use halite_formats::pte::{XnnScales as Scales, XnnType, XnnValue};
use halite_ops::{DType, Values as Numbers};

use super::Result;
use crate::{build::Builder, graph::TensorId};

/// The integer that stands for 0.
const MIDDLE: i64 = 8;

/// Weights as `i8`, each in a byte, with 0 for 0.
pub(super) fn signed(b: &mut Builder, about: &XnnValue, tensor: TensorId) -> Result<TensorId> {
    if about.datatype != XnnType::U4 {
        return Ok(tensor);
    }
    let Some(bytes) = b.tensor(tensor).constant.clone() else {
        return Err(b.unsupported("numbers of 4 bits that are no constants"));
    };
    let dims: Vec<u64> = about.dims.iter().map(|d| u64::from(*d)).collect();
    let length = dims.last().copied().unwrap_or(0) as usize;
    let half = length.div_ceil(2).max(1);
    let mut all = Vec::with_capacity(bytes.len() * 2);
    for row in bytes.chunks(half) {
        let numbers = row.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        all.extend(numbers.take(length).map(|number| i64::from(number) - MIDDLE));
    }
    b.values(DType::I8, &dims, &Numbers::Int(all))
}

/// The type in which scales of blocks are stored.
pub(super) fn stored(scales: &Scales) -> DType {
    if matches!(scales, Scales::Listed(_)) { DType::F32 } else { DType::BF16 }
}

/// Blocks of a row; none where rows are not whole blocks.
pub(super) fn blocks(dims: &[u64], size: u64) -> Option<u64> {
    match dims {
        [_, length] if size > 0 && length.is_multiple_of(size) => Some(length / size),
        _ => None,
    }
}
