//! With which memory a recording was executed, and with which the one in its place will be.

use smallvec::SmallVec;

use crate::{allocator::Place, lower::MemoryRange};

/// Executions that are remembered.
const MOST: usize = 3;

/// Where a slot was bound to, which is not kept: place, first byte and bytes.
type Bound = Option<(Place, u64, u64)>;

/// What slots are bound to.
pub(crate) type Slots = SmallVec<[Option<MemoryRange>; 8]>;

/// The last executions of a recording and of those before it, the last first.
#[derive(Clone, Default)]
pub(crate) struct History {
    queue: usize,
    executed: SmallVec<[SmallVec<[Bound; 8]>; MOST]>,
}

impl History {
    /// Notes an execution.
    pub fn note(&mut self, queue: usize, slots: &[Option<MemoryRange>]) {
        let one = |range: &MemoryRange| (range.allocation.place(), range.offset, range.length);
        self.queue = queue;
        self.executed.truncate(MOST - 1);
        self.executed.insert(0, slots.iter().map(|range| range.as_ref().map(one)).collect());
    }

    /// The queue and the slots of the next execution, whose commands reach to these bytes of slots; `None` where nothing is known, or where
    /// memory is gone or too small for that. Each slot is looked at for itself.
    pub fn next(&self, reach: impl Fn(usize) -> Option<u64>) -> Option<(usize, Slots)> {
        let count = self.executed.first()?.len();
        if self.executed.iter().any(|slots| slots.len() != count) {
            return None;
        }
        let slot = |slot: usize| -> Option<Option<MemoryRange>> {
            let places: SmallVec<[&Bound; MOST]> = self.executed.iter().map(|slots| &slots[slot]).collect();
            let Some((place, offset, length)) = places[turn(&places, is_same)] else { return Some(None) };
            let allocation = place.unowned()?;
            // Other sizes reach to other ends.
            let length = reach(slot).unwrap_or(0).max(*length);
            let fits = offset.checked_add(length).is_some_and(|end| end <= allocation.size);
            fits.then_some(Some(MemoryRange { allocation, offset: *offset, length }))
        };
        Some((self.queue, (0..count).map(slot).collect::<Option<_>>()?))
    }
}

/// Whether both are the same memory, however much of it.
fn is_same(one: &&Bound, other: &&Bound) -> bool {
    match (one, other) {
        (Some((a, offset, _)), Some((b, other, _))) => a.is_same(b) && offset == other,
        (None, None) => true,
        _ => false,
    }
}

/// Which of some values comes next, of which the last stands first: the last again, or the one before where two take turns.
fn turn<T>(values: &[T], is_same: impl Fn(&T, &T) -> bool) -> usize {
    match values {
        [last, before] if !is_same(last, before) => 1,
        [last, before, first, ..] if !is_same(last, before) && is_same(last, first) => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_turns_goes_on_and_what_changed_stays() {
        let turn = |values: &[u32]| turn(values, |a, b| a == b);
        assert_eq!([turn(&[1]), turn(&[1, 1]), turn(&[1, 1, 1])], [0, 0, 0]);
        assert_eq!([turn(&[1, 2]), turn(&[1, 2, 1])], [1, 1], "two that take turns");
        assert_eq!([turn(&[2, 1, 1]), turn(&[2, 2, 1]), turn(&[3, 2, 1])], [0, 0, 0], "a change");
    }
}
