//! Operations whose first input or first output is runs of a larger tensor, by kernels that know tensors by themselves only: runs are
//! copied to memory between the steps before, or from there afterwards.

use halite_ops::{Apart, Operation, TensorDesc, concat::Concat, copy::StridedCopy, runs::Runs};

use crate::{Plan, Slot, Step, Unfit, variants_of};

/// Which runs the kernels of a template take as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Those of the first input.
    pub read: bool,
    /// Those of the first output.
    pub written: bool,
}

impl Taken {
    /// Runs that are taken, of the first input and the first output, and those that are not.
    pub fn split(self, read: Option<Runs>, written: Option<Runs>) -> ([Option<Runs>; 2], [Option<Runs>; 2]) {
        let own = [read.filter(|_| self.read), written.filter(|_| self.written)];
        (own, [read.filter(|_| !self.read), written.filter(|_| !self.written)])
    }
}

/// What is done around a plan for tensors by themselves.
pub(crate) struct Around(Apart);

impl Around {
    /// For runs of the first input and the first output of an operation; none where there are none.
    pub fn of([read, written]: [Option<Runs>; 2], operation: Operation) -> Option<Around> {
        (read.is_some() || written.is_some()).then_some(Around(Apart { operation, read, written }))
    }

    /// For all runs of an operation.
    pub fn all(operation: &Operation) -> Option<(Operation, Around)> {
        operation.apart().map(|apart| (apart.operation.clone(), Around(apart)))
    }

    /// The plan with it.
    pub fn plan(&self, plan: Plan) -> Result<Plan, Unfit> {
        let (mut plan, apart) = (plan, &self.0);
        if let Some(runs) = apart.read {
            let tensor = apart.operation.inputs().remove(0);
            let between = moved(&mut plan, Slot::Input(0), &tensor);
            plan.steps.insert(0, copied(runs, &tensor, between)?);
        }
        if let Some(runs) = apart.written {
            let tensor = apart.operation.outputs().remove(0);
            let between = moved(&mut plan, Slot::Output(0), &tensor);
            plan.steps.push(put(runs, &tensor, between)?);
        }
        Ok(Plan { independent: false, ..plan })
    }
}

/// Gives a tensor of a plan memory between its steps.
fn moved(plan: &mut Plan, from: Slot, tensor: &TensorDesc) -> Slot {
    let between = Slot::Scratch(plan.scratch.len());
    plan.scratch.push(tensor.bytes().max(4));
    for slot in plan.steps.iter_mut().flat_map(|step| &mut step.bindings) {
        *slot = if *slot == from { between } else { *slot };
    }
    between
}

/// The step that copies runs of the first input.
fn copied(runs: Runs, tensor: &TensorDesc, to: Slot) -> Result<Step, Unfit> {
    let copy = StridedCopy {
        source: runs.whole(tensor.clone()).elements(),
        shape: vec![runs.count(tensor), runs.length.into()],
        strides: vec![runs.pitch.into(), 1.into()],
        offset: runs.offset.into(),
        dtype: tensor.dtype,
    };
    step(&Operation::StridedCopy(copy), Slot::Input(0), to)
}

/// The step that writes runs of the first output.
fn put(runs: Runs, tensor: &TensorDesc, from: Slot) -> Result<Step, Unfit> {
    let sizes = vec![runs.length.into()];
    let concat =
        Concat { sizes, written: Some(runs), ..Concat::new(runs.count(tensor), &[], 1, tensor.dtype) };
    step(&Operation::Concat(concat), from, Slot::Output(0))
}

/// The step of an operation that moves elements, by the first kernel for any device.
fn step(operation: &Operation, from: Slot, to: Slot) -> Result<Step, Unfit> {
    let signature = operation.signature();
    let mut all = variants_of(operation.name())
        .filter(|variant| variant.needs.is_baseline() && variant.signatures.contains(&signature));
    let plan = all.find_map(|variant| variant.plan(operation).ok());
    let steps = plan.map(|plan| plan.steps).unwrap_or_default();
    let Ok([mut step]) = <[Step; 1]>::try_from(steps) else {
        return Err(Unfit(format!("finds no single dispatch for {operation}")));
    };
    step.bindings = vec![from, to];
    Ok(step)
}
