//! Running one case: the graph for its inputs, the values that the graph needs, the comparison.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use anyhow::Result;
use halite_compiler::{
    CompileError,
    frontends::onnx::Model,
    graph::Graph,
    passes,
    signature::{Arity, Bindings, BoundValue},
};
use halite_ops::Values;

use super::{
    Case, Cost, Measured, Outcome, case,
    compare::{compare, compare_types},
    superseded::is_random,
};

/// What came of a graph.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its outputs in the order of the ports.
    pub outputs: Vec<BoundValue>,
    /// What it cost; none where nothing is compiled.
    pub cost: Option<Cost>,
}

/// What runs graphs.
pub trait Engine {
    /// The outputs of a graph for its inputs, which are in the order of the ports.
    ///
    /// # Errors
    /// Those of [`CompileError::is_unsupported`] if the graph cannot run there; else the reason.
    fn run(&self, graph: Graph, inputs: &[BoundValue]) -> Result<Ran>;
}

/// The host: graphs are evaluated by the operations' references.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Whether the passes rewrite graphs before.
    pub optimize: bool,
}

impl Engine for Host {
    fn run(&self, mut graph: Graph, inputs: &[BoundValue]) -> Result<Ran> {
        if self.optimize {
            passes::optimize(&mut graph)?;
        }
        let values = |input: &BoundValue| Values::from_bytes(input.element.storage(), &input.bytes);
        let values: Vec<Values> = inputs.iter().map(values).collect();
        let results = graph.evaluate(&values)?;
        let bound = |(port, values): (&halite_compiler::graph::Port, &Values)| {
            let tensor = graph.tensor(port.tensor);
            let bytes = values.to_bytes(tensor.element.storage()).into();
            BoundValue { element: tensor.element, dims: tensor.dims().to_vec(), bytes }
        };
        let outputs = graph.outputs.iter().zip(&results).map(bound).collect();
        Ok(Ran { outputs, cost: None })
    }
}

/// Runs a case. Floats may differ by `absolute` from those that are expected, besides a part of them. Nothing that a case does
/// ends the run: a panic is a failure.
pub fn check(case: &Case, engine: &dyn Engine, absolute: f64) -> Outcome {
    measure(case, engine, absolute).0
}

/// The same, and what can be measured.
pub fn measure(case: &Case, engine: &dyn Engine, absolute: f64) -> (Outcome, Measured) {
    let mut measured = Measured::default();
    let outcome = match catch_unwind(AssertUnwindSafe(|| run(case, engine, absolute, &mut measured))) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => match error.downcast_ref::<CompileError>() {
            Some(CompileError::Unsupported { reason, .. }) => Outcome::Unsupported(reason.clone()),
            Some(CompileError::UnsupportedOperators { operators }) => {
                let names: Vec<&str> = operators.iter().map(|operator| operator.name.as_str()).collect();
                Outcome::Unsupported(format!("operators that are not supported: {}", names.join(", ")))
            }
            Some(error @ CompileError::NeedsValues { inputs, .. }) if inputs.is_empty() => {
                Outcome::Unsupported(error.to_string())
            }
            Some(CompileError::NoKernel { operation, reason, .. }) => {
                Outcome::Unsupported(format!("no kernel for {operation}: {reason}"))
            }
            _ => Outcome::Failed(format!("{error:#}")),
        },
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
            Outcome::Failed(format!("panic: {text}"))
        }
    };
    (outcome, measured)
}

fn run(case: &Case, engine: &dyn Engine, absolute: f64, measured: &mut Measured) -> Result<Outcome> {
    let model = case.model()?;
    let mut failed = None;
    for set in case.data_sets()? {
        let reason = run_set(case, &model, &set, engine, absolute, measured)?;
        failed = failed.or(reason);
    }
    Ok(failed.map_or(Outcome::Passed, Outcome::Failed))
}

fn run_set(
    case: &Case,
    model: &Model,
    set: &Path,
    engine: &dyn Engine,
    absolute: f64,
    measured: &mut Measured,
) -> Result<Option<String>> {
    let inputs = case.values(set, "input", &model.inputs())?;
    let expected = case.values(set, "output", &model.outputs())?;
    let graph = graph(model, &inputs)?;
    let given: Option<Vec<BoundValue>> =
        graph.inputs.iter().map(|port| value_of(&inputs, &port.name)).collect();
    let Some(given) = given else { return Ok(Some("an input has no value in the data set".into())) };
    let names: Vec<String> = graph.outputs.iter().map(|port| port.name.clone()).collect();
    let Ran { outputs: results, cost } = engine.run(graph, &given)?;
    measured.set(cost);
    if names.len() != expected.len() {
        return Ok(Some(format!("{} outputs where {} are expected", names.len(), expected.len())));
    }
    let mut failed = None;
    for (name, got) in names.iter().zip(&results) {
        let reason = match value_of(&expected, name) {
            Some(wanted) if is_random(&case.name) => compare_types(got, &wanted),
            Some(wanted) => {
                measured.output(got, &wanted);
                compare(got, &wanted, absolute)
            }
            None => Some("nothing is expected".to_owned()),
        };
        failed = failed.or(reason.map(|reason| format!("output '{name}': {reason}")));
    }
    Ok(failed)
}

fn value_of(values: &case::Values, name: &str) -> Option<BoundValue> {
    values.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
}

/// The graph for the shapes of the inputs, and for their values where it cannot do without.
fn graph(model: &Model, inputs: &case::Values) -> Result<Graph, CompileError> {
    let mut bindings = Bindings::default();
    for (name, value) in inputs {
        bindings.shapes.insert(name.clone(), value.dims.clone());
    }
    // Inputs that have a default in the model, or that nothing declares, cannot be given a shape.
    let declared = model.inputs();
    bindings.shapes.retain(|name, _| {
        let list = name.split_once('[').map(|(list, _)| list);
        declared
            .iter()
            .any(|input| input.name == *name || input.arity == Arity::Sequence && Some(&*input.name) == list)
    });
    loop {
        match model.graph(&bindings) {
            Err(CompileError::NeedsValues { inputs: names, location, what, unsupported }) => {
                let before = bindings.values.len();
                for name in &names {
                    let value = inputs.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
                    bindings.values.extend(value.map(|value| (name.clone(), value)));
                }
                if bindings.values.len() == before {
                    return Err(CompileError::NeedsValues { inputs: names, location, what, unsupported });
                }
            }
            other => return other,
        }
    }
}
