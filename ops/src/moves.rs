//! What operations that only move elements share: how an index falls into coordinates, strided walks over tensors, units
//! larger than an element, and grids. `include/moves.glsl` is the other half.

use halite_sizes::Size;
use serde::{Deserialize, Deserializer};

use crate::{DType, Values};

/// Dimensions that kernels count.
pub const MOST_DIMS: usize = 6;

/// A list of numbers; one number is a list of one, as text has no other form for it.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Numbers<T> {
        Many(Vec<T>),
        One(T),
        None(String),
    }
    match Numbers::deserialize(from)? {
        Numbers::Many(list) => Ok(list),
        Numbers::One(number) => Ok(vec![number]),
        Numbers::None(text) if text.is_empty() => Ok(Vec::new()),
        Numbers::None(text) => Err(serde::de::Error::custom(format!("'{text}' is no list of numbers"))),
    }
}

/// A list of sizes that may be negative.
pub(super) fn signed<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Size>, D::Error> {
    let numbers: Vec<i64> = list(from)?;
    Ok(numbers.into_iter().map(Size::from).collect())
}

/// Part of signatures: elements of the same size move alike.
pub(super) fn size_name(dtype: DType) -> String {
    format!("b{}", dtype.size())
}

/// Product of sizes.
pub fn product(dims: &[Size]) -> Size {
    dims.iter().product()
}

/// Distance in elements from a place to the next in each dimension of a dense tensor.
pub fn dense_strides(dims: &[Size]) -> Vec<Size> {
    let mut strides = vec![Size::constant(1); dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d];
    }
    strides
}

/// Product of numbers; `u64::MAX` when it does not fit.
pub fn count(dims: &[u64]) -> u64 {
    dims.iter().fold(1, |n, d| n.saturating_mul(*d))
}

/// Sizes as plain numbers, for references on the host.
pub(super) fn numbers(dims: &[Size]) -> Vec<u64> {
    dims.iter().map(|size| size.exact()).collect()
}

/// Sizes as plain numbers, which may be negative.
pub(super) fn numbers_of(sizes: &[Size]) -> Vec<i64> {
    sizes.iter().map(|size| size.exact_signed()).collect()
}

/// Coordinates of the element with an index in a dense tensor.
pub(super) fn coordinates(mut index: u64, dims: &[u64]) -> Vec<u64> {
    let mut at = vec![0; dims.len()];
    for (at, dim) in at.iter_mut().zip(dims).rev() {
        *at = index % dim;
        index /= dim;
    }
    at
}

/// Elements by index; `fill` where there is none.
pub(super) fn pick(from: &Values, indices: impl Iterator<Item = Option<u64>>, fill: f64) -> Values {
    match from {
        Values::Float(v) => Values::Float(indices.map(|i| i.map_or(fill, |i| v[i as usize])).collect()),
        Values::Int(v) => Values::Int(indices.map(|i| i.map_or(fill as i64, |i| v[i as usize])).collect()),
    }
}

/// An index that may count from the end, if it is in range.
pub(super) fn in_range(index: i64, size: u64) -> Option<u64> {
    let size = i64::try_from(size).ok()?;
    let index = if index < 0 { index + size } else { index };
    (0..size).contains(&index).then_some(index as u64)
}

#[cfg(any(test, feature = "testing"))]
/// Random indices of a dimension: also negative ones, and now and then one out of range, of 64 bits also such whose lower half is in
/// range.
pub(super) fn sample_indices(count: u64, size: u64, dtype: DType, random: &mut dyn FnMut() -> u64) -> Values {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let mut one = || match random() {
        bits if bits.is_multiple_of(29) => {
            let beyond = (bits >> 40) as i64;
            let is_wide = dtype == DType::I64 && (bits >> 39) & 1 == 1;
            let inside = || beyond.checked_rem(size).unwrap_or(0);
            if is_wide { (inside() + 1).wrapping_mul(1 << 32) + inside() } else { size + beyond }
        }
        bits => (bits >> 8).checked_rem(2 * size as u64).map_or(0, |index| index as i64 - size),
    };
    Values::Int((0..count).map(|_| one()).collect())
}

/// Whether a type can hold indices; the reason when not.
pub(super) fn check_index_type(dtype: DType) -> Result<(), String> {
    match dtype {
        DType::I32 | DType::I64 => Ok(()),
        other => Err(format!("indices are i32 or i64, not {other}")),
    }
}
