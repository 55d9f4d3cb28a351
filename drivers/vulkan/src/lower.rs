//! The translation of HAL commands into Vulkan commands, in two passes: building `PreparedCommands` checks and resolves everything and
//! may fail; recording it cannot.

mod dispatch;
mod divide;
mod record;
mod strict;
mod transfer;

use std::{ops::Range, sync::Arc};

use ash::vk;
use halite_hal::{
    Buffer, BufferRef, BufferSpan, Command, CommandList, CommandTarget, Result, TimedCommand, WHOLE_BUFFER,
    status,
};

pub(crate) use dispatch::ROOT_WORDS;
pub(crate) use record::record_host_barrier;

use crate::{
    allocator::Allocation,
    buffer::VulkanBuffer,
    context::DeviceContext,
    descriptors::{DescriptorPools, DescriptorWrite, SetShape, vk_writes},
    device::Core,
    pipeline::Kernel,
    profile::Timer,
    queue::{Cut, Keeper, Pace, Weight},
};

/// A byte range of device memory.
#[derive(Clone)]
pub(crate) struct MemoryRange {
    /// The memory.
    pub allocation: Arc<Allocation>,
    /// First byte, relative to the allocation.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl MemoryRange {
    /// The range of a span.
    pub fn of(span: &BufferSpan) -> Result<Self> {
        MemoryRange {
            allocation: storage_of(span.buffer.as_ref())?,
            offset: span.offset,
            length: span.length,
        }
        .checked()
    }

    /// First byte in the block's Vulkan buffer.
    pub fn start(&self) -> u64 {
        self.allocation.offset + self.offset
    }

    /// The block's Vulkan buffer.
    pub fn buffer(&self) -> vk::Buffer {
        self.allocation.block.buffer
    }

    fn checked(self) -> Result<Self> {
        match self.offset.checked_add(self.length) {
            Some(end) if end <= self.allocation.size => Ok(self),
            _ => Err(status!(
                OutOfRange,
                "range of {} bytes at {} is outside of a buffer's memory of {} bytes",
                self.length,
                self.offset,
                self.allocation.size
            )),
        }
    }
}

/// The memory behind a buffer of this driver.
pub(crate) fn storage_of(buffer: &dyn Buffer) -> Result<Arc<Allocation>> {
    let own = buffer.as_any().downcast_ref::<VulkanBuffer>();
    own.ok_or_else(|| status!(InvalidArgument, "a buffer of another driver was given to a Vulkan device"))?
        .storage()
}

/// Finds the memory that commands name.
pub(crate) struct Resolver<'a> {
    /// The binding table; `None` entries have no bytes.
    pub slots: &'a [Option<MemoryRange>],
}

impl Resolver<'_> {
    /// The memory of a reference; `None` for an empty slot.
    pub fn place(&self, reference: &BufferRef) -> Result<Option<MemoryRange>> {
        let (base, limit) = match &reference.target {
            CommandTarget::Direct(buffer) => {
                let allocation = storage_of(buffer.as_ref())?;
                (MemoryRange { allocation, offset: 0, length: buffer.byte_length() }, true)
            }
            CommandTarget::Slot(slot) => match self.slots.get(*slot as usize) {
                Some(Some(place)) => (place.clone(), false),
                Some(None) => return Ok(None),
                None if reference.length == 0 => return Ok(None),
                None => {
                    return Err(status!(
                        OutOfRange,
                        "a command names binding table slot {slot}, the table has {} entries",
                        self.slots.len()
                    ));
                }
            },
        };
        let rest = base.length.checked_sub(reference.offset).ok_or_else(|| {
            status!(OutOfRange, "offset {} is outside of a buffer of {} bytes", reference.offset, base.length)
        })?;
        if limit && reference.length != WHOLE_BUFFER && reference.length > rest {
            return Err(status!(
                OutOfRange,
                "{} bytes are asked of a buffer with {rest} left",
                reference.length
            ));
        }
        let length = reference.length.min(rest);
        MemoryRange { allocation: base.allocation, offset: base.offset + reference.offset, length }
            .checked()
            .map(Some)
    }

    /// The memory that a transfer accesses; `None` when it accesses no byte, for which an empty slot will do.
    fn accessed(&self, reference: &BufferRef, what: &str) -> Result<Option<MemoryRange>> {
        if reference.length == 0 {
            return Ok(None);
        }
        self.some_range(reference, what).map(Some)
    }

    fn some_range(&self, reference: &BufferRef, what: &str) -> Result<MemoryRange> {
        self.place(reference)?
            .ok_or_else(|| status!(InvalidArgument, "{what} names an empty slot of the binding table"))
    }
}

/// Workgroup counts of a dispatch.
#[derive(Clone, Copy)]
enum Counts {
    Direct([u32; 3]),
    /// Some of the workgroups, by the first of them.
    Piece {
        first: [u32; 3],
        groups: [u32; 3],
    },
    /// The same in parts of at most `most`, each given by push constants from `offset` on: the device allows no more at once, or
    /// the kernel asks for the `total`.
    Parts {
        first: [u32; 3],
        groups: [u32; 3],
        total: [u32; 3],
        most: [u32; 3],
        offset: u32,
    },
    Indirect(vk::Buffer, u64),
}

/// Where a dispatch finds its bindings.
#[derive(Clone)]
enum Arguments {
    /// Descriptor sets, by index in the program's shapes.
    Sets(Range<usize>),
    /// Pushed descriptors, by index in the program's writes.
    Pushed(Range<usize>),
}

/// One Vulkan command.
enum Step {
    Fill {
        buffer: vk::Buffer,
        offset: u64,
        length: u64,
        word: u32,
    },
    Copy {
        source: vk::Buffer,
        target: vk::Buffer,
        regions: Vec<vk::BufferCopy>,
    },
    Update {
        buffer: vk::Buffer,
        offset: u64,
        bytes: bytes::Bytes,
    },
    Dispatch {
        kernel: Arc<Kernel>,
        pipeline: vk::Pipeline,
        layout: vk::PipelineLayout,
        arguments: Arguments,
        /// In the program's constants.
        constants: Range<usize>,
        counts: Counts,
    },
    Barrier,
    /// A buffer changes hands between queue families.
    HandOver {
        buffer: vk::Buffer,
        from: u32,
        to: u32,
    },
    BeginGroup(std::ffi::CString),
    EndGroup,
}

/// Where an address table belongs: known when the program is prepared.
struct TablePatch {
    /// Index of the root struct's first word in the constants.
    constant: usize,
    /// Index of the table's first entry.
    entry: usize,
}

/// Checked and resolved commands, ready to be recorded.
#[derive(Default)]
pub(crate) struct PreparedCommands {
    steps: Vec<Step>,
    /// Sets to be allocated, and the writes into them.
    shapes: Vec<SetShape>,
    writes: Vec<DescriptorWrite>,
    /// Descriptors that are pushed while recording.
    pushes: Vec<DescriptorWrite>,
    constants: Vec<u32>,
    /// Device addresses of bindings.
    table: Vec<u64>,
    patches: Vec<TablePatch>,
    /// What commands need beside the buffers they name.
    owned: Vec<Keeper>,
    /// Memory of the buffers that commands name.
    bound: Vec<Arc<Allocation>>,
    /// Its dispatches and transfers, in order.
    weights: Vec<Weight>,
    dispatches: u32,
    /// Where it is cut, once that was decided.
    cut: Option<Cut>,
    /// Commands that are measured, and their steps.
    timed: Vec<(Range<usize>, Arc<TimedCommand>)>,
}

impl PreparedCommands {
    /// Translates a list of commands; for a profile, they are measured.
    pub fn of_list(core: &Core, list: &CommandList, resolver: &Resolver<'_>, profiled: bool) -> Result<Self> {
        let mut program = PreparedCommands::default();
        let named = if profiled { TimedCommand::of_list(list) } else { Vec::new() };
        let mut accessed = core.ctx.options.validation.synchronization.then(strict::Accessed::default);
        for (index, command) in list.commands.iter().enumerate() {
            if let Some(accessed) = &mut accessed
                && accessed.needs_barrier(command, resolver)?
            {
                program.steps.push(Step::Barrier);
            }
            let first = program.steps.len();
            program.command(core, command, resolver)?;
            if let Some(Some(named)) = named.get(index) {
                program.time(first, named.clone());
            }
        }
        program.place_table(core)?;
        Ok(program)
    }

    /// Has the steps from `first` on measured, as one command.
    pub fn time(&mut self, first: usize, command: Arc<TimedCommand>) {
        if first < self.steps.len() {
            self.timed.push((first..self.steps.len(), command));
        }
    }

    /// What measures the commands that are to be measured; `None` where there are none.
    pub fn timer(&mut self, ctx: &Arc<DeviceContext>) -> Result<Option<Timer>> {
        let timed = std::mem::take(&mut self.timed);
        if timed.is_empty() { Ok(None) } else { Timer::new(ctx, timed).map(Some) }
    }

    fn command(&mut self, core: &Core, command: &Command, resolver: &Resolver<'_>) -> Result<()> {
        match command {
            Command::Fill { target, pattern, pattern_length } => match resolver.accessed(target, "a fill")? {
                Some(target) => self.fill(core, &target, *pattern, *pattern_length),
                None => Ok(()),
            },
            Command::Update { source, target } => match resolver.accessed(target, "an update")? {
                Some(target) => self.update(core, source, &target),
                None => Ok(()),
            },
            Command::Copy { source, target } => {
                match (resolver.accessed(source, "a copy")?, resolver.accessed(target, "a copy")?) {
                    (Some(source), Some(target)) => self.copy(&source, &target),
                    _ => Ok(()),
                }
            }
            Command::Dispatch { executable, function, counts, constants, bindings, .. } => self.dispatch(
                core,
                resolver,
                &dispatch::Call {
                    executable: executable.as_ref(),
                    function: *function,
                    counts,
                    constants,
                    bindings,
                },
            ),
            Command::Barrier => {
                self.steps.push(Step::Barrier);
                Ok(())
            }
            Command::BeginDebugGroup(name) => {
                let name = std::ffi::CString::new(name.replace('\0', "?"));
                self.steps.push(Step::BeginGroup(name.unwrap_or_default()));
                Ok(())
            }
            Command::EndDebugGroup => {
                self.steps.push(Step::EndGroup);
                Ok(())
            }
        }
    }

    /// A block that is shared with others goes from one queue family to another.
    pub fn hand_over(&mut self, memory: &Arc<Allocation>, from: u32, to: u32) {
        self.steps.push(Step::HandOver { buffer: memory.block.buffer, from, to });
        self.bound.push(memory.clone());
    }

    /// Dispatches in it.
    pub fn dispatches(&self) -> u32 {
        self.dispatches
    }

    /// Divides its long dispatches and decides where it is cut; the number of its parts. What is measured command by command
    /// stays whole.
    pub fn decide_cut(&mut self, pace: &Pace) -> usize {
        let whole = !self.timed.is_empty();
        if !whole {
            self.divide(pace);
        }
        self.cut.insert(pace.cut(self.steps.len(), self.weights.clone(), whole)).len()
    }

    /// Where it is cut; in one part if nobody decided.
    pub fn take_cut(&mut self, pace: &Pace) -> Cut {
        let whole = || pace.cut(self.steps.len(), self.weights.clone(), true);
        self.cut.take().unwrap_or_else(whole)
    }

    /// Whether there is nothing to record.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Memory of the buffers that commands name, for whoever keeps it instead.
    pub fn take_bound(&mut self) -> Vec<Arc<Allocation>> {
        std::mem::take(&mut self.bound)
    }

    /// What has to live until the commands have finished: what they own, and the buffers they name.
    pub fn into_keepers(self) -> (Vec<Keeper>, Vec<Arc<Allocation>>) {
        (self.owned, self.bound)
    }

    /// Allocates and writes the descriptor sets, all at once. Must come before `record`.
    pub fn prepare(
        &mut self,
        ctx: &DeviceContext,
        pools: &mut DescriptorPools,
    ) -> Result<Vec<vk::DescriptorSet>> {
        if self.shapes.is_empty() {
            return Ok(Vec::new());
        }
        let sets = pools.allocate(&self.shapes)?;
        let writes = vk_writes(&self.writes, &sets);
        // SAFETY: the sets are new, so nothing uses them yet; layouts and buffers are kept by the program.
        unsafe { ctx.device.update_descriptor_sets(&writes, &[]) };
        Ok(sets)
    }

    fn keep(&mut self, range: &MemoryRange) {
        self.bound.push(range.allocation.clone());
    }
}
