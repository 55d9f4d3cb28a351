//! Coordinates of resized images, as exact fractions.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

/// Where a place of the result is in the source. Names are those of ONNX; `s` is source places per place of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coordinates {
    /// `(p + 1/2) * s - 1/2`.
    #[default]
    HalfPixel,
    /// The same, but 0 when the result has one place.
    PytorchHalfPixel,
    /// `p * (source - 1) / (result - 1)`, and 0 when the result has one place.
    AlignCorners,
    /// `p * s`.
    Asymmetric,
}

/// What is nearest to a coordinate. Names are those of ONNX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nearest {
    /// Rounded, halves down.
    #[default]
    RoundPreferFloor,
    /// Rounded, halves up.
    RoundPreferCeil,
    /// The place before.
    Floor,
    /// The place behind.
    Ceil,
}

/// A dimension: place p of the result is at `(p * factor + start) / divisor` of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Places of the source.
    pub source: u64,
    /// Places of the result.
    pub result: u64,
    /// Of a place.
    pub factor: i128,
    /// Of place 0.
    pub start: i128,
    /// Not 0.
    pub divisor: i128,
}

fn common(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { common(b, a % b) }
}

impl Axis {
    /// A dimension whose places of the result are `step.0 / step.1` of the source apart.
    pub fn new(source: u64, result: u64, step: (u64, u64), coordinates: Coordinates) -> Axis {
        let (num, den) = (i128::from(step.0), i128::from(step.1).max(1));
        let (factor, start, divisor) = match coordinates {
            Coordinates::AlignCorners | Coordinates::PytorchHalfPixel if result <= 1 => (0, 0, 1),
            Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => (2 * num, num - den, 2 * den),
            Coordinates::AlignCorners => (i128::from(source) - 1, 0, i128::from(result) - 1),
            Coordinates::Asymmetric => (num, 0, den),
        };
        let by = common(common(factor, start), divisor).max(1);
        Axis { source, result, factor: factor / by, start: start / by, divisor: divisor / by }
    }

    /// The place before, which may be -1, and how far behind it.
    pub fn before(&self, place: u64) -> (i64, f64) {
        let at = i128::from(place) * self.factor + self.start;
        let (whole, rest) = (at.div_euclid(self.divisor), at.rem_euclid(self.divisor));
        (whole as i64, rest as f64 / self.divisor as f64)
    }

    /// The nearest place of the source.
    pub fn nearest(&self, place: u64, rounding: Nearest) -> u64 {
        let (whole, part) = self.before(place);
        let up = match rounding {
            Nearest::RoundPreferFloor => part > 0.5,
            Nearest::RoundPreferCeil => part >= 0.5,
            Nearest::Floor => false,
            Nearest::Ceil => part > 0.0,
        };
        self.inside(whole + i64::from(up))
    }

    /// The nearest place that there is.
    pub fn inside(&self, place: i64) -> u64 {
        place.clamp(0, self.source as i64 - 1) as u64
    }
}

/// The same with numbers that may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Places of the source.
    pub source: Size,
    /// Places of the result.
    pub result: Size,
    /// Of a place.
    pub factor: Size,
    /// Of place 0.
    pub start: Size,
    /// Not 0.
    pub divisor: Size,
}

impl Line {
    /// A dimension whose places of the result are `step.0 / step.1` of the source apart.
    pub fn new(source: Size, result: Size, step: (Size, Size), coordinates: Coordinates) -> Line {
        if [source, result, step.0, step.1].iter().all(|size| size.is_constant()) {
            let axis =
                Axis::new(source.exact(), result.exact(), (step.0.exact(), step.1.exact()), coordinates);
            let number = |n: i128| Size::constant(i64::try_from(n).unwrap_or(i64::MAX));
            let (factor, start, divisor) = (number(axis.factor), number(axis.start), number(axis.divisor));
            return Line { source, result, factor, start, divisor };
        }
        let (num, den) = (step.0, step.1.max(1));
        // 0 where the result has one place.
        let several = (result - 1).min(1).max(0);
        let (factor, start, divisor) = match coordinates {
            Coordinates::HalfPixel => (num * 2, num - den, den * 2),
            Coordinates::PytorchHalfPixel => (num * 2 * several, (num - den) * several, den * 2),
            Coordinates::AlignCorners => ((source - 1) * several, 0.into(), (result - 1).max(1)),
            Coordinates::Asymmetric => (num, 0.into(), den),
        };
        Line { source, result, factor, start, divisor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_those_of_onnx() {
        let at = |coordinates, place| Axis::new(4, 8, (4, 8), coordinates).before(place);
        assert_eq!(at(Coordinates::HalfPixel, 0), (-1, 0.75));
        assert_eq!(at(Coordinates::HalfPixel, 3), (1, 0.25));
        assert_eq!(at(Coordinates::Asymmetric, 3), (1, 0.5));
        assert_eq!(at(Coordinates::AlignCorners, 7), (3, 0.0));
        assert_eq!(Axis::new(4, 1, (4, 1), Coordinates::PytorchHalfPixel).before(0), (0, 0.0));
        assert_eq!(Axis::new(4, 1, (4, 1), Coordinates::HalfPixel).before(0), (1, 0.5));
    }

    #[test]
    fn halves_round_both_ways() {
        let axis = Axis::new(4, 8, (4, 8), Coordinates::Asymmetric);
        let all = |rounding| [1, 3, 7].map(|place| axis.nearest(place, rounding));
        assert_eq!(all(Nearest::RoundPreferFloor), [0, 1, 3]);
        assert_eq!(all(Nearest::RoundPreferCeil), [1, 2, 3]);
        assert_eq!(all(Nearest::Floor), [0, 1, 3]);
        assert_eq!(all(Nearest::Ceil), [1, 2, 3]);
    }
}
