//! Comparisons of sizes: those that the symbols decide are guarded.

use std::cmp::Ordering;

use crate::{current::with, poly::Poly, region::Rule, size::Size, written::is_as_written};

impl PartialEq for Size {
    fn eq(&self, other: &Size) -> bool {
        if self.is(*other) {
            return true;
        }
        if is_as_written() {
            return false;
        }
        decide(*self, *other, 0, Rule::Zero).unwrap_or(self.signed_value() == other.signed_value())
    }
}

impl Eq for Size {}

impl PartialOrd for Size {
    fn partial_cmp(&self, other: &Size) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    fn lt(&self, other: &Size) -> bool {
        // a < b: b - a - 1 >= 0.
        decide(*other, *self, -1, Rule::NotNegative).unwrap_or(self.signed_value() < other.signed_value())
    }

    fn le(&self, other: &Size) -> bool {
        decide(*other, *self, 0, Rule::NotNegative).unwrap_or(self.signed_value() <= other.signed_value())
    }

    fn gt(&self, other: &Size) -> bool {
        other < self
    }

    fn ge(&self, other: &Size) -> bool {
        other <= self
    }
}

impl Ord for Size {
    fn cmp(&self, other: &Size) -> Ordering {
        if self == other {
            Ordering::Equal
        } else if self < other {
            Ordering::Less
        } else {
            Ordering::Greater
        }
    }
}

/// Whether `a - b + more` keeps a rule; None where both are numbers.
fn decide(a: Size, b: Size, more: i64, rule: Rule) -> Option<bool> {
    if a.is_constant() && b.is_constant() {
        return None;
    }
    let known = with(|arena| {
        let (a, b) = (a.poly(arena), b.poly(arena));
        let difference = a.minus(&b)?.plus(&Poly::constant(more))?;
        Some(arena.decide(&difference, rule))
    });
    // Coefficients that do not fit, as of limits that are no limits: what is known of both may do. Else both are fixed, and numbers decide.
    known.or_else(|| apart(a, b, more, rule)).or_else(|| {
        a.exact_signed();
        b.exact_signed();
        None
    })
}

/// The same, where what both can be tells it.
fn apart(a: Size, b: Size, more: i64, rule: Rule) -> Option<bool> {
    let range = |size: Size| {
        with(|arena| {
            let poly = size.poly(arena);
            arena.range(&poly)
        })
    };
    let (a, b, more) = (range(a), range(b), i128::from(more));
    let low = a.low.saturating_sub(b.high).saturating_add(more);
    let high = a.high.saturating_sub(b.low).saturating_add(more);
    match rule {
        Rule::NotNegative => (low >= 0 || high < 0).then_some(low >= 0),
        Rule::Zero | Rule::NotZero => (low > 0 || high < 0).then_some(rule == Rule::NotZero),
    }
}

macro_rules! with_integers {
    ($($ty:ty)*) => { $(
        impl PartialEq<$ty> for Size {
            fn eq(&self, other: &$ty) -> bool {
                *self == Size::from(*other)
            }
        }

        impl PartialEq<Size> for $ty {
            fn eq(&self, other: &Size) -> bool {
                Size::from(*self) == *other
            }
        }

        impl PartialOrd<$ty> for Size {
            fn partial_cmp(&self, other: &$ty) -> Option<Ordering> {
                self.partial_cmp(&Size::from(*other))
            }

            fn lt(&self, other: &$ty) -> bool {
                *self < Size::from(*other)
            }

            fn le(&self, other: &$ty) -> bool {
                *self <= Size::from(*other)
            }

            fn gt(&self, other: &$ty) -> bool {
                *self > Size::from(*other)
            }

            fn ge(&self, other: &$ty) -> bool {
                *self >= Size::from(*other)
            }
        }

        impl PartialOrd<Size> for $ty {
            fn partial_cmp(&self, other: &Size) -> Option<Ordering> {
                Size::from(*self).partial_cmp(other)
            }

            fn lt(&self, other: &Size) -> bool {
                Size::from(*self) < *other
            }

            fn le(&self, other: &Size) -> bool {
                Size::from(*self) <= *other
            }

            fn gt(&self, other: &Size) -> bool {
                Size::from(*self) > *other
            }

            fn ge(&self, other: &Size) -> bool {
                Size::from(*self) >= *other
            }
        }
    )* };
}

with_integers!(u64 usize u32 i64 i32);
