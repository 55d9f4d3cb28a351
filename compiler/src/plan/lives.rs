//! When storages in the transient memory are needed, and which take the memory of another.

use std::rc::Rc;

use halite_ops::{Operation, elementwise::Elementwise};

use super::{
    flow::{Flow, Step, StorageClass, StorageId},
    memory::whole_size,
};
use crate::{
    CompileError,
    backend::{Choice, Computation},
    control::Watch,
};

/// Largest elements that are overwritten by what is computed of them: those that a kernel reads and writes as a whole.
const IN_PLACE_ELEMENT: u64 = 4;

/// When each transient storage is needed: the first and the last step.
pub(super) struct Lives {
    pub(super) of: Vec<Option<(usize, usize)>>,
    /// The storage whose memory each one has; itself, unless it is written over another.
    pub(super) group: Vec<usize>,
}

impl Lives {
    pub(super) fn of(flow: &Flow, watch: Watch<'_>) -> Result<Self, CompileError> {
        let mut of: Vec<Option<(usize, usize)>> = vec![None; flow.storages.len()];
        for (time, step) in flow.steps.iter().enumerate() {
            for id in step.reads().iter().chain(step.writes()) {
                // A part is needed where it lies.
                let root = flow.root(*id).index();
                if flow.storages[root].class == StorageClass::Transient {
                    let (_, last) = of[root].get_or_insert((time, time));
                    *last = time;
                }
            }
        }
        // What comes from before a loop is read in each of its runs. Inner loops come before those around them.
        for body in &flow.loops {
            watch.check()?;
            for (first, last) in of.iter_mut().flatten() {
                if *first < body.start && body.contains(last) {
                    *last = body.end - 1;
                }
            }
        }
        Ok(Lives { of, group: (0..flow.storages.len()).collect() })
    }

    /// Lets results of elementwise operations be written over an input that nothing needs afterwards. Gives how many.
    pub(super) fn share(&mut self, flow: &Flow, choices: &[Option<Rc<Choice>>]) -> usize {
        let mut shared = 0;
        for (time, (step, choice)) in flow.steps.iter().zip(choices).enumerate() {
            let (Step::Compute { computation, inputs, outputs, .. }, Some(choice)) = (step, choice) else {
                continue;
            };
            let Computation::Operation(operation) = computation else { continue };
            if !choice.elementwise || outputs.len() != 1 {
                continue;
            }
            let output = outputs[0].index();
            let fits = |(_, id): &(usize, &StorageId)| {
                let group = self.group[id.index()];
                // All that read it do so where they write.
                let group_of = |other: &StorageId| self.group[flow.root(*other).index()];
                let mut same = inputs.iter().enumerate().filter(|(_, other)| group_of(other) == group);
                flow.storages[id.index()].class == StorageClass::Transient
                    && whole_size(flow.storages[group].bytes).is(whole_size(flow.storages[output].bytes))
                    && self.of[group].is_some_and(|(_, last)| last == time)
                    && same.all(|(index, _)| overwritable(operation, index))
            };
            let target = inputs.iter().enumerate().find(fits).map(|(_, id)| self.group[id.index()]);
            let Some(target) = target else { continue };
            let (Some((_, last)), StorageClass::Transient) = (self.of[output], flow.storages[output].class)
            else {
                continue;
            };
            self.group[output] = target;
            self.of[target] = self.of[target].map(|(first, _)| (first, last));
            shared += 1;
        }
        shared
    }
}

/// Whether an input of an elementwise operation has an element of the same size for each of the result, at the same place.
pub(super) fn overwritable(operation: &Operation, input: usize) -> bool {
    let (inputs, outputs) = (operation.inputs(), operation.outputs());
    let elsewhere = |op: &Elementwise| op.strides_of(input).is_some() || input >= op.inputs.0.len();
    if matches!(operation, Operation::Elementwise(op) if elsewhere(op)) {
        return false;
    }
    let (input, output) = (&inputs[input], &outputs[0]);
    input.elements().is(output.elements())
        && input.dtype.size() == output.dtype.size()
        && input.dtype.size() <= IN_PLACE_ELEMENT
}
