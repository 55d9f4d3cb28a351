//! The failures of reading ONNX models.

use crate::wire::WireError;

/// Why a model is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The bytes are no protocol buffer message.
    #[error("{message}: {reason}; the file is damaged, cut short, or no ONNX model")]
    Wire {
        /// The message that was being read.
        message: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Something that every model has is missing, or what is there contradicts the format.
    #[error("{message}: {reason}")]
    Invalid {
        /// The message.
        message: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The caller did not want to go on.
    #[error("the caller ended the reading")]
    Stopped,
    /// A tensor's elements do not go with its type and dimensions.
    #[error("tensor '{name}': {reason}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl From<WireError> for OnnxError {
    fn from(WireError { message, reason }: WireError) -> Self {
        OnnxError::Wire { message, reason }
    }
}

impl OnnxError {
    pub(super) fn invalid(message: &'static str, reason: impl Into<String>) -> Self {
        OnnxError::Invalid { message, reason: reason.into() }
    }
}
