//! Why a VGF file is refused by its reader.

use crate::flatbuffer::FlatbufferError;
use thiserror::Error;

/// Why a VGF file was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VgfError {
    /// The header is damaged or of a version that is not known, or it is no VGF file.
    #[error("not a usable VGF file: {problem}; expected a .vgf of version 0.3 to 0.5")]
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

impl VgfError {
    pub(super) fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        VgfError::Invalid { place: place.into(), problem: problem.into() }
    }

    pub(super) fn container(problem: impl Into<String>) -> Self {
        VgfError::Container { problem: problem.into() }
    }
}
