//! Comparing what a device computed with references and with recorded values.

use halite_compiler::graph::{Graph, Node, NodeOp};
use halite_ops::{DType, Tolerance, Values};

use super::{
    known::Known,
    report::{Difference, NodeCheck, RecordedCheck},
};
use crate::{Result, Tensor};

/// A node beside its reference on the device's own values of its inputs; nothing for views.
pub(super) fn compare(graph: &Graph, node: &Node, known: &Known<'_>) -> Option<NodeCheck> {
    let mut check = NodeCheck {
        location: node.location.as_str().to_owned(),
        tensors: node.outputs.iter().map(|id| graph.tensor(*id).name.clone()).collect(),
        finite_inputs: true,
        ..NodeCheck::default()
    };
    match &node.op {
        NodeOp::View | NodeOp::Host(_) => return None,
        NodeOp::Operation(operation) => {
            check.kind = operation.name().to_owned();
            check.text = operation.to_string();
        }
        NodeOp::Foreign(kernel) => {
            check.kind = "kernel of the model".to_owned();
            check.text = kernel.to_string();
        }
        NodeOp::If(_) => check.kind = "if".to_owned(),
        NodeOp::Loop(_) => check.kind = "loop".to_owned(),
    }
    let outputs: Vec<Option<Values>> = node.outputs.iter().map(|id| known.values(*id)).collect();
    let inputs: Option<Vec<Values>> = node.inputs.iter().map(|id| known.values(*id)).collect();
    check.finite_inputs = inputs.iter().flatten().all(|values| not_finite(values) == 0);
    check.not_finite = outputs.iter().flatten().map(not_finite).sum();
    check.elements = outputs.iter().flatten().map(|values| values.len() as u64).sum();
    let expected = inputs.and_then(|inputs| graph.expected(node, &inputs));
    let Some(expected) = expected.filter(|_| outputs.iter().all(Option::is_some)) else { return Some(check) };
    check.compared = true;
    for (output, (got, wanted)) in outputs.iter().flatten().zip(&expected.values).enumerate() {
        let dtype = graph.stored_type(node.outputs[output]);
        let (wrong, worst) = differences(got, wanted, dtype, expected.tolerance, output);
        check.wrong += wrong;
        check.worst = farther(check.worst, worst);
    }
    Some(check)
}

/// A recorded tensor beside what the device computed for the tensor of its name.
pub(super) fn against(
    graph: &Graph,
    name: &str,
    recorded: &Tensor,
    known: &Known<'_>,
    absolute: f64,
    relative: f64,
) -> Result<RecordedCheck> {
    let mut check = RecordedCheck { name: name.to_owned(), ..RecordedCheck::default() };
    let outputs = graph.outputs.iter().filter(|port| port.name == name).map(|port| port.tensor);
    let nodes = graph.body.nodes.iter().flat_map(|node| node.outputs.iter().copied());
    let named = nodes.filter(|id| graph.tensor(*id).name == name);
    let fits = |id: &_| graph.tensor(*id).elements() == recorded.len() as u64;
    let Some(id) = outputs.chain(named).find(fits) else { return Ok(check) };
    let Some(got) = known.values(id) else { return Ok(check) };
    let Some(recorded_type) = super::super::graph_type(recorded.element_type()) else { return Ok(check) };
    let wanted = Values::from_bytes(recorded_type.storage(), &recorded.to_bytes()?);
    check.found = true;
    check.elements = wanted.len() as u64;
    let maker = graph.body.nodes.iter().find(|node| node.outputs.contains(&id));
    check.location = maker.map(|node| node.location.as_str().to_owned()).unwrap_or_default();
    let dtype = if matches!(got, Values::Int(_)) { DType::I64 } else { graph.stored_type(id) };
    (check.wrong, check.worst) = differences(&got, &wanted, dtype, Tolerance { absolute, relative }, 0);
    Ok(check)
}

fn not_finite(values: &Values) -> u64 {
    match values {
        Values::Int(_) => 0,
        Values::Float(floats) => floats.iter().filter(|value| !value.is_finite()).count() as u64,
    }
}

/// How many elements are not within a tolerance, and the one that is farthest off.
fn differences(
    got: &Values,
    wanted: &Values,
    dtype: DType,
    tolerance: Tolerance,
    output: usize,
) -> (u64, Option<Difference>) {
    let (mut wrong, mut worst) = (0, None);
    for index in 0..got.len().max(wanted.len()) {
        if index >= got.len() || index >= wanted.len() {
            wrong += 1;
            continue;
        }
        let (own, expected) = (got.float(index), wanted.float(index));
        let exact = dtype.is_float() || tolerance.absolute + tolerance.relative > 0.0;
        let near = match (got, wanted, exact) {
            (Values::Int(a), Values::Int(b), false) => a[index] == b[index],
            // Devices may flush the smallest numbers to zero.
            _ => {
                tolerance.accepts(own, expected, dtype) || (expected.abs() < dtype.min_normal() && own == 0.0)
            }
        };
        let allowed = tolerance.absolute + tolerance.relative * expected.abs();
        let difference = Difference { output, index, got: own, expected, allowed };
        if !near {
            wrong += 1;
            worst = farther(worst, Some(difference));
        } else if wrong == 0 {
            worst = farther(worst, Some(difference));
        }
    }
    (wrong, worst)
}

/// How far a difference is, in units of what is allowed.
fn distance(difference: &Difference) -> f64 {
    let off = (difference.got - difference.expected).abs();
    let off = if off.is_nan() && difference.got.is_nan() != difference.expected.is_nan() {
        f64::INFINITY
    } else {
        off
    };
    if off > 0.0 { off / difference.allowed.max(f64::MIN_POSITIVE) } else { 0.0 }
}

fn farther(a: Option<Difference>, b: Option<Difference>) -> Option<Difference> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if distance(&b) > distance(&a) { b } else { a }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farthest_element_is_told_and_nan_is_the_farthest() {
        let tolerance = Tolerance { absolute: 0.1, relative: 0.0 };
        let wanted = Values::Float(vec![1.0, 2.0, 3.0, f64::NAN]);
        let near = Values::Float(vec![1.05, 2.0, 3.0, f64::NAN]);
        let (wrong, worst) = differences(&near, &wanted, DType::F32, tolerance, 0);
        assert_eq!((wrong, worst.unwrap().index), (0, 0));
        let far = Values::Float(vec![1.05, 2.5, f64::NAN, 0.0]);
        let (wrong, worst) = differences(&far, &wanted, DType::F32, tolerance, 1);
        assert_eq!((wrong, worst.unwrap().index, worst.unwrap().output), (3, 2, 1));
        let (wrong, _) =
            differences(&Values::Int(vec![1, 2]), &Values::Int(vec![1, 3]), DType::I32, Tolerance::EXACT, 0);
        assert_eq!(wrong, 1);
        assert_eq!(not_finite(&Values::Float(vec![1.0, f64::NAN, f64::INFINITY])), 2);
    }
}
