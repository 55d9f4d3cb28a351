//! What the library logs, for Python's `logging` (logger `halite`).
//!
//! Any thread may log, holding any lock, so nothing waits for the interpreter there: messages go into a list, and the next call into
//! Python hands them on.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
};

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::error::invalid;

/// Most messages that wait; older ones are dropped.
const MOST: usize = 1000;

struct Messages {
    waiting: Mutex<VecDeque<(Level, String)>>,
    /// Whether any wait: asked at each call, so without the lock.
    any: AtomicBool,
}

static MESSAGES: Messages = Messages { waiting: Mutex::new(VecDeque::new()), any: AtomicBool::new(false) };

impl Log for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let text = record.args().to_string();
        let mut waiting = self.waiting.lock();
        if waiting.len() == MOST {
            waiting.pop_front();
        }
        waiting.push_back((record.level(), text));
        self.any.store(true, Ordering::Release);
    }

    fn flush(&self) {}
}

/// Begins to collect warnings.
pub fn install() {
    // Where the program has a logger of its own already, that one is told.
    if log::set_logger(&MESSAGES).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

/// Hands waiting messages on to Python.
pub fn deliver(py: Python<'_>) {
    if !MESSAGES.any.swap(false, Ordering::AcqRel) {
        return;
    }
    let waiting = std::mem::take(&mut *MESSAGES.waiting.lock());
    let told = || -> PyResult<()> {
        let logger = py.import("logging")?.call_method1("getLogger", ("halite",))?;
        for (level, text) in &waiting {
            logger.call_method1("log", (number(*level), "%s", text))?;
        }
        Ok(())
    };
    if let Err(error) = told() {
        error.write_unraisable(py, None);
    }
}

/// The levels of Python's `logging`.
fn number(level: Level) -> u32 {
    match level {
        Level::Error => 40,
        Level::Warn => 30,
        Level::Info => 20,
        Level::Debug => 10,
        Level::Trace => 5,
    }
}

/// Which messages of the library reach the logger `halite`: `off`, `error`, `warn` (the default), `info`, `debug`, `trace`.
#[pyfunction]
pub fn set_log_level(py: Python<'_>, level: &str) -> PyResult<()> {
    let level = level.parse::<LevelFilter>().map_err(|_| {
        invalid(py, &format!("there is no level '{level}'; there are: off, error, warn, info, debug, trace"))
    })?;
    log::set_max_level(level);
    Ok(())
}
