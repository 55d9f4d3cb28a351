//! Coordinates of resized images, as exact fractions.

use halite_ops::axis::Line;
use halite_sizes::Size;

use crate::Unfit;

/// Numbers for a kernel: source places, factor, start, divisor.
pub(super) fn told(line: &Line) -> Result<[Size; 4], Unfit> {
    let last = line.factor * (line.result - 1).max(0) + line.start;
    let largest = last.max(line.start).max(-line.start) * 2 + line.divisor * 3;
    if largest >= 1i64 << 31 || line.source >= 1i64 << 31 {
        return Err(Unfit("counts places as fractions with 31 bits, which these sizes exceed".into()));
    }
    Ok([line.source, line.factor, line.start, line.divisor])
}
