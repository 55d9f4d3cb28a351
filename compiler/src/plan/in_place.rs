//! Which values of states are computed in the states' own memory, and which are copied there, and why.

use std::collections::{HashMap, HashSet};

use halite_ops::Operation;

use super::lives::overwritable;
use crate::graph::{Graph, Node, NodeOp, Region, StatePort, TensorId};

/// What becomes of the states of a graph.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// The tensors that are computed in the memory of a state: those of nodes of the body, by the state's input.
    pub computed: HashMap<TensorId, usize>,
    /// Why the value of a state is copied, by the state's input.
    pub copied: HashMap<usize, String>,
}

impl Placement {
    /// Decides for all states of a graph.
    pub fn of(graph: &Graph) -> Placement {
        let mut placement = Placement::default();
        if graph.states.is_empty() {
            return placement;
        }
        let body = Body::of(graph);
        for state in &graph.states {
            let root = body.root(graph.state_tensors(state).1);
            match body.place(graph, state) {
                Ok(Some(tensor)) if placement.computed.contains_key(&tensor) => {
                    placement.copied.insert(state.input, "another state has the same value".to_owned());
                }
                Ok(Some(tensor)) => drop(placement.computed.insert(tensor, state.input)),
                Ok(None) => debug_assert_eq!(root, graph.state_tensors(state).0, "nothing to do"),
                Err(reason) => drop(placement.copied.insert(state.input, reason)),
            }
        }
        placement
    }
}

/// What a graph's body reads and where.
struct Body<'a> {
    /// What each view shows.
    shown: HashMap<TensorId, TensorId>,
    /// The node that computes a tensor.
    made: HashMap<TensorId, (usize, &'a Node)>,
    /// Inputs that nodes read, also by views of them: the place of the last node.
    last: HashMap<TensorId, usize>,
}

impl<'a> Body<'a> {
    fn of(graph: &'a Graph) -> Self {
        let mut body = Body { shown: HashMap::new(), made: HashMap::new(), last: HashMap::new() };
        let inputs: HashSet<TensorId> = graph.inputs.iter().map(|port| port.tensor).collect();
        for (place, node) in graph.body.nodes.iter().enumerate() {
            body.made.extend(node.outputs.iter().map(|id| (*id, (place, node))));
            if matches!(node.op, NodeOp::View) {
                body.shown.insert(node.outputs[0], node.inputs[0]);
                continue;
            }
            for id in node.reads() {
                let root = body.root(id);
                if inputs.contains(&root) {
                    body.last.insert(root, place);
                }
            }
        }
        body
    }

    /// What a tensor is a view of, in the end.
    fn root(&self, mut id: TensorId) -> TensorId {
        while let Some(shown) = self.shown.get(&id) {
            id = *shown;
        }
        id
    }

    /// The tensor that is computed in a state's memory; none where the state stays as it is.
    fn place(&self, graph: &Graph, state: &StatePort) -> Result<Option<TensorId>, String> {
        let (old, new) = graph.state_tensors(state);
        let root = self.root(new);
        if root == old {
            return Ok(None);
        }
        let Some((place, node)) = self.made.get(&root) else {
            return Err("its new value is an input or a constant".to_owned());
        };
        if !matches!(node.op, NodeOp::Operation(_) | NodeOp::Foreign(_)) {
            return Err(format!("its new value comes from control flow, {}", node.location));
        }
        let kept = graph.outputs.iter().enumerate();
        if let Some((_, port)) =
            kept.filter(|(index, _)| *index != state.output).find(|(_, port)| self.root(port.tensor) == old)
        {
            return Err(format!("the output '{}' is its old value", port.name));
        }
        match self.last.get(&old) {
            Some(last) if last > place => {
                let reader = &graph.body.nodes[*last];
                Err(format!("its old value is read after the new one is there, by {}", reader.location))
            }
            Some(last) if last == place && !self.updates(node, old) => {
                Err(format!("{} reads the old value elsewhere than it writes the new one", node.location))
            }
            _ => Ok(Some(root)),
        }
    }

    /// Whether a node that reads a state can write its result over it.
    fn updates(&self, node: &Node, old: TensorId) -> bool {
        let reads: Vec<usize> =
            (0..node.inputs.len()).filter(|input| self.root(node.inputs[*input]) == old).collect();
        let (NodeOp::Operation(operation), [_]) = (&node.op, &node.outputs[..]) else { return false };
        if matches!(operation, Operation::Elementwise(_)) {
            return reads.iter().all(|input| overwritable(operation, *input));
        }
        matches!(&reads[..], [only] if updated(operation) == Some(*only))
    }
}

/// What a loop's body computes in the memory of what it is given, by the number of the parameter: results of operations that
/// change some elements of one, which nothing else reads.
pub(super) fn carried_in_place(body: &Region) -> HashMap<TensorId, usize> {
    let mut shown: HashMap<TensorId, TensorId> = HashMap::new();
    for node in body.nodes.iter().filter(|node| matches!(node.op, NodeOp::View)) {
        shown.insert(node.outputs[0], node.inputs[0]);
    }
    let root = |mut id: TensorId| {
        while let Some(from) = shown.get(&id) {
            id = *from;
        }
        id
    };
    let mut found = HashMap::new();
    // The condition is no value that is carried.
    for (index, result) in body.results.iter().enumerate().skip(1) {
        let (result, parameter) = (root(*result), body.parameters[index + 1]);
        let Some(node) = body.nodes.iter().find(|node| node.outputs.contains(&result)) else { continue };
        let NodeOp::Operation(operation) = &node.op else { continue };
        let Some(input) = updated(operation).filter(|input| root(node.inputs[*input]) == parameter) else {
            continue;
        };
        let mut others =
            body.nodes.iter().filter(|node| !matches!(node.op, NodeOp::View)).flat_map(|other| {
                let is_own = std::ptr::eq(other, node);
                let read = other.reads().into_iter().enumerate();
                read.filter(move |(place, _)| !(is_own && *place == input)).map(|(_, id)| id)
            });
        let also_given = body.results.iter().filter(|id| root(**id) == parameter).count();
        if also_given == 0 && others.all(|id| root(id) != parameter) {
            found.insert(result, index + 1);
        }
    }
    found
}

/// The input that an operation changes some elements of and leaves the others: its result can have the same memory.
fn updated(operation: &Operation) -> Option<usize> {
    match operation {
        Operation::KvAppend(append) if !append.in_place => Some(1),
        Operation::ScatterNd(_) | Operation::ScatterElements(_) => Some(0),
        _ => None,
    }
}

/// The same operation as one that writes in the memory of its input, with the inputs that it has then, by their places.
pub(super) fn in_place(operation: &Operation) -> Option<(Operation, Vec<usize>)> {
    let Operation::KvAppend(append) = operation else { return None };
    // All but the cache.
    let inputs = (0..operation.inputs().len()).filter(|input| *input != 1).collect();
    Some((Operation::KvAppend(halite_ops::kv_append::KvAppend { in_place: true, ..append.clone() }), inputs))
}
