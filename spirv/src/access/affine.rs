//! Values that are sums: a number, and variables with a range times a factor.

use std::collections::HashMap;

/// Something that takes every whole number of a range, on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Var {
    /// A component of WorkgroupId.
    Workgroup(u8),
    /// A component of LocalInvocationId.
    Local(u8),
    /// The trips of a loop, by the expression that counts them.
    Trip(usize),
    /// The value of an expression of which only the range is known.
    Value(usize),
}

/// Smallest and largest number, both included.
pub(super) type Range = (i64, i64);

/// The ranges of variables.
pub(super) type Ranges = HashMap<Var, Range>;

/// `base + sum of factor * variable`. Nothing overflows: operations answer `None` instead.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Affine {
    pub base: i64,
    /// By variable, no factor is 0.
    pub terms: Vec<(Var, i64)>,
}

impl Affine {
    pub fn constant(base: i64) -> Self {
        Affine { base, terms: Vec::new() }
    }

    /// `base + factor * var`.
    pub fn of(base: i64, var: Var, factor: i64) -> Self {
        Affine { base, terms: if factor == 0 { Vec::new() } else { vec![(var, factor)] } }
    }

    pub fn known(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.base)
    }

    /// `self + factor * other`.
    pub fn plus(&self, other: &Affine, factor: i64) -> Option<Affine> {
        let mut sum = self.clone();
        sum.base = sum.base.checked_add(other.base.checked_mul(factor)?)?;
        for (var, times) in &other.terms {
            let times = times.checked_mul(factor)?;
            match sum.terms.binary_search_by_key(var, |(v, _)| *v) {
                Ok(at) => sum.terms[at].1 = sum.terms[at].1.checked_add(times)?,
                Err(at) => sum.terms.insert(at, (*var, times)),
            }
        }
        sum.terms.retain(|(_, times)| *times != 0);
        Some(sum)
    }

    pub fn times(&self, factor: i64) -> Option<Affine> {
        Affine::default().plus(self, factor)
    }

    /// The range of the sum; `None` when it is too large to say.
    pub fn range(&self, ranges: &Ranges) -> Option<Range> {
        let (mut low, mut high) = (self.base, self.base);
        for (var, times) in &self.terms {
            let (least, most) = ranges.get(var)?;
            let ends = (least.checked_mul(*times)?, most.checked_mul(*times)?);
            low = low.checked_add(ends.0.min(ends.1))?;
            high = high.checked_add(ends.0.max(ends.1))?;
        }
        Some((low, high))
    }

    /// Quotient and remainder of a division by a positive number, rounded down, where both are sums themselves.
    pub fn split(&self, by: i64, ranges: &Ranges) -> Option<(Affine, Affine)> {
        let (whole, part): (Vec<_>, Vec<_>) = self.terms.iter().partition(|(_, times)| times % by == 0);
        let part = Affine { base: self.base, terms: part };
        let (low, high) = part.range(ranges)?;
        let down = low.div_euclid(by);
        if high.div_euclid(by) != down {
            return None;
        }
        let terms = whole.into_iter().map(|(var, times)| (var, times / by)).collect();
        let rest = Affine { base: part.base.checked_sub(down.checked_mul(by)?)?, terms: part.terms };
        Some((Affine { base: down, terms }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges() -> Ranges {
        HashMap::from([(Var::Workgroup(0), (0, 9)), (Var::Local(0), (0, 63))])
    }

    #[test]
    fn sums_have_ranges() {
        let sum = Affine::of(5, Var::Workgroup(0), 64).plus(&Affine::of(0, Var::Local(0), 1), 1).unwrap();
        assert_eq!(sum.range(&ranges()), Some((5, 5 + 9 * 64 + 63)));
        assert_eq!(sum.times(-1).unwrap().range(&ranges()), Some((-5 - 9 * 64 - 63, -5)));
        assert_eq!(sum.plus(&sum, -1).unwrap(), Affine::constant(0));
        assert_eq!(sum.times(i64::MAX), None);
    }

    #[test]
    fn division_keeps_what_it_can() {
        let sum = Affine::of(64, Var::Workgroup(0), 64).plus(&Affine::of(0, Var::Local(0), 1), 1).unwrap();
        let (quotient, rest) = sum.split(64, &ranges()).unwrap();
        assert_eq!(quotient, Affine::of(1, Var::Workgroup(0), 1));
        assert_eq!(rest, Affine::of(0, Var::Local(0), 1));
        assert_eq!(sum.split(32, &ranges()), None, "the local part spans two quotients");
        assert_eq!(Affine::constant(-1).split(4, &ranges()).unwrap().1, Affine::constant(3));
    }
}
