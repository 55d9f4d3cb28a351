//! The translation of fills, updates and copies of any alignment.

use ash::vk;
use bytes::Bytes;
use halite_hal::{Result, status};

use super::{MemoryRange, PreparedCommands, Step};
use crate::{
    device::Core,
    queue::{Keeper, Weight},
};

/// Most bytes of one `vkCmdUpdateBuffer`.
const LARGEST_UPDATE: usize = 65536;
/// Fills from this many bytes on are split where they begin at no multiple of `FILL_BOUNDARY`, on drivers that need it.
const UNALIGNED_FILL: u64 = 4096;
const FILL_BOUNDARY: u64 = 16;
/// Bytes of a repeated pattern that are staged at once. A multiple of every pattern length.
const PATTERN_CHUNK: u64 = 1 << 20;

impl PreparedCommands {
    /// Repeats a pattern over a range of any alignment.
    pub fn fill(
        &mut self,
        core: &Core,
        target: &MemoryRange,
        pattern: u64,
        pattern_length: u32,
    ) -> Result<()> {
        let period = match pattern_length {
            1 | 2 | 4 | 8 => pattern_length as usize,
            n => {
                return Err(status!(InvalidArgument, "fill patterns have 1, 2, 4 or 8 bytes, not {n}"));
            }
        };
        if target.length == 0 {
            return Ok(());
        }
        self.keep(target);
        let bytes = pattern.to_le_bytes();
        let byte_at = |position: u64| bytes[position as usize % period];
        let (start, end) = (target.start(), target.start() + target.length);
        let halves_equal = period < 8 || bytes[..4] == bytes[4..];
        let middle = (start.next_multiple_of(4), end / 4 * 4);
        if !halves_equal || middle.0 >= middle.1 {
            return self.fill_staged(core, target, start..end, byte_at);
        }
        let word = std::array::from_fn(|i| byte_at(middle.0 - start + i as u64));
        self.fill_words(core, target, middle.0..middle.1, u32::from_le_bytes(word));
        self.fill_staged(core, target, start..middle.0, byte_at)?;
        let tail_shift = middle.1 - start;
        self.fill_staged(core, target, middle.1..end, |position| byte_at(tail_shift + position))
    }

    /// Fills whole words; in two steps where the driver does not do it in one.
    fn fill_words(&mut self, core: &Core, target: &MemoryRange, range: std::ops::Range<u64>, word: u32) {
        let boundary = range.start.next_multiple_of(FILL_BOUNDARY).min(range.end);
        let split = core.ctx.plan.split_unaligned_fills && range.end - range.start >= UNALIGNED_FILL;
        let parts = if split { [range.start..boundary, boundary..range.end] } else { [0..0, range] };
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (offset, length) = (part.start, part.end - part.start);
            self.transfer(length, Step::Fill { buffer: target.buffer(), offset, length, word });
        }
    }

    /// Fills a range by copies from staged bytes; `byte_at` is relative to the range.
    fn fill_staged(
        &mut self,
        core: &Core,
        target: &MemoryRange,
        range: std::ops::Range<u64>,
        byte_at: impl Fn(u64) -> u8,
    ) -> Result<()> {
        let length = range.end - range.start;
        if length == 0 {
            return Ok(());
        }
        let staged: Vec<u8> = (0..length.min(PATTERN_CHUNK)).map(byte_at).collect();
        let staging = core.stage(&staged)?;
        let regions = (0..length)
            .step_by(PATTERN_CHUNK as usize)
            .map(|done| vk::BufferCopy {
                src_offset: staging.offset,
                dst_offset: range.start + done,
                size: PATTERN_CHUNK.min(length - done),
            })
            .collect();
        let source = staging.block.buffer;
        self.owned.push(Keeper::Allocation(staging));
        self.transfer(length, Step::Copy { source, target: target.buffer(), regions });
        Ok(())
    }

    /// Writes host bytes to a range of the same length.
    pub fn update(&mut self, core: &Core, source: &Bytes, target: &MemoryRange) -> Result<()> {
        let length = target.length.min(source.len() as u64) as usize;
        if length == 0 {
            return Ok(());
        }
        self.keep(target);
        let (buffer, offset) = (target.buffer(), target.start());
        if offset.is_multiple_of(4) && length.is_multiple_of(4) && length <= LARGEST_UPDATE {
            self.transfer(length as u64, Step::Update { buffer, offset, bytes: source.slice(..length) });
            return Ok(());
        }
        let staging = core.stage(&source[..length])?;
        let regions =
            vec![vk::BufferCopy { src_offset: staging.offset, dst_offset: offset, size: length as u64 }];
        self.transfer(length as u64, Step::Copy { source: staging.block.buffer, target: buffer, regions });
        self.owned.push(Keeper::Allocation(staging));
        Ok(())
    }

    /// Copies between ranges of the same length.
    pub fn copy(&mut self, source: &MemoryRange, target: &MemoryRange) -> Result<()> {
        let size = source.length.min(target.length);
        if size == 0 {
            return Ok(());
        }
        let (from, to) = (source.start(), target.start());
        if source.buffer() == target.buffer() && from < to + size && to < from + size {
            return Err(status!(
                InvalidArgument,
                "a copy of {size} bytes has overlapping source and target, which Vulkan cannot do"
            ));
        }
        self.keep(source);
        self.keep(target);
        let regions = vec![vk::BufferCopy { src_offset: from, dst_offset: to, size }];
        self.transfer(size, Step::Copy { source: source.buffer(), target: target.buffer(), regions });
        Ok(())
    }

    fn transfer(&mut self, bytes: u64, step: Step) {
        self.weights.push(Weight::transfer(self.steps.len(), bytes));
        self.steps.push(step);
    }
}
