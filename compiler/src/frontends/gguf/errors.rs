//! Errors of model files.

use crate::{CompileError, SourceLocation};

/// The error that a file is wrong.
pub(super) fn invalid(reason: impl Into<String>) -> CompileError {
    CompileError::invalid(&SourceLocation::default(), reason)
}

/// The error that a file asks for what is not supported.
pub(super) fn unsupported(reason: impl Into<String>) -> CompileError {
    CompileError::unsupported(&SourceLocation::default(), reason)
}

/// The error that a tensor is missing.
pub(super) fn missing(name: &str) -> CompileError {
    invalid(format!("the tensor '{name}' is missing"))
}
