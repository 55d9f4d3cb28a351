//! The threads of a device: doing work that nobody waits for, and helping whoever leads a program.
//!
//! A thread that had something to do looks for more for a short time before it sleeps: the dispatches of a program,
//! and the calls of a benchmark or a text generator, follow each other faster than a thread wakes.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{
            AtomicU32, AtomicUsize,
            Ordering::{Acquire, Relaxed, SeqCst},
        },
    },
    thread,
    time::{Duration, Instant},
};

use halite_abi::{Result, status};
use halite_hal::{
    Deadline, Opener,
    sync::{Condvar, Mutex},
};

use crate::{
    engine::Engine,
    job::{Job, Scratch},
};

/// Looks between two looks at the clock.
const LOOKS: u32 = 64;

/// Threads of a device. They end when the device is closed and they have nothing left to do.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: usize,
    opener: Opener,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// Told when no thread helps any more.
    quiet: Condvar,
    /// Counts requests: a thread that looks for work looks at this.
    requests: AtomicU32,
    /// Threads that look for work now.
    looking: AtomicUsize,
    /// How long they do.
    patience: Duration,
}

#[derive(Default)]
struct State {
    /// Somebody asked for the queue to be drained.
    drain: Option<Arc<Engine>>,
    /// A job that this many more threads may join.
    job: Option<Arc<Job>>,
    seats: usize,
    /// Threads that have joined a job and may hold its buffers.
    helping: usize,
    sleeping: usize,
    closed: bool,
}

enum Task {
    Drain(Arc<Engine>),
    Help(Arc<Job>),
    End,
}

impl Pool {
    /// A pool of this many threads, which come with [`Pool::start`]. `patience` is how long a thread looks for work
    /// before it sleeps.
    pub fn new(threads: usize, patience: Duration) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            quiet: Condvar::new(),
            requests: AtomicU32::new(0),
            looking: AtomicUsize::new(0),
            patience,
        };
        Pool { shared: Arc::new(shared), threads, opener: Opener::here() }
    }

    /// The process that has the threads.
    pub fn opener(&self) -> Opener {
        self.opener
    }

    /// Threads that may help whoever leads: one less than there are, because the leader works too.
    pub fn helpers(&self) -> usize {
        self.threads.saturating_sub(1)
    }

    /// Starts the threads of an engine. RESOURCE_EXHAUSTED when the system has none left.
    pub fn start(&self, device: u64) -> Result<()> {
        for number in 0..self.threads {
            let shared = self.shared.clone();
            let name = format!("halite-local-{device}-{number}");
            let spawned = thread::Builder::new().name(name).spawn(move || shared.work(number));
            spawned.map_err(|e| {
                status!(ResourceExhausted, "cannot start thread {number} of {}: {e}", self.threads)
            })?;
        }
        Ok(())
    }

    /// Asks a thread to drain the queue; `false` when there are no threads any more.
    pub fn request_drain(&self, engine: &Arc<Engine>) -> bool {
        let mut state = self.shared.state.lock();
        if state.closed {
            return false;
        }
        // One request serves all: the queue is drained to its end.
        if state.drain.is_none() {
            state.drain = Some(engine.clone());
            let sleeping = state.sleeping;
            drop(state);
            self.shared.call(1, sleeping);
        }
        true
    }

    /// Lets this many more threads help with a job.
    pub fn recruit(&self, job: &Arc<Job>, count: usize) {
        let mut state = self.shared.state.lock();
        let old = state.job.replace(job.clone());
        state.seats = count;
        let sleeping = state.sleeping;
        drop(state);
        drop(old);
        self.shared.call(count, sleeping);
    }

    /// Lets no more threads join the job.
    pub fn dismiss(&self) {
        let old = {
            let mut state = self.shared.state.lock();
            state.seats = 0;
            state.job.take()
        };
        drop(old);
    }

    /// Waits until no thread holds a job that was dismissed; `false` when the deadline passes first. A helper lets go of
    /// a job, and of the buffers that it names, a moment after the job is done.
    pub fn wait_quiet(&self, deadline: Deadline) -> bool {
        let mut state = self.shared.state.lock();
        while state.helping > 0 {
            match deadline.remaining() {
                None => self.shared.quiet.wait(&mut state),
                Some(left) if left.is_zero() => return false,
                Some(left) => _ = self.shared.quiet.wait_for(&mut state, left),
            }
        }
        true
    }

    /// Ends the threads once they have nothing to do. Does not wait for them.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.requests.fetch_add(1, SeqCst);
        self.shared.wake.notify_all();
    }
}

impl Shared {
    /// Gets this many threads going: those that look for work by themselves, and others that sleep.
    fn call(&self, count: usize, sleeping: usize) {
        self.requests.fetch_add(1, SeqCst);
        let asleep = count.saturating_sub(self.looking.load(SeqCst)).min(sleeping);
        for _ in 0..asleep {
            self.wake.notify_one();
        }
    }

    fn work(&self, number: usize) {
        let mut scratch = Scratch::new(number as u32);
        let mut task = self.sleep();
        loop {
            match task {
                Task::Drain(engine) => engine.drain_all(),
                Task::Help(job) => {
                    job.help(&mut scratch, self.patience);
                    drop(job);
                    self.leave();
                }
                Task::End => return,
            }
            task = match self.look() {
                Some(task) => task,
                None => self.sleep(),
            };
        }
    }

    /// A thread that helped has let go of the job.
    fn leave(&self) {
        let mut state = self.state.lock();
        state.helping -= 1;
        if state.helping == 0 {
            drop(state);
            self.quiet.notify_all();
        }
    }

    /// Looks for work for a while.
    fn look(&self) -> Option<Task> {
        self.looking.fetch_add(1, SeqCst);
        let mut seen = self.requests.load(SeqCst);
        let mut task = self.state.lock().take();
        let end = Instant::now() + self.patience;
        while task.is_none() && Instant::now() < end {
            for _ in 0..LOOKS {
                if self.requests.load(Acquire) != seen {
                    break;
                }
                std::hint::spin_loop();
            }
            if self.requests.load(Relaxed) != seen {
                seen = self.requests.load(SeqCst);
                task = self.state.lock().take();
            } else {
                // On a busy machine somebody with work may be waiting for this core.
                thread::yield_now();
            }
        }
        self.looking.fetch_sub(1, SeqCst);
        task
    }

    fn sleep(&self) -> Task {
        let mut state = self.state.lock();
        loop {
            if let Some(task) = state.take() {
                return task;
            }
            state.sleeping += 1;
            self.wake.wait(&mut state);
            state.sleeping -= 1;
        }
    }
}

impl State {
    fn take(&mut self) -> Option<Task> {
        if let Some(engine) = self.drain.take() {
            return Some(Task::Drain(engine));
        }
        if self.seats > 0
            && let Some(job) = &self.job
        {
            self.seats -= 1;
            self.helping += 1;
            return Some(Task::Help(job.clone()));
        }
        self.closed.then_some(Task::End)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} threads)", self.threads)
    }
}
