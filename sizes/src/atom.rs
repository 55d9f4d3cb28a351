//! What polynomials are made of.

use serde::{Deserialize, Serialize};

use crate::{float::Float, poly::Poly};

/// What polynomials are made of. Quotients and remainders are those of numbers that are not negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Atom {
    /// A symbol, by its number.
    Symbol(u32),
    /// The quotient, rounded down.
    Quotient(Poly, Poly),
    /// What is left by the division.
    Remainder(Poly, Poly),
    /// The smaller of two.
    Least(Poly, Poly),
    /// The larger of two.
    Most(Poly, Poly),
    /// The least `l` with `2^l` not below it.
    CeilLog2(Poly),
    /// Two to the power of it.
    Pow2(Poly),
    /// The whole number that a float is without what is behind the point.
    Truncated(Float),
    /// The polynomial itself, as a factor or a part of those that would have too many terms if it was multiplied out.
    Whole(Poly),
}

impl Atom {
    /// The polynomials that it is made of.
    pub fn parts(&self) -> impl Iterator<Item = &Poly> {
        let (a, b) = match self {
            Atom::Symbol(_) => (None, None),
            Atom::Quotient(a, b) | Atom::Remainder(a, b) | Atom::Least(a, b) | Atom::Most(a, b) => {
                (Some(a), Some(b))
            }
            Atom::CeilLog2(a) | Atom::Pow2(a) | Atom::Whole(a) => (Some(a), None),
            Atom::Truncated(_) => (None, None),
        };
        let of_float = if let Atom::Truncated(float) = self { float.parts() } else { Vec::new() };
        a.into_iter().chain(b).chain(of_float)
    }

    /// Its value, from those of its polynomials; of a symbol `symbol` of its number.
    pub fn evaluate(&self, symbol: impl Fn(u32) -> i64, poly: impl Fn(&Poly) -> i64) -> i64 {
        match self {
            Atom::Symbol(index) => symbol(*index),
            Atom::Quotient(a, b) => poly(a).checked_div_euclid(poly(b)).unwrap_or(0),
            Atom::Remainder(a, b) => poly(a).checked_rem_euclid(poly(b)).unwrap_or(0),
            Atom::Least(a, b) => poly(a).min(poly(b)),
            Atom::Most(a, b) => poly(a).max(poly(b)),
            Atom::CeilLog2(a) => ceil_log2(poly(a)),
            Atom::Pow2(a) => pow2(poly(a)),
            Atom::Truncated(float) => float.evaluate(&poly) as i64,
            Atom::Whole(a) => poly(a),
        }
    }
}

/// The least `l` with `2^l >= n`; 0 for numbers below 1.
pub(crate) fn ceil_log2(n: i64) -> i64 {
    if n <= 1 { 0 } else { 64 - i64::from((n - 1).leading_zeros()) }
}

/// `2^n`, held to what an `i64` has.
pub(crate) fn pow2(n: i64) -> i64 {
    1i64 << n.clamp(0, 62)
}
