//! Rows that are normalized where they are made: where the sums of a product are cut, a dispatch adds their parts, and the same
//! dispatch can normalize the rows that it has. What was two steps is the first of them then, and the second one does nothing.

use std::rc::Rc;

use halite_ops::{Operation, matmul::MatMul, norm::Norm, norm::NormKind};

use super::{
    flow::{Flow, Step, StorageClass, StorageId},
    lower::Lowering,
};
use crate::{
    CompileError,
    backend::{Choice, Computation},
};

/// Steps between a product and the norm of its result, at most: what is normalized earlier takes memory for longer.
const MOST_BETWEEN: usize = 8;

impl Lowering<'_, '_> {
    /// The line with products that normalize their rows, where the target's kernels do; nothing where there are none. Their
    /// choices take the place of those of the products, and norms have none any more.
    pub(super) fn normalized(
        &mut self,
        flow: &Flow,
        choices: &mut [Option<Rc<Choice>>],
    ) -> Result<Option<Flow>, CompileError> {
        let mut made: Option<Flow> = None;
        for segment in &flow.segments {
            for product in segment.clone() {
                let end = segment.end.min(product + 2 + MOST_BETWEEN);
                let Some((norm, fused)) = pair(flow, product, product + 1..end) else { continue };
                let Some(own) = choices[product].as_ref().filter(|choice| choice.dispatches.len() == 2)
                else {
                    continue;
                };
                let Step::Compute { location, .. } = &flow.steps[product] else { continue };
                // A target whose kernels do not is none that an error would help.
                let Ok(choice) = self.chooser.choose(&fused.computation, location) else { continue };
                if choice.variant != own.variant {
                    continue;
                }
                (choices[product], choices[norm]) = (Some(choice), None);
                let steps = &mut made.get_or_insert_with(|| flow.clone()).steps;
                if let Step::Compute { inputs, outputs, .. } = &mut steps[norm] {
                    (*inputs, *outputs) = (Vec::new(), Vec::new());
                }
                let location = location.clone();
                let Fused { computation, inputs, outputs } = fused;
                steps[product] = Step::Compute { computation, inputs, outputs, location };
            }
        }
        Ok(made)
    }
}

/// A product that normalizes its rows.
struct Fused {
    computation: Computation,
    inputs: Vec<StorageId>,
    outputs: Vec<StorageId>,
}

/// The norm of a product's result among some steps behind it, and both as one computation.
fn pair(flow: &Flow, product: usize, behind: std::ops::Range<usize>) -> Option<(usize, Fused)> {
    let (Operation::MatMul(op), inputs, [out]) = operation(&flow.steps[product])? else { return None };
    // A second question about open sizes would ask more of them.
    if ![op.m, op.n, op.k, op.batch].iter().all(|size| size.is_constant()) {
        return None;
    }
    let constant = |id: &StorageId| {
        matches!(flow.storages[id.index()].class, StorageClass::Constant(_) | StorageClass::Packed(_))
    };
    for at in behind {
        let found =
            operation(&flow.steps[at]).and_then(|(operation, read, written)| match (operation, read) {
                (Operation::Norm(norm), [rows, channels @ ..]) if rows == out => {
                    let fused = Operation::MatMul(normalizing(op, norm)?);
                    let [normed] = written else { return None };
                    let own = flow.storages[normed.index()].class == StorageClass::Transient;
                    (own && channels.iter().all(constant)).then(|| Fused {
                        computation: Computation::Operation(Box::new(fused)),
                        inputs: [inputs, channels].concat(),
                        outputs: vec![*out, *normed],
                    })
                }
                _ => None,
            });
        if let Some(fused) = found {
            // It is there earlier than it was: nothing may have been in its place.
            let taken = |step: &Step| {
                let touches = |id: &StorageId| flow.root(*id) == fused.outputs[1];
                step.reads().iter().chain(step.writes()).any(touches)
            };
            return (!flow.steps[..at].iter().any(taken)).then_some((at, fused));
        }
        // Rows that something changes are no longer those of the product.
        if flow.steps[at].writes().iter().any(|id| flow.root(*id) == flow.root(*out)) {
            return None;
        }
    }
    None
}

/// The operation of a step, and what it reads and writes.
pub(super) fn operation(step: &Step) -> Option<(&Operation, &[StorageId], &[StorageId])> {
    match step {
        Step::Compute { computation: Computation::Operation(operation), inputs, outputs, .. } => {
            Some((operation, inputs, outputs))
        }
        _ => None,
    }
}

/// A product whose rows are those of a norm, with the norm.
fn normalizing(op: &MatMul, norm: &Norm) -> Option<MatMul> {
    let centered = norm.kind == NormKind::Group;
    let rows = norm.order.is_none()
        && norm.activation.is_none()
        && !norm.channels_last
        && norm.kind != NormKind::Batch
        && norm.groups == 1
        && norm.spatial.is(1.into())
        && op.n.is(norm.channels.into())
        && norm.dtype == op.out
        && norm.scale
        && norm.bias == centered;
    let whole = rows && op.norm.is_none() && (op.batch * op.m).is(norm.batch);
    whole.then(|| MatMul { norm: Some(norm.epsilon), centered, ..op.clone() })
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Values};
    use halite_targets::{Capabilities, Target};

    use super::*;
    use crate::{
        CompileOptions, Control, Function, Program,
        backend::vulkan::Vulkan,
        build::{Builder, Normalization},
        graph::{ElementType, TensorId},
    };

    const F16: ElementType = ElementType::Of(DType::F16);

    fn constant(b: &mut Builder, dims: &[u64]) -> TensorId {
        let count = dims.iter().product::<u64>();
        b.values(DType::F16, dims, &Values::Float(vec![0.5; count as usize])).unwrap()
    }

    /// Dispatches of a product of 197 x 3072 by 3072 x 768 and of the norm of its rows, for a GPU; `also` makes more of both.
    fn dispatches(also: impl FnOnce(&mut Builder, TensorId, TensorId)) -> usize {
        let mut b = Builder::new();
        let x = b.input("x", F16, &[197, 3072]).unwrap();
        // Constant weights would be in fragments, by kernels that do not cut sums.
        let weights = b.input("weights", F16, &[3072, 768]).unwrap();
        let product = b.matmul(x, weights).unwrap();
        let [scale, bias] = [(); 2].map(|()| constant(&mut b, &[768]));
        let norm = Normalization { kind: NormKind::Group, first: 1, end: 2, groups: 1, epsilon: 1e-5 };
        let normed = b.normalize(product, Some(scale), Some(bias), norm).unwrap();
        also(&mut b, product, normed);
        let versions = vec![b.finish().unwrap()];
        let program = Program { functions: vec![Function::new("main", versions)], model: None };
        let target = Target::parse("hopper-h100-linux").unwrap();
        let options =
            CompileOptions { targets: vec![Capabilities::of(target)], baseline: false, ..Default::default() };
        let plan =
            super::super::plan(&program, &options, &Vulkan::new(&options.tuning), &Control::new()).unwrap();
        let segments = &plan.targets[0].functions[0][0].segments;
        let work = |command: &&super::super::schedule::Command| {
            matches!(command, super::super::schedule::Command::Dispatch { .. })
        };
        segments.iter().flatten().filter(work).count()
    }

    #[test]
    fn rows_are_normalized_where_parts_of_their_sums_are_added() {
        let both = dispatches(|b, product, normed| {
            let after = b.softmax(normed, 1, false).unwrap();
            b.output("product", product);
            b.output("after", after);
        });
        assert_eq!(both, 3, "the product's parts, their sum with the norm, and what is behind it");
    }

    #[test]
    fn a_norm_that_is_an_output_is_a_step_of_its_own() {
        let apart = dispatches(|b, _, normed| b.output("normed", normed));
        assert_eq!(apart, 3, "the product's parts, their sum, and the norm");
    }
}
