//! Failures as exceptions: `halite.Error`, which the package defines in Python so that it can be pickled and subclassed.

use halite::ErrorKind;
use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyList, PyType},
};

/// The class `halite.Error`.
static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The name of a kind, as `Error.kind` has it.
pub fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "not_found",
        ErrorKind::InvalidInput => "invalid_input",
        ErrorKind::InvalidModel => "invalid_model",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::NoDevice => "no_device",
        ErrorKind::OutOfMemory => "out_of_memory",
        ErrorKind::DeadlineExceeded => "deadline_exceeded",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::DeviceLost => "device_lost",
        ErrorKind::PermissionDenied => "permission_denied",
        ErrorKind::Io => "io",
        _ => "other",
    }
}

fn exception(py: Python<'_>, text: &str, kind: &str, code: &str, context: &[String]) -> PyErr {
    instance(py, text, kind, code, context).map_or_else(|error| error, PyErr::from_value)
}

/// What `Error.__init__` makes, without a step of Python's interpreter, which would let other threads run: the interpreter may have ended
/// when they are done, and ends this thread then in the middle of the library (`running.rs`).
fn instance<'py>(
    py: Python<'py>,
    text: &str,
    kind: &str,
    code: &str,
    context: &[String],
) -> PyResult<Bound<'py, PyAny>> {
    let class = CLASS.import(py, "halite._errors", "Error")?;
    let context = PyList::new(py, context)?;
    let made = class.call_method1("__new__", (class, text, kind, code, &context))?;
    made.setattr("message", text)?;
    made.setattr("kind", kind)?;
    made.setattr("code", code)?;
    made.setattr("context", context)?;
    Ok(made)
}

/// An error of the library as an exception.
pub fn raised(py: Python<'_>, error: &halite::Error) -> PyErr {
    exception(py, error.message(), kind_name(error.kind()), error.code_name(), error.context())
}

/// An exception for something that the caller gave and that does not fit.
pub fn invalid(py: Python<'_>, text: &str) -> PyErr {
    exception(py, text, kind_name(ErrorKind::InvalidInput), "INVALID_ARGUMENT", &[])
}

/// An exception for work that was not done because something else ends.
pub fn cancelled(py: Python<'_>, text: &str) -> PyErr {
    exception(py, text, kind_name(ErrorKind::Cancelled), "CANCELLED", &[])
}

/// An exception for a fault that nobody foresaw.
pub fn fault(py: Python<'_>, text: &str) -> PyErr {
    exception(py, text, kind_name(ErrorKind::Other), "INTERNAL", &[])
}

/// Results of the library as results of Python.
pub trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for halite::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error))
    }
}
