//! Host memory for buffers: blocks, the cache of blocks that were given back, and the account of both.
//!
//! Programs allocate the same sizes in every call. A block that was given back is kept and given out again, so its
//! pages are not faulted in anew; sizes are rounded so that lengths that differ a little share blocks.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    collections::BTreeMap,
    ptr::NonNull,
    sync::Arc,
};

use halite_abi::{BUFFER_PADDING, Result, Status, status};
use halite_hal::MemoryStats;
use parking_lot::Mutex;

use crate::code::HostRange;

/// Alignment of every block, and what its length is a multiple of.
pub(crate) const ALIGNMENT: usize = BUFFER_PADDING as usize;

/// The part of the limit that given-back blocks may take.
const CACHE_SHARE: u64 = 4;

/// Memory of its own, aligned to [`ALIGNMENT`]. It starts as zeros: reading what nobody wrote is harmless.
#[derive(Debug)]
pub(crate) struct Block {
    pointer: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block owns its memory; its address is given out only as a `HostRange`.
unsafe impl Send for Block {}
// SAFETY: as above; no method touches the bytes through `&self`.
unsafe impl Sync for Block {}

impl Block {
    /// Memory of at least one byte; `None` where the system has none left.
    pub fn new(bytes: usize) -> Option<Block> {
        let size = bytes.max(1).checked_next_multiple_of(ALIGNMENT)?;
        let layout = Layout::from_size_align(size, ALIGNMENT).ok()?;
        // SAFETY: the size is not zero.
        let pointer = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Block { pointer, layout })
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.layout.size()
    }

    /// All of it, or its first `length` bytes where that is less. Valid as long as the block lives.
    pub fn range(&self, length: usize) -> HostRange {
        HostRange { pointer: self.pointer.as_ptr(), length: length.min(self.len()) }
    }

    /// The bytes, for whoever has the block alone.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the memory is the block's own, initialised, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `alloc_zeroed` with this layout.
        unsafe { dealloc(self.pointer.as_ptr(), self.layout) };
    }
}

/// The memory of a device.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stats: MemoryStats,
    /// Blocks that nobody uses, by size.
    free: BTreeMap<usize, Vec<Block>>,
}

impl Memory {
    /// Memory of at most this many bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Memory { limit, state: Mutex::default() })
    }

    /// What is taken now and was at most. `used` counts rounded sizes.
    pub fn stats(&self) -> MemoryStats {
        self.state.lock().stats
    }

    /// RESOURCE_EXHAUSTED for a length that no state of the device could satisfy.
    pub fn check_length(&self, bytes: u64) -> Result<usize> {
        let size = usize::try_from(bytes).ok().and_then(size_class).filter(|size| *size as u64 <= self.limit);
        size.ok_or_else(|| {
            status!(
                ResourceExhausted,
                "{bytes} bytes asked of the host's memory, which has {} bytes for buffers; raise the limit with \
                 '?memory=BYTES'",
                self.limit
            )
        })
    }

    /// A block of at least `bytes`; one that was given back where there is one.
    pub fn take(&self, bytes: u64) -> Result<Block> {
        let size = self.check_length(bytes)?;
        let mut state = self.state.lock();
        let cached = state.free.get_mut(&size).and_then(Vec::pop);
        let block = match cached {
            Some(block) => block,
            None => self.allocate(&mut state, size).ok_or_else(|| self.exhausted(bytes, &state.stats))?,
        };
        let stats = &mut state.stats;
        stats.used += block.len() as u64;
        stats.peak_used = stats.peak_used.max(stats.used);
        Ok(block)
    }

    fn allocate(&self, state: &mut State, size: usize) -> Option<Block> {
        if state.stats.reserved + size as u64 > self.limit {
            state.release();
        }
        if state.stats.reserved + size as u64 > self.limit {
            return None;
        }
        let block = Block::new(size).or_else(|| {
            state.release();
            Block::new(size)
        })?;
        let stats = &mut state.stats;
        stats.reserved += block.len() as u64;
        stats.peak_reserved = stats.peak_reserved.max(stats.reserved);
        stats.allocation_count += 1;
        Some(block)
    }

    fn exhausted(&self, bytes: u64, stats: &MemoryStats) -> Status {
        status!(
            ResourceExhausted,
            "{bytes} bytes asked of the host's memory; buffers have {} of the {} bytes that they may have. Free \
             buffers, or raise the limit with '?memory=BYTES'",
            stats.used,
            self.limit
        )
    }

    /// Takes back a block that nobody uses any more.
    pub fn give_back(&self, block: Block) {
        let mut state = self.state.lock();
        let size = block.len() as u64;
        state.stats.used -= size;
        let cached = state.stats.reserved - state.stats.used;
        if cached > self.limit / CACHE_SHARE {
            state.stats.reserved -= size;
            drop(state);
            drop(block);
        } else {
            state.free.entry(block.len()).or_default().push(block);
        }
    }

    /// Gives cached blocks back to the system.
    pub fn trim(&self) {
        self.state.lock().release();
    }
}

impl State {
    fn release(&mut self) {
        self.free.clear();
        self.stats.reserved = self.stats.used;
    }
}

/// The size that a block for `bytes` has: a multiple of 64 up to 1 KiB, then one of eight steps between powers of
/// two, so at most an eighth is wasted.
fn size_class(bytes: usize) -> Option<usize> {
    let bytes = bytes.max(1);
    let step = if bytes <= 1024 { ALIGNMENT } else { 1 << (bytes.ilog2() - 3) };
    bytes.checked_next_multiple_of(step).filter(|size| isize::try_from(*size).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_by_an_eighth_at_most() {
        for bytes in (0..5000).chain([65_537, 1 << 20, (1 << 20) + 1, 3 << 30]) {
            let size = size_class(bytes).unwrap();
            assert!(size >= bytes && size.is_multiple_of(ALIGNMENT), "{bytes} -> {size}");
            assert!(
                size <= bytes.max(1).next_multiple_of(64).max(bytes + bytes / 8 + 1),
                "{bytes} -> {size}"
            );
            assert_eq!(size_class(size), Some(size));
        }
        assert_eq!(size_class(usize::MAX), None);
        assert_eq!(size_class(isize::MAX as usize + 1), None);
    }

    #[test]
    fn blocks_that_were_given_back_are_used_again() {
        let memory = Memory::new(1 << 20);
        let block = memory.take(5000).unwrap();
        let address = block.range(usize::MAX).pointer;
        assert!(address.addr().is_multiple_of(ALIGNMENT));
        memory.give_back(block);
        assert_eq!((memory.stats().used, memory.stats().reserved), (0, 5120));
        let again = memory.take(4900).unwrap();
        assert_eq!(again.range(1).pointer, address);
        assert_eq!(memory.stats().allocation_count, 1);
        memory.give_back(again);
        memory.trim();
        let stats = memory.stats();
        assert_eq!((stats.used, stats.reserved, stats.peak_used), (0, 0, 5120));
    }

    #[test]
    fn lengths_that_cannot_be_had_are_refused() {
        let memory = Memory::new(4096);
        let kept = memory.take(2048).unwrap();
        for bytes in [2049, 4097, 1 << 40, u64::MAX] {
            let status = memory.take(bytes).unwrap_err();
            assert_eq!(status.code(), halite_abi::Code::ResourceExhausted, "{bytes}");
            assert!(status.message().contains("4096 bytes"), "{status}");
        }
        memory.give_back(kept);
        let kept = memory.take(512).unwrap();
        memory.give_back(kept);
        assert_eq!((memory.stats().used, memory.stats().reserved), (0, 512), "it is given out again");
        // The cache gives way to what is asked for.
        assert_eq!(memory.take(4096).unwrap().len(), 4096);
        let unlimited = Memory::new(u64::MAX);
        let status = unlimited.take(1 << 62).unwrap_err();
        assert_eq!(status.code(), halite_abi::Code::ResourceExhausted);
    }
}
