//! Queues: batching, submission, the timeline, and retirement of what finished.
//!
//! Operations are accepted in program order into one open batch. A batch is one `vkQueueSubmit` that raises the
//! queue's only timeline by one; HAL semaphores remember the value that stands for them.

mod batch;
mod held;
mod pace;
mod recorder;
mod retire;
mod seen;
mod timeline;
mod unfinished;
mod watch;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

pub(crate) use batch::{Batch, Keeper, RecorderSource};
use halite_facts::DeviceType;
use halite_hal::{Fence, QueueOp, Result, Status};
pub(crate) use pace::{Cut, Pace, Weight};
use parking_lot::Mutex;
pub(crate) use recorder::Recorder;
use timeline::Timeline;
pub(crate) use unfinished::Unfinished;

use crate::{
    allocator::Progress,
    context::{DeviceContext, QueueHandle},
    device::Core,
    semaphore::QueuePoint,
};

/// Operations after which a batch is submitted even if nobody waits.
const BATCH_OPERATIONS: u32 = 64;
/// Dispatches after which a batch is submitted even if nobody waits: keeps the device busy early, and submissions
/// short enough for the watchdogs of display drivers.
const BATCH_DISPATCHES: u32 = 512;
/// Longest single wait in the driver; failures found by other threads are noticed in between.
pub(crate) const WAIT_SLICE: Duration = Duration::from_millis(200);
/// Kernels that the error of a submission names.
const NAMED_IN_ERRORS: usize = 6;
/// Failed submissions that are remembered.
const FAILURES: usize = 16;
/// Batches in flight from which on a submission also looks for finished ones.
const RETIRE_AT: usize = 4;
/// How long to look at the counter before sleeping on it: waking a thread costs a good part of what a small model
/// runs (0.2 ms of the 0.9 ms of ResNet-50 on an H200). Only where the device is not the processor that would be looking.
const SPIN: Duration = Duration::from_millis(2);

/// An operation that could not be placed yet, because something it waits for has not been promised.
pub(crate) struct Deferred {
    /// Index of its queue.
    pub queue: usize,
    /// What it waits for.
    pub wait: Fence,
    /// What it signals.
    pub signal: Fence,
    /// What it does.
    pub work: Work,
}

/// What an operation does.
#[expect(
    clippy::large_enum_variant,
    reason = "boxing the common case would cost every operation an allocation"
)]
pub(crate) enum Work {
    /// A HAL operation.
    Operation(QueueOp),
    /// Makes memory available that is free from this point on.
    Alloca(Option<QueuePoint>),
}

/// One queue of a device.
pub(crate) struct Queue {
    ctx: Arc<DeviceContext>,
    progress: Arc<Progress>,
    pace: Arc<Pace>,
    index: usize,
    family: u32,
    timeline: Arc<Timeline>,
    spin: bool,
    state: Mutex<State>,
    watcher: watch::Watcher,
}

struct State {
    /// The batch that accepts operations.
    open: Batch,
    in_flight: VecDeque<Batch>,
    /// Closed batches that wait until the device has less to do.
    held: VecDeque<Batch>,
    /// What finished and was not learnt from yet.
    finished: seen::Finished,
    idle: Vec<Recorder>,
    /// The last batches that could not be submitted, and why.
    failed: VecDeque<(u64, Status)>,
    /// Why nothing is accepted any more.
    dead: Option<Status>,
}

/// What has to happen once the queue is unlocked: all of it may come back to the queue.
#[derive(Default)]
struct After {
    deferred: Vec<Deferred>,
    failed: Vec<(Batch, Status)>,
    watch: Option<u64>,
    /// Batches are held up to this one: somebody has to submit them later.
    held: Option<u64>,
    retire: bool,
}

impl Queue {
    /// The queue with this index in the plan.
    pub fn new(
        ctx: &Arc<DeviceContext>,
        progress: Arc<Progress>,
        pace: &Arc<Pace>,
        index: usize,
        queue: &QueueHandle,
    ) -> Result<Self> {
        let state = State {
            open: Batch::new(1),
            in_flight: VecDeque::new(),
            held: VecDeque::new(),
            finished: seen::Finished::default(),
            idle: Vec::new(),
            failed: VecDeque::new(),
            dead: None,
        };
        Ok(Queue {
            ctx: ctx.clone(),
            progress,
            pace: pace.clone(),
            index,
            family: queue.family,
            timeline: Timeline::create(ctx, queue.queue, index)?,
            spin: ctx.facts.device_type != DeviceType::Cpu,
            state: Mutex::new(state),
            watcher: watch::Watcher::default(),
        })
    }

    /// Queue family.
    pub fn family(&self) -> u32 {
        self.family
    }

    /// Whether the timeline was seen at `value` or above.
    pub fn is_completed(&self, value: u64) -> bool {
        self.progress.is_completed(QueuePoint { queue: self.index, value })
    }

    /// Value that the timeline was last seen at.
    pub fn completed(&self) -> u64 {
        self.progress.completed(self.index)
    }

    /// Places an operation at the end of the open batch. `waits` are points that it comes after: of other queues, submitted
    /// already, or of this one, whose order its place keeps. Nothing is placed when one of the latter could not be submitted,
    /// or when `record` fails, which must have recorded nothing then.
    pub fn place(
        &self,
        core: &Arc<Core>,
        waits: &[QueuePoint],
        signal: &Fence,
        record: impl FnOnce(&mut Batch, &mut RecorderSource<'_>) -> Result<()>,
    ) -> Result<QueuePoint> {
        self.place_part(core, waits, signal, None, record)
    }

    /// As `place`. What is a part of the work for the fence `part_of` has a batch to itself.
    fn place_part(
        &self,
        core: &Arc<Core>,
        waits: &[QueuePoint],
        signal: &Fence,
        part_of: Option<&Fence>,
        record: impl FnOnce(&mut Batch, &mut RecorderSource<'_>) -> Result<()>,
    ) -> Result<QueuePoint> {
        let mut after = After::default();
        let mut state = self.state.lock();
        if let Some(status) = &state.dead {
            return Err(status.clone());
        }
        let others = || waits.iter().filter(|p| p.queue != self.index);
        if (others().next().is_some() || part_of.is_some()) && state.open.has_work() {
            // A wait holds back the whole submission; what came before must not wait with it.
            self.submit_open(&mut state, &mut after);
        }
        let own = |value: u64| waits.iter().any(|p| p.queue == self.index && p.value == value);
        let failed = state.failed.iter().find(|(value, _)| own(*value)).map(|(_, status)| status.clone());
        if let Some(status) = failed {
            drop(state);
            after.run(self, core);
            return Err(retire::lost_or(core, status));
        }
        let State { open, idle, .. } = &mut *state;
        let placed = record(open, &mut RecorderSource { idle, family: self.family });
        let point = QueuePoint { queue: self.index, value: state.open.value };
        if placed.is_ok() {
            state.open.operations += 1;
            state.open.part_of = part_of.filter(|fence| !fence.is_empty()).cloned();
            state.open.unsignalled |= signal.is_empty() && state.open.part_of.is_none();
            state.open.waits.extend(others().map(|p| (core.queues[p.queue].timeline.clone(), p.value)));
            self.promise(core, &mut state.open, signal, &mut after);
            let full = state.open.operations >= BATCH_OPERATIONS || state.open.dispatches >= BATCH_DISPATCHES;
            let full = full || part_of.is_some() || self.pace.is_full(state.open.load());
            if full || after.watch.is_some() {
                self.submit_open(&mut state, &mut after);
            }
        }
        drop(state);
        after.run(self, core);
        placed.map(|()| point)
    }

    /// Signals a fence when `value` is reached: at once when it is. Fails it when that cannot be any more.
    pub fn signal_at(&self, core: &Arc<Core>, value: u64, signal: &Fence) {
        let mut after = After::default();
        let mut state = self.state.lock();
        let State { open, in_flight, held, .. } = &mut *state;
        let batch = match open.value == value {
            true => Some(open),
            false => in_flight.iter_mut().chain(held).find(|b| b.value == value),
        };
        let placed = batch.is_some();
        if let Some(batch) = batch {
            self.promise(core, batch, signal, &mut after);
        }
        if after.watch.is_some_and(|v| v == state.open.value) {
            self.submit_open(&mut state, &mut after);
        }
        drop(state);
        after.run(self, core);
        if !placed {
            match self.check_submitted(core, value) {
                Ok(()) => core.reach(signal),
                Err(status) => signal.fail(&core.check_lost().err().unwrap_or(status)),
            }
        }
    }

    fn promise(&self, core: &Core, batch: &mut Batch, signal: &Fence, after: &mut After) {
        let point = QueuePoint { queue: self.index, value: batch.value };
        for p in signal.points() {
            batch.signals.push(p.clone());
            match core.own_semaphore(p.semaphore.as_ref()) {
                Some(own) => {
                    let promise = own.promise(p.value, point);
                    after.deferred.extend(promise.deferred);
                    if promise.watched {
                        after.watch = Some(batch.value);
                    }
                }
                // Nobody who waits for a foreign semaphore can ask this queue.
                None => after.watch = Some(batch.value),
            }
        }
    }

    /// Submits the open batch if it is `value` or earlier.
    pub fn flush_to(&self, core: &Arc<Core>, value: u64) {
        let mut after = After::default();
        let mut state = self.state.lock();
        if state.open.value <= value && (state.open.has_work() || !state.open.signals.is_empty()) {
            self.submit_open(&mut state, &mut after);
        }
        drop(state);
        after.run(self, core);
    }

    /// Submits the open batch.
    pub fn flush(&self, core: &Arc<Core>) {
        self.flush_to(core, u64::MAX);
    }

    fn submit_open(&self, state: &mut State, after: &mut After) {
        after.retire |= state.in_flight.len() >= RETIRE_AT;
        let next = Batch::new(state.open.value + 1);
        let batch = std::mem::replace(&mut state.open, next);
        if state.held.is_empty() && !self.is_busy(state, &batch) {
            return self.send(state, batch, after);
        }
        after.held = Some(batch.value);
        state.held.push_back(batch);
    }

    fn send(&self, state: &mut State, mut batch: Batch, after: &mut After) {
        match self.submit(&mut batch) {
            Ok(()) => {
                batch.submitted = Some(Instant::now());
                batch.alone = state.in_flight.is_empty();
                state.in_flight.push_back(batch);
            }
            Err(status) => {
                state.failed.truncate(FAILURES - 1);
                state.failed.push_front((batch.value, status.clone()));
                after.failed.push((batch, status));
            }
        }
    }

    fn submit(&self, batch: &mut Batch) -> Result<()> {
        batch.end_recording(&self.ctx)?;
        self.timeline
            .submit(batch.commands(), &batch.waits, batch.value)
            .map_err(|(call, e)| self.ctx.error(call, e, &batch.describe(self.index, NAMED_IN_ERRORS)))
    }
}
