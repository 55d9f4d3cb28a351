//! The thread that copies between devices.

use std::{
    collections::VecDeque,
    fmt,
    sync::Arc,
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use halite_hal::sync::{Condvar, Mutex};

use halite_hal::Deadline;

/// A step that may block for as long as a copy takes.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// How long the thread stays when there is nothing to do.
const LINGER: Duration = Duration::from_secs(1);

/// Runs jobs in order on a thread that exists while there are some. Clones share the thread.
#[derive(Clone, Default)]
pub(super) struct Worker(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    running: bool,
    /// Who is in the middle of a job, or drops what it held.
    busy: Option<ThreadId>,
    operations: usize,
}

impl Worker {
    /// Appends a job. Never blocks on jobs.
    pub fn push(&self, job: Job) {
        let mut state = self.0.state.lock();
        state.jobs.push_back(job);
        if state.running {
            drop(state);
            self.0.work.notify_one();
            return;
        }
        state.running = true;
        drop(state);
        let shared = self.0.clone();
        let started = thread::Builder::new().name("halite-peer".to_owned()).spawn(move || shared.run(LINGER));
        if started.is_err() {
            // Without a thread the copies have to happen here.
            self.0.run(Duration::ZERO);
        }
    }

    /// Counts an operation whose wait fence is reached.
    pub fn enter(&self) {
        self.0.state.lock().operations += 1;
    }

    /// The operation has signalled its fence, or failed it.
    pub fn leave(&self) {
        self.0.state.lock().operations -= 1;
        self.0.idle.notify_all();
    }

    /// Blocks until no operation is between [`Worker::enter`] and [`Worker::leave`]; `false` when time runs out.
    pub fn wait_idle(&self, deadline: Deadline) -> bool {
        let mut state = self.0.state.lock();
        while state.operations > 0 {
            match deadline.remaining() {
                None => self.0.idle.wait(&mut state),
                Some(left) if left.is_zero() => return false,
                Some(left) => _ = self.0.idle.wait_for(&mut state, left),
            }
        }
        true
    }
}

impl Worker {
    /// Waits until no job is queued or under way, and nothing of one is held any more; `false` when that takes too long. A job does
    /// not wait for itself.
    pub fn let_go(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut state = self.0.state.lock();
        while state.busy.is_some() || !state.jobs.is_empty() {
            if state.busy == Some(thread::current().id()) {
                return true;
            }
            if self.0.idle.wait_until(&mut state, end).timed_out() {
                return false;
            }
        }
        true
    }
}

impl Shared {
    fn run(&self, linger: Duration) {
        loop {
            let mut state = self.state.lock();
            if state.jobs.is_empty() && !linger.is_zero() {
                self.work.wait_for(&mut state, linger);
            }
            match state.jobs.pop_front() {
                Some(job) => {
                    state.busy = Some(thread::current().id());
                    drop(state);
                    job();
                    self.state.lock().busy = None;
                    self.idle.notify_all();
                }
                None => {
                    state.running = false;
                    return;
                }
            }
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        write!(f, "Worker({} jobs, {} operations)", state.jobs.len(), state.operations)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn what_a_job_holds_is_let_go_before_a_device_is_closed() {
        let worker = Worker::default();
        let held = Arc::new(());
        let (told, tells) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let own = held.clone();
        worker.push(Box::new(move || {
            let own = own;
            told.send(()).unwrap();
            // Whoever waited for the work goes on, and the job still holds what it worked on.
            _ = gate.recv();
            drop(own);
        }));
        tells.recv().unwrap();
        assert!(!worker.let_go(Duration::from_millis(1)), "the job is under way");
        let opener = thread::spawn(move || drop(open));
        assert!(worker.let_go(Duration::from_secs(60)));
        assert_eq!(Arc::strong_count(&held), 1);
        opener.join().unwrap();
    }

    #[test]
    fn a_job_does_not_wait_for_itself() {
        let worker = Worker::default();
        let (told, tells) = mpsc::channel();
        let own = worker.clone();
        worker.push(Box::new(move || told.send(own.let_go(Duration::from_secs(60))).unwrap()));
        assert!(tells.recv().unwrap());
    }
}
