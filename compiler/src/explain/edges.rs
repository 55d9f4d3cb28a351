//! How a flow's operations hang together: which of them read what others wrote, and how much memory is taken while each runs.

use std::{collections::HashMap, ops::Range};

use crate::plan::flow::{Flow, Step, StorageClass, StorageId};

/// What is known of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StepEdges {
    /// Steps that wrote what it reads, in their order. Copies are looked through.
    pub reads: Vec<usize>,
    /// Bytes of values in between that are needed at this time.
    pub live_bytes: u64,
}

/// Those of all steps.
pub(super) fn of(flow: &Flow) -> Vec<StepEdges> {
    let live = live(flow);
    let mut writers = Writers { flow, last: HashMap::new() };
    let place = |(index, step): (usize, &Step)| {
        let reads = match step {
            Step::Compute { inputs, outputs, .. } => {
                let reads = writers.of(inputs);
                outputs.iter().for_each(|output| writers.wrote(*output, &[index]));
                reads
            }
            Step::Copy { from, to } => {
                let reads = writers.of(&[*from]);
                writers.wrote(*to, &reads);
                reads
            }
            Step::HostWrites(to) => {
                writers.wrote(*to, &[]);
                Vec::new()
            }
        };
        StepEdges { reads, live_bytes: live[index] }
    };
    flow.steps.iter().enumerate().map(place).collect()
}

/// Bytes of a storage, and the operations that wrote them.
type Written = (Range<u64>, Vec<usize>);

/// Who wrote which bytes last.
struct Writers<'a> {
    flow: &'a Flow,
    last: HashMap<StorageId, Vec<Written>>,
}

impl Writers<'_> {
    fn of(&self, storages: &[StorageId]) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for storage in storages {
            let (root, range) = (self.flow.root(*storage), self.flow.range(*storage));
            let written = self.last.get(&root).into_iter().flatten();
            let met = written.filter(|(bytes, _)| bytes.start < range.end && range.start < bytes.end);
            found.extend(met.flat_map(|(_, steps)| steps));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn wrote(&mut self, storage: StorageId, steps: &[usize]) {
        let (root, range) = (self.flow.root(storage), self.flow.range(storage));
        let written = self.last.entry(root).or_default();
        written.retain(|(bytes, _)| bytes.start < range.start || range.end < bytes.end);
        written.push((range, steps.to_vec()));
    }
}

/// Bytes of transient storages that are needed while each step runs: from the first step that touches one to the last, and all of a
/// loop's body where that touches one that lives on from run to run.
fn live(flow: &Flow) -> Vec<u64> {
    let mut spans: HashMap<StorageId, Range<usize>> = HashMap::new();
    for (index, step) in flow.steps.iter().enumerate() {
        let touched: Vec<StorageId> = match step {
            Step::Compute { inputs, outputs, .. } => inputs.iter().chain(outputs).copied().collect(),
            Step::Copy { from, to } => vec![*from, *to],
            Step::HostWrites(to) => vec![*to],
        };
        for root in touched.into_iter().map(|id| flow.root(id)) {
            let span = spans.entry(root).or_insert(index..index + 1);
            span.end = index + 1;
        }
    }
    // Growth and shrinkage at each step, summed up below: as many additions as storages.
    let mut changes = vec![0i128; flow.steps.len() + 1];
    for (root, span) in spans {
        let storage = &flow.storages[root.index()];
        if storage.class != StorageClass::Transient {
            continue;
        }
        let over = |body: &&Range<usize>| body.start < span.end && span.start < body.end;
        let outside = |body: &Range<usize>| span.start < body.start || body.end < span.end;
        let widened = flow.loops.iter().filter(over).filter(|body| outside(body));
        let (start, end) = widened
            .fold((span.start, span.end), |(start, end), body| (start.min(body.start), end.max(body.end)));
        changes[start] += i128::from(storage.bytes.value());
        changes[end] -= i128::from(storage.bytes.value());
    }
    let mut bytes = 0i128;
    let sum = |change: &i128| {
        bytes += change;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    changes[..flow.steps.len()].iter().map(sum).collect()
}
