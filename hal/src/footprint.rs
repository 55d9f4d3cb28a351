//! What a dispatch accesses, as drivers can tell from its code.

use smallvec::SmallVec;

/// What a dispatch does to a part of one binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The binding, in the dispatch's order.
    pub binding: u32,
    /// Whether it writes; it reads otherwise.
    pub write: bool,
    /// The bytes; `None` for any of the binding.
    pub bytes: Option<ByteRuns>,
}

/// Bytes of a binding: runs of `width` bytes that begin at `start` plus any multiple of each stride.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteRuns {
    /// First byte of the first run, counted from the binding's first. May be negative: what is outside of the binding is not
    /// touched.
    pub start: i64,
    /// Bytes of a run.
    pub width: u64,
    /// Distances of runs, with how many runs there are at that distance.
    pub strides: SmallVec<[(u64, u64); 4]>,
}

impl ByteRuns {
    /// First byte, and the byte behind the last one. Saturates.
    pub fn ends(&self) -> (i64, i64) {
        let more = self.strides.iter().fold(self.width, |sum, (stride, count)| {
            sum.saturating_add(stride.saturating_mul(count.saturating_sub(1)))
        });
        (self.start, self.start.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)))
    }

    /// Whether some distance shows that these bytes and others, both counted from the same byte, have none in common
    /// though they lie in each other's midst, as the columns of a matrix do.
    pub fn interleaves(&self, other: &ByteRuns) -> bool {
        let pitches = self.strides.iter().chain(&other.strides).map(|(stride, _)| *stride);
        pitches.filter(|pitch| *pitch > 0).any(|pitch| {
            let (Some((a, a_width)), Some((b, b_width))) = (self.within(pitch), other.within(pitch)) else {
                return false;
            };
            // Both begin within one pitch and may reach into the next.
            let behind = |first: u64, second: u64, width: u64| {
                let gap = (second + pitch - first) % pitch;
                gap >= width
            };
            behind(a, b, a_width) && behind(b, a, b_width)
        })
    }

    /// Where in each stretch of `pitch` bytes the bytes lie: first byte and number of bytes that cover them. `None` when
    /// they fill all of it.
    fn within(&self, pitch: u64) -> Option<(u64, u64)> {
        let width = self
            .strides
            .iter()
            .filter(|(stride, _)| stride % pitch != 0)
            .fold(self.width, |sum, (stride, count)| {
                sum.saturating_add(stride.saturating_mul(count.saturating_sub(1)))
            });
        let first = self.start.rem_euclid(i64::try_from(pitch).ok()?);
        (width < pitch).then_some((first.unsigned_abs(), width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(start: i64, width: u64, strides: &[(u64, u64)]) -> ByteRuns {
        ByteRuns { start, width, strides: strides.into() }
    }

    #[test]
    fn columns_interleave() {
        let (left, right) = (runs(0, 16, &[(64, 8)]), runs(16, 48, &[(64, 8)]));
        assert!(left.interleaves(&right) && right.interleaves(&left));
        assert!(!runs(0, 17, &[(64, 8)]).interleaves(&right), "one byte in common");
        assert!(!left.interleaves(&runs(60, 8, &[(64, 8)])), "it reaches into the next row");
        assert!(!left.interleaves(&runs(0, 512, &[])), "all of it");
        assert!(left.interleaves(&runs(64 * 3 + 20, 4, &[])), "one element between");
        assert!(runs(0, 4, &[(32, 2), (64, 8)]).interleaves(&runs(8, 4, &[(64, 8)])));
        assert!(!runs(0, 4, &[(32, 2), (64, 8)]).interleaves(&runs(32, 4, &[(64, 8)])));
    }

    #[test]
    fn ends_cover_all_runs() {
        assert_eq!(runs(-4, 8, &[(64, 3)]).ends(), (-4, 132));
        assert_eq!(runs(0, 1, &[(u64::MAX, 3)]).ends(), (0, i64::MAX));
    }
}
