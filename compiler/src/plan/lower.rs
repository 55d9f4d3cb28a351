//! How a line of steps becomes commands for one target: kernels are chosen, places get addresses.

use std::rc::Rc;

use halite_sizes::Size;

use super::{
    addresses::Addresses,
    flow::{Flow, Step, StorageClass, StorageId},
    kernels::{Chooser, Codes, Kernel, Kernels},
    memory::whole_size,
    schedule::{Binding, Command, Memory, Schedule, Span},
    slabs::Slabs,
};
use crate::{
    CompileError,
    backend::{Choice, Dispatch, Slot},
    control::Watch,
};

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
    /// For each command of a segment that does work (no barriers): the step of the line that it comes from.
    pub sources: Vec<Vec<usize>>,
    /// Bytes of the transient memory of the first era.
    pub transient_bytes: Size,
    /// The same of the later eras, in order.
    pub later_bytes: Vec<Size>,
    /// Bytes that it would have if nothing shared memory.
    pub unshared_bytes: Size,
    /// Results that are written over an input.
    pub in_place: usize,
    /// Barriers in all segments.
    pub barriers: usize,
    /// What computes each step; none for those that are no operations.
    pub choices: Vec<Option<Rc<Choice>>>,
}

impl Lowered {
    /// Bytes of the transient memory of an era.
    pub fn era_bytes(&self, era: usize) -> Size {
        match era.checked_sub(1) {
            None => self.transient_bytes,
            Some(later) => self.later_bytes.get(later).copied().unwrap_or_default(),
        }
    }
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
                Step::Compute { computation, location, .. } => {
                    let choice = self.chooser.choose(computation, location)?;
                    crate::error::unpinned(location)?;
                    Some(choice)
                }
                _ => None,
            });
        }
        let normalized = self.normalized(flow, &mut choices)?;
        let flow = normalized.as_ref().unwrap_or(flow);
        let summed = self.summed(flow, &mut choices)?;
        let flow = summed.as_ref().unwrap_or(flow);
        let addresses = Addresses::of(flow, &choices, self.watch)?;
        let mut lowered = Lowered {
            transient_bytes: addresses.bytes[0],
            later_bytes: addresses.bytes[1..].to_vec(),
            unshared_bytes: addresses.unshared_bytes,
            in_place: addresses.in_place,
            ..Lowered::default()
        };
        for segment in &flow.segments {
            let (mut schedule, mut sources) = (Schedule::default(), Vec::new());
            for index in segment.clone() {
                self.watch.check()?;
                self.step(flow, index, choices[index].as_deref(), &addresses, &mut schedule);
                sources.resize(schedule.working(), index);
            }
            lowered.sources.push(sources);
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
            (Step::Compute { inputs, outputs, .. }, Some(choice)) => {
                let mut commands = Vec::new();
                // What it changes in its own memory is there already.
                let there = choice.updates && inputs.first() == outputs.first();
                for dispatch in choice.dispatches.iter().skip(usize::from(there)) {
                    let bind = |slot: &Slot| match slot {
                        Slot::Input(i) => {
                            Binding { span: self.bound(flow, inputs[*i], addresses), written: false }
                        }
                        // Kernels may read what they write, and what an earlier dispatch left in scratch memory.
                        Slot::Output(i) => {
                            Binding { span: self.bound(flow, outputs[*i], addresses), written: true }
                        }
                        Slot::Scratch(i) => {
                            Binding { span: addresses.scratch(index, *i, choice.scratch[*i]), written: true }
                        }
                    };
                    let bindings: Vec<Binding> = dispatch.bindings.iter().map(bind).collect();
                    commands.push(self.dispatch(dispatch, &choice.variant, bindings));
                }
                if choice.independent {
                    schedule.push(commands);
                } else {
                    commands.into_iter().for_each(|one| schedule.push(vec![one]));
                }
            }
            (Step::Copy { from, to }, _) => {
                let bytes = flow.storages[to.index()].bytes;
                let part = |id| Span { bytes, ..self.span(flow, id, addresses) };
                schedule.push(vec![Command::Copy { from: part(*from), to: part(*to) }]);
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, dispatch: &Dispatch, variant: &str, bindings: Vec<Binding>) -> Command {
        let code = self.codes.index(dispatch, variant);
        let kernel = self.kernels.index(Kernel { code, constants: dispatch.constants.clone() });
        Command::Dispatch { kernel, grid: dispatch.grid, push: dispatch.push.clone(), bindings }
    }

    /// What a kernel binds: whole words, and at least one.
    fn bound(&self, flow: &Flow, id: StorageId, addresses: &Addresses) -> Span {
        let span = self.span(flow, id, addresses);
        Span { bytes: whole_size(span.bytes), ..span }
    }

    fn span(&self, flow: &Flow, id: StorageId, addresses: &Addresses) -> Span {
        let storage = &flow.storages[id.index()];
        let (memory, offset) = match storage.class {
            StorageClass::Input(index) => (Memory::Input(index), 0.into()),
            StorageClass::State(index) => (Memory::State(index), 0.into()),
            StorageClass::Output(index) => (Memory::Output(index), 0.into()),
            StorageClass::Constant(id) => {
                let (slab, offset) = self.slabs.constants[id.index()];
                (Memory::Constants(slab), offset.into())
            }
            StorageClass::Packed(id) => {
                let (slab, offset) = self.slabs.packed[id.index()];
                (Memory::Packed(slab), offset.into())
            }
            StorageClass::Transient => addresses.place(id),
            // Kernels know where in it their runs are.
            StorageClass::Runs(of, _) => return self.span(flow, of, addresses),
            StorageClass::Part(of, at) => {
                let whole = self.span(flow, of, addresses);
                (whole.memory, whole.offset + at)
            }
            StorageClass::Counter(offset) => (Memory::Transient(0), offset.into()),
            StorageClass::Readback(offset) => (Memory::Readback, offset.into()),
        };
        Span { memory, offset, bytes: storage.bytes }
    }
}
