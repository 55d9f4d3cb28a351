//! Convolutions of floats that leave out taps in the padding, for weights that are infinite or NaN: a product for each tap.
//! The kernels of convolutions multiply padding as zeros, and so would make NaN of it.

use halite_formats::tosa::ElementType as Tosa;
use halite_ops::{DType, expression::Function, pad::Border};

use super::super::Result;
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

/// Most taps that are computed one by one.
const MOST_TAPS: u64 = 256;

/// How results and elements meet along one axis: `result * stride + offset == element * spread` for a tap.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// From one result to the next, in elements.
    pub(super) stride: u64,
    /// From one element to the next, in results; of transposed convolutions.
    pub(super) spread: u64,
    /// From one tap to the next.
    pub(super) dilation: i64,
    /// The first tap's distance from the result, in steps of the finer grid.
    pub(super) first: i64,
    /// Number of results.
    pub(super) results: u64,
}

impl Line {
    /// The elements that meet a result at a tap, and the first of these results.
    fn met(&self, tap: u64, size: u64) -> Option<(Range, u64)> {
        let offset = self.first + tap as i64 * self.dilation;
        if self.spread == 1 {
            let (stride, size) = (self.stride as i64, size as i64);
            let first = (-offset).max(0).div_ceil_of(stride);
            let end = (size - offset).max(0).div_ceil_of(stride).min(self.results as i64);
            let count = u64::try_from(end - first).ok().filter(|count| *count > 0)?;
            let start = (first * stride + offset) as u64;
            let range = Range { start, step: stride, count };
            return Some((range, first as u64));
        }
        // Results at `element * spread - offset`.
        let spread = self.spread as i64;
        let first = offset.max(0).div_ceil_of(spread);
        let end = (self.results as i64 + offset).max(0).div_ceil_of(spread).min(size as i64);
        let count = u64::try_from(end - first).ok().filter(|count| *count > 0)?;
        let at = (first * spread - offset) as u64;
        Some((Range { start: first as u64, step: 1, count }, at))
    }
}

trait DivCeil {
    fn div_ceil_of(self, by: i64) -> i64;
}

impl DivCeil for i64 {
    /// Of a number that is not negative.
    fn div_ceil_of(self, by: i64) -> i64 {
        (self + by - 1) / by
    }
}

/// Whether a constant has infinities or NaN among its elements.
pub(super) fn has_special(b: &Builder, tensor: TensorId, element: Tosa) -> bool {
    let Some(bytes) = &b.tensor(tensor).constant else { return false };
    let pairs =
        |infinity: u16| bytes.as_chunks().0.iter().any(|c| u16::from_le_bytes(*c) & infinity == infinity);
    match element {
        Tosa::F32 => bytes.as_chunks().0.iter().any(|c| !f32::from_le_bytes(*c).is_finite()),
        Tosa::F16 => pairs(0x7C00),
        Tosa::BF16 => pairs(0x7F80),
        Tosa::F8E4M3 => bytes.iter().any(|bits| bits & 0x7F == 0x7F),
        Tosa::F8E5M2 => bytes.iter().any(|bits| bits & 0x7C == 0x7C),
        _ => false,
    }
}

/// Sums of `x`, images x places x channels, all `f32`, with a filter of taps x channels x filters, or, where `depthwise`, of
/// taps x channels x filters of each; `None` where there are too many taps.
pub(super) fn convolved(
    b: &mut Builder,
    x: TensorId,
    filter: TensorId,
    lines: &[Line],
    depthwise: bool,
) -> Result<Option<TensorId>> {
    let rank = lines.len();
    let (dims, taps) = (b.dims(x).to_vec(), b.dims(filter).to_vec());
    if taps[..rank].iter().fold(1u64, |n, size| n.saturating_mul(*size)) > MOST_TAPS {
        return Ok(None);
    }
    let [channels, filters] = [taps[rank], taps[rank + 1]];
    let out = if depthwise { channels.saturating_mul(filters) } else { filters };
    let mut shape = vec![dims[0]];
    shape.extend(lines.iter().map(|line| line.results));
    shape.push(out);
    let zero = b.float(DType::F32, 0.0)?;
    let mut sum = b.expand(zero, &shape)?;
    for place in 0..taps[..rank].iter().product::<u64>() {
        let mut rest = place;
        let mut tap = vec![0; rank];
        for d in (0..rank).rev() {
            tap[d] = rest % taps[d];
            rest /= taps[d];
        }
        let met: Option<Vec<_>> = (0..rank).map(|d| lines[d].met(tap[d], dims[d + 1])).collect();
        let Some(met) = met else { continue };
        let weights = weights_of(b, filter, &tap)?;
        let mut ranges = vec![Range::all(dims[0])];
        ranges.extend(met.iter().map(|(range, _)| *range));
        ranges.push(Range::all(dims[rank + 1]));
        let part = b.slice(x, &ranges)?;
        let product = if depthwise { each(b, part, weights)? } else { b.matmul(part, weights)? };
        let product = placed(b, product, lines, &met)?;
        sum = b.binary(Function::Add, sum, product)?;
    }
    Ok(Some(sum))
}

/// The weights of one tap: channels x filters.
fn weights_of(b: &mut Builder, filter: TensorId, tap: &[u64]) -> Result<TensorId> {
    let dims = b.dims(filter).to_vec();
    let (last, rank) = (dims[tap.len()..].to_vec(), tap.len());
    let mut ranges: Vec<Range> = tap.iter().map(|at| Range { start: *at, step: 1, count: 1 }).collect();
    ranges.extend(dims[rank..].iter().map(|size| Range::all(*size)));
    let weights = b.slice(filter, &ranges)?;
    b.reshape(weights, &last)
}

/// Each channel by the weights of its filters.
fn each(b: &mut Builder, part: TensorId, weights: TensorId) -> Result<TensorId> {
    let dims = b.dims(part).to_vec();
    let apart = b.reshape(part, &[&dims[..], &[1]].concat())?;
    let made = b.binary(Function::Mul, apart, weights)?;
    let mut wide = dims.clone();
    *wide.last_mut().expect("images have channels") *= b.dims(weights)[1];
    b.reshape(made, &wide)
}

/// Products where their results lie, with zeros around and between them.
fn placed(b: &mut Builder, mut product: TensorId, lines: &[Line], met: &[(Range, u64)]) -> Result<TensorId> {
    let rank = lines.len();
    for (d, line) in lines.iter().enumerate() {
        product = spread(b, product, d + 1, line.spread, 0)?;
    }
    let mut borders = vec![(0, 0); rank + 2];
    for (d, (_, first)) in met.iter().enumerate() {
        let end = first + b.dims(product)[d + 1];
        borders[d + 1] = (*first as i64, lines[d].results as i64 - end as i64);
    }
    b.pad(product, &borders, Border::Constant, 0.0)
}

/// An axis with `stride - 1` zeros between its places.
pub(super) fn spread(b: &mut Builder, x: TensorId, axis: usize, stride: u64, zero: i64) -> Result<TensorId> {
    let dims = b.dims(x).to_vec();
    if stride == 1 {
        return Ok(x);
    }
    let after = stride as i64 - 1;
    let mut apart = dims.clone();
    apart.insert(axis + 1, 1);
    let x = b.reshape(x, &apart)?;
    let mut borders = vec![(0, 0); apart.len()];
    borders[axis + 1].1 = after;
    let wide = b.pad(x, &borders, Border::Constant, zero as f64)?;
    let mut joined = dims.clone();
    joined[axis] = joined[axis].saturating_mul(stride);
    let wide = b.reshape(wide, &joined)?;
    let mut borders = vec![(0, 0); dims.len()];
    borders[axis].1 = -after;
    b.pad(wide, &borders, Border::Constant, zero as f64)
}
