//! Work that the host does while a function is at work: what each kind reads and gives.

use std::fmt;

use halite_ops::DType;
use halite_sizes::Size;

use super::{Graph, Node};

/// What the host does between two recordings. Each kind gives symbols their values: sizes behind it may be computed of them.
#[derive(Clone, Debug)]
pub enum HostWork {
    /// Numbers are read from the device: the values of symbols from `first` on. One input, a vector of `i64`, whose length is
    /// their number.
    Read {
        /// The first symbol.
        first: u32,
    },
    /// Symbols from `first` on get values that are computed of others. No inputs. At the end of both branches of an
    /// [`super::NodeOp::If`], the results of which have sizes of these symbols; and at the end of a loop's body.
    Set {
        /// The first symbol.
        first: u32,
        /// The values.
        values: Vec<Size>,
    },
}

impl HostWork {
    /// Whether a node's tensors, and the symbols that it gives, are such as its work needs.
    ///
    /// # Errors
    /// Says what is wrong.
    pub(super) fn check(&self, node: &Node, graph: &Graph) -> Result<(), String> {
        let (first, inputs, count) = match self {
            HostWork::Read { first } => (*first, 1, numbers(node, graph)),
            HostWork::Set { first, values } => (*first, 0, Some(values.len())),
        };
        let fits = count.is_some_and(|count| is_data(graph, first, count));
        if fits && node.inputs.len() == inputs && node.outputs.is_empty() {
            return Ok(());
        }
        Err(format!("{self} of [{}] gives no symbols that data decide", graph.list(&node.inputs)))
    }
}

/// How many numbers a node's first input has.
fn numbers(node: &Node, graph: &Graph) -> Option<usize> {
    let tensor = graph.tensor(*node.inputs.first()?);
    let are_numbers = tensor.element.storage() == DType::I64 && tensor.shape.is_constant();
    are_numbers.then(|| tensor.elements() as usize)
}

/// Whether symbols are such that data decide.
fn is_data(graph: &Graph, first: u32, count: usize) -> bool {
    let open = graph.open.as_ref();
    let data = open.map_or(0..usize::MAX, |open| open.symbols.len()..open.count());
    let first = first as usize;
    count > 0 && data.contains(&first) && data.contains(&(first + count - 1))
}

impl fmt::Display for HostWork {
    /// `host read into symbols from 2 on`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostWork::Read { first } => write!(f, "host read into symbols from {first} on"),
            HostWork::Set { first, values } => write!(f, "host set of symbols from {first} on to {values:?}"),
        }
    }
}
