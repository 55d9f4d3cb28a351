//! The order of steps: what does not depend on each other comes together, so that few barriers are needed and dispatches
//! overlap.

use std::{collections::BTreeMap, ops::Range};

use super::{
    flow::{Flow, StorageId},
    lives::Lives,
    memory::{Need, arrange},
};
use crate::{CompileError, control::Watch, graph::ById};

/// Memory that the order may cost, beside a quarter of what it was.
const SLACK: u64 = 1 << 20;

/// Sorts the steps of each segment by how many others have to come before, and numbers these levels. Keeps the order where
/// the other would take much more memory; each step is a level of its own then.
///
/// # Errors
/// The work was ended.
pub(crate) fn by_level(flow: &mut Flow, watch: Watch<'_>) -> Result<(), CompileError> {
    let own: Vec<usize> = (0..flow.steps.len()).collect();
    let levels = levels(flow);
    let before = bytes(flow, &own, watch)?;
    let kept = flow.steps.clone();
    sort(flow, &levels);
    let mut sorted = levels;
    sorted.sort_unstable();
    if bytes(flow, &sorted, watch)? > before.saturating_add(before / 4).saturating_add(SLACK) {
        flow.steps = kept;
        flow.levels = own;
    } else {
        flow.levels = sorted;
    }
    Ok(())
}

/// The level of each step: behind everything that it has to wait for. Levels grow from segment to segment, and what the host
/// writes between them has its own.
fn levels(flow: &Flow) -> Vec<usize> {
    let mut levels = Vec::with_capacity(flow.steps.len());
    let mut next = 0;
    let mut segments = flow.segments.iter().peekable();
    while levels.len() < flow.steps.len() {
        let first = levels.len();
        let end = match segments.peek() {
            Some(segment) if segment.start == first => segments.next().map_or(first + 1, |s| s.end),
            _ => first + 1,
        };
        let base = next;
        let mut ready = Ready::default();
        for step in &flow.steps[first..end] {
            let reads = step.reads().iter().map(|id| ready.of(flow, *id, base).read);
            let writes = step.writes().iter().map(|id| ready.of(flow, *id, base).write);
            let level = reads.chain(writes).max().unwrap_or(base);
            step.reads()
                .iter()
                .for_each(|id| ready.after(flow, *id, Levels { read: base, write: level + 1 }));
            let written = Levels { read: level + 1, write: level + 1 };
            step.writes().iter().for_each(|id| ready.after(flow, *id, written));
            levels.push(level);
            next = next.max(level + 1);
        }
    }
    levels
}

/// The levels from which on something can be read, and be written.
#[derive(Clone, Copy)]
struct Levels {
    read: usize,
    write: usize,
}

impl Levels {
    fn most(self, other: Levels) -> Levels {
        Levels { read: self.read.max(other.read), write: self.write.max(other.write) }
    }
}

/// From when on storages are ready, for each that is no part of another.
#[derive(Default)]
struct Ready(ById<StorageId, Parts>);

/// From when on a storage is ready, and its parts. There may be tens of thousands of parts, of which most steps touch one.
#[derive(Default)]
struct Parts {
    /// Where something was done with all of it.
    whole: Option<Levels>,
    /// The most of everything.
    most: Option<Levels>,
    /// By where parts begin and end.
    parts: BTreeMap<(u64, u64), Levels>,
    /// Bytes of the longest part.
    longest: u64,
}

/// What a storage that is no part has for its range.
const WHOLE: Range<u64> = 0..u64::MAX;

impl Ready {
    /// From when on a storage is ready; from `base` on if nothing was done with it.
    fn of(&self, flow: &Flow, id: StorageId, base: usize) -> Levels {
        let levels = Levels { read: base, write: base };
        let Some(all) = self.0.get(&flow.root(id)) else { return levels };
        let own = flow.range(id);
        if own == WHOLE {
            return all.most.map_or(levels, |most| levels.most(most));
        }
        let levels = all.whole.map_or(levels, |whole| levels.most(whole));
        // Parts that begin earlier than this are too short to reach it.
        let first = own.start.saturating_sub(all.longest);
        let near = all.parts.range((first, 0)..(own.end, 0));
        near.filter(|((_, end), _)| own.start < *end).fold(levels, |levels, (_, other)| levels.most(*other))
    }

    /// Notes what comes after something that was done with a storage.
    fn after(&mut self, flow: &Flow, id: StorageId, next: Levels) {
        let range = flow.range(id);
        let all = self.0.entry(flow.root(id)).or_default();
        let or_more = |before: Option<Levels>| Some(before.map_or(next, |before| before.most(next)));
        all.most = or_more(all.most);
        if range == WHOLE {
            all.whole = or_more(all.whole);
            return;
        }
        all.longest = all.longest.max(range.end.saturating_sub(range.start));
        let own = all.parts.entry((range.start, range.end)).or_insert(next);
        *own = own.most(next);
    }
}

fn sort(flow: &mut Flow, levels: &[usize]) {
    for segment in flow.segments.clone() {
        let mut order: Vec<usize> = segment.clone().collect();
        order.sort_by_key(|step| levels[*step]);
        let sorted: Vec<_> = order.into_iter().map(|step| flow.steps[step].clone()).collect();
        flow.steps[segment].clone_from_slice(&sorted);
    }
}

/// Bytes of memory between steps at these times.
fn bytes(flow: &Flow, times: &[usize], watch: Watch<'_>) -> Result<u64, CompileError> {
    let lives = Lives::of(flow, watch)?;
    let needs = lives.of.iter().zip(&flow.storages).filter_map(|(life, storage)| {
        let (first, last) = (*life)?;
        Some(Need { bytes: storage.bytes.value(), from: times[first], to: times[last] })
    });
    Ok(arrange(&needs.collect::<Vec<_>>(), 0, watch)?.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Control, Stage,
        plan::flow::{Step, Storage, StorageClass},
    };

    fn line(copies: &[(u32, u32)], storages: usize, bytes: u64) -> Flow {
        let copy = |(from, to): &(u32, u32)| Step::Copy { from: StorageId(*from), to: StorageId(*to) };
        let segments = std::iter::once(0..copies.len()).collect();
        let storages = vec![Storage { class: StorageClass::Transient, bytes: bytes.into() }; storages];
        Flow { steps: copies.iter().map(copy).collect(), segments, storages, ..Flow::default() }
    }

    fn order(flow: &Flow) -> Vec<(u32, u32)> {
        flow.steps.iter().map(|step| (step.reads()[0].0, step.writes()[0].0)).collect()
    }

    #[test]
    fn branches_are_interleaved() {
        // Two chains of one input, one after the other.
        let mut flow = line(&[(0, 1), (1, 2), (0, 3), (3, 4)], 5, 64);
        by_level(&mut flow, Control::new().at(Stage::Planning)).unwrap();
        assert_eq!(order(&flow), [(0, 1), (0, 3), (1, 2), (3, 4)]);
        assert_eq!(flow.levels, [0, 0, 1, 1]);
    }

    #[test]
    fn writes_wait_for_reads_and_writes() {
        let before = [(0, 1), (1, 2), (3, 1), (1, 4), (0, 4)];
        let mut flow = line(&before, 5, 64);
        by_level(&mut flow, Control::new().at(Stage::Planning)).unwrap();
        assert_eq!(order(&flow), before);
        assert_eq!(flow.levels, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn parts_wait_for_what_they_share_bytes_with() {
        // 1 to 4 are parts of 0: two halves, a quarter in the second, and what reaches into both halves.
        let mut flow = line(&[(5, 1), (5, 2), (3, 6), (5, 4), (1, 7), (0, 8), (5, 1)], 9, 64);
        for (part, at, bytes) in [(1, 0, 32), (2, 32, 32), (3, 48, 16), (4, 24, 16)] {
            flow.storages[part] =
                Storage { class: StorageClass::Part(StorageId(0), at), bytes: bytes.into() };
        }
        assert_eq!(levels(&flow), [0, 0, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn tens_of_thousands_of_parts_are_put_in_order_soon() {
        // One tensor, filled part by part, read part by part: compared with each other, these would be 1.6 billion pairs.
        let count = 40_000u32;
        let copies: Vec<(u32, u32)> =
            (0..count).map(|n| (0, n + 2)).chain((0..count).map(|n| (n + 2, 0))).collect();
        let mut flow = line(&copies, count as usize + 2, 4);
        flow.storages[1].bytes = (u64::from(count) * 4).into();
        for (n, part) in (0u64..).zip(&mut flow.storages[2..]) {
            part.class = StorageClass::Part(StorageId(1), n * 4);
        }
        let begin = std::time::Instant::now();
        let levels = levels(&flow);
        assert!(levels[..count as usize].iter().all(|level| *level == 0));
        // Without an index this takes minutes where tests are built.
        assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
    }

    #[test]
    fn memory_counts_more_than_barriers() {
        // Ten chains whose middles are large: side by side they would need ten times the memory.
        let mut copies = Vec::new();
        for chain in 0..10 {
            copies.extend([(0, 1 + chain * 2), (1 + chain * 2, 2 + chain * 2)]);
        }
        let mut flow = line(&copies, 21, 1 << 20);
        for end in (2..21).step_by(2) {
            flow.storages[end].class = StorageClass::Output(0);
        }
        by_level(&mut flow, Control::new().at(Stage::Planning)).unwrap();
        assert_eq!(order(&flow), copies);
        assert_eq!(flow.levels, (0..20).collect::<Vec<_>>());
    }
}
