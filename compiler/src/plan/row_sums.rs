//! Products of normalized rows take means and deviations from sums that the product before them leaves: no dispatch normalizes rows
//! between them, and no kernel adds them up again.

use std::rc::Rc;

use halite_ops::{Op, Operation, matmul::MatMul};

use super::{
    flow::{Flow, Step, Storage, StorageClass, StorageId},
    lower::Lowering,
    rows::operation,
};
use crate::{
    CompileError,
    backend::{Choice, Computation},
};

/// Longest rows whose sums each workgroup of a product reads again.
const MOST_COLUMNS: u64 = 2048;

/// Two products, of which one multiplies the other's rows normalized.
struct Pair {
    steps: [usize; 2],
    /// Both as they are with sums between them.
    products: [MatMul; 2],
}

impl Lowering<'_, '_> {
    /// The line with sums between such products where that is estimated to be faster; nothing where there are none.
    pub(super) fn summed(
        &mut self,
        flow: &Flow,
        choices: &mut [Option<Rc<Choice>>],
    ) -> Result<Option<Flow>, CompileError> {
        let mut made: Option<Flow> = None;
        for segment in &flow.segments {
            for second in segment.clone() {
                self.watch.check()?;
                let now = made.as_ref().unwrap_or(flow);
                let Some(pair) = pair(now, segment.start, second) else { continue };
                let Some(chosen) = self.faster(now, &pair, choices) else { continue };
                pair.write(made.get_or_insert_with(|| flow.clone()));
                for (step, choice) in pair.steps.into_iter().zip(chosen) {
                    choices[step] = Some(choice);
                }
            }
        }
        Ok(made)
    }

    /// The choices for both products with sums between them, if they take less time than those that there are.
    fn faster(
        &mut self,
        flow: &Flow,
        pair: &Pair,
        choices: &[Option<Rc<Choice>>],
    ) -> Option<[Rc<Choice>; 2]> {
        let mut chosen = [0, 1].map(|side| {
            let Step::Compute { location, .. } = &flow.steps[pair.steps[side]] else { return None };
            // A target whose kernels leave no sums is none that an error would help.
            let choice = self.chooser.choose(&computation(&pair.products[side]), location).ok()?;
            (choice.dispatches.len() == 1).then_some(choice)
        });
        let chosen = [chosen[0].take()?, chosen[1].take()?];
        let time = |all: [Option<&Choice>; 2]| Some(all[0]?.estimate? + all[1]?.estimate?);
        let before = time(pair.steps.map(|step| choices[step].as_deref()))?;
        let after = time([Some(&chosen[0]), Some(&chosen[1])])?;
        (after < before).then_some(chosen)
    }
}

fn computation(op: &MatMul) -> Computation {
    Computation::Operation(Box::new(Operation::MatMul(op.clone())))
}

/// A product with its weights in fragments, and what it reads and writes.
fn product(step: &Step) -> Option<(&MatMul, &[StorageId], &[StorageId])> {
    match operation(step)? {
        (Operation::MatMul(op), inputs, outputs) if op.rhs_fragments => Some((op, inputs, outputs)),
        _ => None,
    }
}

/// The product at `second` with the one from `start` on whose rows it normalizes.
fn pair(flow: &Flow, start: usize, second: usize) -> Option<Pair> {
    let (op, inputs, _) = product(&flow.steps[second])?;
    let rows = flow.root(inputs[0]);
    let writes = |step: &Step| step.writes().iter().any(|id| flow.root(*id) == rows);
    let first = (start..second).rfind(|at| writes(&flow.steps[*at]))?;
    let (made, _, outputs) = product(&flow.steps[first])?;
    let alike = [op.m, op.k, op.batch, made.m, made.n, made.batch].iter().all(|size| size.is_constant())
        && made.n.is(op.k)
        && (made.batch * made.m).is(op.batch * op.m);
    if outputs[0] != inputs[0]
        || !alike
        || op.lhs_norm.is_none()
        || op.lhs_sums
        || op.read.is_some()
        || op.k > MOST_COLUMNS
    {
        return None;
    }
    let products = [MatMul { row_sums: true, ..made.clone() }, MatMul { lhs_sums: true, ..op.clone() }];
    let possible = products.iter().all(|product| product.check().is_ok());
    possible.then_some(Pair { steps: [first, second], products })
}

impl Pair {
    /// Puts both products into a line, with a place for the sums, which may be there for another product already.
    fn write(&self, flow: &mut Flow) {
        let [first, second] = self.steps;
        let there = match &flow.steps[first] {
            Step::Compute { outputs, .. } => outputs.get(1).copied(),
            _ => None,
        };
        let sums = there.unwrap_or_else(|| {
            let bytes = self.products[0]
                .outputs()
                .last()
                .map_or_else(Default::default, halite_ops::TensorDesc::bytes);
            flow.storages.push(Storage { class: StorageClass::Transient, bytes });
            StorageId(flow.storages.len() as u32 - 1)
        });
        if let Step::Compute { computation: own, outputs, .. } = &mut flow.steps[first]
            && there.is_none()
        {
            *own = computation(&self.products[0]);
            outputs.push(sums);
        }
        if let Step::Compute { computation: own, inputs, .. } = &mut flow.steps[second] {
            *own = computation(&self.products[1]);
            inputs.push(sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Values, norm::NormKind};
    use halite_targets::{Capabilities, Target};

    use crate::{
        CompileOptions, Control, Function, Program,
        backend::vulkan::Vulkan,
        build::{Builder, Normalization},
        graph::TensorId,
        passes::optimize,
        plan::{plan, schedule::Command},
    };

    /// Dispatches of a product of 1,576 rows of 768, and of one of its rows normalized with so many columns, for a target.
    fn dispatches(target: &str, columns: u64) -> usize {
        let mut b = Builder::new();
        let values = |b: &mut Builder, dims: &[u64]| -> TensorId {
            let values = (0..dims.iter().product::<u64>()).map(|i| f64::from(i as u32 % 7)).collect();
            b.values(DType::F16, dims, &Values::Float(values)).unwrap()
        };
        let x = b.input("x", DType::F16.into(), &[1576, 768]).unwrap();
        let [first, second] = [768, columns].map(|columns| values(&mut b, &[768, columns]));
        let [scale, bias] = [(); 2].map(|()| values(&mut b, &[768]));
        let rows = b.matmul(x, first).unwrap();
        let norm = Normalization { kind: NormKind::Group, first: 1, end: 2, groups: 1, epsilon: 1e-5 };
        let normed = b.normalize(rows, Some(scale), Some(bias), norm).unwrap();
        let y = b.matmul(normed, second).unwrap();
        b.output("rows", rows);
        b.output("y", y);
        let mut graph = b.finish().unwrap();
        let target = Target::parse(target).unwrap();
        graph.matrix_units = target.vendor().name == "nvidia";
        optimize(&mut graph).unwrap();
        let program = Program { functions: vec![Function::new("main", vec![graph])], model: None };
        let targets = vec![Capabilities::of(target)];
        let options = CompileOptions { targets, baseline: false, ..CompileOptions::default() };
        let plan = plan(&program, &options, &Vulkan::new(&options.tuning), &Control::new()).unwrap();
        let commands = plan.targets[0].functions[0][0].segments.iter().flatten();
        commands.filter(|command| matches!(command, Command::Dispatch { .. })).count()
    }

    #[test]
    fn rows_are_normalized_by_sums_of_the_product_before() {
        for columns in [768, 3072] {
            assert_eq!(dispatches("hopper-h200-linux", columns), 2);
            assert!(dispatches("cpu-swiftshader-unknown", columns) > 2, "no matrix units");
        }
    }
}
