//! Owns what ends a run early: Ctrl-C and `--timeout`. Does not own: the work that is ended.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use halite::CancelToken;
use halite_hal::Deadline;

/// Exit code of a second Ctrl-C, as shells report the signal.
const INTERRUPTED: i32 = 130;
/// How long a run may take to end by itself after its time is up: the device finishes what it has begun.
const GRACE: Duration = Duration::from_secs(2);

/// A switch that the first Ctrl-C throws; the second one ends the process at once.
pub(crate) fn cancel_on_interrupt() -> CancelToken {
    let token = CancelToken::new();
    let (switch, pressed) = (token.clone(), AtomicBool::new(false));
    let installed = ctrlc::set_handler(move || {
        if pressed.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
        eprintln!("interrupted; stopping (again to end at once)");
        switch.cancel();
    });
    if let Err(error) = installed {
        log::warn!("Ctrl-C will end the process without cleaning up: {error}");
    }
    token
}

/// Ends the process when a run outlives its time by more than it should: loading, initializers and drivers can hang
/// where no deadline is looked at. Does nothing once dropped.
pub(crate) struct Watchdog {
    done: Arc<(Mutex<bool>, Condvar)>,
    deadline: Deadline,
}

impl Watchdog {
    /// Watches from now on; without a limit there is nothing to watch.
    pub(crate) fn start(tool: &'static str, limit: Option<Duration>) -> Self {
        let done = Arc::new((Mutex::new(false), Condvar::new()));
        let Some(limit) = limit else { return Watchdog { done, deadline: Deadline::Never } };
        let (watched, hard) = (done.clone(), Instant::now().checked_add(limit.saturating_add(GRACE)));
        std::thread::spawn(move || {
            let (finished, signal) = &*watched;
            let Ok(mut guard) = finished.lock() else { return };
            while !*guard {
                let left = hard.map(|t| t.saturating_duration_since(Instant::now()));
                let Some(left) = left else { return };
                if left.is_zero() {
                    eprintln!("{tool}: error: DEADLINE_EXCEEDED; not finished after {limit:?} (--timeout)");
                    std::process::exit(1);
                }
                guard = match signal.wait_timeout(guard, left) {
                    Ok((guard, _)) => guard,
                    Err(_) => return,
                };
            }
        });
        Watchdog { done, deadline: Deadline::after(limit) }
    }

    /// When calls should give up by themselves.
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let (finished, signal) = &*self.done;
        if let Ok(mut finished) = finished.lock() {
            *finished = true;
        }
        signal.notify_all();
    }
}
