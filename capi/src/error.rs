//! Errors of the C interface, and the way every call takes so that no panic leaves it.

use std::{
    any::Any,
    ffi::{CString, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use halite::{Error, ErrorKind};

use crate::raw;

/// What kind of failure an error is: one of `HALITE_ERROR_…`. Newer libraries may have more.
pub type halite_error_kind = u32;

/// A file, device, driver, function, input or output that was named does not exist.
pub const HALITE_ERROR_NOT_FOUND: halite_error_kind = 1;
/// The caller gave something wrong: an input of another shape or type, NULL, contradicting options.
pub const HALITE_ERROR_INVALID_INPUT: halite_error_kind = 2;
/// The model or module is damaged, or contradicts its format.
pub const HALITE_ERROR_INVALID_MODEL: halite_error_kind = 3;
/// The model is right, and something in it is not supported, here or on this device.
pub const HALITE_ERROR_UNSUPPORTED: halite_error_kind = 4;
/// No device can be used; the text says what was looked at.
pub const HALITE_ERROR_NO_DEVICE: halite_error_kind = 5;
/// Memory of the host or of the device did not suffice, or a limit that was set.
pub const HALITE_ERROR_OUT_OF_MEMORY: halite_error_kind = 6;
/// The time was over; the text says in which stage.
pub const HALITE_ERROR_DEADLINE_EXCEEDED: halite_error_kind = 7;
/// A cancel token was set; the text says in which stage.
pub const HALITE_ERROR_CANCELLED: halite_error_kind = 8;
/// The device stopped working. It and its sessions are of no use any more; open it again.
pub const HALITE_ERROR_DEVICE_LOST: halite_error_kind = 9;
/// The system refused an access.
pub const HALITE_ERROR_PERMISSION_DENIED: halite_error_kind = 10;
/// A file could not be read or written.
pub const HALITE_ERROR_IO: halite_error_kind = 11;
/// Anything else, such as a fault of a driver or of Halite.
pub const HALITE_ERROR_OTHER: halite_error_kind = 12;

/// A failure: what went wrong, where, and what to do about it. It belongs to whoever gets it; never changes.
pub struct halite_error {
    kind: halite_error_kind,
    code: CString,
    message: CString,
    context: Vec<CString>,
    text: CString,
}

/// A failure on its way to the caller.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub kind: halite_error_kind,
    code: &'static str,
    pub message: String,
    context: Vec<String>,
    text: String,
}

/// `Result` of this crate.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    fn new(kind: halite_error_kind, code: &'static str, message: String) -> Failure {
        Failure { kind, code, text: format!("{code}; {message}"), message, context: Vec::new() }
    }

    /// The caller did something wrong.
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(HALITE_ERROR_INVALID_INPUT, "INVALID_ARGUMENT", message.into())
    }

    /// Something that was named is not there.
    pub fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(HALITE_ERROR_NOT_FOUND, "NOT_FOUND", message.into())
    }

    /// Something that this library cannot do.
    pub fn unsupported(message: impl Into<String>) -> Failure {
        Failure::new(HALITE_ERROR_UNSUPPORTED, "UNIMPLEMENTED", message.into())
    }

    /// A file that could not be read or written.
    pub fn io(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
        use std::io::ErrorKind as Io;
        let (kind, code) = match error.kind() {
            Io::NotFound => (HALITE_ERROR_NOT_FOUND, "NOT_FOUND"),
            Io::PermissionDenied => (HALITE_ERROR_PERMISSION_DENIED, "PERMISSION_DENIED"),
            _ => (HALITE_ERROR_IO, "UNKNOWN"),
        };
        Failure::new(kind, code, format!("{doing} '{}': {error}", path.display()))
    }

    /// A fault of Halite.
    pub fn internal(message: impl Into<String>) -> Failure {
        Failure::new(HALITE_ERROR_OTHER, "INTERNAL", message.into())
    }

    /// Adds what was being done.
    pub fn within(mut self, what: &str) -> Failure {
        self.text += &format!("; while calling {what}");
        self.context.push(format!("while calling {what}"));
        self
    }

    /// As a handle that belongs to the caller.
    fn give(self) -> *mut halite_error {
        Box::into_raw(Box::new(halite_error {
            kind: self.kind,
            code: raw::c_text(self.code),
            message: raw::c_text(&self.message),
            context: self.context.iter().map(|line| raw::c_text(line)).collect(),
            text: raw::c_text(&self.text),
        }))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::NotFound => HALITE_ERROR_NOT_FOUND,
            ErrorKind::InvalidInput => HALITE_ERROR_INVALID_INPUT,
            ErrorKind::InvalidModel => HALITE_ERROR_INVALID_MODEL,
            ErrorKind::Unsupported => HALITE_ERROR_UNSUPPORTED,
            ErrorKind::NoDevice => HALITE_ERROR_NO_DEVICE,
            ErrorKind::OutOfMemory => HALITE_ERROR_OUT_OF_MEMORY,
            ErrorKind::DeadlineExceeded => HALITE_ERROR_DEADLINE_EXCEEDED,
            ErrorKind::Cancelled => HALITE_ERROR_CANCELLED,
            ErrorKind::DeviceLost => HALITE_ERROR_DEVICE_LOST,
            ErrorKind::PermissionDenied => HALITE_ERROR_PERMISSION_DENIED,
            ErrorKind::Io => HALITE_ERROR_IO,
            _ => HALITE_ERROR_OTHER,
        };
        Failure {
            kind,
            code: error.code_name(),
            message: error.message().to_owned(),
            context: error.context().to_vec(),
            text: error.to_string(),
        }
    }
}

/// Runs what a function does; a failure and a panic become an error of the caller's.
pub(crate) fn call(name: &str, body: impl FnOnce() -> Result<()>) -> *mut halite_error {
    let outcome = catch(name, body).and_then(|outcome| outcome);
    outcome.map_or_else(Failure::give, |()| ptr::null_mut())
}

/// Runs what a function without an error does; a panic is logged.
pub(crate) fn quiet<T>(name: &str, otherwise: T, body: impl FnOnce() -> Result<T>) -> T {
    match catch(name, body) {
        Ok(outcome) => outcome.unwrap_or(otherwise),
        Err(failure) => {
            log::error!("{}", failure.message);
            otherwise
        }
    }
}

fn catch<T>(name: &str, body: impl FnOnce() -> T) -> Result<T> {
    // What a panic left half done is behind locks without poison, and in values that are whole or gone.
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let failure = Failure::internal(format!("{name} panicked: {}", panic_text(payload.as_ref())));
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            // A payload whose drop panics with such a payload: there is no end to it.
            std::mem::forget(again);
        }
        failure
    })
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is no text")
}

/// What kind of failure it is. Programs decide by it; texts are for people. 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_get_kind(error: *const halite_error) -> halite_error_kind {
    // SAFETY: the contract of the interface.
    quiet("halite_error_get_kind", 0, || unsafe { Ok(raw::handle(error, "error")?.kind) })
}

/// The name of the status code that modules and IREE's tools know it by, such as `INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_code_name(error: *const halite_error) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_error_code_name", ptr::null(), || unsafe { Ok(raw::handle(error, "error")?.code.as_ptr()) })
}

/// What went wrong, without what was being done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_message(error: *const halite_error) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_error_message", ptr::null(), || unsafe {
        Ok(raw::handle(error, "error")?.message.as_ptr())
    })
}

/// All of it as one text: code, message, what was being done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_text(error: *const halite_error) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_error_text", ptr::null(), || unsafe { Ok(raw::handle(error, "error")?.text.as_ptr()) })
}

/// What was being done, from the innermost step outwards: line `index`, or NULL behind the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_context(error: *const halite_error, index: usize) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_error_context", ptr::null(), || unsafe {
        Ok(raw::handle(error, "error")?.context.get(index).map_or(ptr::null(), |line| line.as_ptr()))
    })
}

/// Frees an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_free(error: *mut halite_error) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_error_free", error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_and_failures_become_errors() {
        for (error, kind, text) in [
            (call("f", || panic!("all is {}", "lost")), HALITE_ERROR_OTHER, "f panicked: all is lost"),
            (call("f", || Err(Failure::invalid("no\0zero"))), HALITE_ERROR_INVALID_INPUT, "no\u{fffd}zero"),
        ] {
            // SAFETY: the error is ours.
            unsafe {
                assert_eq!(halite_error_get_kind(error), kind);
                assert_eq!(std::ffi::CStr::from_ptr(halite_error_message(error)).to_str(), Ok(text));
                assert_eq!(halite_error_context(error, 0), ptr::null());
                halite_error_free(error);
            }
        }
        assert!(call("f", || Ok(())).is_null());
        assert_eq!(quiet("f", 7, || panic!()), 7);
    }
}
