//! Work that is held back: recordings in parts, and batches that wait until the device has less to do. What nobody wants any
//! more when its turn comes is left out.

use std::sync::Arc;

use halite_hal::{Fence, Result};

use super::{After, Batch, Keeper, Queue, RecorderSource, State, pace::Load};
use crate::{allocator::Allocation, command_buffer::Lowered, device::Core, semaphore::QueuePoint};

impl Queue {
    /// Places an execution of a recorded command buffer, each of its parts in a batch of its own where it has several.
    /// `used` is memory that it needs besides its own.
    pub fn place_recorded(
        &self,
        core: &Arc<Core>,
        waits: &[QueuePoint],
        signal: &Fence,
        lowered: &Arc<Lowered>,
        used: Vec<Arc<Allocation>>,
    ) -> Result<()> {
        let last = lowered.cut().len() - 1;
        // Each part keeps all of it: a later part may not come to be placed. They share one list: a recording of thousands of commands
        // has hundreds of parts.
        let used: Arc<[Arc<Allocation>]> = used.into();
        for part in 0..last {
            let waits = if part == 0 { waits } else { &[] };
            let record = |batch: &mut Batch, _: &mut RecorderSource<'_>| {
                batch.append(core, lowered, part)?;
                batch.keepers.push(Keeper::Allocations(used.clone()));
                Ok(())
            };
            self.place_part(core, waits, &Fence::default(), Some(signal), record)?;
        }
        let (waits, part_of) = if last == 0 { (waits, None) } else { (&[][..], Some(signal)) };
        let record = |batch: &mut Batch, _: &mut RecorderSource<'_>| {
            batch.append(core, lowered, last)?;
            batch.keepers.push(Keeper::Allocations(used));
            Ok(())
        };
        self.place_part(core, waits, signal, part_of, record).map(drop)
    }

    /// Whether a batch should wait, because the device has enough to do.
    pub(super) fn is_busy(&self, state: &State, batch: &Batch) -> bool {
        let sum = |batches: &mut dyn Iterator<Item = &Batch>| {
            batches.map(Batch::load).fold(Load::default(), Load::and)
        };
        if !self.pace.is_enough(sum(&mut state.in_flight.iter()), batch.load()) {
            return false;
        }
        // Some of it may be done, and nobody has looked.
        let reached = self.timeline.value().unwrap_or(0);
        let mut left = state.in_flight.iter().filter(|b| b.value > reached).peekable();
        left.peek().is_some() && self.pace.is_enough(sum(&mut left), batch.load())
    }

    /// Submits held batches as far as the device should have them; with `up_to`, at least those up to this value.
    pub(super) fn submit_held(&self, state: &mut State, up_to: Option<u64>, after: &mut After) {
        while let Some(first) = state.held.front() {
            let forced = up_to.is_some_and(|value| first.value <= value);
            let abandoned = first.abandoned(&self.ctx);
            if !forced && abandoned.is_none() && self.is_busy(state, first) {
                return;
            }
            let Some(mut batch) = state.held.pop_front() else { return };
            if let Some(reason) = abandoned {
                batch.leave_out(reason);
            }
            self.send(state, batch, after);
        }
    }

    /// As `flush_to`, and nothing up to `value` stays held: submissions of other queues may wait for it then.
    pub fn submit_to(&self, core: &Arc<Core>, value: u64) {
        self.flush_to(core, value);
        let mut after = After::default();
        self.submit_held(&mut self.state.lock(), Some(value), &mut after);
        after.run(self, core);
    }
}
