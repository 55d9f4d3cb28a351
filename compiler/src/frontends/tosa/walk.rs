//! The walk over a graph of TOSA: its constants, its nodes in order, its outputs.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use bytes::Bytes;
use halite_formats::tosa::{Constant, Graph, GraphId, Operator, Program, Tensor, Variable, VariableId};

use super::{
    Result,
    control::{self, Graphs},
    element_of, ops,
};
use crate::{
    SourceLocation,
    build::Builder,
    graph::{ElementType, TensorId},
};

/// Most levels of control flow inside of each other.
const MOST_NESTING: usize = 32;

/// Puts a graph of a program where the builder is: `inputs` are its inputs, and what comes back are its outputs.
///
/// # Errors
/// A node breaks a rule of its operator or is not supported, or the builder's control ended the work.
pub fn lower(
    builder: &mut Builder,
    program: &Program,
    graph: GraphId,
    inputs: &[TensorId],
) -> Result<Vec<TensorId>> {
    Ok(lower_with(builder, program, graph, inputs, &[])?.0)
}

/// The same of a program whose variables in `given` are inputs: they are the results of the second list, in the same order.
///
/// # Errors
/// Those of [`lower`].
pub(super) fn lower_with(
    builder: &mut Builder,
    program: &Program,
    graph: GraphId,
    inputs: &[TensorId],
    given: &[(VariableId, TensorId)],
) -> Result<(Vec<TensorId>, Vec<TensorId>)> {
    let held = RefCell::new(given.iter().copied().collect::<BTreeMap<_, _>>());
    let results = Walk { program, depth: 0, held: &held }.graph(builder, graph, inputs)?;
    let held = held.into_inner();
    Ok((results, given.iter().map(|(variable, _)| held[variable]).collect()))
}

/// The variables that a program writes, in order.
pub(super) fn written(program: &Program) -> Vec<VariableId> {
    let nodes = program.graphs.iter().flat_map(|graph| &graph.nodes);
    let written = nodes.filter_map(|node| match node.operator {
        Operator::VariableWrite { variable } => Some(variable),
        _ => None,
    });
    written.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A walk over the graphs of a program, so deep in control flow.
#[derive(Clone, Copy)]
struct Walk<'a> {
    program: &'a Program,
    depth: usize,
    /// What variables hold that outlive a call.
    held: &'a RefCell<BTreeMap<VariableId, TensorId>>,
}

impl Walk<'_> {
    /// What a variable holds; one that nothing writes has its first value.
    fn variable(self, b: &mut Builder, variable: VariableId) -> Result<TensorId> {
        if let Some(held) = self.held.borrow().get(&variable) {
            return Ok(*held);
        }
        let Variable { name, element, shape, initial } = &self.program.variables[variable];
        if initial.is_none() {
            return Err(b.invalid(format!("VARIABLE_READ: '{name}' has no value, and nothing gives it one")));
        }
        let (name, shape, constant) = (name.clone(), shape.clone(), initial.clone());
        constant_of(b, &Tensor { name, element: *element, shape, constant })
    }

    /// Puts a tensor into a variable.
    fn write(self, b: &Builder, variable: VariableId, inputs: &[TensorId]) -> Result<Vec<TensorId>> {
        let Variable { name, element, shape, .. } = &self.program.variables[variable];
        if self.depth > 0 {
            return Err(b.unsupported(format!("VARIABLE_WRITE of '{name}' inside of control flow")));
        }
        let &[value] = inputs else { return Err(b.invalid("VARIABLE_WRITE takes one tensor")) };
        let tensor = Tensor { name: name.clone(), element: *element, shape: shape.clone(), constant: None };
        check(b, &tensor, value)?;
        match self.held.borrow_mut().get_mut(&variable) {
            Some(held) => *held = value,
            None => return Err(b.unsupported(format!("VARIABLE_WRITE: nothing keeps '{name}' here"))),
        }
        Ok(Vec::new())
    }
}

impl Graphs for Walk<'_> {
    fn inside(self, builder: &Builder) -> Result<Self> {
        if self.depth == MOST_NESTING {
            let reason = format!("control flow is nested more than {MOST_NESTING} deep");
            return Err(builder.unsupported(reason));
        }
        Ok(Walk { depth: self.depth + 1, ..self })
    }

    fn graph(self, builder: &mut Builder, graph: GraphId, inputs: &[TensorId]) -> Result<Vec<TensorId>> {
        let graph = &self.program.graphs[graph];
        if graph.inputs.len() != inputs.len() {
            let (takes, given) = (graph.inputs.len(), inputs.len());
            return Err(builder.invalid(format!("graph '{}' takes {takes} tensors, not {given}", graph.name)));
        }
        let mut made: Vec<Option<TensorId>> = vec![None; graph.tensors.len()];
        for (id, given) in graph.inputs.iter().zip(inputs) {
            check(builder, &graph.tensors[*id], *given)?;
            made[*id] = Some(*given);
        }
        for (at, node) in graph.nodes.iter().enumerate() {
            builder.watch().step(at, graph.nodes.len())?;
            builder.at(SourceLocation::new(node.location.as_str()));
            let inputs: Result<Vec<_>> =
                node.inputs.iter().map(|id| value(builder, graph, &mut made, *id)).collect();
            let results = match &node.operator {
                Operator::CondIf { then_graph, else_graph } => {
                    control::cond_if(self, builder, &inputs?, [*then_graph, *else_graph])?
                }
                Operator::WhileLoop { condition_graph, body_graph } => {
                    control::while_loop(self, builder, &inputs?, *condition_graph, *body_graph)?
                }
                Operator::VariableRead { variable } => vec![self.variable(builder, *variable)?],
                Operator::VariableWrite { variable } => self.write(builder, *variable, &inputs?)?,
                _ => ops::lower(builder, graph, node, &inputs?)?,
            };
            builder.at(SourceLocation::new(node.location.as_str()));
            if results.len() != node.outputs.len() {
                let (gives, wants) = (results.len(), node.outputs.len());
                return Err(builder.invalid(format!("gives {gives} tensors; the file says {wants}")));
            }
            for (id, result) in node.outputs.iter().zip(results) {
                check(builder, &graph.tensors[*id], result)?;
                made[*id] = Some(result);
            }
        }
        graph.outputs.iter().map(|id| value(builder, graph, &mut made, *id)).collect()
    }
}

/// A tensor that was made before, or a constant.
fn value(builder: &mut Builder, graph: &Graph, made: &mut [Option<TensorId>], id: usize) -> Result<TensorId> {
    if let Some(known) = made[id] {
        return Ok(known);
    }
    let tensor = &graph.tensors[id];
    if tensor.constant.is_none() {
        return Err(builder.invalid(format!("tensor {id} '{}' is read before it is computed", tensor.name)));
    }
    let found = constant_of(builder, tensor)?;
    made[id] = Some(found);
    Ok(found)
}

/// The elements of a tensor that has them; zeros of one that has none.
fn constant_of(builder: &mut Builder, tensor: &Tensor) -> Result<TensorId> {
    let element = element_of(tensor.element);
    // In files any byte but 0 is true, in graphs 1 is.
    let kept = |bytes: &Bytes| match element {
        ElementType::Bool if bytes.iter().any(|byte| *byte > 1) => {
            bytes.iter().map(|byte| u8::from(*byte != 0)).collect()
        }
        _ => bytes.clone(),
    };
    let one = match &tensor.constant {
        Some(Constant::Dense(bytes)) => {
            return builder.constant(&tensor.name, element, &tensor.shape, kept(bytes));
        }
        Some(Constant::Splat(bytes)) => kept(bytes),
        None => Bytes::from(vec![0; element.storage().size() as usize]),
    };
    let ones = vec![1; tensor.shape.len()];
    let one = builder.constant(&tensor.name, element, &ones, one)?;
    builder.expand(one, &tensor.shape)
}

/// Whether a result is what the file says.
fn check(builder: &Builder, tensor: &Tensor, result: TensorId) -> Result<()> {
    let wants = element_of(tensor.element);
    if builder.element(result) == wants && builder.dims(result) == tensor.shape {
        return Ok(());
    }
    let what = builder.describe(&[result]);
    Err(builder.invalid(format!("gives {what}; the file says {}{:?}", tensor.element, tensor.shape)))
}
