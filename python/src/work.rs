//! Doing work while Python goes on: the interpreter's lock is released, and Ctrl-C stops the work.
//!
//! Python sees signals on its main thread only, and only when that thread asks. So work that may take long is done on a thread of its
//! own, while the main thread asks; other threads do it themselves.

use std::{cell::Cell, sync::mpsc, thread, time::Duration};

use halite::{CancelToken, Result};
use pyo3::{prelude::*, sync::PyOnceLock};

use crate::{
    error::{OrRaise, fault},
    messages,
};

/// How often the main thread asks for signals.
pub const LOOK: Duration = Duration::from_millis(50);
/// Calls that took less than this the last time are done without a thread of their own.
pub const SHORT: Duration = Duration::from_millis(20);
/// As much as a main thread has: graphs of models are deep.
const STACK: usize = 8 << 20;

thread_local! {
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether this is the thread that sees signals.
pub fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    static GET_IDENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Some(known) = IS_MAIN.get() {
        return Ok(known);
    }
    let threading = py.import("threading")?;
    let own: u64 = GET_IDENT.import(py, "threading", "get_ident")?.call0()?.extract()?;
    let main: Option<u64> = threading.call_method0("main_thread")?.getattr("ident")?.extract()?;
    let is_main = main == Some(own);
    IS_MAIN.set(Some(is_main));
    Ok(is_main)
}

/// Does what may take long. Ctrl-C sets the token and raises `KeyboardInterrupt` at once; the work ends by itself soon after.
pub fn long<T: Send + 'static>(
    py: Python<'_>,
    token: &CancelToken,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    if !is_main_thread(py)? {
        return short(py, work);
    }
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let worker = thread::Builder::new().name("halite".to_owned()).stack_size(STACK);
    let started = worker.spawn(move || {
        // Nobody waits any more after Ctrl-C.
        let _ = sender.send(work());
    });
    started.map_err(|error| fault(py, &format!("no thread can be started: {error}")))?;
    loop {
        let (received, same) = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
        receiver = same;
        match received {
            Ok(result) => {
                messages::deliver(py);
                return result.or_raise(py);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                messages::deliver(py);
                if let Err(interrupt) = py.check_signals() {
                    token.cancel();
                    return Err(interrupt);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(fault(
                    py,
                    "the work ended by a panic, which is a fault of Halite; please report it",
                ));
            }
        }
    }
}

/// Does what ends soon, or what a thread does that sees no signals.
pub fn short<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let result = py.detach(work);
    messages::deliver(py);
    result.or_raise(py)
}
