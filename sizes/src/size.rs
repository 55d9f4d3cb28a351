//! The number that may carry an expression.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{arena::Arena, atom::Atom, current::with, poly::Poly, region::Rule, written::saw_open};

/// A size: a number and, where it is open, how it is computed of symbols. Plain data; a size that is open is used while its
/// [`crate::Trace`] is entered.
#[derive(Clone, Copy, Default)]
pub struct Size {
    value: i64,
    /// 0 for a number; else the expression's number in its trace.
    expression: u32,
}

impl Size {
    /// A number.
    pub const fn constant(value: i64) -> Size {
        Size { value, expression: 0 }
    }

    pub(crate) fn of_poly(arena: &mut Arena, poly: Poly) -> Size {
        match poly.as_constant() {
            Some(value) => Size::constant(value),
            None => {
                let value = arena.value(&poly);
                Size { value, expression: arena.intern(poly) }
            }
        }
    }

    pub(crate) fn poly(self, arena: &Arena) -> Poly {
        match self.expression {
            0 => Poly::constant(self.value),
            expression => arena.poly(expression).clone(),
        }
    }

    /// Whether it is the same whatever the symbols are.
    pub fn is_constant(self) -> bool {
        self.expression == 0
    }

    /// The number for the example values. Notes nothing: for estimates, texts and orders.
    pub fn value(self) -> u64 {
        self.value.max(0).cast_unsigned()
    }

    /// The same, which may be negative.
    pub fn signed_value(self) -> i64 {
        self.value
    }

    /// The number, to which the trace is fixed from here on.
    pub fn exact(self) -> u64 {
        self.exact_signed().max(0).cast_unsigned()
    }

    /// The same, which may be negative.
    pub fn exact_signed(self) -> i64 {
        if self.expression != 0 {
            with(|arena| {
                let poly = self.poly(arena);
                arena.fix(&poly, self.value);
            });
        }
        self.value
    }

    /// The number as a place in memory, to which the trace is fixed from here on.
    pub fn exact_usize(self) -> usize {
        usize::try_from(self.exact()).unwrap_or(usize::MAX)
    }

    /// The number wrapped to 32 bits, as kernels are given it; fixes the trace.
    pub fn exact_word(self) -> u32 {
        self.exact_signed() as u32
    }

    /// The number for the example values, for estimates.
    pub fn as_f64(self) -> f64 {
        self.value as f64
    }

    /// Numbers of the symbols that it is computed of, in order.
    pub fn symbols(self) -> Vec<u32> {
        if self.expression == 0 {
            return Vec::new();
        }
        with(|arena| {
            let poly = self.poly(arena);
            arena.symbols_of(&poly)
        })
    }

    /// The largest number that it can be, by what is known of the symbols. Notes nothing.
    pub fn most(self) -> i64 {
        if self.expression == 0 {
            return self.value;
        }
        let high = with(|arena| {
            let poly = self.poly(arena);
            arena.range(&poly).high
        });
        i64::try_from(high).unwrap_or(i64::MAX)
    }

    /// The least number that it can be, by what is known of the symbols. Notes nothing.
    pub fn least(self) -> i64 {
        if self.expression == 0 {
            return self.value;
        }
        let low = with(|arena| {
            let poly = self.poly(arena);
            arena.range(&poly).low
        });
        i64::try_from(low).unwrap_or(i64::MIN)
    }

    /// Whether it is 0, where that is the same whatever data decide.
    pub fn is_zero(self) -> Option<bool> {
        match self.is_data() {
            false => Some(self == 0),
            true if self.least() > 0 || self.most() < 0 => Some(false),
            true => None,
        }
    }

    /// Whether it is below another, where that is the same whatever data decide.
    pub fn is_below(self, other: impl Into<Size>) -> Option<bool> {
        let other = other.into();
        let difference = self - other;
        match difference.is_data() {
            false => Some(self < other),
            true if difference.most() < 0 => Some(true),
            true if difference.least() >= 0 => Some(false),
            true => None,
        }
    }

    /// Whether it is no more than another: where data decide, that is promised, and whoever has the data checks it.
    pub fn stays_within(self, other: impl Into<Size>) -> bool {
        self.promised_within(other.into(), false)
    }

    /// The same of a limit that is the device's: calls whose data decide more fail, and that alone is no reason to compute it another
    /// way ([`crate::for_all_data`]).
    pub fn stays_in_limit(self, most: u64) -> bool {
        self.promised_within(most.into(), true)
    }

    fn promised_within(self, other: Size, is_limit: bool) -> bool {
        if !self.is_data() && !other.is_data() {
            return self <= other;
        }
        with(|arena| {
            let (a, b) = (self.poly(arena), other.poly(arena));
            let Some(rest) = b.minus(&a) else { return false };
            let range = arena.range(&rest);
            if range.low < 0 && range.high >= 0 {
                arena.promise_all(rest, Rule::NotNegative, is_limit);
            }
            range.high >= 0
        })
    }

    /// Whether it is at most a number: of what data decide, whether it is whatever they decide.
    pub fn is_at_most(self, most: u64) -> bool {
        if self.is_data() { i128::from(self.most()) <= i128::from(most) } else { self <= most }
    }

    /// Whether data decide it: nothing is fixed to it, and no comparison tells more than what is so for all of its values.
    pub fn is_data(self) -> bool {
        self.expression != 0
            && with(|arena| {
                let poly = self.poly(arena);
                arena.of_data(&poly)
            })
    }

    /// Whether both are the same number: where data decide, that is promised, and whoever has the data checks it.
    pub fn agrees(self, other: impl Into<Size>) -> bool {
        let other = other.into();
        if self == other {
            return true;
        }
        if !self.is_data() && !other.is_data() {
            return false;
        }
        with(|arena| {
            let (a, b) = (self.poly(arena), other.poly(arena));
            let Some(difference) = a.minus(&b) else { return false };
            let range = arena.range(&difference);
            if !range.has(0) {
                return false;
            }
            arena.promise(difference, Rule::Zero);
            true
        })
    }

    /// Whether both are the same number by algebra. Notes nothing; `false` says that it is not known.
    pub fn is(self, other: Size) -> bool {
        self.value == other.value && self.expression == other.expression
    }

    /// The result of a computation on polynomials, or fixed operands where there is none.
    pub(crate) fn combine(
        self,
        other: Size,
        number: impl Fn(i64, i64) -> i64,
        poly: impl Fn(&mut Arena, &Poly, &Poly) -> Option<Poly>,
    ) -> Size {
        if self.expression == 0 && other.expression == 0 {
            return Size::constant(number(self.value, other.value));
        }
        let made = with(|arena| {
            let (a, b) = (self.poly(arena), other.poly(arena));
            let made = poly(arena, &a, &b)?;
            Some(Size::of_poly(arena, made))
        });
        made.unwrap_or_else(|| Size::constant(number(self.exact_signed(), other.exact_signed())))
    }

    fn function(self, number: fn(i64) -> i64, atom: fn(Poly) -> Atom) -> Size {
        self.combine(Size::constant(0), |a, _| number(a), |arena, a, _| arena.of_atom(atom(a.clone())))
    }

    /// The least `l` with `2^l` not below it.
    #[must_use]
    pub fn ceil_log2(self) -> Size {
        self.function(crate::atom::ceil_log2, Atom::CeilLog2)
    }

    /// Two to the power of it.
    #[must_use]
    pub fn pow2(self) -> Size {
        self.function(crate::atom::pow2, Atom::Pow2)
    }

    /// The smaller of two. Notes nothing.
    #[must_use]
    pub fn min(self, other: impl Into<Size>) -> Size {
        self.extreme(other.into(), true)
    }

    /// The larger of two. Notes nothing.
    #[must_use]
    pub fn max(self, other: impl Into<Size>) -> Size {
        self.extreme(other.into(), false)
    }

    fn extreme(self, other: Size, least: bool) -> Size {
        let number = |a: i64, b: i64| if least { a.min(b) } else { a.max(b) };
        self.combine(other, number, |arena, a, b| extreme(arena, a, b, least))
    }

    /// The least multiple of `step`, above 0, that is not below it.
    #[must_use]
    pub fn next_multiple_of(self, step: impl Into<Size>) -> Size {
        let step = step.into();
        self.div_ceil(step) * step
    }

    /// The quotient, rounded up.
    #[must_use]
    pub fn div_ceil(self, by: impl Into<Size>) -> Size {
        let by = by.into();
        (self + by - 1) / by
    }

    /// Whether it divides without rest; guards that.
    pub fn is_multiple_of(self, by: impl Into<Size>) -> bool {
        let by = by.into();
        if by.is_constant() && by.value == 0 {
            return self == 0;
        }
        self % by == 0
    }

    /// As a word of 32 bits, if it fits; guards that, and promises it of what data decide, whatever the example is.
    pub fn fits_u32(self) -> bool {
        self >= 0 && self.stays_in_limit(u32::MAX.into())
    }
}

/// The smaller or the larger of two.
pub(crate) fn extreme(arena: &mut Arena, a: &Poly, b: &Poly, least: bool) -> Option<Poly> {
    let range = arena.range(&a.minus(b)?);
    if range.low >= 0 {
        return Some(if least { b.clone() } else { a.clone() });
    }
    if range.high <= 0 {
        return Some(if least { a.clone() } else { b.clone() });
    }
    let (a, b) = (a.clone(), b.clone());
    arena.of_atom(if least { Atom::Least(a, b) } else { Atom::Most(a, b) })
}

/// By number and expression: sizes that are equal by guards alone have different hashes.
impl Hash for Size {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.expression != 0 {
            saw_open();
        }
        (self.value, self.expression).hash(state);
    }
}

impl fmt::Display for Size {
    /// The number; one that is open with the number of its expression, so that equal texts are equal sizes: `5~12`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.expression == 0 { self.value.fmt(f) } else { write!(f, "{}~{}", self.value, self.expression) }
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.expression != 0 {
            return serializer.collect_str(self);
        }
        // JSON has numbers without a sign where they need none.
        match u64::try_from(self.value) {
            Ok(value) => serializer.serialize_u64(value),
            Err(_) => serializer.serialize_i64(self.value),
        }
    }
}

/// From a number that is not negative.
impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Size::from)
    }
}

impl From<u64> for Size {
    fn from(value: u64) -> Self {
        Size::constant(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Size {
    fn from(value: usize) -> Self {
        Size::constant(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Size {
    fn from(value: u32) -> Self {
        Size::constant(value.into())
    }
}

impl From<i64> for Size {
    fn from(value: i64) -> Self {
        Size::constant(value)
    }
}

impl From<i32> for Size {
    fn from(value: i32) -> Self {
        Size::constant(value.into())
    }
}

impl From<&Size> for Size {
    fn from(value: &Size) -> Self {
        *value
    }
}

impl From<&u64> for Size {
    fn from(value: &u64) -> Self {
        (*value).into()
    }
}
