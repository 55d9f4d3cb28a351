//! Joining elementwise nodes into one: what one computes for another alone needs no tensor.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    DType, Operation,
    elementwise::Elementwise,
    expression::{Function, Type},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    merge::{Reader, are_short, reseen},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Whether a node of the first dimensions is to be computed as part of one of the second that reads it, when it is not one that is
/// computed at load, of constants alone.
struct Rule {
    fits: fn(&Elementwise, &[Size], &[Size]) -> bool,
    at_load: bool,
}

/// Joins nodes that have as many elements.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let fits = |_: &Elementwise, made: &[Size], dims: &[Size]| {
        made.iter().product::<Size>() == dims.iter().product::<Size>()
    };
    join(graph, region, uses, watch, &Rule { fits, at_load: true })
}

/// Computes values that many elements share for each of these: a few sums and products cost less than a dispatch.
pub(super) fn shared_values(
    graph: &mut Graph,
    region: &mut Region,
    uses: &mut Uses,
    watch: Watch<'_>,
) -> Result {
    let fits = |from: &Elementwise, made: &[Size], dims: &[Size]| {
        let count = made.iter().product::<Size>();
        count.is_constant() && count != dims.iter().product::<Size>() && is_cheap(from)
    };
    join(graph, region, uses, watch, &Rule { fits, at_load: false })
}

/// Functions of an expression that are computed again for each element that shares its value.
const MOST_AGAIN: usize = 3;
/// Inputs of such an expression: each is read for every element.
const MOST_READ_AGAIN: usize = 2;

/// Whether an expression is plain arithmetic of floats, with no more than one division or root.
fn is_cheap(elementwise: &Elementwise) -> bool {
    let program = &elementwise.program;
    let floats = elementwise.inputs.0.iter().all(|(dtype, _)| dtype.is_float())
        && program.outputs.iter().all(|output| output.dtype.is_float())
        && program.nodes.iter().all(|node| node.to.is_none_or(Type::is_float));
    let slow = |function: &Function| matches!(function, Function::Div | Function::Sqrt);
    let plain = |function: &Function| {
        use Function::{Abs, Add, Cast, Max, Min, Mul, Neg, Sub};
        slow(function) || matches!(function, Abs | Add | Cast | Max | Min | Mul | Neg | Sub)
    };
    floats
        && program.nodes.len() <= MOST_AGAIN
        && elementwise.inputs.0.len() <= MOST_READ_AGAIN
        && elementwise.inputs.0.iter().all(|(dtype, _)| *dtype != DType::F64)
        && elementwise.tables.0.is_empty()
        && program.nodes.iter().all(|node| plain(&node.function))
        && program.nodes.iter().filter(|node| slow(&node.function)).count() <= 1
}

fn join(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>, rule: &Rule) -> Result {
    let mut nodes: Vec<Option<Node>> = region.nodes.drain(..).map(Some).collect();
    let mut producers: HashMap<TensorId, usize> = HashMap::new();
    // What is computed at load.
    let mut known: HashSet<TensorId> = HashSet::new();
    for index in 0..nodes.len() {
        watch.check()?;
        while let Some(merged) =
            nodes[index].as_ref().and_then(|node| grow(graph, node, &nodes, &producers, uses, rule.fits))
        {
            let old = nodes[index].replace(merged.node).expect("it was just looked at");
            uses.replace(&old, nodes[index].as_ref().expect("it was just put there"));
            for gone in merged.gone {
                let gone = nodes[gone].take().expect("producers are there");
                gone.inputs.iter().for_each(|id| uses.remove(*id));
            }
        }
        let Some(node) = &nodes[index] else { continue };
        let constant = |id: &TensorId| known.contains(id) || graph.tensor(*id).constant.is_some();
        if rule.at_load || !node.inputs.iter().all(constant) {
            producers.extend(node.outputs.iter().map(|id| (*id, index)));
        } else {
            known.extend(&node.outputs);
        }
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
    fits: fn(&Elementwise, &[Size], &[Size]) -> bool,
) -> Option<Merged> {
    let elementwise = elementwise(node).filter(|elementwise| elementwise.strided.is_empty())?;
    let reader = Reader::new(elementwise, &node.inputs);
    let dims = elementwise_dims(elementwise)?;
    (0..reader.inputs.len()).find_map(|input| {
        let (producer, gone) = producer(node.inputs[input], nodes, producers, uses)?;
        let from = elementwise_of(&nodes[producer]).filter(|from| from.strided.is_empty())?;
        let seen = &reader.inputs[input].2;
        let made = elementwise_dims(from)?;
        // Before anything is put together: chains have as many tries as nodes.
        if !are_short(&[elementwise, from]) {
            return None;
        }
        if !fits(from, &made, &dims)
            || from.program.outputs.len() != 1
            || reader.input_of(node.inputs[input]).is_none()
        {
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
        let (outputs, location) = (node.outputs.clone(), node.location.clone());
        let node = Node { op: NodeOp::Operation(operation), inputs, outputs, location };
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

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Operation, expression::Function, reduce::ReduceKind};

    use crate::{
        build::Builder,
        passes::tests::{kernels, optimized},
    };

    /// How many elementwise operations are left of `x * function(sums of x / (mean of the sums + 1))`, and how many operations.
    fn left(function: Option<Function>) -> (usize, usize) {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 5, 8]).unwrap();
        let positive = b.unary(Function::Abs, x).unwrap();
        let sums = b.reduce(ReduceKind::Sum, positive, &[1], true).unwrap();
        let mean = b.reduce(ReduceKind::Mean, sums, &[2], true).unwrap();
        let one = b.float(DType::F32, 1.0).unwrap();
        let mean = b.binary(Function::Add, mean, one).unwrap();
        let mut shared = b.binary(Function::Div, sums, mean).unwrap();
        if let Some(function) = function {
            shared = b.unary(function, shared).unwrap();
        }
        let y = b.binary(Function::Mul, x, shared).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let kernels = kernels(&graph);
        (kernels.iter().filter(|o| matches!(o, Operation::Elementwise(_))).count(), kernels.len())
    }

    #[test]
    fn values_that_many_share_are_computed_where_they_are_read() {
        // The absolute values, two reductions, and all the rest.
        assert_eq!(left(None), (2, 4));
    }

    #[test]
    fn what_takes_long_is_computed_once() {
        assert_eq!(left(Some(Function::Exp)), (3, 5));
    }

    #[test]
    fn what_constants_alone_give_is_left_for_loading() {
        let mut b = Builder::new();
        // More than is folded while a graph is built.
        let count = crate::build::FOLD_LIMIT + 1;
        let x = b.input("x", DType::F32.into(), &[2, count]).unwrap();
        let [one, two] = [1, 2].map(|seed| crate::passes::tests::constant(&mut b, &[count], seed));
        let sum = b.binary(Function::Add, one, two).unwrap();
        let y = b.binary(Function::Mul, x, sum).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(kernels(&graph).len(), 2, "{graph}");
    }
}
