//! Command buffers: the recording, and the Vulkan command buffers made from it for the bindings it was executed with.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use ash::vk;
use halite_hal::{
    BindingTable, Buffer, BufferRef, Command, CommandBuffer, CommandBufferMode, CommandList, CommandTarget,
    DispatchCounts, Fence, Result, WHOLE_BUFFER,
};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::{
    allocator::Allocation,
    device::Core,
    history::History,
    lower::{MemoryRange, PreparedCommands, Resolver, record_host_barrier, storage_of},
    pipeline::Kernel,
    profile::Timer,
    queue::{Cut, Keeper, Recorder},
    recordings::Recordings,
    semaphore::QueuePoint,
};

/// Binding sets that a reusable command buffer keeps Vulkan command buffers for.
const CACHED: usize = 4;
/// Most things that a recording holds whose pools are kept for another one.
const MOST_KEPT: usize = 2048;
/// How often a recording is cut anew, because it takes another time than was thought.
const CUTS: u32 = 8;

/// Where a binding is: block, first byte, bytes. Block numbers are never reused, so an entry whose block is gone can
/// never be found again.
type Key = SmallVec<[(u64, u64, u64); 8]>;

/// A Vulkan command buffer for one set of bindings, with all that it needs except the bound buffers themselves.
pub(crate) struct Lowered {
    /// Number of the command buffer in this process, for messages.
    id: u64,
    key: Key,
    /// One for each part.
    commands: SmallVec<[vk::CommandBuffer; 1]>,
    cut: Arc<Cut>,
    timer: Option<Arc<Timer>>,
    /// Goes to the next recording when this one does.
    recorder: Option<Recorder>,
    recordings: Arc<Recordings>,
    owned: Vec<Keeper>,
    /// Whether it was written before an execution needed it, and none has run it yet.
    is_ahead: AtomicBool,
}

impl Lowered {
    /// The Vulkan command buffer of a part; may be in flight any number of times.
    pub fn commands(&self, part: usize) -> vk::CommandBuffer {
        self.commands[part]
    }

    /// Its parts.
    pub fn cut(&self) -> &Arc<Cut> {
        &self.cut
    }

    /// What measures its commands, where it was recorded for a profile.
    pub fn timer(&self) -> Option<&Arc<Timer>> {
        self.timer.as_ref()
    }

    /// Number of the command buffer in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The kernels that it dispatches, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.owned.iter().filter_map(|keeper| match keeper {
            Keeper::Kernel(kernel) => Some(kernel.as_ref()),
            _ => None,
        })
    }
}

impl Drop for Lowered {
    fn drop(&mut self) {
        // What a long recording needed is not kept for the short ones behind it.
        if let Some(recorder) = self.recorder.take().filter(|_| self.owned.len() <= MOST_KEPT) {
            self.recordings.give_back(recorder);
        }
    }
}

/// A command buffer of this driver.
pub(crate) struct VulkanCommandBuffer {
    id: u64,
    core: Arc<Core>,
    list: CommandList,
    /// Buffers that commands name directly, each once.
    direct: Vec<Arc<dyn Buffer>>,
    /// Bytes of each slot that commands reach to; `None` where one reaches to the end, wherever that is.
    reach: Vec<Option<u64>>,
    /// Most recently used first.
    cache: Mutex<Vec<Arc<Lowered>>>,
    /// The same for profiles, with timestamps.
    profiled: Mutex<Vec<Arc<Lowered>>>,
    /// How often it was cut anew.
    cuts: AtomicU32,
    /// What it, or those before it ([`CommandBuffer::prepare_as`]), were executed with, the last first.
    executed: Mutex<History>,
}

impl VulkanCommandBuffer {
    /// Accepts a finished recording.
    pub fn new(core: Arc<Core>, list: CommandList) -> Self {
        let mut direct: Vec<Arc<dyn Buffer>> = Vec::new();
        if !list.mode.contains(CommandBufferMode::ONE_SHOT) {
            let mut seen = std::collections::HashSet::new();
            for_each_target(&list.commands, |target| {
                if let CommandTarget::Direct(buffer) = target
                    && seen.insert(Arc::as_ptr(buffer).cast::<()>())
                {
                    direct.push(buffer.clone());
                }
            });
        }
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        VulkanCommandBuffer {
            id,
            core,
            reach: reach(&list),
            list,
            direct,
            cache: Mutex::default(),
            profiled: Mutex::default(),
            cuts: AtomicU32::new(0),
            executed: Mutex::default(),
        }
    }

    /// Places an execution on a queue.
    pub fn execute(
        &self,
        queue: usize,
        waits: &[QueuePoint],
        signal: &Fence,
        bindings: &BindingTable,
    ) -> Result<()> {
        let core = &self.core;
        let slots: SmallVec<[Option<MemoryRange>; 8]> = bindings
            .entries
            .iter()
            .map(|e| e.as_ref().map(MemoryRange::of).transpose())
            .collect::<Result<_>>()?;
        if self.list.mode.contains(CommandBufferMode::ONE_SHOT) {
            let mut program = PreparedCommands::of_list(
                core,
                &self.list,
                &Resolver { slots: &slots },
                core.profiler.is_on(),
            )?;
            if program.decide_cut(&core.pace) == 1 {
                return core.queues[queue]
                    .place(core, waits, signal, |batch, source| batch.record(core, source, program))
                    .map(drop);
            }
            let used = program.take_bound();
            let lowered = lower(core, core.queues[queue].family(), self.id, Key::new(), program)?;
            return core.queues[queue].place_recorded(core, waits, signal, &Arc::new(lowered), used);
        }
        self.executed.lock().note(queue, &slots);
        let (key, used) = self.key(&slots)?;
        let lowered = self.lowered(core.queues[queue].family(), key, &slots, false)?;
        core.recordings.note_executed(lowered.is_ahead.swap(false, Ordering::Relaxed));
        core.queues[queue].place_recorded(core, waits, signal, &lowered, used)
    }

    fn reach(&self, slot: usize) -> Option<u64> {
        self.reach.get(slot).copied().flatten()
    }

    /// The key of a set of bindings, and the memory that it names.
    fn key(&self, slots: &[Option<MemoryRange>]) -> Result<(Key, Vec<Arc<Allocation>>)> {
        let (mut key, mut used) = (Key::new(), Vec::new());
        for (index, slot) in slots.iter().enumerate() {
            match slot {
                Some(place) => {
                    // What lies behind that makes no other commands.
                    let length = self.reach(index).filter(|reach| *reach <= place.length);
                    key.push((place.allocation.block.id, place.start(), length.unwrap_or(place.length)));
                    used.push(place.allocation.clone());
                }
                None => key.push((u64::MAX, 0, 0)),
            }
        }
        for buffer in &self.direct {
            let allocation = storage_of(buffer.as_ref())?;
            key.push((allocation.block.id, allocation.offset, buffer.byte_length()));
            used.push(allocation);
        }
        Ok((key, used))
    }

    /// What runs with these bindings; `ahead` of the execution, or for it.
    fn lowered(
        &self,
        family: u32,
        key: Key,
        slots: &[Option<MemoryRange>],
        ahead: bool,
    ) -> Result<Arc<Lowered>> {
        let profiled = self.core.profiler.is_on();
        let mut cache = if profiled { self.profiled.lock() } else { self.cache.lock() };
        // Timestamps have one place each, so what is measured may not be in flight.
        let fits = |l: &Arc<Lowered>| l.key == key && (!profiled || Arc::strong_count(l) == 1);
        if let Some(found) = cache.iter().position(fits) {
            let misfit = self.core.pace.is_misfit(&cache[found].cut);
            if !misfit || self.cuts.fetch_add(1, Ordering::Relaxed) >= CUTS {
                // Moves the entry to the front, those before it one back.
                cache[..=found].rotate_right(1);
                return Ok(cache[0].clone());
            }
            cache.remove(found);
        }
        let mut program = PreparedCommands::of_list(&self.core, &self.list, &Resolver { slots }, profiled)?;
        program.decide_cut(&self.core.pace);
        let lowered = lower(&self.core, family, self.id, key, program)?;
        lowered.is_ahead.store(ahead, Ordering::Relaxed);
        if !profiled {
            self.core.recordings.note_written(ahead);
        }
        let lowered = Arc::new(lowered);
        cache.truncate(CACHED - 1);
        cache.insert(0, lowered.clone());
        Ok(lowered)
    }
}

fn lower(core: &Core, family: u32, id: u64, key: Key, mut program: PreparedCommands) -> Result<Lowered> {
    let ctx = &core.ctx;
    let cut = program.take_cut(&core.pace);
    let mut recorder = core.recordings.recorder(ctx, family)?;
    let sets = program.prepare(ctx, &mut recorder.descriptors)?;
    let timer = program.timer(ctx)?;
    let mut commands = SmallVec::new();
    for part in 0..cut.len() {
        let target = recorder.begin(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)?;
        program.record(ctx, target, &sets, cut.steps(part), timer.as_ref());
        record_host_barrier(ctx, target);
        // SAFETY: the command buffer was begun above and nobody else has it.
        unsafe { ctx.device.end_command_buffer(target) }
            .map_err(|e| ctx.error("vkEndCommandBuffer", e, &format!("command buffer {id}")))?;
        commands.push(target);
    }
    // Bound buffers are kept by each execution instead: an entry must not hold on to a program's memory.
    let (owned, _) = program.into_keepers();
    Ok(Lowered {
        id,
        key,
        commands,
        cut: Arc::new(cut),
        timer: timer.map(Arc::new),
        recorder: Some(recorder),
        recordings: core.recordings.clone(),
        owned,
        is_ahead: AtomicBool::new(false),
    })
}

/// For each slot of a recording, up to which byte its commands reach.
fn reach(list: &CommandList) -> Vec<Option<u64>> {
    let mut ends = vec![Some(0); list.binding_capacity as usize];
    let mut visit = |reference: &BufferRef| {
        if let CommandTarget::Slot(slot) = reference.target
            && let Some(end) = ends.get_mut(slot as usize)
        {
            let own = match reference.length {
                WHOLE_BUFFER => None,
                length => reference.offset.checked_add(length),
            };
            *end = (*end).zip(own).map(|(one, other)| one.max(other));
        }
    };
    for command in &list.commands {
        match command {
            Command::Fill { target, .. } | Command::Update { target, .. } => visit(target),
            Command::Copy { source, target } => {
                visit(source);
                visit(target);
            }
            Command::Dispatch { counts, bindings, .. } => {
                if let DispatchCounts::Indirect(reference) = counts {
                    visit(reference);
                }
                bindings.iter().for_each(&mut visit);
            }
            Command::Barrier | Command::BeginDebugGroup(_) | Command::EndDebugGroup => {}
        }
    }
    ends
}

fn for_each_target(commands: &[Command], mut visit: impl FnMut(&CommandTarget)) {
    for command in commands {
        match command {
            Command::Fill { target, .. } | Command::Update { target, .. } => visit(&target.target),
            Command::Copy { source, target } => {
                visit(&source.target);
                visit(&target.target);
            }
            Command::Dispatch { counts, bindings, .. } => {
                if let DispatchCounts::Indirect(reference) = counts {
                    visit(&reference.target);
                }
                bindings.iter().for_each(|b| visit(&b.target));
            }
            Command::Barrier | Command::BeginDebugGroup(_) | Command::EndDebugGroup => {}
        }
    }
}

impl fmt::Debug for VulkanCommandBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanCommandBuffer")
            .field("id", &self.id)
            .field("commands", &self.list.commands.len())
            .field("mode", &self.list.mode)
            .field("cached", &self.cache.lock().len())
            .finish_non_exhaustive()
    }
}

impl CommandBuffer for VulkanCommandBuffer {
    fn prepare_as(&self, before: &dyn CommandBuffer) -> Result<()> {
        let Some(before) = before.as_any().downcast_ref::<Self>() else { return Ok(()) };
        let executed = before.executed.lock().clone();
        let likely = executed.next(|slot| self.reach(slot));
        *self.executed.lock() = executed;
        let Some((queue, slots)) = likely else { return Ok(()) };
        let (key, _used) = self.key(&slots)?;
        self.lowered(self.core.queues[queue].family(), key, &slots, true).map(drop)
    }

    fn device_id(&self) -> u64 {
        self.core.ctx.id
    }

    fn list(&self) -> &CommandList {
        &self.list
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
