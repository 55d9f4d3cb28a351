//! Why an ExecuTorch program is refused by its reader.

use crate::flatbuffer::FlatbufferError;
use thiserror::Error;

/// Why a program, or the data of a delegate in it, was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PteError {
    /// The file around the FlatBuffer is damaged, or it is no program.
    #[error("not a usable ExecuTorch program: {problem}; expected a .pte with the identifier ET12")]
    Container {
        /// What is wrong, with offsets and limits.
        problem: String,
    },
    /// A FlatBuffer in it is damaged.
    #[error(transparent)]
    Flatbuffer(#[from] FlatbufferError),
    /// Something in it contradicts the rules of the format.
    #[error("{place}: {problem}")]
    Invalid {
        /// Which table and element.
        place: String,
        /// What is wrong.
        problem: String,
    },
}

impl PteError {
    pub(super) fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        PteError::Invalid { place: place.into(), problem: problem.into() }
    }

    pub(super) fn container(problem: impl Into<String>) -> Self {
        PteError::Container { problem: problem.into() }
    }
}
