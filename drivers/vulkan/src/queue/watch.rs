//! The thread that watches a queue when nobody waits on it: for callbacks, for waits on points that were not placed yet, and
//! for semaphores of other devices. Started on first need; sleeps in Vulkan or on a condition.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use halite_hal::sync::{Condvar, Mutex};

use crate::device::Core;

/// Pause after a wait that failed although the device is not lost.
const RETRY: Duration = Duration::from_millis(20);

/// The watcher of one queue.
#[derive(Default)]
pub(super) struct Watcher {
    state: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    target: u64,
    stop: bool,
}

impl Watcher {
    /// Watches the queue until its timeline is at `value`.
    pub fn watch(&self, core: &Arc<Core>, queue: usize, value: u64) {
        {
            let mut state = self.state.state.lock();
            state.target = state.target.max(value);
        }
        self.state.changed.notify_one();
        let mut thread = self.thread.lock();
        if thread.is_some() || self.state.state.lock().stop {
            return;
        }
        let (core, shared) = (core.clone(), self.state.clone());
        let run = move || watch_loop(&core, queue, &shared);
        match thread::Builder::new().name(format!("halite-vk-watch{queue}")).spawn(run) {
            Ok(handle) => *thread = Some(handle),
            Err(e) => log::error!("cannot start the thread that watches queue {queue}: {e}"),
        }
    }

    /// Ends the thread and waits for it, unless this is the thread.
    pub fn stop(&self) {
        self.state.state.lock().stop = true;
        self.state.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread.filter(|t| t.thread().id() != thread::current().id())
            && thread.join().is_err()
        {
            log::error!("the thread that watches a queue has panicked");
        }
    }
}

fn watch_loop(core: &Arc<Core>, queue: usize, shared: &Shared) {
    let queue = &core.queues[queue];
    loop {
        let target = {
            let mut state = shared.state.lock();
            while !state.stop && queue.is_completed(state.target) {
                shared.changed.wait(&mut state);
            }
            if state.stop {
                return;
            }
            state.target
        };
        // Each wait goes one batch further, so that callbacks do not wait for later work.
        let next = queue.next_in_flight().filter(|next| *next <= target);
        let over = match next {
            Some(next) => match queue.wait_asleep(core, next) {
                Ok(()) => false,
                Err(_) if core.check_lost().is_err() => true,
                Err(e) => {
                    // Such as memory that ran out for a moment. Nobody else would call back.
                    log::warn!("watching a queue: {e}");
                    shared.changed.wait_for(&mut shared.state.lock(), RETRY);
                    false
                }
            },
            None => true,
        };
        if over {
            // Lost, or never submitted: the fences say so, and there is nothing left to watch.
            let mut state = shared.state.lock();
            if state.target == target {
                state.target = 0;
            }
        }
    }
}
