//! What a trace knows: its symbols, atoms and polynomials, and the guards so far.

mod ranges;

use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap, HashSet},
};

use crate::{
    atom::Atom,
    poly::{AtomId, Poly, Term},
    promises::Promises,
    range::Range,
    region::{Guard, Region, Rule},
    undo::Undo,
};

/// Most terms of a polynomial; one that would have more is made of whole ones.
pub(crate) const MOST_TERMS: usize = 64;

/// Most atoms of a trace; later ones are fixed.
const MOST_ATOMS: usize = 1 << 16;

/// What is known of an atom.
#[derive(Debug)]
struct Known {
    atom: Atom,
    value: i64,
    /// What guards say of it; what follows from its parts is computed when it is asked for.
    range: Range,
    /// What follows from its parts and from guards, and the [`Arena::epoch`] in which that was computed.
    computed: Cell<Option<(u64, Range)>>,
    /// Its values for the sizes of [`Arena::others`].
    others: Vec<i64>,
    /// Whether a symbol that data decide is in it.
    is_data: bool,
}

/// A condition with a constant from here on is one that keeps sizes from becoming too large.
const LIMIT: i64 = 1 << 24;

/// What counts more than all that results should hold for: that they do not hold for what they have to.
const LOST: usize = 1 << 16;

#[derive(Debug, Default)]
pub(crate) struct Arena {
    pub(crate) symbols: Vec<String>,
    atoms: Vec<Known>,
    atom_ids: HashMap<Atom, AtomId>,
    /// The polynomials of sizes: a size's expression is its place here plus 1.
    polys: Vec<Poly>,
    poly_ids: HashMap<Poly, u32>,
    pub(crate) guards: Vec<Guard>,
    /// What guards say of the terms of polynomials.
    bounds: HashMap<Vec<Term>, Range>,
    /// How often what guards say of atoms and terms has changed: ranges that were computed before have to be computed again.
    epoch: u64,
    /// Polynomials that guards say are not 0.
    not_zero: HashMap<Poly, ()>,
    /// Of each symbol, whether data decide it.
    is_data: Vec<bool>,
    /// Conditions on what data decide.
    pub(crate) promises: Promises,
    /// The first symbol of data that had to be a number.
    pub(crate) pinned: Option<String>,
    /// Whether sizes that callers decide are to stay open; and whether one would have been fixed since that was asked for.
    pub(crate) stays_open: bool,
    pub(crate) would_fix: bool,
    /// Values of symbols for which the results have to hold too, the first, or should, the others.
    others: Vec<Vec<i64>>,
    /// The first guard that the first of those does not keep, or that leaves nothing but one size.
    pub(crate) failed: Option<Guard>,
    /// Up to which guard each place made them.
    pub(crate) places: Vec<(usize, String)>,
    /// How to take back what is noted now, where that may be asked for.
    pub(crate) undo: Option<Vec<Undo>>,
}

impl Arena {
    /// A symbol: its polynomial and value.
    pub(crate) fn symbol(&mut self, name: &str, value: i64, least: i64, most: i64) -> Poly {
        let (poly, id) = self.add_symbol(name, value, false);
        // Whoever uses the results checks these as the other guards.
        let ends = [
            poly.plus(&Poly::constant(least.saturating_neg())),
            poly.scaled(-1).and_then(|negated| negated.plus(&Poly::constant(most))),
        ];
        self.guards.extend(ends.into_iter().flatten().map(|poly| Guard { poly, rule: Rule::NotNegative }));
        // Nothing is computed of it yet.
        self.atoms[id.0 as usize].range = Range { low: least.into(), high: most.into() };
        poly
    }

    /// A symbol that data decide.
    pub(crate) fn data_symbol(&mut self, name: &str, value: i64, least: i64, most: i64) -> Poly {
        let (poly, id) = self.add_symbol(name, value, true);
        // Nothing is computed of it yet.
        self.atoms[id.0 as usize].range = Range { low: least.into(), high: most.into() };
        poly
    }

    fn add_symbol(&mut self, name: &str, value: i64, is_data: bool) -> (Poly, AtomId) {
        let index = self.symbols.len() as u32;
        self.symbols.push(name.to_owned());
        self.is_data.push(is_data);
        let id = self.add(Atom::Symbol(index), value);
        (Poly::atom(id), id)
    }

    /// Whether data decide a polynomial.
    pub(crate) fn of_data(&self, poly: &Poly) -> bool {
        poly.terms.iter().flat_map(|term| &term.atoms).any(|id| self.atoms[id.0 as usize].is_data)
    }

    /// Fixes a size to its number in the example. Data cannot be fixed: the first symbol for which that was asked is noted.
    pub(crate) fn fix(&mut self, poly: &Poly, value: i64) {
        let range = self.range(poly);
        if range.low == range.high {
            return;
        }
        if self.of_data(poly) {
            let name = self.symbol_in(poly);
            self.pinned.get_or_insert(name);
            return;
        }
        if self.stays_open {
            self.would_fix = true;
            return;
        }
        let difference = poly.plus(&Poly::constant(value.saturating_neg()));
        self.decide(&difference.unwrap_or_default(), Rule::Zero);
    }

    /// Numbers of the symbols that a polynomial is computed of, in order.
    pub(crate) fn symbols_of(&self, poly: &Poly) -> Vec<u32> {
        let (mut found, mut seen) = (BTreeSet::new(), HashSet::new());
        let mut open: Vec<&Poly> = vec![poly];
        while let Some(poly) = open.pop() {
            for id in poly.terms.iter().flat_map(|term| &term.atoms).filter(|id| seen.insert(**id)) {
                match self.atom(*id) {
                    Atom::Symbol(index) => drop(found.insert(*index)),
                    atom => open.extend(atom.parts()),
                }
            }
        }
        found.into_iter().collect()
    }

    /// The name of a symbol of data in a polynomial.
    fn symbol_in(&self, poly: &Poly) -> String {
        let mut open: Vec<&Poly> = vec![poly];
        while let Some(poly) = open.pop() {
            for id in poly.terms.iter().flat_map(|term| &term.atoms) {
                let known = &self.atoms[id.0 as usize];
                match &known.atom {
                    Atom::Symbol(index) if known.is_data => return self.symbols[*index as usize].clone(),
                    atom if known.is_data => open.extend(atom.parts()),
                    _ => {}
                }
            }
        }
        String::new()
    }

    /// The sizes that the results are for.
    pub(crate) fn region(&self) -> Region {
        let atoms = self.atoms().cloned().collect();
        Region::new(self.symbols.clone(), atoms, self.guards.clone(), self.places.clone())
    }

    pub(crate) fn atoms(&self) -> impl Iterator<Item = &Atom> {
        self.atoms.iter().map(|known| &known.atom)
    }

    pub(crate) fn atom(&self, id: AtomId) -> &Atom {
        &self.atoms[id.0 as usize].atom
    }

    pub(crate) fn poly(&self, expression: u32) -> &Poly {
        &self.polys[expression as usize - 1]
    }

    /// The expression of a polynomial that is no number.
    pub(crate) fn intern(&mut self, poly: Poly) -> u32 {
        let next = self.polys.len() as u32 + 1;
        if let Some(known) = self.poly_ids.get(&poly) {
            return *known;
        }
        self.poly_ids.insert(poly.clone(), next);
        self.polys.push(poly);
        next
    }

    pub(crate) fn value(&self, poly: &Poly) -> i64 {
        poly.evaluate(|id| self.atoms[id.0 as usize].value)
    }

    fn add(&mut self, atom: Atom, value: i64) -> AtomId {
        let id = AtomId(self.atoms.len() as u32);
        self.atom_ids.insert(atom.clone(), id);
        let is_data = match &atom {
            Atom::Symbol(index) => self.is_data[*index as usize],
            atom => atom.parts().any(|part| self.of_data(part)),
        };
        let others = self.others.iter().enumerate().map(|(which, values)| self.other(&atom, which, values));
        let others = others.collect();
        self.atoms.push(Known { atom, value, range: Range::ALL, computed: Cell::default(), others, is_data });
        id
    }

    /// Sizes for which the results have to hold too, the first, or should: values of the symbols so far.
    pub(crate) fn hold(&mut self, others: Vec<Vec<i64>>) {
        for index in 0..self.atoms.len() {
            let atom = self.atoms[index].atom.clone();
            let values = others.iter().enumerate();
            self.atoms[index].others =
                values.map(|(which, values)| self.other(&atom, which, values)).collect();
        }
        self.others = others;
        self.failed = self.guards.iter().find(|guard| !self.is_kept(guard, 0)).cloned();
    }

    /// The value of an atom for one of the other sizes. Those have no number for what data decide, of which no guard is.
    fn other(&self, atom: &Atom, which: usize, symbols: &[i64]) -> i64 {
        let symbol = |index: u32| symbols.get(index as usize).copied().unwrap_or(0);
        atom.evaluate(symbol, |poly| poly.evaluate(|id| self.atoms[id.0 as usize].others[which]))
    }

    /// Whether one of the other sizes, if there are so many, keeps a guard.
    fn is_kept(&self, guard: &Guard, which: usize) -> bool {
        which >= self.others.len()
            || guard.rule.is_kept(guard.poly.evaluate(|id| self.atoms[id.0 as usize].others[which]))
    }

    /// How many of the other sizes do not keep all of some guards; many more if the first is among them.
    pub(crate) fn count_lost(&self, guards: &[Guard]) -> usize {
        let keeps = |which: usize| guards.iter().all(|guard| self.is_kept(guard, which));
        (0..self.others.len())
            .filter(|which| !keeps(*which))
            .map(|which| if which == 0 { LOST } else { 1 })
            .sum()
    }

    /// The polynomial that is an atom; the number that it is by what is known; None if there are too many atoms.
    pub(crate) fn of_atom(&mut self, atom: Atom) -> Option<Poly> {
        if let Some(id) = self.atom_ids.get(&atom).copied() {
            let range = self.atom_range(id);
            return Some(if range.low == range.high {
                Poly::constant(range.low as i64)
            } else {
                Poly::atom(id)
            });
        }
        if self.atoms.len() >= MOST_ATOMS {
            return None;
        }
        let value = atom.evaluate(|_| 0, |poly| self.value(poly));
        let id = self.add(atom, value);
        let range = self.atom_range(id);
        Some(if range.low == range.high { Poly::constant(range.low as i64) } else { Poly::atom(id) })
    }

    /// Whether a polynomial keeps a rule, now and for all values of symbols that keep the guards: those that are needed for
    /// that are noted.
    pub(crate) fn decide(&mut self, poly: &Poly, rule: Rule) -> bool {
        let range = self.range(poly);
        match rule {
            Rule::NotNegative if range.low >= 0 => return true,
            Rule::NotNegative if range.high < 0 => return false,
            Rule::Zero | Rule::NotZero if !range.has(0) => return rule == Rule::NotZero,
            Rule::Zero | Rule::NotZero if range.low == range.high => return rule == Rule::Zero,
            Rule::Zero | Rule::NotZero if self.not_zero.contains_key(poly) => return rule == Rule::NotZero,
            _ => {}
        }
        if self.of_data(poly) {
            return self.decide_data(poly, rule);
        }
        let value = self.value(poly);
        let (holds, rule) = match rule {
            Rule::NotNegative => (value >= 0, Rule::NotNegative),
            _ if value == 0 => (rule == Rule::Zero, Rule::Zero),
            _ => (rule == Rule::NotZero, Rule::NotZero),
        };
        let noted = if rule == Rule::NotNegative && !holds {
            // Not `p >= 0`: `-p - 1 >= 0`.
            poly.scaled(-1).and_then(|poly| poly.plus(&Poly::constant(-1))).unwrap_or_default()
        } else {
            poly.clone()
        };
        self.note(noted, rule);
        holds
    }

    /// The same of what data decide. There is no other version to go to once data have: so the answer is the one for which what
    /// is made is right for all values. Sizes are not equal that are not known to be, and none is known to be 0 or 1. What
    /// cannot be answered so is answered for the example, and promised.
    fn decide_data(&mut self, poly: &Poly, rule: Rule) -> bool {
        if rule != Rule::NotNegative {
            return rule == Rule::NotZero;
        }
        // Whether it is above 0 or 1, or no more than that.
        let range = self.range(poly);
        if range.low >= -2 || range.high <= 1 {
            return range.low >= -2;
        }
        let holds = self.value(poly) >= 0;
        let negated = || poly.scaled(-1).and_then(|poly| poly.plus(&Poly::constant(-1)));
        let promised = if holds { poly.clone() } else { negated().unwrap_or_default() };
        self.promise(promised, Rule::NotNegative);
        holds
    }

    /// Notes what has to hold once data have decided.
    pub(crate) fn promise(&mut self, poly: Poly, rule: Rule) {
        self.promise_all(poly, rule, false);
    }

    /// The same; `is_limit` says that it only keeps sizes from becoming more than a device can do.
    pub(crate) fn promise_all(&mut self, poly: Poly, rule: Rule, is_limit: bool) {
        let is_limit = is_limit || rule == Rule::NotNegative && poly.constant >= LIMIT;
        self.promises.add(Guard { poly, rule }, is_limit);
    }

    /// Notes a guard, and what follows of it.
    fn note(&mut self, poly: Poly, rule: Rule) {
        match rule {
            Rule::NotNegative => self.learn(&poly, i128::MAX),
            Rule::Zero => self.learn(&poly, 0),
            Rule::NotZero => {
                let negated = poly.scaled(-1);
                for poly in [Some(poly.clone()), negated].into_iter().flatten() {
                    if let (None, Some(undo)) = (self.not_zero.insert(poly.clone(), ()), &mut self.undo) {
                        undo.push(Undo::NotZero(poly));
                    }
                }
                // At an end of what it can be, there is one less.
                let range = self.range(&poly);
                if range.low == 0 {
                    let above = poly.plus(&Poly::constant(-1));
                    above.iter().for_each(|poly| self.learn(poly, i128::MAX));
                }
            }
        }
        let guard = Guard { poly, rule };
        self.guards.push(guard.clone());
        let is_looked_at = self.undo.is_none() && self.failed.is_none() && !self.others.is_empty();
        if is_looked_at && (!self.is_kept(&guard, 0) || self.is_for_one()) {
            self.failed = Some(guard);
        }
    }

    /// Whether guards fix every size that callers decide.
    fn is_for_one(&self) -> bool {
        let is_fixed = |index: u32| {
            let id = self.atom_ids.get(&Atom::Symbol(index)).copied();
            let is_one = |range: Range| range.low == range.high;
            id.is_none_or(|id| self.is_data[index as usize] || is_one(self.atom_range(id)))
        };
        (0..self.symbols.len() as u32).all(is_fixed)
    }

    /// Takes back what was noted of sizes that callers decide.
    pub(crate) fn take_back(&mut self, notes: Vec<Undo>, guards: usize) {
        self.epoch += u64::from(!notes.is_empty());
        for note in notes.into_iter().rev() {
            match note {
                Undo::Bound(terms, Some(range)) => drop(self.bounds.insert(terms, range)),
                Undo::Bound(terms, None) => drop(self.bounds.remove(&terms)),
                Undo::Range(atom, range) => self.bound(atom, range),
                Undo::NotZero(poly) => drop(self.not_zero.remove(&poly)),
            }
        }
        self.guards.truncate(guards);
    }

    /// Guards say this of an atom.
    fn bound(&mut self, atom: AtomId, range: Range) {
        self.atoms[atom.0 as usize].range = range;
        self.epoch += 1;
    }

    /// The polynomial is from 0 to `most`.
    fn learn(&mut self, poly: &Poly, most: i128) {
        let (low, high) = (-i128::from(poly.constant), most.saturating_sub(poly.constant.into()));
        let bound = Range { low, high };
        let negated = Range { low: high.saturating_neg(), high: low.saturating_neg() };
        let minus: Option<Vec<Term>> = poly.scaled(-1).map(|poly| poly.terms);
        for (terms, bound) in
            [Some((poly.terms.clone(), bound)), minus.map(|t| (t, negated))].into_iter().flatten()
        {
            let known = self.bounds.get(&terms).copied();
            if let Some(undo) = &mut self.undo {
                undo.push(Undo::Bound(terms.clone(), known));
            }
            self.bounds.insert(terms, known.unwrap_or(Range::ALL).and(bound));
        }
        self.epoch += 1;
        if let [Term { factor, atoms }] = &poly.terms[..]
            && let [atom] = atoms[..]
        {
            let (factor, known) = (i128::from(*factor), self.atoms[atom.0 as usize].range);
            let floor = |n: i128| n.div_euclid(factor.abs());
            let ceil = |n: i128| -(-n).div_euclid(factor.abs());
            let bound = if factor > 0 {
                Range { low: ceil(low), high: floor(high) }
            } else {
                Range { low: ceil(high.saturating_neg()), high: floor(low.saturating_neg()) }
            };
            if let Some(undo) = &mut self.undo {
                undo.push(Undo::Range(atom, known));
            }
            self.bound(atom, known.and(bound));
        }
    }
}
