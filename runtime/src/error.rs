//! The error of the public API.

use std::{io, path::PathBuf};

use halite_hal::{Code, Status};

/// `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong while loading or running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read '{}': {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file was read but is not what it should be.
    #[error("cannot load {what} '{name}': {reason}")]
    Format {
        /// What it should be, such as `module`.
        what: &'static str,
        /// File name or the caller's name for the bytes.
        name: String,
        /// What the reader found.
        reason: String,
    },
    /// No loaded module exports the function that was asked for.
    #[error("no function '{name}'; exported functions: {}", list(available))]
    FunctionNotFound {
        /// What was asked for.
        name: String,
        /// `module.function` of every exported function.
        available: Vec<String>,
    },
    /// No function was named and there is not exactly one to choose.
    #[error("name a function: the module does not have exactly one; exported functions: {}", list(available))]
    FunctionAmbiguous {
        /// `module.function` of every exported function.
        available: Vec<String>,
    },
    /// Everything else: devices, linking, execution. The status says what was being done.
    #[error(transparent)]
    Status(#[from] Status),
}

impl Error {
    /// The status code that fits the error.
    pub fn code(&self) -> Code {
        match self {
            Error::Read { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Code::NotFound,
                io::ErrorKind::PermissionDenied => Code::PermissionDenied,
                io::ErrorKind::OutOfMemory => Code::ResourceExhausted,
                // A folder or a device in place of a file.
                io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => Code::InvalidArgument,
                _ => Code::Unknown,
            },
            Error::Format { .. } | Error::FunctionAmbiguous { .. } => Code::InvalidArgument,
            Error::FunctionNotFound { .. } => Code::NotFound,
            Error::Status(status) => status.code(),
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_exists() {
        let e = Error::FunctionNotFound { name: "f".into(), available: vec!["m.a".into(), "m.b".into()] };
        assert_eq!(e.to_string(), "no function 'f'; exported functions: m.a, m.b");
        assert_eq!(e.code(), Code::NotFound);
        let e = Error::Read { path: "x.vmfb".into(), source: io::ErrorKind::NotFound.into() };
        assert!(e.to_string().starts_with("cannot read 'x.vmfb'"));
        assert_eq!(e.code(), Code::NotFound);
    }
}
