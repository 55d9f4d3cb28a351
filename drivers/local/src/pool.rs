//! Owns the threads of a device: doing work that nobody waits for, and helping whoever does. Does not own: what is
//! done (`queue`, `execution`).

use std::{
    fmt,
    sync::{Arc, Weak},
    thread,
};

use halite_status::{Result, status};
use parking_lot::{Condvar, Mutex};

use crate::engine::Engine;

/// Threads of a device. They end when the device is closed and they have nothing left to do.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    /// Somebody asked for the queue to be drained.
    drain: Option<Arc<Engine>>,
    closed: bool,
}

impl Pool {
    /// A pool; its threads come with [`Pool::start`].
    pub fn new() -> Self {
        Pool { shared: Arc::default() }
    }

    /// Starts the threads of an engine. RESOURCE_EXHAUSTED when the system has none left.
    pub fn start(&self, engine: &Arc<Engine>, threads: usize) -> Result<()> {
        for number in 0..threads {
            let shared = self.shared.clone();
            let name = format!("halite-local-{}-{number}", engine.id);
            let engine = Arc::downgrade(engine);
            let spawned = thread::Builder::new().name(name).spawn(move || work(&shared, &engine));
            spawned
                .map_err(|e| status!(ResourceExhausted, "cannot start thread {number} of {threads}: {e}"))?;
        }
        Ok(())
    }

    /// Asks a thread to drain the queue; `false` when there are no threads any more.
    pub fn request_drain(&self, engine: &Arc<Engine>) -> bool {
        let mut state = self.shared.state.lock();
        if state.closed {
            return false;
        }
        state.drain = Some(engine.clone());
        drop(state);
        self.shared.wake.notify_one();
        true
    }

    /// Ends the threads once they have nothing to do. Does not wait for them.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

fn work(shared: &Shared, _engine: &Weak<Engine>) {
    let mut state = shared.state.lock();
    loop {
        if let Some(engine) = state.drain.take() {
            drop(state);
            engine.drain_all();
            drop(engine);
            state = shared.state.lock();
        } else if state.closed {
            return;
        } else {
            shared.wake.wait(&mut state);
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}
