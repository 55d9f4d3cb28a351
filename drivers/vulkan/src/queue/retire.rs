//! What happens after submission: waiting for the timeline, retiring finished batches, and device loss.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use halite_hal::{Code, Deadline, Fence, Result, Status, status};

use super::{After, Batch, Queue, Recorder, SPIN, State, WAIT_SLICE};
use crate::{device::Core, semaphore::QueuePoint};

/// Recorders that are kept for batches to come.
const IDLE_RECORDERS: usize = 8;
/// How long a lost device may take to let go of its work.
const ABANDON_LIMIT: Duration = Duration::from_secs(10);

impl Queue {
    /// Makes progress towards `value`: submits what is needed, waits a while, retires what finished. Returns when
    /// the value is reached or when the caller should look again; DEADLINE_EXCEEDED when time ran out.
    pub fn wait(&self, core: &Arc<Core>, value: u64, deadline: Deadline) -> Result<()> {
        let spin = if self.spin { SPIN } else { Duration::ZERO };
        self.wait_with(core, value, deadline, spin)
    }

    /// As `wait`, without looking at the counter first: for threads that nobody waits for.
    pub(super) fn wait_asleep(&self, core: &Arc<Core>, value: u64) -> Result<()> {
        self.wait_with(core, value, Deadline::Never, Duration::ZERO)
    }

    fn wait_with(&self, core: &Arc<Core>, value: u64, deadline: Deadline, spin: Duration) -> Result<()> {
        self.flush_to(core, value);
        core.check_lost()?;
        if self.is_completed(value) {
            return Ok(());
        }
        let left = deadline.remaining();
        if self.spin_for(value, left.unwrap_or(spin).min(spin)).map_err(|e| lost_or(core, e))? {
            return self.retire_seen(core, true);
        }
        let slice = left.unwrap_or(WAIT_SLICE).min(WAIT_SLICE);
        let in_time = self.timeline.wait(value, slice).map_err(|e| lost_or(core, e))?;
        self.retire_seen(core, in_time)?;
        let over = || deadline.remaining().is_some_and(|d| d.is_zero());
        if !in_time && !self.is_completed(value) && over() {
            return Err(self.deadline_passed(value));
        }
        Ok(())
    }

    fn deadline_passed(&self, value: u64) -> Status {
        let summary = self.busy_with();
        let (name, index) = (&self.ctx.info.name, self.index);
        status!(
            DeadlineExceeded,
            "queue {index} of device '{name}' has not come to batch {value} in time, {summary}"
        )
    }

    /// Looks at the counter for a short time; whether it got there.
    fn spin_for(&self, value: u64, limit: Duration) -> Result<bool> {
        if limit.is_zero() {
            return Ok(false);
        }
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if self.timeline.value()? >= value {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        Ok(false)
    }

    /// Submits what leads to `value` and retires what has finished, without waiting.
    pub fn poll(&self, core: &Arc<Core>, value: u64) -> Result<()> {
        self.flush_to(core, value);
        core.check_lost()?;
        self.retire(core)
    }

    /// Retires finished batches: reaches their signals, recycles their memory.
    pub fn retire(&self, core: &Arc<Core>) -> Result<()> {
        self.retire_seen(core, false)
    }

    /// As `retire`; whether the last that finished did so just now.
    fn retire_seen(&self, core: &Arc<Core>, seen: bool) -> Result<()> {
        let mut after = After::default();
        let value = self.timeline.value().map_err(|e| lost_or(core, e))?;
        let done: Vec<Batch> = {
            let mut state = self.state.lock();
            if value >= state.open.value {
                drop(state);
                return Err(core.lose(status!(
                    DataLoss,
                    "device lost; the timeline of queue {} is at {value}, beyond everything submitted",
                    self.index
                )));
            }
            self.progress.advance(self.index, value);
            let count = state.in_flight.iter().take_while(|b| b.value <= value).count();
            let done: Vec<Batch> = state.in_flight.drain(..count).collect();
            self.learn(&mut state, &done, seen);
            self.submit_held(&mut state, None, &mut after);
            done
        };
        after.run(self, core);
        for batch in done {
            self.finish(core, batch);
        }
        Ok(())
    }

    fn finish(&self, core: &Core, mut batch: Batch) {
        let recorder = batch.take_recorder();
        for measured in std::mem::take(&mut batch.measured) {
            measured.read(self.index as u32);
        }
        // Memory first: who waits for the signal may want to allocate again.
        batch.keepers.clear();
        for point in std::mem::take(&mut batch.signals) {
            match &batch.left_out {
                Some(reason) => point.semaphore.fail(reason.clone()),
                None => core.reach_point(&point),
            }
        }
        if let Some(recorder) = recorder {
            self.keep(recorder);
        }
    }

    /// Keeps a recorder for batches to come, without what was recorded; not more of them than are needed at a time mostly.
    fn keep(&self, mut recorder: Recorder) {
        let is_wanted = || self.state.lock().idle.len() < IDLE_RECORDERS;
        // Whatever is wrong with the device is told by what it is asked for next. Drivers take their time: not under the lock.
        if is_wanted() && recorder.reset().is_ok() && is_wanted() {
            self.state.lock().idle.push(recorder);
        }
    }

    /// Gives back what is kept for batches to come, and has Vulkan do so.
    pub fn trim(&self, core: &Arc<Core>) {
        let idle = std::mem::take(&mut self.state.lock().idle);
        // Not while the queue is locked: drivers take their time to destroy them.
        drop(idle);
        // Mesa's drivers for processors keep pipelines that were used until something is submitted. A device that takes nothing any
        // more has other troubles, which are told by what is asked of it next.
        if self.place(core, &[], &Fence::default(), |_, _| Ok(())).is_ok() {
            self.flush(core);
        }
    }

    /// Waits until everything accepted so far has finished, or until `deadline`.
    pub fn drain(&self, core: &Arc<Core>, deadline: Deadline) -> Result<()> {
        self.flush(core);
        let last = self.state.lock().open.value - 1;
        while !self.is_completed(last) {
            if self.next_in_flight().is_none_or(|next| next > last) {
                // What is missing failed to be submitted; its fences say so.
                return core.check_lost();
            }
            self.wait(core, last, deadline)?;
        }
        self.retire(core)
    }

    /// Value of the oldest batch that has not finished.
    pub(super) fn next_in_flight(&self) -> Option<u64> {
        let state = self.state.lock();
        state.in_flight.front().or(state.held.front()).map(|b| b.value)
    }

    /// The failure when a value can never be reached, because its batch could not be submitted. No queue may be locked.
    pub fn check_submitted(&self, core: &Core, value: u64) -> Result<()> {
        // Whoever submitted it may not have come to losing the device yet; one failure reports that.
        self.find_submitted(value).map_err(|e| lost_or(core, e))
    }

    fn find_submitted(&self, value: u64) -> Result<()> {
        let state = self.state.lock();
        let known =
            state.open.value <= value || state.in_flight.iter().chain(&state.held).any(|b| b.value == value);
        if known || self.is_completed(value) {
            return Ok(());
        }
        if let Some((_, status)) = state.failed.iter().find(|(failed, _)| *failed == value) {
            return Err(status.clone());
        }
        if let Some(status) = &state.dead {
            return Err(status.clone());
        }
        Err(status!(Aborted, "work on queue {} could not be submitted; its fences say why", self.index))
    }

    /// The point, or the last one before it whose batch did not fail to be submitted.
    pub fn last_submitted(&self, mut point: QueuePoint) -> QueuePoint {
        let state = self.state.lock();
        while state.failed.iter().any(|(value, _)| *value == point.value) {
            point.value -= 1;
        }
        point
    }

    /// Fails everything accepted, and accepts nothing more, after the device was lost.
    pub fn abandon(&self, status: &Status) {
        let batches: Vec<Batch> = {
            let mut state = self.state.lock();
            state.dead = Some(status.clone());
            let next = Batch::new(state.open.value + 1);
            let open = std::mem::replace(&mut state.open, next);
            let State { in_flight, held, .. } = &mut *state;
            in_flight.drain(..).chain(held.drain(..)).chain([open]).collect()
        };
        for point in batches.iter().flat_map(|b| &b.signals) {
            point.semaphore.fail(status.clone());
        }
        let limit = self.ctx.options.stall_limit.map_or(ABANDON_LIMIT, |limit| limit.min(ABANDON_LIMIT));
        if self.idle_within(limit) {
            return;
        }
        let (name, index) = (&self.ctx.info.name, self.index);
        log::error!("device '{name}': queue {index} does not let go of lost work; its memory is leaked");
        std::mem::forget(batches);
    }

    /// Waits until Vulkan lets go of what was submitted: on a lost device at once, if the driver keeps to the
    /// specification. Nothing may be submitted meanwhile.
    fn idle_within(&self, limit: Duration) -> bool {
        let timeline = self.timeline.clone();
        timeline.close();
        let (done, idle) = std::sync::mpsc::channel();
        let wait = move || {
            timeline.wait_idle();
            // Not the last holder of the context: a device that is destroyed here would outlive its owner.
            drop(timeline);
            // Whoever waits may have given up.
            _ = done.send(());
        };
        match std::thread::Builder::new().name("halite-vk-abandon".to_owned()).spawn(wait) {
            Ok(_) => idle.recv_timeout(limit).is_ok(),
            Err(_) => false,
        }
    }

    /// Makes a thread reach the signals of `value` when the device gets there, without anybody waiting.
    pub fn watch(&self, core: &Arc<Core>, value: u64) {
        self.flush_to(core, value);
        self.watcher.watch(core, self.index, value);
    }

    /// Ends the watching thread. Nothing is watched afterwards.
    pub fn stop_watching(&self) {
        self.watcher.stop();
    }
}

/// A failure of a wait: that of the device when it is lost. Any other, such as memory that ran out, passes.
pub(super) fn lost_or(core: &Core, status: Status) -> Status {
    if status.code() == Code::DataLoss { core.lose(status) } else { status }
}

impl After {
    /// Does what had to wait until the queue was unlocked.
    pub(super) fn run(self, queue: &Queue, core: &Arc<Core>) {
        for (batch, status) in self.failed {
            let status = lost_or(core, status);
            // Those who wait for the recording that this was a part of wait for the last part, which knows nothing of it.
            let whole = batch.part_of.iter().flat_map(Fence::points);
            batch.signals.iter().chain(whole).for_each(|p| p.semaphore.fail(status.clone()));
        }
        if let Some(value) = self.watch {
            queue.watcher.watch(core, queue.index, value);
        }
        if let Some(value) = self.held {
            queue.watcher.watch(core, queue.index, value);
        }
        core.place_deferred(self.deferred);
        if self.retire {
            // A failure is kept by the core and reported by whoever waits.
            _ = queue.retire(core);
        }
    }
}
