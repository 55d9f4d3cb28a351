//! The one error type of this crate.

use std::{fmt, io, path::Path};

use halite_abi::{Code, Status};

/// `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure an [`Error`] is. Programs decide by it; the text is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file, device, driver, function, input or output that was named does not exist.
    NotFound,
    /// The caller gave something wrong: an input of another shape or type, contradicting options.
    InvalidInput,
    /// The model or module is damaged, or contradicts its format.
    InvalidModel,
    /// The model is right, and something in it is not supported, here or on this device.
    Unsupported,
    /// No device can be used; the text says what was looked at.
    NoDevice,
    /// Memory of the host or of the device did not suffice, or a limit that was set.
    OutOfMemory,
    /// The deadline passed; the text says in which stage.
    DeadlineExceeded,
    /// The cancel token was set; the text says in which stage.
    Cancelled,
    /// The device stopped working. It and its sessions are of no use any more; open it again.
    DeviceLost,
    /// The system refused an access.
    PermissionDenied,
    /// A file could not be read or written.
    Io,
    /// Anything else, such as a fault of a driver or of Halite.
    Other,
}

/// What went wrong, where, and what to do about it.
///
/// ```
/// use halite::{ErrorKind, Session};
///
/// let error = Session::builder().model("no-such-file.onnx").build().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// println!("{error}");
/// ```
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    status: Status,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let code = match kind {
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::InvalidInput | ErrorKind::InvalidModel => Code::InvalidArgument,
            ErrorKind::Unsupported => Code::Unimplemented,
            ErrorKind::NoDevice => Code::Unavailable,
            ErrorKind::OutOfMemory => Code::ResourceExhausted,
            ErrorKind::DeadlineExceeded => Code::DeadlineExceeded,
            ErrorKind::Cancelled => Code::Cancelled,
            ErrorKind::DeviceLost => Code::DataLoss,
            ErrorKind::PermissionDenied => Code::PermissionDenied,
            ErrorKind::Io | ErrorKind::Other => Code::Unknown,
        };
        Error { kind, status: Status::new(code, message.into()) }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::InvalidInput, message)
    }

    /// A file that could not be read or written.
    pub(crate) fn file(doing: &str, path: &Path, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
            io::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
            // A folder in place of a file.
            io::ErrorKind::IsADirectory => ErrorKind::InvalidInput,
            _ => ErrorKind::Io,
        };
        Error::new(kind, format!("{doing} '{}': {error}", path.display()))
    }

    /// Adds what was being done.
    #[cfg(feature = "compiler")]
    pub(crate) fn while_doing(mut self, what: impl Into<String>) -> Self {
        self.status = self.status.annotate(what);
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What went wrong, without what was being done.
    pub fn message(&self) -> &str {
        self.status.message()
    }

    /// What was being done, from the innermost step outwards.
    pub fn context(&self) -> &[String] {
        self.status.annotations()
    }

    /// The name of the status code that modules and IREE's tools know it by, such as `INVALID_ARGUMENT`.
    pub fn code_name(&self) -> &'static str {
        self.status.code().name()
    }

    /// The status as the layer [`hal`](crate::hal) has it.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The status as the layer [`hal`](crate::hal) has it.
    pub fn into_status(self) -> Status {
        self.status
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.status)
    }
}

impl std::error::Error for Error {}

/// For names of formats and of times between passes.
#[cfg(feature = "compiler")]
impl From<halite_compiler::UnknownName> for Error {
    fn from(error: halite_compiler::UnknownName) -> Self {
        Error::invalid(error.to_string())
    }
}

impl From<Status> for Error {
    /// For programs that work with the layer [`hal`](crate::hal).
    fn from(status: Status) -> Self {
        let kind = match status.code() {
            Code::NotFound => ErrorKind::NotFound,
            Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => ErrorKind::InvalidInput,
            Code::Unimplemented | Code::Incompatible => ErrorKind::Unsupported,
            Code::Unavailable => ErrorKind::NoDevice,
            Code::ResourceExhausted => ErrorKind::OutOfMemory,
            Code::DeadlineExceeded => ErrorKind::DeadlineExceeded,
            Code::Cancelled => ErrorKind::Cancelled,
            Code::PermissionDenied => ErrorKind::PermissionDenied,
            Code::DataLoss => ErrorKind::DeviceLost,
            _ => ErrorKind::Other,
        };
        Error { kind, status }
    }
}

impl Error {
    /// An error of the layer below.
    pub(crate) fn of_runtime(error: halite_runtime::Error) -> Self {
        use halite_runtime::Error as E;
        let kind = match &error {
            E::Read { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
                _ => ErrorKind::Io,
            },
            E::Format { .. } => ErrorKind::InvalidModel,
            E::FunctionNotFound { .. } => ErrorKind::NotFound,
            E::FunctionAmbiguous { .. } => ErrorKind::InvalidInput,
            _ => ErrorKind::Other,
        };
        match error {
            E::Status(status) => status.into(),
            other => Error { kind, status: Status::new(other.code(), other.to_string()) },
        }
    }
}
