//! Conversions that change nothing: of 16-bit floats to 32 bits for arithmetic, which computes with 32 bits anyway, and those that are left
//! where a precision was asked for.

use halite_ops::{
    Operation,
    elementwise::Elementwise,
    expression::{self, Operand},
};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region},
};

/// Leaves them out of expressions; a node of which nothing is left becomes a view.
pub(super) fn run(graph: &mut Graph, region: &mut Region, _: &mut Uses, watch: Watch<'_>) -> Result {
    for node in &mut region.nodes {
        watch.check()?;
        let NodeOp::Operation(Operation::Elementwise(elementwise)) = &mut node.op else { continue };
        let has_casts =
            elementwise.program.nodes.iter().any(|node| node.function == expression::Function::Cast);
        if has_casts {
            let dtypes: Vec<_> = elementwise.inputs.0.iter().map(|(dtype, _)| *dtype).collect();
            let Ok(types) = elementwise.program.types(&dtypes) else { continue };
            elementwise.program = expression::simplify(&elementwise.program, &types, &dtypes);
        }
        if is_nothing(graph, node) {
            node.op = NodeOp::View;
        }
    }
    Ok(())
}

/// Whether an operation gives what it reads.
fn is_nothing(graph: &Graph, node: &Node) -> bool {
    let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return false };
    let Elementwise { inputs, program, tables, strided, written: _ } = elementwise;
    let ([(dtype, dims)], [], [output]) = (&inputs.0[..], &program.nodes[..], &program.outputs[..]) else {
        return false;
    };
    let [from, to] = [node.inputs[0], node.outputs[0]].map(|id| graph.tensor(id));
    let whole = dims.iter().product::<Size>() == to.count() && strided.is_empty() && tables.0.is_empty();
    whole && output.value == Operand::Input(0) && output.dtype == *dtype && from.element == to.element
}
