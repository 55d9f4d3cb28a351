//! Writing constants of one element into the expressions that read them.

use halite_ops::{
    DType, Operation, Values,
    elementwise::Elementwise,
    expression::{Expression, Operand, Scalar},
};

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

pub(super) fn run(graph: &mut Graph, region: &mut Region, _: &mut Uses, watch: Watch<'_>) -> Result {
    for node in &mut region.nodes {
        watch.check()?;
        inline(graph, node);
    }
    Ok(())
}

/// Replaces inputs of one known element by constants, as long as one input stays and the results keep their dimensions.
fn inline(graph: &Graph, node: &mut Node) {
    let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return };
    let (read, tables) = node.inputs.split_at(elementwise.inputs.0.len());
    let scalars: Vec<Option<Scalar>> = read.iter().map(|id| scalar(graph, *id)).collect();
    if scalars.iter().all(Option::is_none) || scalars.iter().all(Option::is_some) {
        return;
    }
    let mut kept = Vec::new();
    let mut now = Vec::new();
    for (index, scalar) in scalars.iter().enumerate() {
        now.push(scalar.map_or(Operand::Input(kept.len()), Operand::Constant));
        if scalar.is_none() {
            kept.push(index);
        }
    }
    let inputs: Vec<_> = kept.iter().map(|i| elementwise.inputs.0[*i].clone()).collect();
    let mut program = elementwise.program.clone();
    substitute(&mut program, &now);
    let new = Elementwise::new(inputs, program).with_tables(elementwise.tables.0.clone());
    let new = Operation::Elementwise(new);
    let count = |operation: &Operation| operation.outputs().first().map(halite_ops::TensorDesc::elements);
    if crate::backend::check(&new).is_err() || count(&new) != Some(graph.tensor(node.outputs[0]).count()) {
        return;
    }
    node.inputs = kept.iter().map(|i| read[*i]).chain(tables.iter().copied()).collect();
    node.op = NodeOp::Operation(new);
}

/// Puts other operands in the place of inputs.
pub(super) fn substitute(program: &mut Expression, inputs: &[Operand]) {
    let change = |operand: &mut Operand| {
        if let Operand::Input(i) = *operand {
            *operand = inputs[i];
        }
    };
    program.nodes.iter_mut().flat_map(|node| &mut node.operands).for_each(change);
    program.outputs.iter_mut().map(|output| &mut output.value).for_each(change);
}

/// The element of a constant of one.
pub(super) fn scalar(graph: &Graph, id: TensorId) -> Option<Scalar> {
    let tensor = graph.tensor(id);
    let bytes = tensor.constant.as_ref().filter(|_| tensor.elements() == 1)?;
    let dtype: DType = tensor.element.storage();
    Some(match Values::from_bytes(dtype, bytes) {
        // Expressions compute with 32-bit floats.
        Values::Float(values) => Scalar::Float(f64::from(*values.first()? as f32)),
        Values::Int(values) => Scalar::Int(*values.first()?, dtype),
    })
}
