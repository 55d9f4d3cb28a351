//! Logging.

use std::{
    cell::Cell,
    ffi::{c_char, c_void},
};

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::RwLock;

use crate::{
    error::{call, halite_error},
    failure::{Failure, Result},
    raw,
};

/// Receives a line of the log: its level (1 error, 2 warning, 3 information, 4 debug, 5 trace), its origin, and the text.
/// The library calls it on any thread, on several at the same time. What the library does inside such a call is not logged.
pub type halite_log_fn = Option<
    unsafe extern "C" fn(context: *mut c_void, level: u32, target: *const c_char, message: *const c_char),
>;

/// Who hears the log.
struct Listener {
    function: unsafe extern "C" fn(*mut c_void, u32, *const c_char, *const c_char),
    context: *mut c_void,
}

// SAFETY: whoever sets a listener lets any thread call it.
unsafe impl Send for Listener {}
// SAFETY: as above.
unsafe impl Sync for Listener {}

static LISTENER: RwLock<Option<Listener>> = RwLock::new(None);
static LOGGER: Forward = Forward;

thread_local! {
    /// Whether this thread is in a listener.
    static IS_HEARD: Cell<bool> = const { Cell::new(false) };
}

struct Forward;

impl Log for Forward {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        // A thread that ends has no flag any more; nobody hears its last words.
        if !self.enabled(record.metadata()) || IS_HEARD.try_with(|flag| flag.replace(true)).unwrap_or(true) {
            return;
        }
        let level = match record.level() {
            Level::Error => 1,
            Level::Warn => 2,
            Level::Info => 3,
            Level::Debug => 4,
            Level::Trace => 5,
        };
        let (target, message) = (raw::c_text(record.target()), raw::c_text(&record.args().to_string()));
        if let Some(listener) = &*LISTENER.read() {
            // SAFETY: whoever set it promised that it can be called until it is replaced, which waits for this lock.
            unsafe { (listener.function)(listener.context, level, target.as_ptr(), message.as_ptr()) };
        }
        IS_HEARD.with(|flag| flag.set(false));
    }

    fn flush(&self) {}
}

/// Sets the function that receives the log, up to a level; NULL ends that. The earlier function is not called any more when this
/// returns. Without such a function nothing is written anywhere.
///
/// Fails inside such a function, and in a program that has its own logger for Rust's crate `log`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_log_set(
    function: halite_log_fn,
    context: *mut c_void,
    level: u32,
) -> *mut halite_error {
    call("halite_log_set", || set(function.map(|function| Listener { function, context }), level))
}

fn set(listener: Option<Listener>, level: u32) -> Result<()> {
    if IS_HEARD.get() {
        return Err(Failure::invalid("a listener of the log cannot replace itself"));
    }
    let level = match (level, &listener) {
        (_, None) => LevelFilter::Off,
        (1, _) => LevelFilter::Error,
        (2, _) => LevelFilter::Warn,
        (3, _) => LevelFilter::Info,
        (4, _) => LevelFilter::Debug,
        (5, _) => LevelFilter::Trace,
        (other, _) => {
            return Err(Failure::invalid(format!(
                "there is no level {other}; levels are 1 (error) to 5 (trace)"
            )));
        }
    };
    let mut place = LISTENER.write();
    let mut is_ours = INSTALLED.lock();
    if !*is_ours && listener.is_some() {
        let failed = |_| Failure::invalid("this program has a logger of the crate `log` already");
        log::set_logger(&LOGGER).map_err(failed)?;
        *is_ours = true;
    }
    *place = listener;
    if *is_ours {
        log::set_max_level(level);
    }
    Ok(())
}

/// Whether the logger is ours.
static INSTALLED: parking_lot::Mutex<bool> = parking_lot::Mutex::new(false);
