//! Panics become failures, or lines of the log: none may leave this library.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use halite_hal::{Result, status};

/// Runs `body`; a panic becomes INTERNAL with its text.
pub(super) fn catch<R>(name: &str, body: impl FnOnce() -> R) -> Result<R> {
    // What a panic left half done is behind an object that is closed from then on.
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let status = status!(Internal, "'{name}' panicked: {}", panic_text(payload.as_ref()));
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            // A payload whose drop panics with such a payload: there is no end to it.
            std::mem::forget(again);
        }
        status
    })
}

/// Runs what answers nothing, such as a release; a panic is logged.
pub(super) fn swallow(name: &str, body: impl FnOnce()) {
    if let Err(status) = catch(name, body) {
        log::error!("{status}");
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is no text")
}
