//! Coordinates of resized images, as exact fractions.

use halite_ops::axis::Axis;

use crate::Unfit;

/// Numbers for a kernel: source places, factor, start, divisor.
pub(super) fn told(axis: &Axis) -> Result<[u32; 4], Unfit> {
    let last = axis.factor * (i128::from(axis.result) - 1).max(0) + axis.start;
    let largest = 2 * last.max(axis.start.abs()) + 3 * axis.divisor;
    if largest >= 1 << 31 || axis.source >= 1 << 31 {
        return Err(Unfit("counts places as fractions with 31 bits, which these sizes exceed".into()));
    }
    Ok([axis.source as u32, axis.factor as u32, axis.start as i32 as u32, axis.divisor as u32])
}
