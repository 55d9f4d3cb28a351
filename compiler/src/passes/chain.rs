//! Looking back from a tensor at what computes it: nodes that came before, through views.

use std::collections::HashMap;

use halite_ops::{
    Operation,
    elementwise::Elementwise,
    expression::{Expression, Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Puts what `write` makes in the place of each node in which `find` finds something, looking back from it; what is not needed
/// any more goes with the next cleaning.
pub(super) fn replace<F>(
    graph: &mut Graph,
    region: &mut Region,
    uses: &mut Uses,
    watch: Watch<'_>,
    find: impl Fn(&Chain<'_>, &Node) -> Option<F>,
    write: impl Fn(F, &mut Graph, &Node) -> Vec<Node>,
) -> Result {
    let mut done: Vec<Node> = Vec::with_capacity(region.nodes.len());
    let mut producers: HashMap<TensorId, usize> = HashMap::new();
    for node in std::mem::take(&mut region.nodes) {
        watch.check()?;
        let found = find(&Chain { graph, nodes: &done, producers: &producers, uses }, &node);
        let new = match found {
            Some(found) => {
                let new = write(found, graph, &node);
                new.iter().flat_map(|node| &node.inputs).for_each(|id| uses.add(*id));
                node.inputs.iter().for_each(|id| uses.remove(*id));
                new
            }
            None => vec![node],
        };
        for node in new {
            producers.extend(node.outputs.iter().map(|id| (*id, done.len())));
            done.push(node);
        }
    }
    region.nodes = done;
    Ok(())
}

/// The nodes of a region so far.
pub(super) struct Chain<'a> {
    pub(super) graph: &'a Graph,
    pub(super) nodes: &'a [Node],
    /// The place of the node that computes a tensor.
    pub(super) producers: &'a HashMap<TensorId, usize>,
    pub(super) uses: &'a Uses,
}

impl Chain<'_> {
    /// The node that computes a tensor; none for inputs, constants, and tensors of regions around.
    pub(super) fn producer(&self, id: TensorId) -> Option<&Node> {
        self.producers.get(&id).map(|index| &self.nodes[*index])
    }

    /// The tensor whose bytes a tensor shows: behind views that keep the type.
    pub(super) fn behind_views(&self, mut id: TensorId) -> TensorId {
        while let Some(Node { op: NodeOp::View, inputs, .. }) = self.producer(id) {
            if self.graph.tensor(inputs[0]).element != self.graph.tensor(id).element {
                break;
            }
            id = inputs[0];
        }
        id
    }

    /// The operation that computes a tensor that is read once, through views that are read once; and its node.
    pub(super) fn only_maker(&self, mut id: TensorId) -> Option<(&Node, &Operation)> {
        loop {
            if self.uses.count(id) != 1 {
                return None;
            }
            let node = self.producer(id)?;
            match &node.op {
                NodeOp::View
                    if self.graph.tensor(node.inputs[0]).element == self.graph.tensor(id).element =>
                {
                    id = node.inputs[0];
                }
                NodeOp::Operation(operation) => return Some((node, operation)),
                _ => return None,
            }
        }
    }

    /// The factor and the input of a node that only scales, which computes a tensor.
    pub(super) fn scaled(&self, id: TensorId) -> Option<(f64, TensorId)> {
        let node = self.producer(id)?;
        let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return None };
        let Elementwise { inputs, program, tables: _, strided, written: _ } = elementwise;
        let ([(dtype, dims)], [call], [output]) = (&inputs.0[..], &program.nodes[..], &program.outputs[..])
        else {
            return None;
        };
        let whole = dims.iter().product::<Size>() == self.graph.tensor(id).count() && strided.is_empty();
        if !whole || output.value != Operand::Node(0) || output.dtype != *dtype || !dtype.is_float() {
            return None;
        }
        let factor = factor(call, Operand::Input(0))?;
        Some((factor, node.inputs[0]))
    }
}

/// The constant that a call multiplies an operand by.
pub(super) fn factor(call: &halite_ops::expression::Node, of: Operand) -> Option<f64> {
    let constant = |operand: Operand| match operand {
        Operand::Constant(Scalar::Float(value)) => Some(value),
        _ => None,
    };
    match (call.function, &call.operands[..]) {
        (Function::Neg, [a]) if *a == of => Some(-1.0),
        (Function::Mul, [a, b]) if *a == of => constant(*b),
        (Function::Mul, [a, b]) if *b == of => constant(*a),
        (Function::Div, [a, b]) if *a == of => constant(*b).filter(|by| *by != 0.0).map(|by| 1.0 / by),
        _ => None,
    }
}

/// A part of an expression alone: the nodes that an operand needs, with the inputs that they read, by their old numbers.
pub(super) fn part(program: &Expression, of: Operand) -> (Expression, Operand, Vec<usize>) {
    let mut needed = vec![false; program.nodes.len()];
    let mark = |operand: &Operand, needed: &mut Vec<bool>| {
        if let Operand::Node(index) = operand {
            needed[*index] = true;
        }
    };
    mark(&of, &mut needed);
    for index in (0..program.nodes.len()).rev() {
        if needed[index] {
            program.nodes[index].operands.iter().for_each(|operand| mark(operand, &mut needed));
        }
    }
    let (mut made, mut now, mut inputs) = (Expression::default(), HashMap::new(), Vec::new());
    let mut renamed = |operand: Operand, now: &HashMap<usize, Operand>| match operand {
        Operand::Node(index) => now[&index],
        Operand::Input(index) => {
            let at = inputs.iter().position(|own| *own == index).unwrap_or_else(|| {
                inputs.push(index);
                inputs.len() - 1
            });
            Operand::Input(at)
        }
        constant => constant,
    };
    for (index, node) in program.nodes.iter().enumerate().filter(|(index, _)| needed[*index]) {
        let operands = node.operands.iter().map(|operand| renamed(*operand, &now)).collect();
        let new = made.push(halite_ops::expression::Node { operands, ..node.clone() });
        now.insert(index, new);
    }
    let value = renamed(of, &now);
    (made, value, inputs)
}
