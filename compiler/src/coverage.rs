//! For which sizes of its inputs a graph is.

use std::collections::BTreeMap;

use halite_sizes::Region;
use serde::{Deserialize, Serialize};

use crate::{
    graph::Graph,
    signature::{Signature, open_name},
};

/// Sizes are near an example that are at most 2 to the power of this away.
const NEAR: u32 = 7;

/// Of so many sizes that no guard fixes, all sets are tried for one that moves.
const MOST_TOGETHER: usize = 6;

/// For which inputs a graph is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The dimensions of each input.
    inputs: Vec<Vec<Dimension>>,
    /// The values of symbols.
    region: Region,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Dimension {
    /// This size.
    Size(u64),
    /// The value of a symbol.
    Symbol(usize),
}

impl Coverage {
    /// Of a graph that was planned for its targets: planning adds to the guards.
    pub fn of(graph: &Graph) -> Coverage {
        let symbols = graph.open.as_ref().map_or(&[][..], |open| &open.symbols);
        let input = |port: &crate::graph::Port| {
            let sizes = graph.port_sizes(port);
            let one = |size: &halite_sizes::Size| {
                let same = |(input, axis): &(usize, usize)| {
                    let other = graph.port_sizes(&graph.inputs[*input])[*axis];
                    !size.is_constant() && other.is(*size)
                };
                let symbol = symbols.iter().position(same);
                symbol.map_or(Dimension::Size(size.value()), Dimension::Symbol)
            };
            sizes.iter().map(one).collect()
        };
        let inputs = graph.inputs.iter().map(input).collect();
        let region = graph.open.as_ref().map_or_else(Region::default, |open| open.trace.region());
        Coverage { inputs, region }
    }

    /// Whether inputs of these dimensions are among them.
    pub fn has<'a>(&self, shapes: impl ExactSizeIterator<Item = &'a [u64]>) -> bool {
        self.symbols(shapes).is_some()
    }

    /// The values of symbols, in their order, if inputs of these dimensions are among them.
    pub fn symbols<'a>(&self, shapes: impl ExactSizeIterator<Item = &'a [u64]>) -> Option<Vec<u64>> {
        let mut values: BTreeMap<usize, u64> = BTreeMap::new();
        if shapes.len() != self.inputs.len() {
            return None;
        }
        for (own, dims) in self.inputs.iter().zip(shapes) {
            let fits = own.len() == dims.len()
                && own.iter().zip(dims).all(|(own, size)| match own {
                    Dimension::Size(known) => known == size,
                    Dimension::Symbol(symbol) => values.insert(*symbol, *size).is_none_or(|old| old == *size),
                });
            if !fits {
                return None;
            }
        }
        let symbols: Vec<u64> = values.into_values().collect();
        self.region.has(&symbols).then_some(symbols)
    }

    /// Why inputs of these dimensions are not among them, as far as guards say it.
    pub fn why_not<'a>(&self, shapes: impl Iterator<Item = &'a [u64]>) -> Option<String> {
        let mut values: BTreeMap<usize, u64> = BTreeMap::new();
        for (own, size) in self.inputs.iter().zip(shapes).flat_map(|(own, dims)| own.iter().zip(dims)) {
            match own {
                Dimension::Symbol(symbol) => drop(values.insert(*symbol, *size)),
                Dimension::Size(known) if known != size => {
                    return Some(format!("the size {size} is {known}"));
                }
                Dimension::Size(_) => {}
            }
        }
        self.region.why_not(&values.into_values().collect::<Vec<u64>>())
    }
    /// Whether sizes near those of an example are among them: guards may leave nothing but the example.
    pub(crate) fn has_others(&self, example: &[Vec<u64>]) -> bool {
        let count = self.region.symbols().len();
        let mut values = vec![0; count];
        for (own, dims) in self.inputs.iter().zip(example) {
            for (own, size) in own.iter().zip(dims) {
                if let Dimension::Symbol(symbol) = own {
                    values[*symbol] = *size;
                }
            }
        }
        let steps = || (0..NEAR).flat_map(|bit| [1i64 << bit, -(1i64 << bit)]);
        let moved = |which: &dyn Fn(usize) -> bool, step: i64| {
            let one = |(i, size): (usize, &u64)| {
                if which(i) { size.saturating_add_signed(step) } else { *size }
            };
            values.iter().enumerate().map(one).collect::<Vec<u64>>()
        };
        let has = |which: &dyn Fn(usize) -> bool| steps().any(|step| self.region.has(&moved(which, step)));
        let fixed = self.region.fixed();
        let free: Vec<usize> = (0..count).filter(|symbol| !fixed.contains(symbol)).collect();
        // Sizes may depend on each other, as those of a cache before and after a call: they move together.
        match free.len() {
            0..=MOST_TOGETHER => (1u32..1 << free.len()).any(|set| {
                has(&|i| free.iter().position(|own| *own == i).is_some_and(|at| set >> at & 1 == 1))
            }),
            _ => has(&|i| free.contains(&i)) || free.iter().any(|symbol| has(&|i| i == *symbol)),
        }
    }
}

/// Whether inputs of these dimensions are not among the sizes of [`crate::CompileError::OtherSizes`]: what failed then fails for them too.
pub fn refuses(region: &Region, inputs: &[Signature], shapes: &[Vec<u64>]) -> bool {
    let size = |name: &String| {
        let axes = inputs.iter().zip(shapes).flat_map(|(input, dims)| {
            dims.iter().enumerate().map(move |(axis, size)| (open_name(input, axis), *size))
        });
        axes.into_iter().find(|(own, _)| own == name).map(|(_, size)| size)
    };
    let values: Option<Vec<u64>> = region.symbols().iter().map(size).collect();
    values.is_some_and(|values| !region.has(&values))
}
