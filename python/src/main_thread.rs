//! Which thread is Python's main one, the only one that sees signals.

use std::{cell::Cell, sync::OnceLock};

use halite::hal::PerProcess;
use pyo3::{prelude::*, sync::PyOnceLock};

thread_local! {
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Python's number of the main thread, which is another one after a fork.
static MAIN: PerProcess<OnceLock<Option<u64>>> = PerProcess::new(OnceLock::new);

/// Whether this is the thread that sees signals. Asked first when the package is imported, so that no call runs functions of Python for it
/// (`running.rs`).
pub fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    static GET_IDENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Some(known) = IS_MAIN.get() {
        return Ok(known);
    }
    let own: u64 = GET_IDENT.import(py, "threading", "get_ident")?.call0()?.extract()?;
    let is_main = main_thread(py)? == Some(own);
    IS_MAIN.set(Some(is_main));
    Ok(is_main)
}

fn main_thread(py: Python<'_>) -> PyResult<Option<u64>> {
    let main = MAIN.get();
    if let Some(known) = main.get() {
        return Ok(*known);
    }
    let asked = py.import("threading")?.call_method0("main_thread")?.getattr("ident")?.extract()?;
    Ok(*main.get_or_init(|| asked))
}
