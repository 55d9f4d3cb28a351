//! Guards, and the sizes that keep them, as data.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    atom::Atom,
    poly::{AtomId, Poly, Term},
};

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

impl Rule {
    /// Whether a number is what it has to be.
    pub(crate) fn is_kept(self, value: i64) -> bool {
        match self {
            Rule::NotNegative => value >= 0,
            Rule::Zero => value == 0,
            Rule::NotZero => value != 0,
        }
    }
}

/// A condition on symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guard {
    /// What is looked at.
    pub poly: Poly,
    /// What it has to be.
    pub rule: Rule,
}

impl Guard {
    /// It as text, with the names of symbols.
    pub(crate) fn text<'a>(&self, symbols: &[String], atom: &dyn Fn(AtomId) -> Option<&'a Atom>) -> String {
        let rule = match self.rule {
            Rule::NotNegative => ">= 0",
            Rule::Zero => "= 0",
            Rule::NotZero => "is not 0",
        };
        format!("{} {rule}", text(&self.poly, symbols, atom, MOST_DEEP))
    }
}

/// How deep quotients and other atoms are written out.
const MOST_DEEP: usize = 4;

fn text<'a>(
    poly: &Poly,
    symbols: &[String],
    atom: &dyn Fn(AtomId) -> Option<&'a Atom>,
    deep: usize,
) -> String {
    let part = |poly: &Poly| match deep {
        0 => "…".to_owned(),
        _ => text(poly, symbols, atom, deep - 1),
    };
    let one = |id: &AtomId| match atom(*id) {
        None => "?".to_owned(),
        Some(Atom::Symbol(index)) => symbols.get(*index as usize).map_or("?", String::as_str).to_owned(),
        Some(Atom::Quotient(a, b)) => format!("(({}) / ({}))", part(a), part(b)),
        Some(Atom::Remainder(a, b)) => format!("(({}) % ({}))", part(a), part(b)),
        Some(Atom::Least(a, b)) => format!("min({}, {})", part(a), part(b)),
        Some(Atom::Most(a, b)) => format!("max({}, {})", part(a), part(b)),
        Some(Atom::CeilLog2(a)) => format!("log2({})", part(a)),
        Some(Atom::Pow2(a)) => format!("2^({})", part(a)),
        Some(Atom::Truncated(float)) => float.text(&part),
        Some(Atom::Whole(a)) => format!("({})", part(a)),
    };
    let product = |term: &Term| {
        let atoms: Vec<String> = term.atoms.iter().map(one).collect();
        format!("{} {}", term.factor, atoms.join(" "))
    };
    let mut parts: Vec<String> = poly.terms.iter().map(product).collect();
    if poly.constant != 0 || parts.is_empty() {
        parts.push(poly.constant.to_string());
    }
    parts.join(" + ")
}

/// The values of symbols that keep all guards of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    symbols: Vec<String>,
    /// Atoms, each behind those that it is made of; only those that guards need.
    atoms: Vec<Atom>,
    guards: Vec<Guard>,
    /// Up to which guard each place of a model made them, as far as is known.
    #[serde(default)]
    places: Vec<(usize, String)>,
}

impl Region {
    pub(crate) fn new(
        symbols: Vec<String>,
        mut atoms: Vec<Atom>,
        guards: Vec<Guard>,
        places: Vec<(usize, String)>,
    ) -> Region {
        let last = |poly: &Poly| poly.terms.iter().flat_map(|term| &term.atoms).map(|id| id.0 + 1).max();
        let needed = guards.iter().filter_map(|guard| last(&guard.poly)).max().unwrap_or(0);
        atoms.truncate(needed as usize);
        Region { symbols, atoms, guards, places }
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
        self.failing(values).is_none()
    }

    /// The first guard that values of the symbols do not keep.
    fn failing(&self, values: &[u64]) -> Option<usize> {
        let numbers = evaluate(&self.atoms, values);
        // What is damaged refers to what is not there.
        let number = |id: AtomId| numbers.get(id.0 as usize).copied().unwrap_or(-1);
        self.guards.iter().position(|guard| !guard.rule.is_kept(guard.poly.evaluate(number)))
    }

    /// Why values of the symbols are not among them: the guard, and the place of the model that made it, where that is known.
    pub fn why_not(&self, values: &[u64]) -> Option<String> {
        let index = self.failing(values)?;
        let guard = self.guards[index].text(&self.symbols, &|id| self.atoms.get(id.0 as usize));
        let place = self.places.iter().find(|(count, _)| *count > index);
        Some(match place {
            Some((_, place)) => format!("{place}: {guard}"),
            None => guard,
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
