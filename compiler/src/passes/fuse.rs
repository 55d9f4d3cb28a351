//! Joining elementwise nodes into one: what one computes for another alone needs no tensor.

use std::collections::HashMap;

use halite_ops::{Operation, elementwise::Elementwise};
use halite_sizes::Size;

use super::{
    Result, Uses,
    merge::{Reader, are_short, reseen},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let mut nodes: Vec<Option<Node>> = region.nodes.drain(..).map(Some).collect();
    let mut producers: HashMap<TensorId, usize> = HashMap::new();
    for index in 0..nodes.len() {
        watch.check()?;
        while let Some(merged) =
            nodes[index].as_ref().and_then(|node| grow(graph, node, &nodes, &producers, uses))
        {
            let old = nodes[index].replace(merged.node).expect("it was just looked at");
            uses.replace(&old, nodes[index].as_ref().expect("it was just put there"));
            for gone in merged.gone {
                let gone = nodes[gone].take().expect("producers are there");
                gone.inputs.iter().for_each(|id| uses.remove(*id));
            }
        }
        let outputs = nodes[index].iter().flat_map(|node| node.outputs.clone());
        producers.extend(outputs.map(|id| (id, index)));
    }
    region.nodes = nodes.into_iter().flatten().collect();
    Ok(())
}

struct Merged {
    node: Node,
    /// Places of the nodes that are part of it now.
    gone: Vec<usize>,
}

/// The node with one more of the nodes that compute its inputs.
fn grow(
    graph: &Graph,
    node: &Node,
    nodes: &[Option<Node>],
    producers: &HashMap<TensorId, usize>,
    uses: &Uses,
) -> Option<Merged> {
    let elementwise = elementwise(node)?;
    let reader = Reader::new(elementwise, &node.inputs);
    let dims = elementwise_dims(elementwise)?;
    (0..reader.inputs.len()).find_map(|input| {
        let (producer, gone) = producer(node.inputs[input], nodes, producers, uses)?;
        let from = elementwise_of(&nodes[producer])?;
        let seen = &reader.inputs[input].2;
        let made = elementwise_dims(from)?;
        let whole = made.iter().product::<Size>() == dims.iter().product::<Size>();
        // Before anything is put together: chains have as many tries as nodes.
        if !are_short(&[elementwise, from]) {
            return None;
        }
        if !whole || from.program.outputs.len() != 1 || reader.input_of(node.inputs[input]).is_none() {
            return None;
        }
        let mut producer = Reader::new(from, &nodes[producer].as_ref()?.inputs);
        for own in &mut producer.inputs {
            own.2 = reseen(&own.2, &made, seen)?;
        }
        let merged = reader.absorb(input, &producer)?;
        let (operation, inputs) = merged.into_operation();
        let count = elementwise_dims(&operation).map(|dims| dims.iter().product::<Size>());
        let operation = Operation::Elementwise(operation);
        if crate::backend::check(&operation).is_err() || count != Some(graph.tensor(node.outputs[0]).count())
        {
            return None;
        }
        let node = Node { op: NodeOp::Operation(operation), inputs, ..node.clone() };
        Some(Merged { node, gone })
    })
}

/// The node that computes a tensor, through a view if there is one, and all that goes when it is joined: only when the
/// tensor is read once.
fn producer(
    id: TensorId,
    nodes: &[Option<Node>],
    producers: &HashMap<TensorId, usize>,
    uses: &Uses,
) -> Option<(usize, Vec<usize>)> {
    let mut gone = Vec::new();
    let mut id = id;
    loop {
        if uses.count(id) != 1 {
            return None;
        }
        let index = *producers.get(&id)?;
        gone.push(index);
        let node = nodes[index].as_ref()?;
        match &node.op {
            NodeOp::View => id = node.inputs[0],
            NodeOp::Operation(Operation::Elementwise(_)) => return Some((index, gone)),
            NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::If(_) | NodeOp::Loop(_) | NodeOp::Host(_) => {
                return None;
            }
        }
    }
}

fn elementwise(node: &Node) -> Option<&Elementwise> {
    match &node.op {
        NodeOp::Operation(Operation::Elementwise(elementwise)) => Some(elementwise),
        _ => None,
    }
}

fn elementwise_of(node: &Option<Node>) -> Option<&Elementwise> {
    node.as_ref().and_then(elementwise)
}

/// Dimensions of the results.
fn elementwise_dims(elementwise: &Elementwise) -> Option<Vec<Size>> {
    let shapes: Vec<Vec<Size>> = elementwise.inputs.0.iter().map(|(_, dims)| dims.clone()).collect();
    halite_ops::expression::broadcast(&shapes).ok()
}
