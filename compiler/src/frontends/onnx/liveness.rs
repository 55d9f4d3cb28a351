//! Which nodes of a list are needed for its outputs.

use std::collections::HashSet;

use halite_formats::onnx::{AttributeValue, Graph, Node};

/// For each node whether it is needed, and the names of all values that are.
pub(super) fn needed<'m>(
    nodes: &'m [Node],
    outputs: impl Iterator<Item = &'m str>,
) -> (Vec<bool>, HashSet<&'m str>) {
    let mut names: HashSet<&str> = outputs.collect();
    let mut live = vec![false; nodes.len()];
    for (node, live) in nodes.iter().zip(&mut live).rev() {
        if node.outputs.iter().any(|name| !name.is_empty() && names.contains(name.as_str())) {
            *live = true;
            reads(node, &mut names);
        }
    }
    (live, names)
}

/// Adds the names that a node and the graphs inside of it read.
fn reads<'m>(node: &'m Node, names: &mut HashSet<&'m str>) {
    let mut open = vec![node];
    let mut graphs: Vec<&Graph> = Vec::new();
    while let Some(node) = open.pop() {
        names.extend(node.inputs.iter().map(String::as_str));
        for attribute in &node.attributes {
            match &attribute.value {
                AttributeValue::Graph(graph) => graphs.push(graph),
                AttributeValue::Graphs(all) => graphs.extend(all),
                _ => {}
            }
        }
        for graph in graphs.drain(..) {
            names.extend(graph.outputs.iter().map(|output| output.name.as_str()));
            open.extend(&graph.nodes);
        }
    }
}
