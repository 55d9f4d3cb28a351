//! The driver's timeline semaphores: software counters that know which queue submission will raise them.
//!
//! Programs make a new fence for almost every operation. A Vulkan semaphore for each would cost a kernel object and
//! a submit of its own; here a signal costs a lock and a list entry, and one queue timeline serves them all.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock, Weak},
};

use halite_hal::{Code, Deadline, Result, Semaphore, SoftSemaphore, Status, Timepoint, status};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::{
    device::Core,
    queue::{Deferred, WAIT_SLICE},
};

/// A place in a queue's timeline: reached when the queue's Vulkan semaphore is at least `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuePoint {
    /// Index of the queue.
    pub queue: usize,
    /// Timeline value.
    pub value: u64,
}

/// What is known about a payload of a semaphore.
pub(crate) enum PointState {
    /// It is reached.
    Reached,
    /// Accepted queue work will reach it.
    Pending(QueuePoint),
    /// Nobody has promised it yet.
    Unknown,
}

/// A timeline semaphore of this driver.
pub(crate) struct VulkanSemaphore {
    core: Arc<Core>,
    soft: SoftSemaphore,
    state: Mutex<State>,
    /// Why nobody wants its work any more.
    abandoned: OnceLock<Status>,
    me: Weak<VulkanSemaphore>,
}

#[derive(Default)]
struct State {
    /// Payloads that accepted queue work will reach.
    pending: SmallVec<[(u64, QueuePoint); 2]>,
    /// Operations that can be placed once the payload is promised or reached.
    deferred: Vec<(u64, Deferred)>,
    /// Highest payload that somebody waits for without a queue to ask; 0 for none. Promises are submitted and
    /// watched as long as there is one.
    watched: u64,
}

/// What a queue has to do after it promised a payload.
pub(crate) struct Promise {
    /// Operations that can be placed now.
    pub deferred: Vec<Deferred>,
    /// Whether the submission has to be watched by a thread.
    pub watched: bool,
}

impl VulkanSemaphore {
    /// A semaphore with this initial payload.
    pub fn new(core: Arc<Core>, initial: u64) -> Arc<Self> {
        let soft = SoftSemaphore::new(core.ctx.id, initial);
        Arc::new_cyclic(|me| VulkanSemaphore {
            core,
            soft,
            state: Mutex::default(),
            abandoned: OnceLock::new(),
            me: me.clone(),
        })
    }

    /// A reference that does not keep it alive.
    pub fn weak(&self) -> Weak<Self> {
        self.me.clone()
    }

    /// Why nobody wants its work any more, if that is so.
    pub fn abandoned(&self) -> Option<&Status> {
        self.abandoned.get()
    }

    /// What is known about a payload; the failure when the semaphore failed.
    pub fn point(&self, value: u64) -> Result<PointState> {
        if self.soft.query()? >= value {
            return Ok(PointState::Reached);
        }
        Ok(self.look(&mut self.state.lock(), value))
    }

    /// Where a queue got to a value of a semaphore that was abandoned, the work may have been left out: whoever retires it says so.
    fn look(&self, state: &mut State, value: u64) -> PointState {
        let first = state.pending.iter().filter(|(v, _)| *v >= value).min_by_key(|(v, _)| *v);
        let counts = self.abandoned.get().is_none();
        match first {
            Some((_, p)) if counts && self.core.queues[p.queue].is_completed(p.value) => PointState::Reached,
            Some((_, p)) => PointState::Pending(*p),
            None => PointState::Unknown,
        }
    }

    /// Records that queue work will raise the payload to `value`. Called with the queue locked.
    pub fn promise(&self, value: u64, point: QueuePoint) -> Promise {
        let mut state = self.state.lock();
        let reached = self.soft.query().unwrap_or(u64::MAX);
        state.pending.retain(|(v, _)| *v > reached);
        state.pending.push((value, point));
        let watched = state.watched > 0;
        if value >= state.watched {
            state.watched = 0;
        }
        Promise { watched, deferred: state.take_deferred(value) }
    }

    /// Raises the payload after queue work finished; wakes waiters.
    pub fn completed(&self, value: u64) {
        // A failure that came first stays; there is nobody else to tell.
        _ = self.soft.advance(value);
        let ready = self.state.lock().take_deferred(value);
        self.core.place_deferred(ready);
    }

    /// Keeps an operation until `value` is promised, reached, or the semaphore fails. Gives it back when that is
    /// the case already.
    pub fn defer(&self, value: u64, operation: Deferred) -> Option<Deferred> {
        let mut state = self.state.lock();
        match self.soft.query() {
            Ok(present) if present < value => {}
            _ => return Some(operation),
        }
        if !matches!(self.look(&mut state, value), PointState::Unknown) {
            return Some(operation);
        }
        state.deferred.push((value, operation));
        None
    }

    /// Places operations although nobody promised what they wait for; a closed device refuses them.
    pub fn give_up_deferred(&self) {
        let ready = self.state.lock().take_deferred(u64::MAX);
        self.core.place_deferred(ready);
    }

    /// Waits a while for a payload that no queue has promised: a host signal, or work that is not placed yet. Looks up
    /// in between, because a lost device promises nothing.
    fn wait_unplaced(&self, value: u64, deadline: Deadline) -> Result<()> {
        {
            let mut state = self.state.lock();
            if !matches!(self.look(&mut state, value), PointState::Unknown) {
                return Ok(());
            }
            state.watched = state.watched.max(value);
        }
        match self.soft.wait(value, deadline.min(Deadline::after(WAIT_SLICE))) {
            Err(e) if e.code() == Code::DeadlineExceeded => {
                // A semaphore may also have failed with this code.
                self.soft.query()?;
                self.core.check_lost()?;
                if deadline.remaining().is_some_and(|left| left.is_zero()) { Err(e) } else { Ok(()) }
            }
            result => result,
        }
    }
}

impl State {
    fn take_deferred(&mut self, value: u64) -> Vec<Deferred> {
        if self.deferred.is_empty() {
            return Vec::new();
        }
        let (ready, rest) = std::mem::take(&mut self.deferred).into_iter().partition(|(v, _)| *v <= value);
        self.deferred = rest;
        let ready: Vec<(u64, Deferred)> = ready;
        ready.into_iter().map(|(_, d)| d).collect()
    }
}

impl fmt::Debug for VulkanSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanSemaphore")
            .field("soft", &self.soft)
            .field("pending", &self.state.lock().pending)
            .finish_non_exhaustive()
    }
}

impl Semaphore for VulkanSemaphore {
    fn device_id(&self) -> u64 {
        self.core.ctx.id
    }

    fn query(&self) -> Result<u64> {
        let pending: SmallVec<[QueuePoint; 2]> = self.state.lock().pending.iter().map(|(_, p)| *p).collect();
        for point in pending {
            let queue = &self.core.queues[point.queue];
            if !queue.is_completed(point.value) {
                queue.poll(&self.core, point.value)?;
            }
        }
        let reached = self.soft.query()?;
        self.core.check_lost()?;
        if self.abandoned.get().is_some() {
            return Ok(reached);
        }
        let state = self.state.lock();
        let done = state.pending.iter().filter(|(_, p)| self.core.queues[p.queue].is_completed(p.value));
        Ok(done.map(|(v, _)| *v).fold(reached, u64::max))
    }

    fn signal(&self, value: u64) -> Result<()> {
        let present = self.query()?;
        if value <= present {
            return Err(status!(
                InvalidArgument,
                "semaphore values only grow: tried to signal {value}, present value is {present}"
            ));
        }
        self.soft.advance(value)?;
        let ready = self.state.lock().take_deferred(value);
        self.core.place_deferred(ready);
        Ok(())
    }

    fn fail(&self, status: Status) {
        self.soft.fail(status);
        let ready = self.state.lock().take_deferred(u64::MAX);
        self.core.place_deferred(ready);
    }

    fn abandon(&self, status: &Status) {
        // The first reason counts.
        _ = self.abandoned.set(status.clone());
    }

    fn wait(&self, value: u64, deadline: Deadline) -> Result<()> {
        loop {
            match self.point(value)? {
                PointState::Reached => return Ok(()),
                PointState::Pending(p) => self.core.queues[p.queue].wait(&self.core, p.value, deadline)?,
                PointState::Unknown => self.wait_unplaced(value, deadline)?,
            }
        }
    }

    fn on_reached(&self, value: u64, timepoint: Timepoint) {
        self.soft.on_reached(value, timepoint);
        let point = {
            let mut state = self.state.lock();
            state.watched = state.watched.max(value);
            self.look(&mut state, value)
        };
        match point {
            PointState::Unknown => self.core.note_waited_for(self.weak()),
            PointState::Pending(p) => self.core.queues[p.queue].watch(&self.core, p.value),
            // The queue got there, but the thread that noticed has not come to this semaphore yet.
            PointState::Reached => self.completed(value),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
