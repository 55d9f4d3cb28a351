//! Accepted recordings and the compact form that they are lowered to, once.

use std::{
    any::Any,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    ops::Range,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use halite_abi::{Result, ResultExt, bail, status};
use halite_hal::{
    BindingTable, Buffer, BufferRef, Command, CommandBuffer, CommandList, CommandTarget, DispatchCounts,
    FunctionInfo, TimedCommand,
};
use smallvec::SmallVec;

use crate::{
    code::{Bindings, HostRange, MAX_BINDINGS, MAX_CONSTANTS, workgroup_total},
    executable::LocalExecutable,
    operation::{own_buffer, span_range},
    transfer::Pattern,
};

/// A recording and what it was lowered to.
#[derive(Debug)]
pub(crate) struct LocalCommandBuffer {
    device_id: u64,
    list: CommandList,
    program: Arc<PreparedCommands>,
    timed: OnceLock<Arc<[Arc<TimedCommand>]>>,
}

impl LocalCommandBuffer {
    /// Lowers a recording that validation has passed.
    pub fn new(device_id: u64, list: CommandList) -> Result<Self> {
        let program = Arc::new(PreparedCommands::lower(device_id, &list)?);
        Ok(LocalCommandBuffer { device_id, list, program, timed: OnceLock::new() })
    }

    /// The compact form.
    pub fn program(&self) -> &Arc<PreparedCommands> {
        &self.program
    }

    /// What profiles call the program's steps.
    pub fn timed(&self) -> &Arc<[Arc<TimedCommand>]> {
        self.timed.get_or_init(|| {
            let named = TimedCommand::of_list(&self.list);
            let of_step = |command: &u32| named.get(*command as usize).cloned().flatten();
            self.program.sources.iter().filter_map(of_step).collect()
        })
    }
}

impl CommandBuffer for LocalCommandBuffer {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn list(&self) -> &CommandList {
        &self.list
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Commands in order. Buffers are numbers: an execution makes the table of addresses behind them.
#[derive(Debug, Default)]
pub(crate) struct PreparedCommands {
    /// The commands.
    pub steps: Vec<Step>,
    /// Index of each step's command in the recording.
    sources: Vec<u32>,
    /// Slots of the binding table that commands name: the first buffers.
    slots: Vec<u32>,
    /// Buffers known when recorded: the others.
    direct: Vec<Arc<dyn Buffer>>,
    /// Executables that dispatches name.
    pub executables: Vec<LocalExecutable>,
    /// Constants of all dispatches.
    pub constants: Vec<u32>,
    /// Bindings of all dispatches.
    pub places: Vec<BufferRange>,
    /// Largest local memory of a function, in bytes.
    pub local_memory: usize,
    /// Whether some code may run for ever.
    pub may_hang: bool,
}

/// A byte range of a numbered buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferRange {
    buffer: u32,
    offset: u64,
    length: u64,
}

/// One command.
#[derive(Debug)]
pub(crate) enum Step {
    /// Repeats a pattern.
    Fill(BufferRange, Pattern),
    /// Writes bytes.
    Update(Bytes, BufferRange),
    /// Copies: from, to.
    Copy(BufferRange, BufferRange),
    /// Runs a function.
    Dispatch(Dispatch),
}

/// A dispatch.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    /// Index in [`PreparedCommands::executables`].
    pub executable: u32,
    /// Index of the function.
    pub function: u32,
    /// Workgroup counts.
    pub counts: Counts,
    /// In [`PreparedCommands::constants`].
    pub constants: Range<usize>,
    /// In [`PreparedCommands::places`].
    pub bindings: Range<usize>,
}

/// Workgroup counts of a dispatch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counts {
    /// Known.
    Direct([u32; 3]),
    /// Three u32 in a buffer.
    Indirect(BufferRange),
}

/// Addresses of the buffers of one execution.
pub(crate) type Ranges = SmallVec<[HostRange; 8]>;

impl PreparedCommands {
    fn lower(device_id: u64, list: &CommandList) -> Result<Self> {
        let mut lowering =
            Lowering { device_id, program: PreparedCommands::default(), numbers: HashMap::default() };
        // Slots come first, so that their numbers do not depend on how many direct buffers there are.
        if list.binding_capacity > 0 {
            let mut slots: Vec<u32> = list.commands.iter().flat_map(slots_of).collect();
            slots.sort_unstable();
            slots.dedup();
            lowering.program.slots = slots;
        }
        lowering.program.steps.reserve(list.commands.len());
        for (index, command) in list.commands.iter().enumerate() {
            lowering.command(command).context(|| format!("command {index} ({})", command.name()))?;
            let program = &mut lowering.program;
            program.sources.resize(program.steps.len(), index as u32);
        }
        Ok(lowering.program)
    }

    /// Looks up the memory of all buffers for an execution with this table. An empty slot has no bytes.
    pub fn resolve(&self, table: &BindingTable) -> Result<Ranges> {
        let mut ranges = Ranges::new();
        for slot in &self.slots {
            let span = table.entries.get(*slot as usize).and_then(Option::as_ref);
            ranges.push(match span {
                Some(span) => span_range(span).context(|| format!("slot {slot} of the binding table"))?,
                None => HostRange::EMPTY,
            });
        }
        for buffer in &self.direct {
            ranges.push(own_buffer(buffer.as_ref())?.range()?);
        }
        Ok(ranges)
    }

    /// Whether workgroups of a dispatch may run at the same time.
    pub fn is_parallel(&self, dispatch: &Dispatch) -> bool {
        self.executables[dispatch.executable as usize].code().needs(dispatch.function as usize).parallel
    }

    /// Nanoseconds that one thread takes for the dispatches that are worth sharing: those of at least `worth`. `None`
    /// as long as one of them was not timed. Dispatches whose counts are in a buffer are left out.
    pub fn shareable_time(&self, worth: u64) -> Option<u64> {
        let mut sum = 0_u64;
        for step in &self.steps {
            let Step::Dispatch(dispatch) = step else { continue };
            let Counts::Direct(counts) = dispatch.counts else { continue };
            let total = workgroup_total(counts).unwrap_or(u64::MAX);
            if total > 1 && self.is_parallel(dispatch) {
                let pace = self.executables[dispatch.executable as usize].pace(dispatch.function);
                let time = pace.estimate(total)?;
                sum = sum.saturating_add(if time >= worth { time } else { 0 });
            }
        }
        Some(sum)
    }

    /// Names a dispatch for messages.
    pub fn describe(&self, dispatch: &Dispatch) -> String {
        let functions = self.executables[dispatch.executable as usize].code().functions();
        let name = functions.get(dispatch.function as usize).map_or("?", |f| f.name.as_str());
        format!("dispatch of '{name}'")
    }

    /// Writes the bindings of a dispatch.
    pub fn bind(&self, ranges: &[HostRange], dispatch: &Dispatch, bindings: &mut Bindings) -> Result<()> {
        bindings.clear();
        for (index, place) in self.places[dispatch.bindings.clone()].iter().enumerate() {
            let range = place.range(ranges).context(|| format!("binding {index}"))?;
            bindings.push(if range.length == 0 { HostRange::EMPTY } else { range });
        }
        Ok(())
    }
}

impl BufferRange {
    /// The memory of the place.
    pub fn range(&self, ranges: &[HostRange]) -> Result<HostRange> {
        let Some(buffer) = ranges.get(self.buffer as usize) else {
            bail!(Internal, "buffer number {} of {}", self.buffer, ranges.len());
        };
        buffer.part(self.offset, self.length)
    }
}

/// All references of a command that name slots.
fn slots_of(command: &Command) -> SmallVec<[u32; 8]> {
    let mut slots = SmallVec::new();
    let mut add = |reference: &BufferRef| {
        if let CommandTarget::Slot(slot) = reference.target {
            slots.push(slot);
        }
    };
    match command {
        Command::Fill { target, .. } | Command::Update { target, .. } => add(target),
        Command::Copy { source, target } => {
            add(source);
            add(target);
        }
        Command::Dispatch { counts, bindings, .. } => {
            bindings.iter().for_each(&mut add);
            if let DispatchCounts::Indirect(counts) = counts {
                add(counts);
            }
        }
        Command::Barrier | Command::BeginDebugGroup(_) | Command::EndDebugGroup => {}
    }
    slots
}

/// Hashes addresses of objects, of which no two are equal and nobody chooses them: a multiplication spreads them.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_usize((*b).into()));
    }

    fn write_usize(&mut self, address: usize) {
        // 2^64 divided by the golden ratio; the high half goes where tables look first.
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

struct Lowering {
    device_id: u64,
    program: PreparedCommands,
    /// Numbers of objects by address.
    numbers: HashMap<usize, u32, BuildHasherDefault<AddressHasher>>,
}

impl Lowering {
    fn command(&mut self, command: &Command) -> Result<()> {
        match command {
            Command::Fill { target, pattern, pattern_length } => {
                let step = Step::Fill(self.place(target)?, Pattern::new(*pattern, *pattern_length)?);
                self.program.steps.push(step);
            }
            Command::Update { source, target } => {
                let step = Step::Update(source.clone(), self.place(target)?);
                self.program.steps.push(step);
            }
            Command::Copy { source, target } => {
                let step = Step::Copy(self.place(source)?, self.place(target)?);
                self.program.steps.push(step);
            }
            Command::Dispatch { .. } => self.dispatch(command)?,
            // Commands run in order: there is nothing left to hold back.
            Command::Barrier | Command::BeginDebugGroup(_) | Command::EndDebugGroup => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, command: &Command) -> Result<()> {
        let Command::Dispatch { executable, function, counts, constants, bindings, .. } = command else {
            return Ok(());
        };
        let number = self.executable(executable)?;
        let own = &self.program.executables[number as usize];
        let index = *function as usize;
        let Some(info) = own.code().functions().get(index) else {
            bail!(OutOfRange, "function {function} asked of an executable that has no such function");
        };
        check_arguments(info, bindings.len(), constants.len())?;
        let needs = own.code().needs(index);
        self.program.local_memory = self.program.local_memory.max(needs.local_memory);
        self.program.may_hang |= own.code().may_hang();
        let first_place = self.program.places.len();
        for binding in bindings {
            let place = self.place(binding)?;
            self.program.places.push(place);
        }
        let counts = match counts {
            DispatchCounts::Direct(counts) => {
                match workgroup_total(*counts) {
                    Some(0) => return Ok(()),
                    Some(_) => {}
                    None => bail!(OutOfRange, "{counts:?} workgroups are more than 64 bits can count"),
                }
                Counts::Direct(*counts)
            }
            DispatchCounts::Indirect(reference) => {
                Counts::Indirect(self.place(&BufferRef { length: 12, ..reference.clone() })?)
            }
        };
        let first_constant = self.program.constants.len();
        self.program.constants.extend_from_slice(constants);
        self.program.steps.push(Step::Dispatch(Dispatch {
            executable: number,
            function: *function,
            counts,
            constants: first_constant..self.program.constants.len(),
            bindings: first_place..self.program.places.len(),
        }));
        Ok(())
    }

    fn executable(&mut self, executable: &Arc<dyn halite_hal::Executable>) -> Result<u32> {
        let address = Arc::as_ptr(executable).cast::<()>().addr();
        if let Some(number) = self.numbers.get(&address) {
            return Ok(*number);
        }
        let own = executable.as_any().downcast_ref::<LocalExecutable>();
        let own = own.filter(|own| own.is_of(self.device_id)).ok_or_else(|| {
            status!(InvalidArgument, "an executable of another device was given to a CPU device")
        })?;
        let number = count(self.program.executables.len())?;
        self.program.executables.push(own.clone());
        self.numbers.insert(address, number);
        Ok(number)
    }

    fn place(&mut self, reference: &BufferRef) -> Result<BufferRange> {
        let slots = &self.program.slots;
        let buffer = match &reference.target {
            CommandTarget::Slot(slot) => match slots.binary_search(slot) {
                Ok(number) => count(number)?,
                Err(_) => bail!(Internal, "slot {slot} was not collected"),
            },
            CommandTarget::Direct(buffer) => {
                own_buffer(buffer.as_ref())?;
                let next = count(slots.len() + self.program.direct.len())?;
                let address = Arc::as_ptr(buffer).cast::<()>().addr();
                let number = *self.numbers.entry(address).or_insert(next);
                if number == next {
                    self.program.direct.push(buffer.clone());
                }
                number
            }
        };
        Ok(BufferRange { buffer, offset: reference.offset, length: reference.length })
    }
}

/// Validation has compared the numbers too; here they decide how far code reads.
fn check_arguments(info: &FunctionInfo, bindings: usize, constants: usize) -> Result<()> {
    let wanted = (info.binding_count as usize, info.constant_count as usize);
    if (bindings, constants) != wanted || bindings > MAX_BINDINGS || constants > MAX_CONSTANTS {
        bail!(
            InvalidArgument,
            "function '{}' takes {} bindings and {} constants, the dispatch gives {bindings} and {constants}",
            info.name,
            wanted.0,
            wanted.1
        );
    }
    Ok(())
}

fn count(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| status!(ResourceExhausted, "a recording with {number} objects"))
}
