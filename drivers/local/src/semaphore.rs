//! The driver's timeline semaphores: a software counter that knows what accepted work will raise it to, and whose waiters do
//! that work.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use halite_abi::{Code, Result, Status};
use halite_hal::{Deadline, Semaphore, SoftSemaphore, Timepoint};

use crate::{
    engine::Engine,
    queue::{Drained, Until},
};

/// A timeline semaphore of this driver.
pub(crate) struct LocalSemaphore {
    engine: Arc<Engine>,
    soft: SoftSemaphore,
    /// Highest payload that operations in the queue will signal.
    promised: AtomicU64,
    /// Whether somebody wants to be called back, so that work may not wait for a waiter.
    watched: AtomicBool,
}

impl LocalSemaphore {
    /// A semaphore with this initial payload.
    pub fn new(engine: Arc<Engine>, initial: u64) -> Self {
        let soft = SoftSemaphore::new(engine.id, initial);
        LocalSemaphore { engine, soft, promised: AtomicU64::new(0), watched: AtomicBool::new(false) }
    }

    /// Whether the payload is there. Starts nothing, unlike [`Semaphore::query`].
    pub fn is_reached(&self, value: u64) -> Result<bool> {
        Ok(self.soft.query()? >= value)
    }

    /// Whether an operation behind everything in the queue finds `value` reached, or the semaphore failed. Asked
    /// with the queue locked.
    pub fn is_settled_in_queue(&self, value: u64) -> bool {
        self.promised.load(Ordering::Relaxed) >= value || self.soft.query().map_or(true, |v| v >= value)
    }

    /// Notes that an operation in the queue will signal `value`; whether somebody wants to be called back. Called
    /// with the queue locked.
    pub fn promise(&self, value: u64) -> bool {
        self.promised.fetch_max(value, Ordering::Relaxed);
        self.watched.load(Ordering::SeqCst)
    }

    /// Raises the payload to at least `value`; wakes waiters.
    pub fn advance(&self, value: u64) -> Result<()> {
        self.soft.advance(value)
    }

    /// Sleeps until the payload is there; somebody else works on it, or nobody can yet.
    pub fn sleep(&self, value: u64, deadline: Deadline) -> Result<()> {
        self.soft.wait(value, deadline)
    }

    /// Whether accepted work is still to raise it.
    fn is_pending(&self) -> Result<bool> {
        Ok(self.promised.load(Ordering::Relaxed) > self.soft.query()?)
    }
}

impl fmt::Debug for LocalSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSemaphore").field("soft", &self.soft).finish_non_exhaustive()
    }
}

impl Semaphore for LocalSemaphore {
    fn device_id(&self) -> u64 {
        self.soft.device_id()
    }

    /// A program may poll: work that the answer depends on is started.
    fn query(&self) -> Result<u64> {
        self.engine.check_process()?;
        if self.is_pending()? {
            self.engine.start();
        }
        self.soft.query()
    }

    fn signal(&self, value: u64) -> Result<()> {
        self.soft.signal(value)
    }

    fn fail(&self, status: Status) {
        self.soft.fail(status);
    }

    /// Does the work that leads to `value` on the calling thread, as far as nobody else is at it.
    fn wait(&self, value: u64, deadline: Deadline) -> Result<()> {
        self.engine.check_process()?;
        while !self.is_reached(value)? {
            if deadline.remaining().is_some_and(|left| left.is_zero()) {
                self.engine.start();
                return match self.is_reached(value)? {
                    true => Ok(()),
                    false => Err(Status::new(Code::DeadlineExceeded, "the deadline of the wait has passed")),
                };
            }
            match self.engine.drain(&Until::Reached(self, value), deadline) {
                Drained::Progress => {}
                Drained::Nothing => {
                    if let Some(result) = self.engine.sleep_on(self, value, deadline) {
                        return result;
                    }
                }
            }
        }
        Ok(())
    }

    fn on_reached(&self, value: u64, timepoint: Timepoint) {
        self.watched.store(true, Ordering::SeqCst);
        self.soft.on_reached(value, timepoint);
        if self.is_pending().unwrap_or(false) {
            self.engine.start();
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
