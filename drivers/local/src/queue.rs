//! The order of queue work: accepting operations, draining them one thread at a time, waking whoever should.
//!
//! An operation joins the queue once everything that it waits for is reached or will be signalled by operations
//! that are in the queue before it; until then a callback keeps it. So the queue can be drained from front to back
//! by one thread, nothing in it ever blocks, and a chain of operations of whatever length does not recurse.
//!
//! With a pool, a submission only joins the queue: the thread that waits for it finds it there and does it, without
//! handing it to another thread. The pool starts it where somebody flushes, polls, or wants to be called back, where
//! a waiter sleeps, and where much has gathered.

use std::{collections::VecDeque, fmt, sync::Arc, thread};

use halite_abi::{Code, Result, Status, bail};
use halite_hal::sync::{Condvar, Mutex};
use halite_hal::{Deadline, Fence};

use crate::{
    engine::Engine,
    operation::{Operation, Progress},
    semaphore::LocalSemaphore,
};

/// Operations that may gather before the pool starts on them although nobody waits.
const BATCH: usize = 64;

/// Accepted operations.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Operation>,
    /// Whether a thread is taking operations out.
    draining: bool,
    /// Threads that sleep until a semaphore is reached.
    sleepers: usize,
    /// Whether a thread was made for what others leave.
    handed_over: bool,
}

/// An operation that cannot be queued yet.
struct Deferred {
    operation: Operation,
    /// Index of the point in its wait fence that nobody has promised.
    open: usize,
}

/// When a thread stops draining although work is left.
pub(crate) enum Until<'a> {
    /// Never.
    Empty,
    /// When the payload is there.
    Reached(&'a LocalSemaphore, u64),
}

/// What came of an attempt to drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// Something was done.
    Progress,
    /// Another thread is at it, or there is nothing that this thread may do.
    Nothing,
}

impl Engine {
    /// Accepts an operation: queues it, or keeps it until what it waits for can be relied on.
    pub fn submit(self: &Arc<Self>, operation: Operation) {
        match self.place(operation) {
            Ok(true) => self.start(),
            Ok(false) => {}
            Err(deferred) => self.defer(*deferred),
        }
    }

    /// Queues an operation; whether the queue should be drained without a waiter. Gives it back when
    /// nobody has promised a point of its wait fence.
    fn place(&self, operation: Operation) -> Result<bool, Box<Deferred>> {
        // Semaphores of others are asked before the queue is locked: they may call back into it.
        let points = operation.wait().points();
        let foreign = points.iter().position(|p| {
            self.own_semaphore(p.semaphore.as_ref()).is_none()
                && p.semaphore.query().is_ok_and(|value| value < p.value)
        });
        if let Some(open) = foreign {
            return Err(Box::new(Deferred { operation, open }));
        }
        let mut state = self.queue.state.lock();
        let own = points.iter().position(|p| {
            let own = self.own_semaphore(p.semaphore.as_ref());
            own.is_some_and(|own| !own.is_settled_in_queue(p.value))
        });
        if let Some(open) = own {
            drop(state);
            return Err(Box::new(Deferred { operation, open }));
        }
        let mut watched = false;
        for point in operation.signal().points() {
            if let Some(own) = self.own_semaphore(point.semaphore.as_ref()) {
                watched |= own.promise(point.value);
            } else {
                watched = true;
            }
        }
        state.ready.push_back(operation);
        let unattended = state.sleepers > 0 || state.ready.len() >= BATCH;
        Ok(self.pool.is_none() || watched || unattended)
    }

    /// Comes back with the operation once the open point is settled. The fence that the operation keeps
    /// is without that point: a semaphore whose callback holds the semaphore would never be dropped.
    fn defer(self: &Arc<Self>, Deferred { mut operation, open }: Deferred) {
        let point = operation.wait().points()[open].clone();
        let mut rest = Fence::default();
        for (index, other) in operation.wait().points().iter().enumerate() {
            if index != open {
                rest.insert(other.semaphore.clone(), other.value);
            }
        }
        operation.set_wait(rest);
        let engine = self.clone();
        let settled: halite_hal::Timepoint = Box::new(move |result| {
            if let Err(failure) = result {
                operation.note_failure(failure);
            }
            engine.submit(operation);
        });
        // Own semaphores too are watched: the operation that will signal this one is not in the queue, and when it
        // comes there may be nobody who waits on this device.
        point.semaphore.on_reached(point.value, settled);
    }

    /// Does everything that is ready, unless another thread is at it.
    pub fn drain_all(self: &Arc<Self>) {
        self.drain_as(&Until::Empty, Deadline::Never, true);
    }

    /// Does what is ready on the calling thread, until then or until the deadline; another takes what is left.
    pub fn drain(self: &Arc<Self>, until: &Until<'_>, deadline: Deadline) -> Drained {
        self.drain_as(until, deadline, false)
    }

    /// `patient` threads may also do work that takes for ever.
    fn drain_as(self: &Arc<Self>, until: &Until<'_>, deadline: Deadline, patient: bool) -> Drained {
        let mut drained = Drained::Nothing;
        let mut state = self.queue.state.lock();
        if state.draining {
            return drained;
        }
        state.draining = true;
        while let Some(mut operation) = state.take_next(patient) {
            drop(state);
            drained = Drained::Progress;
            let progress = operation.run(self, deadline);
            let stop = match until {
                Until::Empty => false,
                Until::Reached(semaphore, value) => semaphore.is_reached(*value).unwrap_or(true),
            };
            state = self.queue.state.lock();
            if progress == Progress::Interrupted {
                state.ready.push_front(operation);
                break;
            }
            // What costs nothing is not worth another thread.
            if stop && state.ready.front().is_some_and(|next| !next.is_cheap()) {
                break;
            }
        }
        state.draining = false;
        let left = !state.ready.is_empty();
        drop(state);
        self.queue.idle.notify_all();
        if left {
            self.hand_over();
        }
        drained
    }

    /// Lets a thread that may take for ever do what is left: one of the pool, or else one that is made for it.
    fn hand_over(self: &Arc<Self>) {
        if self.pool.as_ref().is_some_and(|pool| pool.request_drain(self))
            || std::mem::replace(&mut self.queue.state.lock().handed_over, true)
        {
            return;
        }
        let engine = self.clone();
        let work = move || {
            engine.drain_all();
            let mut state = engine.queue.state.lock();
            // Whoever drains now hands over again.
            while !state.draining && !state.ready.is_empty() {
                drop(state);
                engine.drain_all();
                state = engine.queue.state.lock();
            }
            state.handed_over = false;
        };
        let name = format!("halite-local-{}-patient", self.id);
        if let Err(e) = thread::Builder::new().name(name).spawn(work) {
            log::warn!(
                "work that may take for ever is done on a thread that waits: no other can be made: {e}"
            );
            self.queue.state.lock().handed_over = false;
            self.drain_all();
        }
    }

    /// Sleeps until the payload is there, unless the calling thread has something to do: then `None`.
    pub fn sleep_on(&self, semaphore: &LocalSemaphore, value: u64, deadline: Deadline) -> Option<Result<()>> {
        let mut state = self.queue.state.lock();
        if !state.draining && state.ready.front().is_some_and(|next| !next.may_hang()) {
            return None;
        }
        state.sleepers += 1;
        drop(state);
        let result = semaphore.sleep(value, deadline);
        self.queue.state.lock().sleepers -= 1;
        Some(result)
    }

    /// Blocks until no operation is ready or running. Operations whose wait fence is not reached have not started
    /// and are not waited for: it may be the caller who has to signal it.
    pub fn wait_idle(self: &Arc<Self>, deadline: Deadline) -> Result<()> {
        loop {
            self.drain(&Until::Empty, deadline);
            let mut state = self.queue.state.lock();
            if !state.draining && state.ready.is_empty() {
                drop(state);
                if self.pool.as_ref().is_none_or(|pool| pool.wait_quiet(deadline)) {
                    return Ok(());
                }
                bail!(DeadlineExceeded, "a thread of device {} is still at work", self.id);
            }
            match deadline.remaining() {
                None => self.queue.idle.wait(&mut state),
                Some(left) if left.is_zero() => {
                    bail!(DeadlineExceeded, "device {} is still at work", self.id)
                }
                Some(left) => _ = self.queue.idle.wait_for(&mut state, left),
            }
        }
    }
}

impl State {
    fn take_next(&mut self, patient: bool) -> Option<Operation> {
        if !patient && self.ready.front().is_some_and(Operation::may_hang) {
            return None;
        }
        self.ready.pop_front()
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        write!(f, "Queue({} ready, draining: {})", state.ready.len(), state.draining)
    }
}

/// Failures travel along fences under the code of the first one.
pub(crate) fn waited_in_vain(name: &str, failure: &Status) -> Status {
    let code: Code = failure.code();
    Status::new(code, failure.message().to_owned()).annotate(format!("queue {name} waited for it"))
}
