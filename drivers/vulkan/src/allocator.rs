//! Device memory: big blocks divided into ranges, and the reuse of ranges in queue order.
//!
//! Ranges that come back are kept by size before they are merged into their block again, and the lowest fitting one
//! is taken first. A program that allocates the same sizes in every iteration thus gets the same places in every
//! iteration, whether or not the device has caught up, and command buffers recorded for them stay valid.

mod block;
mod exhausted;
mod shared;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ash::vk;
use halite_abi::{BINDING_ALIGNMENT, BUFFER_PADDING};
use halite_facts::DeviceType;
use halite_hal::{BufferParams, MemoryStats, Result, host_memory, status};
use parking_lot::Mutex;

pub(crate) use block::{Allocation, Block, Place};

use exhausted::{Failure, Request};

use crate::{
    context::DeviceContext,
    memory_types::{self, MemoryCandidate},
    semaphore::QueuePoint,
    suballoc::SubAllocator,
};

/// Most bytes of a buffer that is taken for a small one.
const SMALL: u64 = 64 << 10;
/// In steps of so many bytes at least small buffers grow that have more than one granule.
const SMALL_STEP: u64 = 1 << 10;
/// Size of a memory type's first block; each further one is twice as big, up to `LARGEST_BLOCK`.
const FIRST_BLOCK: u64 = 16 << 20;
/// Size of the largest shared block. Requests above half of it get a block of their own.
const LARGEST_BLOCK: u64 = 128 << 20;

/// How far each queue has come: shared between queues, semaphores and the allocator.
#[derive(Debug)]
pub(crate) struct Progress(Vec<AtomicU64>);

impl Progress {
    /// All queues at 0.
    pub fn new(queues: usize) -> Self {
        Progress((0..queues).map(|_| AtomicU64::new(0)).collect())
    }

    /// Whether a queue has passed a point.
    pub fn is_completed(&self, point: QueuePoint) -> bool {
        self.0[point.queue].load(Ordering::Acquire) >= point.value
    }

    /// How far a queue has come.
    pub fn completed(&self, queue: usize) -> u64 {
        self.0[queue].load(Ordering::Acquire)
    }

    /// Notes that a queue has come to `value`.
    pub fn advance(&self, queue: usize, value: u64) {
        self.0[queue].fetch_max(value, Ordering::AcqRel);
    }
}

/// The allocator of a device. Any thread may use it.
pub(crate) struct Allocator {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    ctx: Arc<DeviceContext>,
    progress: Arc<Progress>,
    /// Memory types that blocks may use.
    type_bits: u32,
    granule: u64,
    /// Bytes that all blocks may have.
    limit: Option<Limit>,
    state: Mutex<State>,
}

/// What bounds the memory of a device beside the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// An option.
    Option(u64),
    /// What the machine, or the container, leaves to buffers of this process: the memory of a device on the processor is its own.
    Process(u64),
}

impl Limit {
    fn bytes(self) -> u64 {
        let (Limit::Option(bytes) | Limit::Process(bytes)) = self;
        bytes
    }

    /// The least of what an option says and, for a device on the processor, what the process may have.
    fn of(option: Option<u64>, device: DeviceType, process: Option<u64>) -> Option<Limit> {
        let process = process.filter(|_| device == DeviceType::Cpu).map(Limit::Process);
        let all = [option.map(Limit::Option), process];
        all.into_iter().flatten().min_by_key(|limit| limit.bytes())
    }
}

#[derive(Default)]
struct State {
    types: BTreeMap<PoolKey, TypePool>,
    stats: MemoryStats,
    heap_reserved: BTreeMap<u32, u64>,
    next_block: u64,
}

/// Memory type, and whether its blocks are mapped.
type PoolKey = (u32, bool);

fn pool_key(candidate: &MemoryCandidate) -> PoolKey {
    (candidate.index, candidate.mapped)
}

/// The blocks of one memory type.
#[derive(Default)]
struct TypePool {
    blocks: BTreeMap<u64, PooledBlock>,
    /// Returned ranges by (size, block, offset), and the point after which anybody may use them.
    returned: BTreeMap<(u64, u64, u64), Option<QueuePoint>>,
}

struct PooledBlock {
    block: Arc<Block>,
    ranges: SubAllocator,
    live: u32,
    dedicated: bool,
}

/// What an allocation is made of, and when its memory is free: `None` for now.
type Reserved = (Arc<Allocation>, Option<QueuePoint>);

impl Allocator {
    /// An allocator without memory.
    pub fn new(ctx: Arc<DeviceContext>, progress: Arc<Progress>) -> Result<Self> {
        let info = vk::BufferCreateInfo::default().size(BINDING_ALIGNMENT).usage(block::block_usage(&ctx));
        // SAFETY: the buffer is only asked what it needs, then destroyed.
        let needs = unsafe {
            let probe =
                ctx.device.create_buffer(&info, None).map_err(|e| ctx.error("vkCreateBuffer", e, "probe"))?;
            let needs = ctx.device.get_buffer_memory_requirements(probe);
            ctx.device.destroy_buffer(probe, None);
            needs
        };
        let limits = &ctx.facts.limits;
        let granule = [
            limits.min_storage_buffer_offset_alignment,
            limits.min_uniform_buffer_offset_alignment,
            limits.non_coherent_atom_size,
            needs.alignment,
        ];
        let granule = granule.into_iter().fold(BINDING_ALIGNMENT, u64::max).next_power_of_two();
        let limit = Limit::of(ctx.options.memory_limit, ctx.facts.device_type, host_memory::for_buffers());
        let type_bits = needs.memory_type_bits;
        let shared = Shared { ctx, progress, type_bits, granule, limit, state: Mutex::default() };
        Ok(Allocator { shared: Arc::new(shared) })
    }

    /// Memory for a buffer of `length` bytes, padded behind. With a queue, the memory may still be in use by
    /// earlier work of that queue: then the point that ends this is returned too.
    pub fn allocate(&self, params: &BufferParams, length: u64, queue: Option<usize>) -> Result<Reserved> {
        let shared = &self.shared;
        let candidates = memory_types::candidates(
            params,
            &shared.ctx.facts.memory,
            &shared.ctx.plan.memory,
            shared.type_bits,
        );
        let size = shared.padded(length, queue.is_some())?;
        let mut state = shared.state.lock();
        let mut tried = Vec::new();
        for candidate in &candidates {
            if let Some((block, offset, after)) = shared.take(&mut state, pool_key(candidate), size, queue) {
                return Ok((shared.hand_out(&mut state, block, offset, size), after));
            }
            match shared.grow(&mut state, *candidate, size) {
                Ok((block, offset)) => return Ok((shared.hand_out(&mut state, block, offset, size), None)),
                Err(failure) => tried.push((*candidate, failure)),
            }
            if tried.last().is_some_and(|(_, failure)| failure.is_final()) {
                break;
            }
        }
        let reserved = tried.first().and_then(|(c, _)| state.heap_reserved.get(&c.heap)).copied();
        let request = Request {
            params,
            length,
            tried: &tried,
            stats: state.stats,
            reserved: reserved.unwrap_or_default(),
        };
        drop(state);
        Err(exhausted::status(&shared.ctx, &request))
    }

    /// Memory held now and so far; of a fork, which holds none, nothing.
    pub fn stats(&self) -> MemoryStats {
        if self.shared.ctx.is_forked() {
            return MemoryStats::default();
        }
        self.shared.state.lock().stats
    }

    /// Gives blocks without live ranges back to the system.
    pub fn trim(&self) {
        self.shared.trim(&mut self.shared.state.lock(), true);
    }
}

impl Shared {
    /// The bytes that are taken for a buffer. For what calls allocate again and again (`in_order`), and for small buffers, these are up to a
    /// sixteenth more, or 1 KiB: where sizes grow a little from call to call, they find the memory of the call before, for which their
    /// recordings were written.
    fn padded(&self, length: u64, in_order: bool) -> Result<u64> {
        let padded =
            length.checked_next_multiple_of(BUFFER_PADDING).and_then(|l| l.checked_add(BUFFER_PADDING));
        let step = match padded {
            Some(padded) if padded > self.granule && (in_order || padded <= SMALL) => {
                let part = padded.checked_next_power_of_two().unwrap_or(0) / 32;
                part.max(SMALL_STEP).next_multiple_of(self.granule)
            }
            _ => self.granule,
        };
        padded.and_then(|l| l.checked_next_multiple_of(step)).ok_or_else(|| {
            status!(ResourceExhausted, "a buffer of {length} bytes is larger than any memory; ask for less")
        })
    }

    /// A free range in memory that is there already.
    fn take(
        &self,
        state: &mut State,
        memory_type: PoolKey,
        size: u64,
        queue: Option<usize>,
    ) -> Option<(Arc<Block>, u64, Option<QueuePoint>)> {
        let pool = state.types.get_mut(&memory_type)?;
        let usable = |after: &Option<QueuePoint>| {
            after.is_none_or(|p| Some(p.queue) == queue || self.progress.is_completed(p))
        };
        let found = pool.returned.range((size, 0, 0)..=(size, u64::MAX, u64::MAX)).find(|(_, a)| usable(a));
        if let Some((&key, &after)) = found {
            pool.returned.remove(&key);
            let after = after.filter(|p| !self.progress.is_completed(*p));
            let block = pool.blocks.get(&key.1)?.block.clone();
            return Some((block, key.2, after));
        }
        if let Some((block, offset)) = pool.divide(size, self.granule) {
            return Some((block, offset, None));
        }
        self.merge_returned(state, memory_type);
        let (block, offset) = state.types.get_mut(&memory_type)?.divide(size, self.granule)?;
        Some((block, offset, None))
    }

    /// Merges returned ranges that no queue uses any more into their blocks; frees big blocks that are empty then.
    fn merge_returned(&self, state: &mut State, memory_type: PoolKey) {
        let Some(pool) = state.types.get_mut(&memory_type) else { return };
        let merged: Vec<_> = pool
            .returned
            .iter()
            .filter(|(_, after)| after.is_none_or(|p| self.progress.is_completed(p)))
            .map(|(key, _)| *key)
            .collect();
        for key in merged {
            pool.returned.remove(&key);
            if let Some(entry) = pool.blocks.get_mut(&key.1) {
                entry.ranges.free(key.2);
                entry.live -= 1;
            }
        }
        self.drop_empty(state, memory_type, false);
    }

    fn drop_empty(&self, state: &mut State, memory_type: PoolKey, shared_too: bool) {
        let State { types, stats, heap_reserved, .. } = state;
        let Some(pool) = types.get_mut(&memory_type) else { return };
        pool.blocks.retain(|_, entry| {
            let keep = entry.live > 0 || !(entry.dedicated || shared_too);
            if !keep {
                stats.reserved -= entry.block.size;
                if let Some(reserved) = heap_reserved.get_mut(&entry.block.candidate.heap) {
                    *reserved -= entry.block.size;
                }
            }
            keep
        });
    }

    fn trim(&self, state: &mut State, shared_too: bool) {
        let types: Vec<PoolKey> = state.types.keys().copied().collect();
        for memory_type in types {
            self.merge_returned(state, memory_type);
            self.drop_empty(state, memory_type, shared_too);
        }
    }

    /// A range in a new block.
    fn grow(
        &self,
        state: &mut State,
        candidate: MemoryCandidate,
        size: u64,
    ) -> Result<(Arc<Block>, u64), Failure> {
        let limits = &self.ctx.facts.limits;
        let heap_size = self.ctx.facts.memory.heap_size(candidate.index);
        let largest = limits.max_memory_allocation_size.min(limits.max_buffer_size).min(heap_size);
        if size > largest {
            return Err(Failure::TooLarge);
        }
        let count = state.types.get(&pool_key(&candidate)).map_or(0, |p| p.blocks.len() as u32);
        let shared_size = (FIRST_BLOCK << count.min(8)).min(LARGEST_BLOCK).min(heap_size / 8).min(largest);
        let shared_size = shared_size / self.granule * self.granule;
        let dedicated = size > shared_size / 2;
        let wanted = if dedicated { size } else { shared_size };
        match self.add_block(state, candidate, wanted, size, dedicated) {
            Ok(found) => Ok(found),
            Err(failure) if failure.is_final() => Err(failure),
            Err(_) => {
                self.trim(state, true);
                self.add_block(state, candidate, size, size, true)
            }
        }
    }

    fn add_block(
        &self,
        state: &mut State,
        candidate: MemoryCandidate,
        block_size: u64,
        size: u64,
        dedicated: bool,
    ) -> Result<(Arc<Block>, u64), Failure> {
        let live_blocks: usize = state.types.values().map(|p| p.blocks.len()).sum();
        if live_blocks as u64 >= u64::from(self.ctx.facts.limits.max_memory_allocation_count) {
            return Err(Failure::TooMany);
        }
        if let Some(limit) = self.limit
            && state.stats.reserved.saturating_add(block_size) > limit.bytes()
        {
            return Err(Failure::OverLimit(limit));
        }
        let id = state.next_block;
        let block = Arc::new(Block::new(&self.ctx, id, block_size, candidate)?);
        state.next_block += 1;
        let mut ranges = SubAllocator::new(block_size);
        let offset = ranges.allocate(size, self.granule).ok_or(Failure::Fragmented)?;
        let stats = &mut state.stats;
        stats.reserved += block_size;
        stats.peak_reserved = stats.peak_reserved.max(stats.reserved);
        stats.allocation_count += 1;
        *state.heap_reserved.entry(candidate.heap).or_default() += block_size;
        let entry = PooledBlock { block: block.clone(), ranges, live: 1, dedicated };
        state.types.entry(pool_key(&candidate)).or_default().blocks.insert(id, entry);
        Ok((block, offset))
    }

    /// A number for a block that is in no pool.
    fn next_id(&self) -> u64 {
        let mut state = self.state.lock();
        state.next_block += 1;
        state.next_block - 1
    }

    fn hand_out(
        self: &Arc<Self>,
        state: &mut State,
        block: Arc<Block>,
        offset: u64,
        size: u64,
    ) -> Arc<Allocation> {
        state.stats.used += size;
        state.stats.peak_used = state.stats.peak_used.max(state.stats.used);
        Arc::new(Allocation::new(self.clone(), block, offset, size))
    }

    fn give_back(&self, allocation: &Allocation, after: Option<QueuePoint>) {
        // Who had the lock when the process was forked never returns it here.
        if self.ctx.is_forked() {
            return;
        }
        let mut state = self.state.lock();
        state.stats.used -= allocation.size;
        if allocation.block.exportable.is_some() {
            // The memory itself goes with its block, and nobody else gets it.
            state.stats.reserved -= allocation.size;
            if let Some(reserved) = state.heap_reserved.get_mut(&allocation.block.candidate.heap) {
                *reserved -= allocation.size;
            }
            return;
        }
        let Some(pool) = state.types.get_mut(&pool_key(&allocation.block.candidate)) else { return };
        pool.returned.insert((allocation.size, allocation.block.id, allocation.offset), after);
    }
}

impl State {
    /// Counts a block that is shared with others, all of which is one buffer's.
    fn count_shared(&mut self, heap: u32, size: u64) {
        let stats = &mut self.stats;
        (stats.reserved, stats.used) = (stats.reserved + size, stats.used + size);
        stats.peak_reserved = stats.peak_reserved.max(stats.reserved);
        stats.peak_used = stats.peak_used.max(stats.used);
        stats.allocation_count += 1;
        *self.heap_reserved.entry(heap).or_default() += size;
    }
}

impl TypePool {
    /// A range cut from the free space of a block, the oldest block first.
    fn divide(&mut self, size: u64, granule: u64) -> Option<(Arc<Block>, u64)> {
        self.blocks.values_mut().find_map(|entry| {
            let offset = entry.ranges.allocate(size, granule)?;
            entry.live += 1;
            Some((entry.block.clone(), offset))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_on_processors_have_no_more_than_their_process() {
        let of = |option, device, process| Limit::of(option, device, process);
        let container = Some(512 << 20);
        assert_eq!(of(None, DeviceType::Cpu, container), Some(Limit::Process(512 << 20)));
        assert_eq!(of(Some(4096), DeviceType::Cpu, container), Some(Limit::Option(4096)));
        assert_eq!(of(Some(1 << 30), DeviceType::Cpu, container), Some(Limit::Process(512 << 20)));
        assert_eq!(of(None, DeviceType::Discrete, container), None);
        assert_eq!(of(Some(1 << 30), DeviceType::Discrete, container), Some(Limit::Option(1 << 30)));
        assert_eq!(of(None, DeviceType::Cpu, None), None);
    }
}
