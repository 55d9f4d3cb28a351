//! Doing work while Python goes on: the interpreter's lock is released, and Ctrl-C stops the work.
//!
//! Python sees signals on its main thread only, and only when that thread asks. So work that may take long is done on a thread of its
//! own, while the main thread asks; other threads do it themselves.

use std::{cell::Cell, sync::mpsc, thread, time::Duration};

use halite::{CancelToken, Result};
use pyo3::prelude::*;

use crate::{
    error::{OrRaise, fault},
    main_thread::is_main_thread,
    messages,
    running::{self, Running},
};

/// How often the main thread asks for signals.
pub const LOOK: Duration = Duration::from_millis(50);
/// As much as a main thread has: graphs of models are deep.
const STACK: usize = 8 << 20;

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// The thread that works while this one asks for signals, and the process that it lives in.
    static WORKER: Cell<Option<(u32, mpsc::Sender<Job>)>> = const { Cell::new(None) };
}

/// The thread that works for this one: the one of the last time, unless it still works, or lived in the process before a fork.
fn worker() -> std::io::Result<mpsc::Sender<Job>> {
    if let Some((process, jobs)) = WORKER.take()
        && process == std::process::id()
    {
        return Ok(jobs);
    }
    let (jobs, given) = mpsc::channel::<Job>();
    let worker = thread::Builder::new().name("halite".to_owned()).stack_size(STACK);
    worker.spawn(move || given.into_iter().for_each(|job| job()))?;
    Ok(jobs)
}

/// Does what may take long. Ctrl-C sets the token and raises `KeyboardInterrupt` at once; the work ends by itself soon after.
pub fn long<T: Send + 'static>(
    py: Python<'_>,
    token: &CancelToken,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let is_main = is_main_thread(py)?;
    let call = running::begin(py, Some(token), is_main)?;
    if !is_main {
        return here(py, call, work);
    }
    let worker = worker().map_err(|error| fault(py, &format!("no thread can be started: {error}")))?;
    let (sender, receiver) = mpsc::sync_channel(1);
    let job = move || {
        let _call = call;
        // Nobody waits any more after Ctrl-C.
        let _ = sender.send(work());
    };
    let result = match worker.send(Box::new(job)) {
        Ok(()) => wait(py, receiver, token)?,
        Err(_) => None,
    };
    messages::deliver(py);
    let Some(result) = result else {
        return Err(fault(py, "the work ended by a panic, which is a fault of Halite; please report it"));
    };
    WORKER.set(Some((std::process::id(), worker)));
    result.or_raise(py)
}

/// The result of work on another thread; `None` when that thread is gone. Fails with what a signal raised.
fn wait<T: Send>(
    py: Python<'_>,
    mut receiver: mpsc::Receiver<T>,
    token: &CancelToken,
) -> PyResult<Option<T>> {
    loop {
        let (received, same) = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
        receiver = same;
        match received {
            Ok(result) => return Ok(Some(result)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                messages::deliver(py);
                py.check_signals().inspect_err(|_| token.cancel())?;
            }
        }
    }
}

/// Does what ends soon, or what a thread does that sees no signals.
pub fn short<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let call = running::begin(py, None, is_main_thread(py)?)?;
    here(py, call, work)
}

/// Does work on this thread, as a part of a call.
fn here<T: Send>(py: Python<'_>, _call: Running, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let result = py.detach(work);
    messages::deliver(py);
    result.or_raise(py)
}
