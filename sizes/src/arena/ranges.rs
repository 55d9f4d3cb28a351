//! What atoms and polynomials can be.

use super::{Arena, Known};
use crate::{
    atom::{Atom, ceil_log2, pow2},
    poly::{AtomId, Poly, Term},
    range::Range,
};

impl Arena {
    /// What an atom can be: by its parts, and by guards. Each atom is computed once after a guard, and not by recursion: an atom may
    /// be in both parts of another, which may be in both parts of a third, and so on.
    pub(super) fn atom_range(&self, id: AtomId) -> Range {
        let mut open = vec![id];
        while let Some(last) = open.last().copied() {
            if self.computed(last).is_some() {
                open.pop();
                continue;
            }
            let before = open.len();
            let terms = self.atom(last).parts().flat_map(|part| &part.terms);
            let atoms = terms.flat_map(|term| &term.atoms).copied();
            open.extend(atoms.filter(|atom| self.computed(*atom).is_none()));
            if open.len() == before {
                let range = self.range_of_parts(&self.atoms[last.0 as usize]);
                self.atoms[last.0 as usize].computed.set(Some((self.epoch, range)));
            }
        }
        self.computed(id).unwrap_or(Range::ALL)
    }

    /// What an atom can be, if that was computed after the last guard.
    fn computed(&self, id: AtomId) -> Option<Range> {
        let (epoch, range) = self.atoms[id.0 as usize].computed.get()?;
        (epoch == self.epoch).then_some(range)
    }

    /// The same, where the ranges of all atoms in its parts are computed.
    fn range_of_parts(&self, known: &Known) -> Range {
        let by_parts = match &known.atom {
            Atom::Symbol(_) => Range::ALL,
            Atom::Quotient(a, b) => self.range(a).over(self.range(b)),
            Atom::Remainder(a, b) => {
                let most = (self.range(b).high - 1).min(self.range(a).high).max(0);
                Range { low: 0, high: most }.and(self.finer_remainder(a, b))
            }
            Atom::Least(a, b) => {
                let (a, b) = (self.range(a), self.range(b));
                Range { low: a.low.min(b.low), high: a.high.min(b.high) }
            }
            Atom::Most(a, b) => {
                let (a, b) = (self.range(a), self.range(b));
                Range { low: a.low.max(b.low), high: a.high.max(b.high) }
            }
            Atom::CeilLog2(a) => {
                let range = self.range(a);
                let log = |end: i128| i128::from(ceil_log2(end.clamp(0, i64::MAX.into()) as i64));
                Range { low: log(range.low), high: log(range.high) }
            }
            Atom::Pow2(a) => {
                let range = self.range(a);
                let power = |end: i128| i128::from(pow2(end.clamp(0, 62) as i64));
                Range { low: power(range.low), high: power(range.high) }
            }
            Atom::Truncated(float) => float.whole_range(&|poly| self.range(poly)),
            Atom::Whole(a) => self.range(a),
        };
        by_parts.and(known.range)
    }

    /// What is left by a number follows from what is known to be left by a multiple of it.
    fn finer_remainder(&self, a: &Poly, b: &Poly) -> Range {
        let Some(by) = b.as_constant().filter(|by| *by > 0) else { return Range::ALL };
        for times in [2, 4, 8, 16] {
            let Some(larger) = by.checked_mul(times) else { break };
            let atom = Atom::Remainder(a.clone(), Poly::constant(larger));
            let known = self.atom_ids.get(&atom).map(|id| self.atoms[id.0 as usize].range);
            if let Some(range) = known.filter(|range| range.low == range.high) {
                return Range::of(range.low as i64 % by);
            }
        }
        Range::ALL
    }

    /// What a polynomial can be, as far as is known.
    pub(crate) fn range(&self, poly: &Poly) -> Range {
        let product = |term: &Term| {
            let atoms = term.atoms.iter().map(|id| self.atom_range(*id));
            atoms.fold(Range::of(term.factor), Range::times)
        };
        let terms = poly.terms.iter().map(product).fold(Range::of(0), Range::plus);
        let known = self.bounds.get(&poly.terms).copied().unwrap_or(Range::ALL);
        terms.and(known).plus(Range::of(poly.constant))
    }
}
