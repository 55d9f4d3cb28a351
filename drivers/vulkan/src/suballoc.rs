//! The division of one big block into ranges. Pure arithmetic: it never sees memory.
//!
//! Best fit over a size-ordered index, O(log n) for every operation. Among free ranges of the best size the
//! one freed last is taken: a program that repeats its allocations gets the same offsets each time.

use std::collections::{BTreeMap, BTreeSet};

/// A free range, ordered as it is preferred: small first, then recently freed, then low.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FreeKey {
    size: u64,
    /// Counts down, so that the range freed last comes first.
    age: u64,
    offset: u64,
}

/// A free range as its neighbours see it.
#[derive(Clone, Copy, Debug)]
struct FreeRange {
    size: u64,
    age: u64,
}

/// Divides `capacity` bytes into ranges. Not synchronised: its owner locks.
#[derive(Clone, Debug)]
pub struct SubAllocator {
    capacity: u64,
    used: u64,
    next_age: u64,
    by_offset: BTreeMap<u64, FreeRange>,
    by_size: BTreeSet<FreeKey>,
    /// Live ranges: offset to size.
    live: BTreeMap<u64, u64>,
}

impl SubAllocator {
    /// All of `capacity` bytes free.
    pub fn new(capacity: u64) -> Self {
        let mut allocator = SubAllocator {
            capacity,
            used: 0,
            next_age: u64::MAX,
            by_offset: BTreeMap::new(),
            by_size: BTreeSet::new(),
            live: BTreeMap::new(),
        };
        if capacity > 0 {
            allocator.insert_free(0, capacity);
        }
        allocator
    }

    /// Reserves `size` bytes (at least one) at a multiple of `alignment`, a power of two (0 counts as 1).
    /// `None` when no free range can hold them, or the alignment is no power of two.
    pub fn allocate(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let (size, alignment) = (size.max(1), alignment.max(1));
        if !alignment.is_power_of_two() || size > self.capacity {
            return None;
        }
        let (offset, found, aligned) = self.find(size, alignment)?;
        self.remove_free(offset, found);
        let end = aligned + size;
        let range_end = offset + found.size;
        if aligned > offset {
            self.insert_free(offset, aligned - offset);
        }
        if range_end > end {
            self.insert_free(end, range_end - end);
        }
        self.live.insert(aligned, size);
        self.used += size;
        Some(aligned)
    }

    /// Gives a range back and returns its size; `None`, and no change, when no live range begins at `offset`.
    pub fn free(&mut self, offset: u64) -> Option<u64> {
        let size = self.live.remove(&offset)?;
        self.used -= size;
        let (mut start, mut length) = (offset, size);
        if let Some((&before, &range)) = self.by_offset.range(..offset).next_back()
            && before + range.size == offset
        {
            self.remove_free(before, range);
            (start, length) = (before, length + range.size);
        }
        if let Some(&range) = self.by_offset.get(&(offset + size)) {
            self.remove_free(offset + size, range);
            length += range.size;
        }
        self.insert_free(start, length);
        Some(size)
    }

    /// Bytes that it divides.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes in live ranges.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether no range is live.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Size of the largest free range.
    pub fn largest_free(&self) -> u64 {
        self.by_size.last().map_or(0, |key| key.size)
    }

    /// Number of free ranges; 1 or 0 when nothing is fragmented.
    pub fn free_ranges(&self) -> usize {
        self.by_offset.len()
    }

    /// The best free range, and where the allocation begins in it. Ranges that are large enough but badly
    /// aligned are passed over only while their slack is below the alignment, and at most [`MAX_PROBES`] of
    /// them: after that a range that fits wherever it begins is taken.
    fn find(&self, size: u64, alignment: u64) -> Option<(u64, FreeRange, u64)> {
        let certain = size.saturating_add(alignment - 1);
        let start = FreeKey { size, age: 0, offset: 0 };
        let fitting = self.by_size.range(start..).take(MAX_PROBES).find_map(|key| fit(key, size, alignment));
        fitting.or_else(|| {
            let start = FreeKey { size: certain, age: 0, offset: 0 };
            self.by_size.range(start..).find_map(|key| fit(key, size, alignment))
        })
    }

    fn insert_free(&mut self, offset: u64, size: u64) {
        let age = self.next_age;
        self.next_age = self.next_age.saturating_sub(1);
        self.by_offset.insert(offset, FreeRange { size, age });
        self.by_size.insert(FreeKey { size, age, offset });
    }

    fn remove_free(&mut self, offset: u64, range: FreeRange) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&FreeKey { size: range.size, age: range.age, offset });
    }
}

/// Free ranges that are tried before one is taken whose size makes the alignment certain. Bounds the search.
const MAX_PROBES: usize = 32;

fn fit(key: &FreeKey, size: u64, alignment: u64) -> Option<(u64, FreeRange, u64)> {
    let aligned = key.offset.checked_next_multiple_of(alignment)?;
    let end = aligned.checked_add(size)?;
    let fits = end <= key.offset + key.size;
    fits.then_some((key.offset, FreeRange { size: key.size, age: key.age }, aligned))
}

#[cfg(test)]
mod tests;
