//! What recordings are written with as Vulkan's command buffers, and how often they were: for executions and ahead of them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use halite_hal::{RecordingStats, Result};
use parking_lot::Mutex;

use crate::{context::DeviceContext, queue::Recorder};

/// Most recorders that wait for recordings.
const MOST_IDLE: usize = 8;

/// Recorders and numbers of a device.
#[derive(Default)]
pub(crate) struct Recordings {
    /// Of recordings that are gone: making pools takes longer than using them again.
    idle: Mutex<Vec<Recorder>>,
    executed: AtomicU64,
    written: AtomicU64,
    written_ahead: AtomicU64,
    found_ahead: AtomicU64,
}

impl Recordings {
    /// A recorder with nothing in it.
    pub fn recorder(&self, ctx: &Arc<DeviceContext>, family: u32) -> Result<Recorder> {
        let found = {
            let mut idle = self.idle.lock();
            let found = idle.iter().position(|recorder| recorder.family() == family);
            found.map(|found| idle.swap_remove(found))
        };
        match found {
            Some(mut recorder) => recorder.reset().map(|()| recorder),
            None => Recorder::new(ctx, family),
        }
    }

    /// Takes the recorder of a recording that is gone, and that nothing executes any more. It is emptied when it is used again: recordings
    /// go while somebody waits for the work behind them.
    pub fn give_back(&self, recorder: Recorder) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push(recorder);
        }
    }

    /// Lets go of recorders that wait.
    pub fn trim(&self) {
        let idle = std::mem::take(&mut *self.idle.lock());
        drop(idle);
    }

    /// Notes an execution, which may be the first of what was written ahead.
    pub fn note_executed(&self, found_ahead: bool) {
        count(&self.executed);
        if found_ahead {
            count(&self.found_ahead);
        }
    }

    /// Notes that a recording was written: ahead of an execution, or for one.
    pub fn note_written(&self, ahead: bool) {
        count(if ahead { &self.written_ahead } else { &self.written });
    }

    /// The numbers so far.
    pub fn stats(&self) -> RecordingStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecordingStats {
            executed: get(&self.executed),
            written: get(&self.written),
            written_ahead: get(&self.written_ahead),
            found_ahead: get(&self.found_ahead),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
