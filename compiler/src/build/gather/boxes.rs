//! Updates whose known indices count through a box of the data, as those of `x[:, 1:, 2:5] = y`: the parts around the box and the
//! updates, joined, instead of a search for what each index tells.

use super::super::{Builder, Range, Result};
use crate::graph::{TensorId, elements};

/// Updates from which on a kernel that takes them one by one is slower.
const MANY: u64 = 32;
/// What part of the data a box is at least, one of so many: less is rather written over the data.
const PART: u64 = 8;

impl Builder {
    /// Where slices of data lie that known indices `[…, depth]` tell of, if they count through a box in its order, and joining is
    /// worth it: ranges of the first `depth` dimensions.
    pub(super) fn box_of(&self, data: TensorId, indices: TensorId) -> Option<Vec<Range>> {
        if self.is_open(&[data, indices]) {
            return None;
        }
        let depth = usize::try_from(*self.dims(indices).last()?).ok()?;
        let dims = &self.dims(data)[..depth];
        let slices: u64 = elements(&self.dims(indices)[..self.dims(indices).len() - 1]);
        let all = elements(dims);
        if slices == 0 || (slices != all && (slices < MANY || slices < all / PART)) {
            return None;
        }
        self.joined_box(indices, dims).or_else(|| counted(&self.ints(indices)?, dims))
    }

    /// Data with the updates in a box, whose slices are all behind its dimensions.
    ///
    /// # Errors
    /// The graph has become too large.
    pub(super) fn with_box(&mut self, data: TensorId, updates: TensorId, of: &[Range]) -> Result<TensorId> {
        let dims = self.dims(data).to_vec();
        let own: Vec<u64> = of.iter().map(|range| range.count).chain(dims[of.len()..].to_vec()).collect();
        let updates = self.reshape(updates, &own)?;
        self.joined(data, updates, of, 0)
    }

    /// The same for the dimensions from `axis` on; before, the data are the box.
    fn joined(&mut self, data: TensorId, updates: TensorId, of: &[Range], axis: usize) -> Result<TensorId> {
        let dims = self.dims(data).to_vec();
        let Some(axis) = (axis..of.len()).find(|axis| of[*axis].count != dims[*axis]) else {
            return Ok(updates);
        };
        let Range { start, count, .. } = of[axis];
        let part = |b: &mut Self, from: u64, to: u64| {
            let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
            ranges[axis] = Range { start: from, step: 1, count: to - from };
            b.slice(data, &ranges)
        };
        let mut parts = Vec::new();
        if start > 0 {
            parts.push(part(self, 0, start)?);
        }
        let middle = part(self, start, start + count)?;
        parts.push(self.joined(middle, updates, of, axis + 1)?);
        if start + count < dims[axis] {
            parts.push(part(self, start + count, dims[axis])?);
        }
        self.concat(&parts, axis)
    }
}

/// The box of `dims` through which rows of indices count, the last dimension fastest.
fn counted(indices: &[i64], dims: &[u64]) -> Option<Vec<Range>> {
    let place = |row: &[i64], k: usize| {
        let (index, size) = (row[k], dims[k]);
        let index = if index < 0 { index.checked_add_unsigned(size)? } else { index };
        u64::try_from(index).ok().filter(|index| *index < size)
    };
    let mut rows = indices.chunks_exact(dims.len());
    let (first, last) = (rows.next()?, rows.next_back());
    let last = last.unwrap_or(first);
    let mut ranges = Vec::new();
    for k in 0..dims.len() {
        let (start, end) = (place(first, k)?, place(last, k)?);
        ranges.push(Range { start, step: 1, count: end.checked_sub(start)? + 1 });
    }
    let counts: Vec<u64> = ranges.iter().map(|range| range.count).collect();
    if elements(&counts) != (indices.len() / dims.len()) as u64 {
        return None;
    }
    let mut at = vec![0; dims.len()];
    for row in indices.chunks_exact(dims.len()) {
        let right = |k: usize| place(row, k) == Some(ranges[k].start + at[k]);
        if !(0..dims.len()).all(right) {
            return None;
        }
        for k in (0..dims.len()).rev() {
            at[k] += 1;
            if at[k] < counts[k] {
                break;
            }
            at[k] = 0;
        }
    }
    Some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(indices: &[i64], dims: &[u64]) -> Option<Vec<(u64, u64)>> {
        Some(counted(indices, dims)?.iter().map(|range| (range.start, range.count)).collect())
    }

    #[test]
    fn only_what_counts_through_a_box_is_one() {
        assert_eq!(told(&[1, 2, 3], &[5]), Some(vec![(1, 3)]));
        assert_eq!(told(&[-2, 4], &[5]), Some(vec![(3, 2)]), "from the end");
        assert_eq!(told(&[0, 2, 0, 3, 1, 2, 1, 3], &[2, 9]), Some(vec![(0, 2), (2, 2)]));
        assert_eq!(told(&[4], &[5]), Some(vec![(4, 1)]));
        assert_eq!(told(&[1, 3, 5], &[6]), None, "steps");
        assert_eq!(told(&[2, 1, 3], &[5]), None, "another order");
        assert_eq!(told(&[0, 2, 1, 2, 0, 3, 1, 3], &[2, 9]), None, "columns");
        assert_eq!(told(&[1, 1, 2], &[5]), None, "twice");
        assert_eq!(told(&[4, 5], &[5]), None, "outside");
        assert_eq!(told(&[i64::MIN, 0], &[5]), None);
    }
}
