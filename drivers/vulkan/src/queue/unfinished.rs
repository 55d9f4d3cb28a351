//! What a queue is busy with, for errors: which batches are unfinished, and which kernels are in them. Reads what
//! batches keep anyway, so that nothing is noted while all is well.

use std::fmt::Write as _;

use super::{Batch, Keeper, Queue};

/// Kernels of a batch that a message names; details name more.
const NAMED: usize = 6;
/// Kernels of a batch that a detail names.
const NAMED_IN_DETAIL: usize = 64;
/// Batches that are described.
const DESCRIBED: usize = 4;

/// What a queue has not finished.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// For a message: the oldest unfinished batch, and how many there are. Empty when everything has finished.
    pub summary: String,
    /// One entry per unfinished batch, the oldest first.
    pub batches: Vec<String>,
}

impl Queue {
    /// What the queue works on, for a message.
    pub fn busy_with(&self) -> String {
        let summary = self.unfinished().summary;
        if summary.is_empty() { "nothing is unfinished".to_owned() } else { summary }
    }

    /// What is submitted and unfinished, as far as the timeline still tells.
    pub fn unfinished(&self) -> Unfinished {
        let state = self.state.lock();
        // The timeline of a lost device may say anything.
        let reached = self.timeline.value().ok().filter(|v| *v < state.open.value);
        let batches =
            || state.in_flight.iter().chain(&state.held).filter(|b| reached.is_none_or(|r| b.value > r));
        let Some(oldest) = batches().next() else { return Unfinished::default() };
        let mut summary = format!("unfinished is {}", oldest.describe(self.index, NAMED));
        let more = batches().count() - 1;
        if more > 0 {
            _ = write!(summary, " and {more} later");
        }
        let batches = batches().take(DESCRIBED).map(|b| b.describe(self.index, NAMED_IN_DETAIL)).collect();
        Unfinished { summary, batches }
    }
}

impl Batch {
    /// `batch 3 of queue 0 (2 operations, 5 dispatches: 'a' 3 times, 'b' in command buffer 7)`.
    pub(super) fn describe(&self, queue: usize, most: usize) -> String {
        let operations = counted(self.operations, "operation", "operations");
        let mut text = format!("batch {} of queue {queue} ({operations}", self.value);
        if self.dispatches > 0 {
            _ = write!(text, ", {}: ", counted(self.dispatches, "dispatch", "dispatches"));
            describe_dispatches(&dispatched(&self.keepers), most, &mut text);
        }
        text.push(')');
        text
    }
}

fn counted(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Name of a kernel, and the command buffer that dispatches it.
type Dispatched<'a> = (&'a str, Option<u64>);

fn dispatched(keepers: &[Keeper]) -> Vec<Dispatched<'_>> {
    let mut all = Vec::new();
    for keeper in keepers {
        match keeper {
            Keeper::Kernel(kernel) => all.push((kernel.name.as_str(), None)),
            Keeper::Lowered(lowered) => {
                all.extend(lowered.kernels().map(|kernel| (kernel.name.as_str(), Some(lowered.id()))));
            }
            Keeper::Allocation(_) | Keeper::Allocations(_) => {}
        }
    }
    all
}

/// Runs of one kernel are told as one. Of long lists the ends are told.
fn describe_dispatches(all: &[Dispatched<'_>], most: usize, text: &mut String) {
    let runs: Vec<_> = all.chunk_by(|a, b| a == b).collect();
    let hidden = runs.len().saturating_sub(most);
    let head = if hidden > 0 { most / 2 } else { runs.len() };
    let mut last_buffer = None;
    for (index, run) in runs.iter().enumerate() {
        if hidden > 0 && index == head {
            _ = write!(text, ", … {hidden} others …");
        }
        if index >= head && index < head + hidden {
            continue;
        }
        let (name, buffer) = run[0];
        let comma = if index == 0 { "" } else { ", " };
        _ = write!(text, "{comma}'{name}'");
        if run.len() > 1 {
            _ = write!(text, " {} times", run.len());
        }
        if let Some(id) = buffer.filter(|_| buffer != last_buffer) {
            _ = write!(text, " in command buffer {id}");
        }
        last_buffer = buffer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(all: &[Dispatched<'_>], most: usize) -> String {
        let mut text = String::new();
        describe_dispatches(all, most, &mut text);
        text
    }

    #[test]
    fn runs_and_long_lists_are_shortened() {
        assert_eq!(told(&[("a", None), ("a", None), ("b", None)], 6), "'a' 2 times, 'b'");
        let buffered = [("a", Some(7)), ("b", Some(7)), ("c", Some(8))];
        assert_eq!(told(&buffered, 6), "'a' in command buffer 7, 'b', 'c' in command buffer 8");
        let names = ["a", "b", "c", "d", "e"].map(|n| (n, None));
        assert_eq!(told(&names, 2), "'a', … 3 others …, 'e'");
        assert_eq!(told(&names, 5), "'a', 'b', 'c', 'd', 'e'");
    }
}
