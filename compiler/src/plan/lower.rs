//! How a line of steps becomes commands for one target: kernels are chosen, places get addresses.

use std::rc::Rc;

use super::{
    flow::{Flow, Step, StorageClass, StorageId},
    kernels::{Chooser, Codes, Kernel, Kernels},
    lives::Lives,
    memory::{Need, arrange, whole},
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
                Step::Compute { computation, location, .. } => {
                    Some(self.chooser.choose(computation, location)?)
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
                for dispatch in &choice.dispatches {
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
            for bytes in choice.iter().flat_map(|choice| &choice.scratch) {
                let time = flow.levels[step];
                needs.push(Need { bytes: whole(*bytes), from: time, to: time });
                extra += whole(*bytes);
            }
        }
        let arranged = arrange(&needs, flow.reserved_bytes, watch)?;
        let offset = |id: usize| index_of[lives.group[id]].map_or(0, |index: usize| arranged.offsets[index]);
        let mut rest = arranged.offsets[tensors..].iter().copied();
        let count = |choice: &Option<Rc<Choice>>| choice.as_ref().map_or(0, |c| c.scratch.len());
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
