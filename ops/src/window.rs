//! Windows that slide over two dimensions: sizes, padding, and which element each tap meets.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

/// How images lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Images, channels, rows, columns; filters lie as filters, channels, rows, columns.
    #[default]
    Nchw,
    /// Images, rows, columns, channels; filters lie as rows, columns, channels, filters.
    Nhwc,
}

/// A window over rows and columns, in this order everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Size of what it slides over.
    pub input: [Size; 2],
    /// Taps.
    pub kernel: [u64; 2],
    /// Elements from one place to the next.
    pub strides: [u64; 2],
    /// Elements from one tap to the next.
    pub dilations: [u64; 2],
    /// Padding: top, left, bottom, right.
    pub pads: [u64; 4],
    /// Whether a last place counts that the input does not fill.
    pub ceil: bool,
}

/// No number of a window may be more, so that kernels can count with 32 bits, also in differences.
const LIMIT: u64 = 1 << 24;

impl Window {
    /// The reason when its numbers make no sense.
    ///
    /// # Errors
    /// A number is zero or too large.
    pub fn check(&self) -> Result<(), String> {
        let all = [&self.kernel[..], &self.strides, &self.dilations];
        if all.iter().any(|list| list.contains(&0)) || self.input.iter().any(|size| *size == 0) {
            return Err("rows, columns, the kernel, strides and dilations are at least 1".into());
        }
        let is_large = all.into_iter().flatten().chain(&self.pads).any(|v| *v > LIMIT);
        if is_large || self.input.iter().any(|size| *size > LIMIT) {
            return Err(format!("no size, stride, dilation or padding may be more than {LIMIT}"));
        }
        let reach = |d: usize| self.dilations[d].saturating_mul(self.kernel[d]);
        if reach(0).max(reach(1)) > LIMIT {
            return Err(format!("a kernel with its dilation may reach over {LIMIT} elements"));
        }
        Ok(())
    }

    /// Number of places, as ONNX counts them: those that fit into the padded input, rounded up with `ceil`, where a
    /// window that would begin behind the input does not count.
    pub fn output(&self) -> [Size; 2] {
        [0, 1].map(|d| {
            let padded = self.input[d] + self.pads[d] + self.pads[d + 2];
            let (reach, stride) = (self.dilations[d] * (self.kernel[d] - 1) + 1, self.strides[d]);
            if !self.ceil {
                return (padded + stride - reach).max(0) / stride;
            }
            if padded < reach {
                return Size::constant(0);
            }
            let places = (padded - reach).div_ceil(stride) + 1;
            // As many as begin in front of the input's end, or one less than fit.
            let begun = (self.input[d] + self.pads[d]).div_ceil(stride);
            places.min(begun.max(places - 1))
        })
    }

    /// Where tap `tap` of place `place` lies in the padded input.
    pub fn padded(&self, d: usize, place: u64, tap: u64) -> u64 {
        place * self.strides[d] + tap * self.dilations[d]
    }

    /// The element that a tap meets, or none in the padding.
    pub fn element(&self, d: usize, place: u64, tap: u64) -> Option<u64> {
        self.padded(d, place, tap).checked_sub(self.pads[d]).filter(|at| *at < self.input[d].exact())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(input: u64, kernel: u64, stride: u64, pads: [u64; 2], ceil: bool) -> Window {
        Window {
            input: [1.into(), input.into()],
            kernel: [1, kernel],
            strides: [1, stride],
            dilations: [1, 1],
            pads: [0, pads[0], 0, pads[1]],
            ceil,
        }
    }

    #[test]
    fn number_of_places() {
        assert_eq!(row(224, 3, 2, [1, 1], false).output(), [1, 112]);
        assert_eq!(row(224, 3, 2, [0, 1], false).output(), [1, 112]);
        assert_eq!(row(5, 2, 2, [0, 0], false).output(), [1, 2]);
        assert_eq!(row(5, 2, 2, [0, 0], true).output(), [1, 3]);
        assert_eq!(
            row(4, 1, 3, [1, 1], true).output(),
            [1, 2],
            "a third window would begin behind the input"
        );
        assert_eq!(row(2, 5, 1, [0, 0], false).output(), [1, 0]);
    }

    #[test]
    fn taps_meet_elements_or_padding() {
        let window = row(4, 3, 2, [1, 1], false);
        let taps = |place| [0, 1, 2].map(|tap| window.element(1, place, tap));
        assert_eq!((taps(0), taps(1)), ([None, Some(0), Some(1)], [Some(1), Some(2), Some(3)]));
        assert_eq!(row(4, 3, 2, [0, 2], false).element(1, 1, 2), None);
    }
}
