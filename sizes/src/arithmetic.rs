//! Arithmetic of sizes, among themselves and with integers.

use std::{
    iter::{Product, Sum},
    ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign},
};

use crate::{
    arena::{Arena, MOST_TERMS},
    atom::Atom,
    poly::Poly,
    region::Rule,
    size::Size,
};

impl Add for Size {
    type Output = Size;

    fn add(self, other: Size) -> Size {
        self.combine(other, i64::saturating_add, |arena, a, b| shortened(arena, a, b, |a, b| few(a.plus(b)?)))
    }
}

impl Sub for Size {
    type Output = Size;

    fn sub(self, other: Size) -> Size {
        self.combine(other, i64::saturating_sub, |arena, a, b| {
            shortened(arena, a, b, |a, b| few(a.minus(b)?))
        })
    }
}

impl Mul for Size {
    type Output = Size;

    fn mul(self, other: Size) -> Size {
        let times = |a: &Poly, b: &Poly| few(a.times(b, MOST_TERMS)?);
        self.combine(other, i64::saturating_mul, |arena, a, b| shortened(arena, a, b, times))
    }
}

/// The quotient of numbers that are not negative, rounded down; 0 by 0.
impl Div for Size {
    type Output = Size;

    fn div(self, other: Size) -> Size {
        self.combine(other, |a, b| a.checked_div_euclid(b).unwrap_or(0), quotient)
    }
}

/// What is left by the division; 0 by 0.
impl Rem for Size {
    type Output = Size;

    fn rem(self, other: Size) -> Size {
        self.combine(other, |a, b| a.checked_rem_euclid(b).unwrap_or(0), remainder)
    }
}

impl Neg for Size {
    type Output = Size;

    fn neg(self) -> Size {
        Size::constant(0) - self
    }
}

/// A sum or a product; where it would have too many terms, that of its operands as they are. What is known of those by algebra ends there.
fn shortened(
    arena: &mut Arena,
    a: &Poly,
    b: &Poly,
    combine: impl Fn(&Poly, &Poly) -> Option<Poly>,
) -> Option<Poly> {
    combine(a, b).or_else(|| {
        let (a, b) = (whole(arena, a)?, whole(arena, b)?);
        combine(&a, &b)
    })
}

/// A polynomial as one term.
fn whole(arena: &mut Arena, poly: &Poly) -> Option<Poly> {
    let is_one = poly.as_constant().is_some() || poly.constant == 0 && poly.terms.len() == 1;
    if is_one { Some(poly.clone()) } else { arena.of_atom(Atom::Whole(poly.clone())) }
}

fn few(poly: Poly) -> Option<Poly> {
    (poly.terms.len() <= MOST_TERMS).then_some(poly)
}

/// The quotient, where it is a polynomial by algebra.
fn exact_quotient(a: &Poly, b: &Poly) -> Option<Poly> {
    if a == b {
        return Some(Poly::constant(1));
    }
    a.quotient_by_term(b).or_else(|| a.multiple_of(b).map(Poly::constant))
}

/// Whether a quotient of these is what atoms mean by one: guarded where it is not known.
fn divides(arena: &mut Arena, a: &Poly, b: &Poly) -> bool {
    let positive = b.plus(&Poly::constant(-1)).is_some_and(|b| arena.decide(&b, Rule::NotNegative));
    positive && arena.decide(a, Rule::NotNegative)
}

pub(crate) fn quotient(arena: &mut Arena, a: &Poly, b: &Poly) -> Option<Poly> {
    if !divides(arena, a, b) {
        return None;
    }
    if let Some(quotient) = exact_quotient(a, b) {
        return Some(quotient);
    }
    let Some(by) = b.as_constant() else { return arena.of_atom(Atom::Quotient(a.clone(), b.clone())) };
    let (whole, rest) = a.split(by);
    let range = arena.range(&rest);
    if range.low >= 0 && range.high < by.into() {
        return Some(whole);
    }
    // What is taken away stays with what it is taken from: apart, each would be known within its own range only.
    if whole.terms.iter().any(|term| term.factor < 0) {
        return arena.of_atom(Atom::Quotient(a.clone(), b.clone()));
    }
    // Coefficients of the rest are not negative, but atoms may be.
    if !arena.decide(&rest, Rule::NotNegative) {
        return None;
    }
    few(arena.of_atom(Atom::Quotient(rest, b.clone()))?.plus(&whole)?)
}

fn remainder(arena: &mut Arena, a: &Poly, b: &Poly) -> Option<Poly> {
    if !divides(arena, a, b) {
        return None;
    }
    if exact_quotient(a, b).is_some() {
        return Some(Poly::default());
    }
    let Some(by) = b.as_constant() else { return arena.of_atom(Atom::Remainder(a.clone(), b.clone())) };
    let (_, rest) = a.split(by);
    let range = arena.range(&rest);
    if range.low >= 0 && range.high < by.into() {
        return Some(rest);
    }
    if !arena.decide(&rest, Rule::NotNegative) {
        return None;
    }
    arena.of_atom(Atom::Remainder(rest, b.clone()))
}

macro_rules! with_integers {
    ($($ty:ty)*) => { $(
        with_integers!(@ $ty: Add add, Sub sub, Mul mul, Div div, Rem rem);
        with_integers!(@assign $ty: AddAssign add_assign +, SubAssign sub_assign -, MulAssign mul_assign *, DivAssign div_assign /,
            RemAssign rem_assign %);
    )* };
    (@ $ty:ty: $($trait:ident $method:ident),*) => { $(
        impl $trait<$ty> for Size {
            type Output = Size;

            fn $method(self, other: $ty) -> Size {
                $trait::$method(self, Size::from(other))
            }
        }

        impl $trait<Size> for $ty {
            type Output = Size;

            fn $method(self, other: Size) -> Size {
                $trait::$method(Size::from(self), other)
            }
        }
    )* };
    (@assign $ty:ty: $($trait:ident $method:ident $op:tt),*) => { $(
        impl $trait<$ty> for Size {
            fn $method(&mut self, other: $ty) {
                *self = *self $op Size::from(other);
            }
        }
    )* };
}

with_integers!(u64);
with_integers!(@assign Size: AddAssign add_assign +, SubAssign sub_assign -, MulAssign mul_assign *, DivAssign div_assign /,
    RemAssign rem_assign %);

macro_rules! with_references {
    ($($trait:ident $method:ident),*) => { $(
        impl $trait<&Size> for Size {
            type Output = Size;

            fn $method(self, other: &Size) -> Size {
                $trait::$method(self, *other)
            }
        }

        impl $trait<Size> for &Size {
            type Output = Size;

            fn $method(self, other: Size) -> Size {
                $trait::$method(*self, other)
            }
        }

        impl $trait<&Size> for &Size {
            type Output = Size;

            fn $method(self, other: &Size) -> Size {
                $trait::$method(*self, *other)
            }
        }
    )* };
}

with_references!(Add add, Sub sub, Mul mul, Div div, Rem rem);

impl MulAssign<&Size> for Size {
    fn mul_assign(&mut self, other: &Size) {
        *self = *self * *other;
    }
}

impl AddAssign<&Size> for Size {
    fn add_assign(&mut self, other: &Size) {
        *self = *self + *other;
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Size>>(iter: I) -> Size {
        iter.fold(Size::constant(0), |sum, size| sum + size)
    }
}

impl<'a> Sum<&'a Size> for Size {
    fn sum<I: Iterator<Item = &'a Size>>(iter: I) -> Size {
        iter.copied().sum()
    }
}

impl Product for Size {
    fn product<I: Iterator<Item = Size>>(iter: I) -> Size {
        iter.fold(Size::constant(1), |product, size| product * size)
    }
}

impl<'a> Product<&'a Size> for Size {
    fn product<I: Iterator<Item = &'a Size>>(iter: I) -> Size {
        iter.copied().product()
    }
}
