//! Where in one piece of memory things go that are needed at different times.

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

/// Bytes of memory for so many bytes: whole words, and at least one, since nothing cannot be bound.
pub(crate) fn whole(bytes: u64) -> u64 {
    storage_bytes(bytes).max(4)
}

/// The same of bytes that may be open.
pub(crate) fn whole_size(bytes: Size) -> Size {
    bytes.next_multiple_of(4).max(4)
}

/// Puts things whose times do not overlap into the same memory: the largest first, each where it leaves the smallest gap.
/// Offsets are aligned and begin at `reserved`. The time grows with the square of how many there are.
///
/// # Errors
/// The work was ended.
pub(crate) fn arrange(needs: &[Need], reserved: u64, watch: Watch<'_>) -> Result<Arrangement, CompileError> {
    let base = reserved.next_multiple_of(BINDING_ALIGNMENT);
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(needs[*i].bytes), needs[*i].from, *i));
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
            let found = arrange(&needs, 300);
            let sum: u64 = needs.iter().map(|n| n.bytes.next_multiple_of(BINDING_ALIGNMENT)).sum();
            assert!(found.bytes <= sum + 512);
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
    }

    #[test]
    fn gaps_are_filled_and_nothing_takes_nothing() {
        let found = arrange(&[need(512, 0, 9), need(4096, 0, 0), need(256, 1, 1), need(1024, 1, 9)], 0);
        assert_eq!(found.bytes, 4096 + 512);
        assert_eq!(arrange(&[], 0), Arrangement::default());
        assert_eq!(arrange(&[], 256).bytes, 256);
    }
}
