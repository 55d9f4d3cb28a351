//! How far a kernel's result may be from the reference's.

use halite_sizes::Size;

use crate::DType;

/// How far a float result may be off: `|got - expected| <= absolute + relative * |expected|`. Integer results are
/// exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Part that does not depend on the value.
    pub absolute: f64,
    /// Part that grows with the value.
    pub relative: f64,
}

impl Tolerance {
    /// Nothing but the same value.
    pub const EXACT: Tolerance = Tolerance { absolute: 0.0, relative: 0.0 };

    /// For a sum of `length` products of magnitude up to `magnitude` each and of random signs, accumulated in `accumulator`
    /// and rounded to `result`. Each addition is off by at most u * |partial sum|, u being half of epsilon (Higham, Accuracy
    /// and Stability of Numerical Algorithms, section 4.2). Partial sums of n terms of random signs grow with the root of n,
    /// so that the errors of one long chain of additions, which are random too, come to about 0.07 * n * epsilon for terms
    /// that are uniform products; short chains, trees and rounded operands add less. The largest of millions of sums has been
    /// seen at ten times that. A lost term is still far off.
    pub fn of_sum(length: impl Into<Size>, magnitude: f64, accumulator: DType, result: DType) -> Tolerance {
        let terms = length.into().as_f64().max(1.0);
        Tolerance {
            absolute: (8.0 * terms.sqrt() + terms) * accumulator.epsilon() * magnitude + result.min_normal(),
            relative: result.epsilon(),
        }
    }

    /// For a value computed in `computed` by functions that are off by `ulps` units in the last place, rounded to
    /// `result`.
    pub fn of_value(ulps: f64, computed: DType, result: DType) -> Tolerance {
        Tolerance { absolute: result.min_normal(), relative: ulps * computed.epsilon() + result.epsilon() }
    }

    /// Whether `got` is near enough. NaN matches NaN, and an infinity itself; where the expected value is near the
    /// largest of its type, an infinity of the same sign counts too.
    pub fn accepts(&self, got: f64, expected: f64, dtype: DType) -> bool {
        if expected.is_nan() || got.is_nan() {
            return expected.is_nan() && got.is_nan();
        }
        if got == expected {
            return true;
        }
        if got.is_infinite() || expected.is_infinite() {
            let slack = self.absolute + self.relative * expected.abs();
            let nearest = dtype.round(expected + slack.copysign(expected));
            return got.is_infinite() && nearest == got;
        }
        (got - expected).abs() <= self.absolute + self.relative * expected.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_values() {
        let t = Tolerance::of_value(1.0, DType::F32, DType::F16);
        assert!(t.accepts(f64::NAN, f64::NAN, DType::F16) && !t.accepts(1.0, f64::NAN, DType::F16));
        assert!(t.accepts(f64::INFINITY, f64::INFINITY, DType::F16));
        assert!(!t.accepts(f64::INFINITY, f64::NEG_INFINITY, DType::F16));
        assert!(t.accepts(f64::INFINITY, 65519.0, DType::F16), "the next value of the type is infinite");
        assert!(!t.accepts(f64::INFINITY, 60000.0, DType::F16));
        assert!(
            Tolerance::EXACT.accepts(3.0, 3.0, DType::I32) && !Tolerance::EXACT.accepts(3.0, 4.0, DType::I32)
        );
    }

    #[test]
    fn a_lost_term_of_a_long_sum_is_seen() {
        let t = Tolerance::of_sum(4096, 1.0, DType::F32, DType::F32);
        assert!(!t.accepts(9.9, 10.0, DType::F32));
    }
}
