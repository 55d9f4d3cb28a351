//! COND_IF and WHILE_LOOP as regions.

use halite_formats::tosa::GraphId;
use halite_ops::{DType, Values};

use super::Result;
use crate::{
    build::Builder,
    graph::{ElementType, NodeOp, TensorId},
};

type Typed = (ElementType, Vec<u64>);

/// The graphs of a program, at a depth of control flow.
pub(super) trait Graphs: Copy {
    /// The same, one level deeper.
    ///
    /// # Errors
    /// That is too deep, as it would be for ever where a graph contains itself.
    fn inside(self, b: &Builder) -> Result<Self>;

    /// Puts a graph where the builder is, and gives its results.
    ///
    /// # Errors
    /// The graph breaks a rule, or takes other inputs.
    fn graph(self, b: &mut Builder, graph: GraphId, inputs: &[TensorId]) -> Result<Vec<TensorId>>;
}

/// COND_IF: one of two graphs, whose inputs are those behind the condition.
///
/// # Errors
/// The condition is no single boolean, or the graphs give different tensors.
pub(super) fn cond_if(
    walk: impl Graphs,
    b: &mut Builder,
    inputs: &[TensorId],
    graphs: [GraphId; 2],
) -> Result<Vec<TensorId>> {
    let walk = walk.inside(b)?;
    let Some((condition, inputs)) = inputs.split_first() else {
        return Err(b.invalid("COND_IF has no condition"));
    };
    let condition = truth(b, *condition, "COND_IF")?;
    if let Some(known) = b.ints(condition) {
        return walk.graph(b, graphs[usize::from(known[0] == 0)], inputs);
    }
    let location = b.location().clone();
    let [then, other] = graphs.map(|graph| {
        b.region::<u64>(&[])?;
        let results = walk.graph(b, graph, inputs)?;
        Ok(b.close(&results))
    });
    let (then, other) = (then?, other?);
    b.at(location);
    let outputs = types(b, &then.results);
    if outputs != types(b, &other.results) {
        let [then, other] = [&then.results, &other.results].map(|ids| b.describe(ids));
        return Err(b.invalid(format!("COND_IF gives {then} or {other}")));
    }
    b.push(NodeOp::If(Box::new([then, other])), &[condition], &outputs)
}

/// WHILE_LOOP: the body as long as the condition holds of what it gave.
///
/// # Errors
/// The condition is no single boolean, or the body gives other tensors than it takes.
pub(super) fn while_loop(
    walk: impl Graphs,
    b: &mut Builder,
    inputs: &[TensorId],
    condition: GraphId,
    body: GraphId,
) -> Result<Vec<TensorId>> {
    let walk = walk.inside(b)?;
    let location = b.location().clone();
    let first = test(walk, b, condition, inputs)?;
    let carried = types(b, inputs);
    let mut parameters: Vec<Typed> = vec![(DType::I64.into(), Vec::new()), (ElementType::Bool, Vec::new())];
    parameters.extend(carried.iter().cloned());
    let parameters = b.region(&parameters)?;
    let mut results = walk.graph(b, body, &parameters[2..])?;
    b.at(location.clone());
    if types(b, &results) != carried {
        let [takes, gives] = [inputs, &results].map(|ids| b.describe(ids));
        return Err(b.invalid(format!("WHILE_LOOP takes {takes}, and its body gives {gives}")));
    }
    let next = test(walk, b, condition, &results)?;
    results.insert(0, next);
    let region = b.close(&results);
    b.at(location);
    let most = b.values(DType::I64, &[], &Values::Int(vec![i64::MAX]))?;
    let all: Vec<TensorId> = [most, first].into_iter().chain(inputs.iter().copied()).collect();
    b.push(NodeOp::Loop(Box::new(region)), &all, &carried)
}

/// What a graph says of tensors: one boolean.
fn test(walk: impl Graphs, b: &mut Builder, graph: GraphId, inputs: &[TensorId]) -> Result<TensorId> {
    match walk.graph(b, graph, inputs)?[..] {
        [one] => truth(b, one, "WHILE_LOOP"),
        ref all => Err(b.invalid(format!("WHILE_LOOP: the condition gives {}", b.describe(all)))),
    }
}

/// A boolean of one element as a scalar.
fn truth(b: &mut Builder, condition: TensorId, what: &str) -> Result<TensorId> {
    if b.element(condition) != ElementType::Bool || b.tensor(condition).elements() != 1 {
        let found = b.describe(&[condition]);
        return Err(b.invalid(format!("{what}: the condition is {found}, not one boolean")));
    }
    b.reshape(condition, &[])
}

fn types(b: &Builder, ids: &[TensorId]) -> Vec<Typed> {
    ids.iter().map(|id| (b.element(*id), b.dims(*id).to_vec())).collect()
}
