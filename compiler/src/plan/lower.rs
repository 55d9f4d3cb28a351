//! How a line of steps becomes commands for one target: kernels are chosen, places get addresses.

use std::rc::Rc;

use halite_ops::Operation;
use halite_shaders::{Slot, Step as Dispatch};

use super::{
    choose::{Choice, Chooser, Codes, Kernel, Kernels},
    flow::{Flow, Step, StorageClass, StorageId},
    memory::{Need, arrange},
    schedule::{Command, Memory, Schedule, Span, Use},
    slabs::Slabs,
};
use crate::{CompileError, control::Watch, graph::storage_bytes};

/// Largest elements that are overwritten by what is computed of them: those that a kernel reads and writes as a whole.
const IN_PLACE_ELEMENT: u64 = 4;

/// What lowering works with: one target, and what all targets share.
pub struct Lowering<'a, 'b> {
    /// Chooses kernels for the target.
    pub chooser: &'b mut Chooser<'a>,
    /// Codes of all targets.
    pub codes: &'b mut Codes,
    /// Kernels of the target.
    pub kernels: &'b mut Kernels,
    /// Where constants are.
    pub slabs: &'b Slabs,
    /// Whether the work goes on.
    pub(crate) watch: Watch<'b>,
    /// Steps of other lines that are done.
    pub before: usize,
    /// Steps of all lines.
    pub total: usize,
}

/// A line of steps as commands.
#[derive(Debug, Default)]
pub struct Lowered {
    /// Commands of each segment.
    pub segments: Vec<Vec<Command>>,
    /// Bytes of the transient memory.
    pub transient_bytes: u64,
    /// Bytes that it would have if nothing shared memory.
    pub unshared_bytes: u64,
    /// Results that are written over an input.
    pub in_place: usize,
    /// Barriers in all segments.
    pub barriers: usize,
    /// What computes each step; none for those that are no operations.
    pub choices: Vec<Option<Rc<Choice>>>,
}

impl Lowering<'_, '_> {
    /// Lowers a line.
    ///
    /// # Errors
    /// No kernel computes an operation on the target, or the work was ended.
    pub fn lower(&mut self, flow: &Flow) -> Result<Lowered, CompileError> {
        let mut choices: Vec<Option<Rc<Choice>>> = Vec::with_capacity(flow.steps.len());
        for (index, step) in flow.steps.iter().enumerate() {
            self.watch.step(self.before + index, self.total)?;
            choices.push(match step {
                Step::Operation { operation, location, .. } => {
                    Some(self.chooser.choose(operation, location)?)
                }
                _ => None,
            });
        }
        let addresses = Addresses::of(flow, &choices, self.watch)?;
        let mut lowered = Lowered {
            transient_bytes: addresses.bytes,
            unshared_bytes: addresses.unshared_bytes,
            in_place: addresses.in_place,
            ..Lowered::default()
        };
        for segment in &flow.segments {
            let mut schedule = Schedule::default();
            for index in segment.clone() {
                self.watch.check()?;
                self.step(flow, index, choices[index].as_deref(), &addresses, &mut schedule);
            }
            let (commands, barriers) = schedule.finish();
            lowered.barriers += barriers;
            lowered.segments.push(commands);
        }
        lowered.choices = choices;
        Ok(lowered)
    }

    fn step(
        &mut self,
        flow: &Flow,
        index: usize,
        choice: Option<&Choice>,
        addresses: &Addresses,
        schedule: &mut Schedule,
    ) {
        match (&flow.steps[index], choice) {
            (Step::Operation { inputs, outputs, .. }, Some(choice)) => {
                let mut uses = Vec::new();
                for step in choice.plan.steps.iter().filter(|step| !step.grid.contains(&0)) {
                    let bind = |slot: &Slot| match slot {
                        Slot::Input(i) => self.bound(flow, inputs[*i], addresses),
                        Slot::Output(i) => self.bound(flow, outputs[*i], addresses),
                        Slot::Scratch(i) => addresses.scratch(index, *i, choice.plan.scratch[*i]),
                    };
                    let bindings: Vec<Span> = step.bindings.iter().map(bind).collect();
                    uses.push(self.dispatch(step, choice.variant, bindings));
                }
                if choice.plan.independent {
                    schedule.push(uses);
                } else {
                    uses.into_iter().for_each(|one| schedule.push(vec![one]));
                }
            }
            (Step::Copy { from, to }, _) => {
                let bytes = flow.storages[to.index()].bytes;
                let part = |id| Span { bytes, ..self.span(flow, id, addresses) };
                let (from, to) = (part(*from), part(*to));
                let command = Command::Copy { from, to };
                schedule.push(vec![Use { command, reads: vec![from], writes: vec![to] }]);
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, step: &Dispatch, variant: &str, bindings: Vec<Span>) -> Use {
        let code = self.codes.index(step, variant);
        let kernel = self.kernels.index(Kernel { code, constants: step.constants.clone() });
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (slot, span) in step.bindings.iter().zip(&bindings) {
            match slot {
                Slot::Input(_) => reads.push(*span),
                // Kernels may read what they write, and what an earlier step left in scratch memory.
                Slot::Output(_) | Slot::Scratch(_) => writes.push(*span),
            }
        }
        let command = Command::Dispatch { kernel, grid: step.grid, push: step.push.clone(), bindings };
        Use { command, reads, writes }
    }

    /// What a kernel binds: whole words, and at least one.
    fn bound(&self, flow: &Flow, id: StorageId, addresses: &Addresses) -> Span {
        let span = self.span(flow, id, addresses);
        Span { bytes: whole(span.bytes), ..span }
    }

    fn span(&self, flow: &Flow, id: StorageId, addresses: &Addresses) -> Span {
        let storage = &flow.storages[id.index()];
        let (memory, offset) = match storage.class {
            StorageClass::Input(index) => (Memory::Input(index), 0),
            StorageClass::Output(index) => (Memory::Output(index), 0),
            StorageClass::Constant(id) => {
                let (slab, offset) = self.slabs.constants[id.index()];
                (Memory::Constants(slab), offset)
            }
            StorageClass::Packed(id) => {
                let (slab, offset) = self.slabs.packed[id.index()];
                (Memory::Packed(slab), offset)
            }
            StorageClass::Transient => (Memory::Transient, addresses.offsets[id.index()]),
            StorageClass::Counter(offset) => (Memory::Transient, offset),
            StorageClass::Readback(offset) => (Memory::Readback, offset),
        };
        Span { memory, offset, bytes: storage.bytes }
    }
}

/// Bytes of memory for so many bytes: whole words, and at least one, since nothing cannot be bound.
pub(crate) fn whole(bytes: u64) -> u64 {
    storage_bytes(bytes).max(4)
}

/// Offsets in the transient memory.
struct Addresses {
    /// Of each storage; 0 for those that are elsewhere.
    offsets: Vec<u64>,
    /// Of each step's scratch buffers.
    scratch: Vec<Vec<u64>>,
    bytes: u64,
    unshared_bytes: u64,
    in_place: usize,
}

impl Addresses {
    fn of(flow: &Flow, choices: &[Option<Rc<Choice>>], watch: Watch<'_>) -> Result<Self, CompileError> {
        let mut lives = Lives::of(flow, watch)?;
        let in_place = lives.share(flow, choices);
        let (mut needs, mut index_of) = (Vec::new(), vec![None; flow.storages.len()]);
        for (id, life) in lives.of.iter().enumerate() {
            if let Some((from, to)) = life.filter(|_| lives.group[id] == id) {
                index_of[id] = Some(needs.len());
                let (from, to) = (flow.levels[from], flow.levels[to]);
                needs.push(Need { bytes: whole(flow.storages[id].bytes), from, to });
            }
        }
        let shared = needs.iter().map(|need| need.bytes).sum::<u64>();
        let saved = (0..lives.group.len()).filter(|id| lives.group[*id] != *id);
        let unshared_bytes = shared + saved.map(|id| whole(flow.storages[id].bytes)).sum::<u64>();
        let (tensors, mut extra) = (needs.len(), 0);
        for (step, choice) in choices.iter().enumerate() {
            for bytes in choice.iter().flat_map(|choice| &choice.plan.scratch) {
                let time = flow.levels[step];
                needs.push(Need { bytes: whole(*bytes), from: time, to: time });
                extra += whole(*bytes);
            }
        }
        let arranged = arrange(&needs, flow.reserved_bytes, watch)?;
        let offset = |id: usize| index_of[lives.group[id]].map_or(0, |index: usize| arranged.offsets[index]);
        let mut rest = arranged.offsets[tensors..].iter().copied();
        let count = |choice: &Option<Rc<Choice>>| choice.as_ref().map_or(0, |c| c.plan.scratch.len());
        Ok(Addresses {
            offsets: (0..flow.storages.len()).map(offset).collect(),
            scratch: choices.iter().map(|choice| rest.by_ref().take(count(choice)).collect()).collect(),
            bytes: arranged.bytes,
            unshared_bytes: unshared_bytes + extra,
            in_place,
        })
    }

    fn scratch(&self, step: usize, index: usize, bytes: u64) -> Span {
        Span { memory: Memory::Transient, offset: self.scratch[step][index], bytes: whole(bytes) }
    }
}

/// When each local storage is needed: the first and the last step.
pub(super) struct Lives {
    pub(super) of: Vec<Option<(usize, usize)>>,
    /// The storage whose memory each one has; itself, unless it is written over another.
    group: Vec<usize>,
}

impl Lives {
    pub(super) fn of(flow: &Flow, watch: Watch<'_>) -> Result<Self, CompileError> {
        let mut of: Vec<Option<(usize, usize)>> = vec![None; flow.storages.len()];
        for (time, step) in flow.steps.iter().enumerate() {
            for id in step.reads().iter().chain(step.writes()) {
                if flow.storages[id.index()].class == StorageClass::Transient {
                    let (_, last) = of[id.index()].get_or_insert((time, time));
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
    fn share(&mut self, flow: &Flow, choices: &[Option<Rc<Choice>>]) -> usize {
        let mut shared = 0;
        for (time, (step, choice)) in flow.steps.iter().zip(choices).enumerate() {
            let (Step::Operation { operation, inputs, outputs, .. }, Some(choice)) = (step, choice) else {
                continue;
            };
            if choice.plan.steps.len() != 1 || outputs.len() != 1 {
                continue;
            }
            let output = outputs[0].index();
            let fits = |(index, id): &(usize, &StorageId)| {
                let group = self.group[id.index()];
                flow.storages[id.index()].class == StorageClass::Transient
                    && whole(flow.storages[group].bytes) == whole(flow.storages[output].bytes)
                    && self.of[group].is_some_and(|(_, last)| last == time)
                    && overwritable(operation, *index)
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

/// Whether each element of the result depends on the same element of an input alone, which has its type's size.
fn overwritable(operation: &Operation, input: usize) -> bool {
    let Operation::Elementwise(_) = operation else { return false };
    let (inputs, outputs) = (operation.inputs(), operation.outputs());
    let (input, output) = (&inputs[input], &outputs[0]);
    input.elements() == output.elements()
        && input.dtype.size() == output.dtype.size()
        && input.dtype.size() <= IN_PLACE_ELEMENT
}
