//! How many rows the buffers of states have that grow in place.

use halite_sizes::{Atom, Poly, Size, evaluate};
use serde::{Deserialize, Serialize};

use crate::graph::Graph;

/// The states of a function that have rows to spare, and how many rows a call needs them to have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacities {
    states: Vec<Growing>,
    /// Whether there are states whose windows could move over their rows, and do not.
    #[serde(default)]
    windows: bool,
    /// For each symbol the input and the dimension that give its value.
    symbols: Vec<(usize, usize)>,
    /// What the numbers of rows are computed of, each atom behind those that it is made of.
    atoms: Vec<Atom>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Growing {
    input: String,
    output: String,
    axis: usize,
    rows: Poly,
    #[serde(default)]
    dropped: Poly,
}

/// What the buffer of a state has to be for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity<'a> {
    /// Name of the input.
    pub input: &'a str,
    /// Name of the output that replaces it.
    pub output: &'a str,
    /// The dimension in which it grows.
    pub axis: usize,
    /// Its size in that dimension: rows that count and rows to spare.
    pub rows: u64,
    /// The rows before those of the result, which begins behind them.
    pub dropped: u64,
}

impl Capacities {
    /// Of a graph that passes have been over.
    pub fn of(graph: &Graph) -> Capacities {
        let mut made = Capacities { windows: graph.windows, ..Capacities::default() };
        for state in &graph.states {
            let Some(axis) = state.grows else { continue };
            let (input, output) = (&graph.inputs[state.input], &graph.outputs[state.output]);
            let rows = graph.tensor(input.tensor).sizes()[axis];
            let poly = |size: Size| match &graph.open {
                Some(open) => open.trace.poly(size),
                None => Poly { constant: size.signed_value(), terms: Vec::new() },
            };
            let (rows, dropped) = (poly(rows), poly(state.dropped));
            let (input, output) = (input.name.clone(), output.name.clone());
            made.states.push(Growing { input, output, axis, rows, dropped });
        }
        if let Some(open) = graph.open.as_ref().filter(|_| !made.states.is_empty()) {
            let last = |poly: &Poly| poly.terms.iter().flat_map(|term| &term.atoms).map(|id| id.0 + 1).max();
            let needed = made
                .states
                .iter()
                .flat_map(|state| [last(&state.rows), last(&state.dropped)])
                .flatten()
                .max();
            let needed = needed.unwrap_or(0);
            made.atoms = open.trace.atoms();
            made.atoms.truncate(needed as usize);
            made.symbols.clone_from(&open.symbols);
        }
        made
    }

    /// Whether there are states whose windows could move over their rows if they had some to spare.
    pub fn has_windows(&self) -> bool {
        self.windows
    }

    /// Whether no state has rows to spare.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// What a call with inputs of these dimensions needs.
    pub fn each(&self, shapes: &[Vec<u64>]) -> impl Iterator<Item = Capacity<'_>> {
        let size = |(input, axis): &(usize, usize)| {
            shapes.get(*input).and_then(|dims| dims.get(*axis)).copied().unwrap_or(0)
        };
        let symbols: Vec<u64> = self.symbols.iter().map(size).collect();
        let numbers = evaluate(&self.atoms, &symbols);
        self.states.iter().map(move |Growing { input, output, axis, rows, dropped }| {
            let [rows, dropped] = [rows, dropped].map(|poly| {
                let value = poly.evaluate(|id| numbers.get(id.0 as usize).copied().unwrap_or(0));
                value.max(0).cast_unsigned()
            });
            Capacity { input, output, axis: *axis, rows, dropped }
        })
    }
}
