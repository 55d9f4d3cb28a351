//! Kinds of errors.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use halite::{Error, ErrorKind};

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
/// No device can be used. The text lists the devices that the library tried.
pub const HALITE_ERROR_NO_DEVICE: halite_error_kind = 5;
/// The host or the device ran out of memory, or a limit was reached.
pub const HALITE_ERROR_OUT_OF_MEMORY: halite_error_kind = 6;
/// The time limit passed. The text says in which stage.
pub const HALITE_ERROR_DEADLINE_EXCEEDED: halite_error_kind = 7;
/// A cancel token was set; the text says in which stage.
pub const HALITE_ERROR_CANCELLED: halite_error_kind = 8;
/// The device stopped working. Its sessions cannot be used any more; open the device again.
pub const HALITE_ERROR_DEVICE_LOST: halite_error_kind = 9;
/// The system refused an access.
pub const HALITE_ERROR_PERMISSION_DENIED: halite_error_kind = 10;
/// A file could not be read or written.
pub const HALITE_ERROR_IO: halite_error_kind = 11;
/// Anything else, such as a fault of a driver or of Halite.
pub const HALITE_ERROR_OTHER: halite_error_kind = 12;

/// A failure on its way to the caller.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub kind: halite_error_kind,
    pub code: &'static str,
    pub message: String,
    /// What was being done, from the innermost step outwards.
    pub context: Vec<String>,
    /// All of it.
    pub text: String,
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

/// Runs something; a panic becomes a failure.
pub(crate) fn catch<T>(name: &str, body: impl FnOnce() -> T) -> Result<T> {
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
