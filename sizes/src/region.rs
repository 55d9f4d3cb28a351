//! Guards, and the sizes that keep them, as data.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::poly::{Atom, AtomId, Poly, Term};

/// What a polynomial has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rule {
    /// 0 or more.
    NotNegative,
    /// 0.
    Zero,
    /// Anything but 0.
    NotZero,
}

/// A condition on symbols.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// What is looked at.
    pub poly: Poly,
    /// What it has to be.
    pub rule: Rule,
}

/// The values of symbols that keep all guards of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    symbols: Vec<String>,
    /// Atoms, each behind those that it is made of; only those that guards need.
    atoms: Vec<Atom>,
    guards: Vec<Guard>,
}

impl Region {
    pub(crate) fn new(symbols: Vec<String>, mut atoms: Vec<Atom>, guards: Vec<Guard>) -> Region {
        let last = |poly: &Poly| poly.terms.iter().flat_map(|term| &term.atoms).map(|id| id.0 + 1).max();
        let needed = guards.iter().filter_map(|guard| last(&guard.poly)).max().unwrap_or(0);
        atoms.truncate(needed as usize);
        Region { symbols, atoms, guards }
    }

    /// Names of the symbols.
    pub fn symbols(&self) -> &[String] {
        &self.symbols
    }

    /// The symbols that a guard fixes to one value by itself.
    pub fn fixed(&self) -> BTreeSet<usize> {
        let alone = |guard: &Guard| match (guard.rule, &guard.poly.terms[..]) {
            (Rule::Zero, [Term { atoms, .. }]) => match atoms[..] {
                [id] => match self.atoms.get(id.0 as usize)? {
                    Atom::Symbol(symbol) => Some(*symbol as usize),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        self.guards.iter().filter_map(alone).collect()
    }

    /// Whether these values of the symbols, in their order, keep all guards.
    pub fn has(&self, values: &[u64]) -> bool {
        let numbers = evaluate(&self.atoms, values);
        // What is damaged refers to what is not there.
        let number = |id: AtomId| numbers.get(id.0 as usize).copied().unwrap_or(-1);
        self.guards.iter().all(|guard| {
            let value = guard.poly.evaluate(number);
            match guard.rule {
                Rule::NotNegative => value >= 0,
                Rule::Zero => value == 0,
                Rule::NotZero => value != 0,
            }
        })
    }
}

/// The values of atoms, each of which stands behind those that it is made of, from those of symbols. What is not there is -1.
pub fn evaluate(atoms: &[Atom], symbols: &[u64]) -> Vec<i64> {
    let mut numbers: Vec<i64> = Vec::with_capacity(atoms.len());
    for atom in atoms {
        let symbol = |index: u32| {
            symbols.get(index as usize).map_or(-1, |value| i64::try_from(*value).unwrap_or(i64::MAX))
        };
        let number = |id: AtomId| numbers.get(id.0 as usize).copied().unwrap_or(-1);
        let value = atom.evaluate(symbol, |poly| poly.evaluate(number));
        numbers.push(value);
    }
    numbers
}
