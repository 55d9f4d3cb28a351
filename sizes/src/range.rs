//! Intervals of integers: what a polynomial can be.

/// From the first to the second, both of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: i128,
    pub(crate) high: i128,
}

impl Range {
    /// Everything.
    pub(crate) const ALL: Range = Range { low: i64::MIN as i128, high: i64::MAX as i128 };

    pub(crate) fn of(number: i64) -> Range {
        Range { low: number.into(), high: number.into() }
    }

    pub(crate) fn plus(self, other: Range) -> Range {
        Range { low: self.low.saturating_add(other.low), high: self.high.saturating_add(other.high) }
    }

    pub(crate) fn times(self, other: Range) -> Range {
        let ends = [
            self.low.saturating_mul(other.low),
            self.low.saturating_mul(other.high),
            self.high.saturating_mul(other.low),
            self.high.saturating_mul(other.high),
        ];
        Range {
            low: ends.into_iter().fold(ends[0], i128::min),
            high: ends.into_iter().fold(ends[0], i128::max),
        }
    }

    /// Of quotients that are rounded down, of numbers that are not negative by numbers above 0.
    pub(crate) fn over(self, other: Range) -> Range {
        Range {
            low: self.low.max(0).checked_div(other.high.max(1)).unwrap_or(0),
            high: self.high.max(0).checked_div(other.low.max(1)).unwrap_or(0),
        }
    }

    pub(crate) fn and(self, other: Range) -> Range {
        Range { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    pub(crate) fn has(self, number: i128) -> bool {
        self.low <= number && number <= self.high
    }
}
