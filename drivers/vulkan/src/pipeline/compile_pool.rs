//! The threads that build pipelines while a program is still loading.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Weak},
    thread,
    time::{Duration, Instant},
};

use halite_hal::sync::{Condvar, Mutex};

use super::Kernel;

/// Most threads of a pool for which no number was asked, and of any pool.
const MOST_THREADS: (usize, usize) = (8, 256);
/// How long a thread without work stays.
const LINGER: Duration = Duration::from_secs(2);
/// Longest wait for pipelines under construction when the device closes.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);

/// A queue of kernels to build, and threads that come and go with the work. Clones are the same pool. A kernel that everybody
/// else has dropped is not built.
#[derive(Clone)]
pub(crate) struct CompilePool {
    shared: Arc<Shared>,
    limit: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    kernels: VecDeque<Weak<Kernel>>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl CompilePool {
    /// A pool of `threads` threads, of up to 256; 0 means one per core, at most eight.
    pub fn new(threads: u32) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let limit = if threads == 0 { cores.min(MOST_THREADS.0) } else { threads as usize };
        CompilePool { shared: Arc::default(), limit: limit.clamp(1, MOST_THREADS.1) }
    }

    /// Has the kernels built soon. A kernel that is needed earlier is built by whoever needs it.
    pub fn build(&self, kernels: impl IntoIterator<Item = Weak<Kernel>>) {
        let mut state = self.shared.state.lock();
        state.kernels.extend(kernels);
        self.call_threads(&mut state);
    }

    /// Has these kernels built before all others. False when there is nobody who would.
    pub fn build_first(&self, kernels: &[&Arc<Kernel>]) -> bool {
        let first: HashSet<_> = kernels.iter().map(|kernel| Arc::as_ptr(kernel)).collect();
        let mut state = self.shared.state.lock();
        if state.closed {
            return false;
        }
        state.kernels.retain(|kernel| !first.contains(&kernel.as_ptr()));
        kernels.iter().rev().for_each(|kernel| state.kernels.push_front(Arc::downgrade(kernel)));
        self.call_threads(&mut state);
        state.threads > 0
    }

    /// Wakes threads or starts some, as there is work.
    fn call_threads(&self, state: &mut State) {
        let wanted = state.kernels.len().saturating_sub(state.idle).min(self.limit - state.threads);
        for _ in 0..wanted {
            let shared = self.shared.clone();
            let spawned =
                thread::Builder::new().name("halite-vk-compile".to_owned()).spawn(move || shared.run());
            match spawned {
                Ok(_) => state.threads += 1,
                Err(e) => {
                    log::warn!("cannot start a thread that builds pipelines, they are built when used: {e}");
                    break;
                }
            }
        }
        self.shared.work.notify_all();
    }

    /// Forgets what has not begun and waits for what has: a process that ends while its Vulkan driver compiles in
    /// another thread crashes in some drivers (seen with NVIDIA 580).
    pub fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        state.kernels.clear();
        self.shared.work.notify_all();
        let end = Instant::now() + CLOSE_LIMIT;
        while state.threads > 0 {
            if self.shared.ended.wait_until(&mut state, end).timed_out() {
                log::warn!("{} pipelines are still being built after {CLOSE_LIMIT:?}", state.threads);
                return;
            }
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(kernel) = state.kernels.pop_front() {
                drop(state);
                if let Some(kernel) = kernel.upgrade() {
                    kernel.build();
                }
                state = self.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let timed_out = self.work.wait_for(&mut state, LINGER).timed_out();
            state.idle -= 1;
            if timed_out && state.kernels.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        drop(state);
        self.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_threads_as_asked_for() {
        assert!((1..=8).contains(&CompilePool::new(0).limit));
        assert_eq!([1, 16, 1000].map(|threads| CompilePool::new(threads).limit), [1, 16, 256]);
    }
}
