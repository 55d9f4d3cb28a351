//! Polynomials over atoms, in one form: terms in order, no two of one product, none with the coefficient 0.

use serde::{Deserialize, Serialize};

/// An atom of a trace: its place in the order in which atoms came about; what it is made of comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AtomId(pub u32);

/// A product with its coefficient.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Term {
    /// What the product is multiplied by; not 0.
    pub factor: i64,
    /// The atoms, in order; one that is there twice is squared.
    pub atoms: Vec<AtomId>,
}

/// A polynomial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Poly {
    /// What is added to the terms.
    pub constant: i64,
    /// The terms, in the order of their products.
    pub terms: Vec<Term>,
}

impl Poly {
    /// A number.
    pub(crate) fn constant(constant: i64) -> Poly {
        Poly { constant, terms: Vec::new() }
    }

    /// An atom.
    pub(crate) fn atom(id: AtomId) -> Poly {
        Poly { constant: 0, terms: vec![Term { factor: 1, atoms: vec![id] }] }
    }

    /// The number, if it is one.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// From terms in any order; None if a coefficient does not fit.
    fn of(constant: i64, mut terms: Vec<Term>) -> Option<Poly> {
        terms.sort_by(|a, b| a.atoms.cmp(&b.atoms));
        let mut joined: Vec<Term> = Vec::with_capacity(terms.len());
        for term in terms {
            match joined.last_mut() {
                Some(last) if last.atoms == term.atoms => {
                    last.factor = last.factor.checked_add(term.factor)?;
                }
                _ => joined.push(term),
            }
        }
        joined.retain(|term| term.factor != 0);
        Some(Poly { constant, terms: joined })
    }

    /// The sum; None if a coefficient does not fit.
    pub(crate) fn plus(&self, other: &Poly) -> Option<Poly> {
        let terms = self.terms.iter().chain(&other.terms).cloned().collect();
        Poly::of(self.constant.checked_add(other.constant)?, terms)
    }

    /// The product with a number; None if a coefficient does not fit.
    pub(crate) fn scaled(&self, by: i64) -> Option<Poly> {
        if by == 0 {
            return Some(Poly::default());
        }
        let term =
            |term: &Term| Some(Term { factor: term.factor.checked_mul(by)?, atoms: term.atoms.clone() });
        let terms: Option<Vec<Term>> = self.terms.iter().map(term).collect();
        Some(Poly { constant: self.constant.checked_mul(by)?, terms: terms? })
    }

    /// The difference; None if a coefficient does not fit.
    pub(crate) fn minus(&self, other: &Poly) -> Option<Poly> {
        self.plus(&other.scaled(-1)?)
    }

    /// The product; None if a coefficient does not fit, or there are more than `most` terms.
    pub(crate) fn times(&self, other: &Poly, most: usize) -> Option<Poly> {
        if let Some(number) = other.as_constant() {
            return self.scaled(number);
        }
        if let Some(number) = self.as_constant() {
            return other.scaled(number);
        }
        if (self.terms.len() + 1).saturating_mul(other.terms.len() + 1) > most {
            return None;
        }
        let mut terms = Vec::new();
        for a in &self.terms {
            for b in &other.terms {
                let mut atoms: Vec<AtomId> = a.atoms.iter().chain(&b.atoms).copied().collect();
                atoms.sort_unstable();
                terms.push(Term { factor: a.factor.checked_mul(b.factor)?, atoms });
            }
        }
        let rest = [(self, other.constant), (other, self.constant)];
        for (poly, by) in rest.into_iter().filter(|(_, by)| *by != 0) {
            for term in &poly.terms {
                terms.push(Term { factor: term.factor.checked_mul(by)?, atoms: term.atoms.clone() });
            }
        }
        Poly::of(self.constant.checked_mul(other.constant)?, terms)
    }

    /// `(q, r)` with `self = by * q + r`, where the coefficients of `r` are from 0 to `by - 1`. `by` is above 0.
    pub(crate) fn split(&self, by: i64) -> (Poly, Poly) {
        let part = |of: fn(i64, i64) -> i64| {
            let term = |term: &Term| Term { factor: of(term.factor, by), atoms: term.atoms.clone() };
            let terms = self.terms.iter().map(term).filter(|term| term.factor != 0).collect();
            Poly { constant: of(self.constant, by), terms }
        };
        (part(i64::div_euclid), part(i64::rem_euclid))
    }

    /// The quotient by a polynomial of one term, where every term has it as a factor.
    pub(crate) fn quotient_by_term(&self, by: &Poly) -> Option<Poly> {
        let [divisor] = &by.terms[..] else { return None };
        if by.constant != 0 || self.constant != 0 {
            return None;
        }
        let one = |term: &Term| {
            let mut atoms = term.atoms.clone();
            for atom in &divisor.atoms {
                let at = atoms.iter().position(|own| own == atom)?;
                atoms.remove(at);
            }
            let divides = term.factor.checked_rem(divisor.factor)? == 0;
            divides.then(|| Term { factor: term.factor / divisor.factor, atoms })
        };
        let terms: Option<Vec<Term>> = self.terms.iter().map(one).collect();
        let (numbers, terms): (Vec<Term>, Vec<Term>) = terms?.into_iter().partition(|t| t.atoms.is_empty());
        Poly::of(numbers.iter().map(|term| term.factor).sum(), terms)
    }

    /// The quotient by another polynomial of which it is a multiple by a number.
    pub(crate) fn multiple_of(&self, by: &Poly) -> Option<i64> {
        let (own, other) = (self.terms.first()?, by.terms.first()?);
        let times = own.factor.checked_div(other.factor)?;
        (by.scaled(times).as_ref() == Some(self)).then_some(times)
    }

    /// Its value, from those of atoms; saturates.
    pub fn evaluate(&self, atom: impl Fn(AtomId) -> i64) -> i64 {
        let product = |term: &Term| {
            let atoms = term.atoms.iter().map(|id| i128::from(atom(*id)));
            atoms.fold(i128::from(term.factor), i128::saturating_mul)
        };
        let sum = self.terms.iter().map(product).fold(i128::from(self.constant), i128::saturating_add);
        sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}
