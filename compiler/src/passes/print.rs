//! Which graphs are printed: between which passes.

use std::{fmt::Write as _, str::FromStr};

use super::{PASSES, Pass};
use crate::{UnknownName, graph::Graph};

/// When a graph is printed: `final`, `before:PASS`, `after:PASS` or `all`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrintGraph {
    /// After all passes.
    #[default]
    Final,
    /// Before the pass with this index in [`PASSES`].
    Before(usize),
    /// After the pass with this index in [`PASSES`].
    After(usize),
    /// As it was imported, and after each pass that changed it.
    All,
}

impl FromStr for PrintGraph {
    type Err = UnknownName;

    /// An unknown pass lists the valid ones.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let pass = |name: &str| {
            PASSES.iter().position(|pass| pass.name == name).ok_or_else(|| {
                let known: Vec<_> = PASSES.iter().map(|pass| pass.name).collect();
                UnknownName::new(format!("there is no pass '{name}'; there are: {}", known.join(", ")))
            })
        };
        match text.split_once(':') {
            None if text == "final" => Ok(PrintGraph::Final),
            None if text == "all" => Ok(PrintGraph::All),
            Some(("before", name)) => pass(name).map(PrintGraph::Before),
            Some(("after", name)) => pass(name).map(PrintGraph::After),
            _ => {
                let known: Vec<_> = PASSES.iter().map(|pass| pass.name).collect();
                Err(UnknownName::new(format!(
                    "'{text}' is no time to print a graph; write final, all, before:PASS or after:PASS, with one of the \
                     passes {}",
                    known.join(", ")
                )))
            }
        }
    }
}

/// Prints the graphs of a function as the passes run.
#[derive(Debug)]
pub(crate) struct Printer<'a> {
    when: PrintGraph,
    /// What stands above each graph.
    function: &'a str,
    /// The text so far.
    text: &'a mut String,
    /// The graph as it was printed last, so that [`PrintGraph::All`] leaves out what did not change.
    last: String,
}

impl<'a> Printer<'a> {
    /// A printer that appends to `text`.
    pub fn new(when: PrintGraph, function: &'a str, text: &'a mut String) -> Self {
        Printer { when, function, text, last: String::new() }
    }

    /// Prints the graph after a pass, or before the first, if it is wanted.
    pub fn observe(&mut self, pass: Option<&Pass>, graph: &Graph) {
        let done = pass.map_or(0, |pass| {
            PASSES.iter().position(|own| own.name == pass.name).map_or(PASSES.len(), |index| index + 1)
        });
        let title = match (self.when, pass) {
            (PrintGraph::Final, _) if done == PASSES.len() => String::new(),
            (PrintGraph::Before(index), _) if done == index => format!(", before {}", PASSES[index].name),
            (PrintGraph::After(index), _) if done == index + 1 => format!(", after {}", PASSES[index].name),
            (PrintGraph::All, None) => ", as imported".to_owned(),
            (PrintGraph::All, Some(pass)) => format!(", after {}", pass.name),
            _ => return,
        };
        let now = graph.to_string();
        if self.when == PrintGraph::All && now == self.last {
            writeln!(self.text, "function {}{title}: unchanged\n", self.function)
                .expect("writing to a string cannot fail");
            return;
        }
        writeln!(self.text, "function {}{title}\n{now}", self.function)
            .expect("writing to a string cannot fail");
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn passes_have_names_of_their_own_and_come_behind_what_they_need() {
        let mut before = HashSet::new();
        for pass in PASSES {
            let missing: Vec<_> = pass.needs.iter().filter(|name| !before.contains(**name)).collect();
            assert!(missing.is_empty(), "{} comes before {missing:?}", pass.name);
            assert!(before.insert(pass.name), "{} is there twice", pass.name);
        }
    }

    #[test]
    fn a_wrong_time_lists_the_passes() {
        assert_eq!("after:clean".parse::<PrintGraph>().unwrap(), PrintGraph::After(1));
        assert_eq!("before:half-precision".parse::<PrintGraph>().unwrap(), PrintGraph::Before(0));
        for wrong in ["after:cleen", "after", "now:clean", ""] {
            let error = wrong.parse::<PrintGraph>().unwrap_err().to_string();
            assert!(PASSES.iter().all(|pass| error.contains(pass.name)), "{error}");
        }
    }
}
