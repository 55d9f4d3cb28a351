//! Timeline semaphores: the trait, fences (sets of points), and a host-side implementation that drivers build on.

use std::{any::Any, cell::RefCell, fmt, sync::Arc};

use crate::sync::{Condvar, Mutex};
use smallvec::{SmallVec, smallvec};

use crate::{Code, Deadline, Result, Status, status};

/// Called exactly once when a semaphore reaches a value (`Ok`) or fails first (`Err`); dropped uncalled when the
/// semaphore goes before either. May run on any thread, also on the caller's before `on_reached` returns; must not
/// block.
pub type Timepoint = Box<dyn FnOnce(Result<()>) + Send>;

/// A monotonic counter that work waits for and signals. Payloads only grow; a failure is final.
pub trait Semaphore: fmt::Debug + Send + Sync + 'static {
    /// Identity of the device that made it.
    fn device_id(&self) -> u64;

    /// The payload reached so far, or the failure.
    fn query(&self) -> Result<u64>;

    /// Raises the payload from the host. INVALID_ARGUMENT when the value is not above the present one.
    fn signal(&self, value: u64) -> Result<()>;

    /// Fails the semaphore: all present and future waits return this status. The first failure is kept.
    fn fail(&self, status: Status);

    /// Says that nobody wants what would raise this semaphore: work that has not begun may be left out. The semaphore then
    /// fails with this status, when everything before that work is done. Work that has begun runs to its end. Drivers may
    /// ignore it, and do nothing here.
    fn abandon(&self, _status: &Status) {}

    /// Blocks until the payload is at least `value`. DEADLINE_EXCEEDED when time runs out; the failure when it
    /// failed. Starts any work that the driver has batched.
    fn wait(&self, value: u64, deadline: Deadline) -> Result<()>;

    /// Calls back when the payload is at least `value`.
    fn on_reached(&self, value: u64, timepoint: Timepoint);

    /// The driver's own type, for downcasts inside that driver.
    fn as_any(&self) -> &dyn Any;
}

/// A semaphore and the payload that counts as reached.
#[derive(Clone, Debug)]
pub struct SemaphorePoint {
    /// The semaphore.
    pub semaphore: Arc<dyn Semaphore>,
    /// The payload.
    pub value: u64,
}

impl SemaphorePoint {
    /// Raises the semaphore unless it is there already, also when another thread is faster.
    fn signal(&self) -> Result<()> {
        if self.semaphore.query()? >= self.value {
            return Ok(());
        }
        match self.semaphore.signal(self.value) {
            Err(e) if e.code() == Code::InvalidArgument && self.semaphore.query()? < self.value => Err(e),
            Err(e) if e.code() != Code::InvalidArgument => Err(e),
            _ => Ok(()),
        }
    }
}

/// State shared by the callbacks of one [`Fence::on_reached`].
struct Join {
    pending: usize,
    timepoint: Option<Timepoint>,
}

impl Join {
    /// One point is settled; the callback when it is due now.
    fn arrive(&mut self, result: &Result<()>) -> Option<Timepoint> {
        self.pending -= 1;
        if self.pending == 0 || result.is_err() { self.timepoint.take() } else { None }
    }
}

/// A set of semaphore points: reached when all are. The empty fence is always reached. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Fence {
    points: SmallVec<[SemaphorePoint; 2]>,
}

impl Fence {
    /// A fence of one point.
    pub fn new(semaphore: Arc<dyn Semaphore>, value: u64) -> Self {
        Fence { points: smallvec![SemaphorePoint { semaphore, value }] }
    }

    /// The points.
    pub fn points(&self) -> &[SemaphorePoint] {
        &self.points
    }

    /// Whether there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Adds a point; of two points on one semaphore the later value counts.
    pub fn insert(&mut self, semaphore: Arc<dyn Semaphore>, value: u64) {
        match self.points.iter_mut().find(|p| Arc::ptr_eq(&p.semaphore, &semaphore)) {
            Some(point) => point.value = point.value.max(value),
            None => self.points.push(SemaphorePoint { semaphore, value }),
        }
    }

    /// The union of fences.
    pub fn join<'a>(fences: impl IntoIterator<Item = &'a Fence>) -> Self {
        let mut all = Fence::default();
        for point in fences.into_iter().flat_map(|f| &f.points) {
            all.insert(point.semaphore.clone(), point.value);
        }
        all
    }

    /// `Ok(true)` when all points are reached, `Ok(false)` when some are pending, the failure when one failed.
    pub fn query(&self) -> Result<bool> {
        self.points.iter().try_fold(true, |all, p| Ok(p.semaphore.query()? >= p.value && all))
    }

    /// Raises every semaphore to its point. Points reached already are left alone. One that failed does not keep
    /// the others from being raised; its failure is returned.
    pub fn signal(&self) -> Result<()> {
        self.points.iter().map(SemaphorePoint::signal).fold(Ok(()), Result::and)
    }

    /// Fails every semaphore.
    pub fn fail(&self, status: &Status) {
        for point in &self.points {
            point.semaphore.fail(status.clone());
        }
    }

    /// Abandons every semaphore, see [`Semaphore::abandon`].
    pub fn abandon(&self, status: &Status) {
        for point in &self.points {
            point.semaphore.abandon(status);
        }
    }

    /// Calls back once, when all points are reached or the first of them fails. See [`Timepoint`] for the rules.
    pub fn on_reached(&self, timepoint: Timepoint) {
        if self.is_empty() {
            return timepoint(Ok(()));
        }
        let join = Arc::new(Mutex::new(Join { pending: self.points.len(), timepoint: Some(timepoint) }));
        for point in &self.points {
            let join = join.clone();
            let arrived = move |result| {
                let last = join.lock().arrive(&result);
                if let Some(timepoint) = last {
                    timepoint(result);
                }
            };
            point.semaphore.on_reached(point.value, Box::new(arrived));
        }
    }

    /// Blocks until all points are reached.
    pub fn wait(&self, deadline: Deadline) -> Result<()> {
        self.points.iter().try_for_each(|p| p.semaphore.wait(p.value, deadline))
    }
}

/// A timeline semaphore that lives on the host: complete in itself for CPU drivers, and the host half of a GPU
/// driver's semaphore.
#[derive(Default)]
pub struct SoftSemaphore {
    device_id: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    value: u64,
    failure: Option<Status>,
    timepoints: Vec<(u64, Timepoint)>,
}

impl SoftSemaphore {
    /// A semaphore of the device with this identity.
    pub fn new(device_id: u64, initial: u64) -> Self {
        let state = Mutex::new(State { value: initial, ..State::default() });
        SoftSemaphore { device_id, state, changed: Condvar::new() }
    }

    /// Raises the payload to at least `value`; a value reached already is left alone. For drivers, which may learn
    /// of completed points out of order. Returns the failure if there is one.
    pub fn advance(&self, value: u64) -> Result<()> {
        self.raise(value, |_| Ok(()))
    }

    /// `behind` decides what it means that the payload (its argument) is there already.
    fn raise(&self, value: u64, behind: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        let mut ready = {
            let mut state = self.state.lock();
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if value <= state.value {
                return behind(state.value);
            }
            state.value = value;
            let (ready, pending) = std::mem::take(&mut state.timepoints)
                .into_iter()
                .partition::<Vec<_>, _>(|(v, _)| *v <= value);
            state.timepoints = pending;
            ready
        };
        self.changed.notify_all();
        ready.sort_by_key(|(value, _)| *value);
        for (_, timepoint) in ready {
            timepoint(Ok(()));
        }
        Ok(())
    }

    /// Whether somebody registered a timepoint that is still pending.
    pub fn has_timepoints(&self) -> bool {
        !self.state.lock().timepoints.is_empty()
    }
}

thread_local! {
    /// Timepoints that wait for being dropped on this thread; `Some` while somebody drops them.
    static DOOMED: RefCell<Option<Vec<(u64, Timepoint)>>> = const { RefCell::new(None) };
}

impl Drop for SoftSemaphore {
    /// A timepoint may hold the last handle of the next semaphore, and so on for as long as a caller likes: they
    /// are dropped one after the other, not one inside the other.
    fn drop(&mut self) {
        let mut timepoints = std::mem::take(&mut self.state.get_mut().timepoints);
        if timepoints.is_empty() {
            return;
        }
        let outermost = DOOMED.try_with(|doomed| match &mut *doomed.borrow_mut() {
            Some(others) => {
                others.append(&mut timepoints);
                false
            }
            none => {
                *none = Some(std::mem::take(&mut timepoints));
                true
            }
        });
        if outermost == Ok(true) {
            while let Some(timepoint) = DOOMED.with(|doomed| doomed.borrow_mut().as_mut().and_then(Vec::pop))
            {
                drop(timepoint);
            }
            DOOMED.with(RefCell::take);
        }
    }
}

impl fmt::Debug for SoftSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("SoftSemaphore")
            .field("value", &state.value)
            .field("failure", &state.failure)
            .finish_non_exhaustive()
    }
}

impl Semaphore for SoftSemaphore {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn query(&self) -> Result<u64> {
        let state = self.state.lock();
        state.failure.clone().map_or(Ok(state.value), Err)
    }

    fn signal(&self, value: u64) -> Result<()> {
        self.raise(value, |present| {
            Err(status!(
                InvalidArgument,
                "semaphore values only grow: tried to signal {value}, present value is {present}"
            ))
        })
    }

    fn fail(&self, status: Status) {
        let timepoints = {
            let mut state = self.state.lock();
            if state.failure.is_some() {
                return;
            }
            state.failure = Some(status.clone());
            std::mem::take(&mut state.timepoints)
        };
        self.changed.notify_all();
        for (_, timepoint) in timepoints {
            timepoint(Err(status.clone()));
        }
    }

    fn wait(&self, value: u64, deadline: Deadline) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if state.value >= value {
                return Ok(());
            }
            match deadline.remaining() {
                None => self.changed.wait(&mut state),
                Some(left) if left.is_zero() => {
                    return Err(Status::new(Code::DeadlineExceeded, "the deadline of the wait has passed"));
                }
                Some(left) => {
                    self.changed.wait_for(&mut state, left);
                }
            }
        }
    }

    fn on_reached(&self, value: u64, timepoint: Timepoint) {
        let result = {
            let mut state = self.state.lock();
            match &state.failure {
                Some(failure) => Err(failure.clone()),
                None if state.value >= value => Ok(()),
                None => {
                    state.timepoints.push((value, timepoint));
                    return;
                }
            }
        };
        timepoint(result);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests;
