//! Where in one piece of memory things go that are needed at different times.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use halite_abi::BINDING_ALIGNMENT;
use halite_sizes::Size;

use crate::{CompileError, control::Watch, graph::storage_bytes};

/// Something that needs memory for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Bytes.
    pub bytes: u64,
    /// The first time.
    pub from: usize,
    /// The last time.
    pub to: usize,
}

/// Where things are put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// Offset of each.
    pub offsets: Vec<u64>,
    /// The end of the last.
    pub bytes: u64,
}

/// Whether something of so many bytes has a buffer of its own where modules share buffers: it is large, and of whole words.
pub(super) fn lies_apart(bytes: u64) -> bool {
    bytes >= APART_BYTES && whole(bytes) == bytes
}

/// Bytes of memory for so many bytes: whole words, and at least one, since nothing cannot be bound.
pub(crate) fn whole(bytes: u64) -> u64 {
    storage_bytes(bytes).max(4)
}

/// The same of bytes that may be open.
pub(crate) fn whole_size(bytes: Size) -> Size {
    bytes.next_multiple_of(4).max(4)
}

/// Fewest bytes of what has a buffer of its own where there are such.
const APART_BYTES: u64 = 16 << 10;

/// Most things for which the time may grow with the square of how many there are.
const MOST_COMPARED: usize = 4096;

/// Puts things whose times do not overlap into the same memory, at aligned offsets from `reserved` on: the largest first, each where it
/// leaves the smallest gap. That compares each with all others; where there are too many for it, they are placed in the order of their
/// times, which takes somewhat more memory.
///
/// # Errors
/// The work was ended.
pub(crate) fn arrange(needs: &[Need], reserved: u64, watch: Watch<'_>) -> Result<Arrangement, CompileError> {
    let base = reserved.next_multiple_of(BINDING_ALIGNMENT);
    if needs.len() > MOST_COMPARED {
        return in_time(needs, base, watch);
    }
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|i| (Reverse(needs[*i].bytes), needs[*i].from, *i));
    let mut offsets = vec![base; needs.len()];
    // What has its place, by offset.
    let mut placed: Vec<usize> = Vec::new();
    let mut end = if needs.is_empty() { reserved } else { base };
    for index in order {
        watch.check()?;
        let need = &needs[index];
        let overlaps = |other: &&usize| needs[**other].from <= need.to && need.from <= needs[**other].to;
        let taken = placed.iter().filter(overlaps).map(|i| (offsets[*i], offsets[*i] + needs[*i].bytes));
        offsets[index] = best_gap(taken, need.bytes, base);
        end = end.max(offsets[index] + need.bytes);
        let at = placed.partition_point(|i| offsets[*i] <= offsets[index]);
        placed.insert(at, index);
    }
    Ok(Arrangement { offsets, bytes: end })
}

/// The start of the smallest gap between ranges, which come by their starts, that has room; else behind them all.
fn best_gap(taken: impl Iterator<Item = (u64, u64)>, bytes: u64, base: u64) -> u64 {
    let (mut free, mut best): (u64, Option<(u64, u64)>) = (base, None);
    for (start, end) in taken {
        if start >= free + bytes {
            let gap = start - free;
            if best.is_none_or(|(smallest, _)| gap < smallest) {
                best = Some((gap, free));
            }
        }
        free = free.max(end.next_multiple_of(BINDING_ALIGNMENT));
    }
    best.map_or(free, |(_, at)| at)
}

/// The arrangement of many: in the order of their times, each in the smallest hole that has room for it.
fn in_time(needs: &[Need], base: u64, watch: Watch<'_>) -> Result<Arrangement, CompileError> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|i| (needs[*i].from, Reverse(needs[*i].bytes), *i));
    let mut holes = Holes::new(base);
    let mut offsets = vec![base; needs.len()];
    // What has its place, by the time when it is over.
    let mut placed: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    let room = |index: usize| needs[index].bytes.next_multiple_of(BINDING_ALIGNMENT);
    let mut end = base;
    for index in order {
        watch.check()?;
        while let Some(Reverse((to, over))) = placed.peek().copied()
            && to < needs[index].from
        {
            placed.pop();
            holes.give(offsets[over], room(over));
        }
        offsets[index] = holes.take(room(index));
        end = end.max(offsets[index] + needs[index].bytes);
        placed.push(Reverse((needs[index].to, index)));
    }
    Ok(Arrangement { offsets, bytes: end })
}

/// Free ranges of memory, and all that lies behind `end`.
struct Holes {
    /// Their ends, by their starts.
    ends: BTreeMap<u64, u64>,
    /// The same by length, with the start.
    lengths: BTreeSet<(u64, u64)>,
    end: u64,
}

impl Holes {
    fn new(base: u64) -> Self {
        Holes { ends: BTreeMap::new(), lengths: BTreeSet::new(), end: base }
    }

    fn add(&mut self, start: u64, end: u64) {
        if start < end {
            self.ends.insert(start, end);
            self.lengths.insert((end - start, start));
        }
    }

    fn remove(&mut self, start: u64, end: u64) {
        self.ends.remove(&start);
        self.lengths.remove(&(end - start, start));
    }

    /// Takes the smallest hole with so many bytes.
    fn take(&mut self, bytes: u64) -> u64 {
        let Some((length, start)) = self.lengths.range((bytes, 0)..).next().copied() else {
            let start = self.end;
            self.end += bytes;
            return start;
        };
        self.remove(start, start + length);
        self.add(start + bytes, start + length);
        start
    }

    /// Gives bytes back, which join the holes beside them.
    fn give(&mut self, start: u64, bytes: u64) {
        let (mut from, mut to) = (start, start + bytes);
        if let Some((before, end)) = self.ends.range(..start).next_back().map(|(start, end)| (*start, *end))
            && end == from
        {
            self.remove(before, end);
            from = before;
        }
        if let Some(end) = self.ends.get(&to).copied() {
            self.remove(to, end);
            to = end;
        }
        match to == self.end {
            true => self.end = from,
            false => self.add(from, to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Control, Stage};

    fn arrange(needs: &[Need], reserved: u64) -> Arrangement {
        super::arrange(needs, reserved, Control::new().at(Stage::Planning)).unwrap()
    }

    fn need(bytes: u64, from: usize, to: usize) -> Need {
        Need { bytes, from, to }
    }

    #[test]
    fn a_chain_needs_two_places() {
        let chain: Vec<_> = (0..10).map(|i| need(1000, i, i + 1)).collect();
        let found = arrange(&chain, 0);
        assert_eq!(found.bytes, 1024 + 1000);
        assert!(found.offsets.iter().all(|offset| *offset == 0 || *offset == 1024));
    }

    #[test]
    fn what_is_needed_at_the_same_time_never_overlaps() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..50 {
            let needs: Vec<_> = (0..60)
                .map(|_| {
                    let from = random(40) as usize;
                    need(random(5000) + 4, from, from + random(12) as usize)
                })
                .collect();
            let in_time = in_time(&needs, 512, Control::new().at(Stage::Planning)).unwrap();
            check(&needs, &in_time);
            let found = arrange(&needs, 300);
            let sum: u64 = needs.iter().map(|n| n.bytes.next_multiple_of(BINDING_ALIGNMENT)).sum();
            assert!(found.bytes <= sum + 512);
            check(&needs, &found);
        }
    }

    fn check(needs: &[Need], found: &Arrangement) {
        for (i, a) in needs.iter().enumerate() {
            let at = found.offsets[i];
            assert!(at >= 512 && at.is_multiple_of(BINDING_ALIGNMENT) && at + a.bytes <= found.bytes);
            for (j, b) in needs.iter().enumerate().skip(i + 1) {
                let times = a.from <= b.to && b.from <= a.to;
                let places = at < found.offsets[j] + b.bytes && found.offsets[j] < at + a.bytes;
                assert!(!(times && places), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn many_are_arranged_soon() {
        let chain: Vec<_> = (0..200_000).map(|i| need(1000, i, i + 1)).collect();
        assert_eq!(arrange(&chain, 0).bytes, 1024 + 1000);
        let same: Vec<_> = (0..100_000).map(|i| need(4, i % 7, 9)).collect();
        assert_eq!(arrange(&same, 0).bytes, 100_000 * BINDING_ALIGNMENT - BINDING_ALIGNMENT + 4);
    }

    #[test]
    fn gaps_are_filled_and_nothing_takes_nothing() {
        let found = arrange(&[need(512, 0, 9), need(4096, 0, 0), need(256, 1, 1), need(1024, 1, 9)], 0);
        assert_eq!(found.bytes, 4096 + 512);
        assert_eq!(arrange(&[], 0), Arrangement::default());
        assert_eq!(arrange(&[], 256).bytes, 256);
    }
}
