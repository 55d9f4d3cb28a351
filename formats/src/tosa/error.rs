//! Why a `.tosa` file is refused by its reader.

use crate::flatbuffer::FlatbufferError;
use thiserror::Error;

/// Why a file was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TosaError {
    /// Its FlatBuffer is damaged, or it is none of TOSA.
    #[error(transparent)]
    Flatbuffer(#[from] FlatbufferError),
    /// Something in it contradicts the rules of the format.
    #[error("{place}: {problem}")]
    Invalid {
        /// Which graph, operator or tensor.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// It has what this reader does not know.
    #[error("{place}: {problem}")]
    Unsupported {
        /// Which graph, operator or tensor.
        place: String,
        /// What is not supported.
        problem: String,
    },
}

impl TosaError {
    pub(super) fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        TosaError::Invalid { place: place.into(), problem: problem.into() }
    }

    pub(super) fn unsupported(place: impl Into<String>, problem: impl Into<String>) -> Self {
        TosaError::Unsupported { place: place.into(), problem: problem.into() }
    }

    /// Whether the file is right as far as it was read, but asks for what is not supported.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, TosaError::Unsupported { .. })
    }
}
