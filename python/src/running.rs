//! The calls that go on, and their end before the process ends.
//!
//! A call that nobody waits for any more (after Ctrl-C, or on a daemon thread) holds its session and device. If it let go of them while
//! the process runs the exit handlers of native libraries, the device would be closed by a Vulkan driver that is half torn down. So the
//! interpreter, before it ends, cancels such calls and waits for them.
//!
//! Until Python 3.14 an interpreter that ends also ends each other thread that asks for its lock, by unwinding its stack, which must not
//! go through the library: Rust would catch it, and end the process. A thread that asks from here is parked instead, by PyO3. One that
//! asks from below, from a function of Python that a call calls, is not; so such functions are called while the call counts, and a
//! thread that may not begin a call any more is told so by what runs no step of Python (`error.rs`).

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use halite::{CancelToken, hal::PerProcess};
use pyo3::prelude::*;

use crate::{error::cancelled, main_thread::is_main_thread};

/// How long the end of the interpreter waits. Cancelled work ends within a fraction of a second; a native library that hangs must not
/// keep the process.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the threads of cancelled calls have to let go of what they hold, and the threads of a software driver, which look for more
/// work for a while, to fall asleep.
const GRACE: Duration = Duration::from_millis(200);

struct Call {
    number: u64,
    token: Option<CancelToken>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Whether the interpreter ends: only its main thread begins calls then, for other functions that run at the end.
    ending: bool,
    running: Vec<Call>,
}

#[derive(Default)]
struct Calls {
    state: Mutex<State>,
    ended: Condvar,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After a fork, the threads of the calls are in the other process, and one of them may have had the lock.
static CALLS: PerProcess<Calls> = PerProcess::new(Calls::default);

/// A call, until it is dropped.
#[must_use]
pub struct Running {
    number: u64,
    process: u32,
}

/// Counts a call, which the token cancels when there is one. Fails on other threads than the main one when the interpreter ends.
pub fn begin(py: Python<'_>, token: Option<&CancelToken>, is_main: bool) -> PyResult<Running> {
    // Exceptions are made behind the lock: their class is Python's, which lets other threads run, and these want the lock.
    count(token, is_main)
        .ok_or_else(|| cancelled(py, "the interpreter ends: no call can begin on this thread any more"))
}

/// Counts what this thread does, as a call that nothing cancels.
pub fn within(py: Python<'_>) -> PyResult<Running> {
    begin(py, None, is_main_thread(py)?)
}

fn count(token: Option<&CancelToken>, is_main: bool) -> Option<Running> {
    let mut calls = CALLS.get().lock();
    if calls.ending && !is_main {
        return None;
    }
    let number = calls.next;
    calls.next += 1;
    calls.running.push(Call { number, token: token.cloned() });
    Some(Running { number, process: std::process::id() })
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A function that the call called has forked: it is counted in the other process.
            return;
        }
        let own = CALLS.get();
        let mut calls = own.lock();
        calls.running.retain(|call| call.number != self.number);
        // Waking is a call of the system, also where nobody waits.
        if calls.ending {
            own.ended.notify_all();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing tells when the threads of a driver sleep")]
fn end_all() {
    let own = CALLS.get();
    let mut calls = own.lock();
    calls.ending = true;
    if calls.running.is_empty() {
        return;
    }
    calls.running.iter().filter_map(|call| call.token.as_ref()).for_each(CancelToken::cancel);
    let ended = own.ended.wait_timeout_while(calls, PATIENCE, |calls| !calls.running.is_empty());
    drop(ended.unwrap_or_else(PoisonError::into_inner));
    std::thread::sleep(GRACE);
}

/// Cancels the calls that go on, and waits for their end: what the interpreter does first when it ends.
#[pyfunction]
pub fn end_calls(py: Python<'_>) {
    py.detach(end_all);
}
