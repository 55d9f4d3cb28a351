//! The errors of this crate.

use thiserror::Error;

/// Why a SPIR-V module was not accepted, or a question about it has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpirvError {
    /// The words are no SPIR-V module, or break a rule of the specification that this crate checks.
    #[error("invalid SPIR-V at word {word}: {message}; the module is damaged, compile it again")]
    Invalid {
        /// Offset of the instruction, in 32-bit words from the start of the module.
        word: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// The named entry point is not in the module.
    #[error("no entry point named `{name}` in the SPIR-V module; it has: {available}")]
    NoEntryPoint {
        /// What was asked for.
        name: String,
        /// The names that exist, separated by commas.
        available: String,
    },
    /// The bytes cannot be cut into 32-bit words.
    #[error(
        "SPIR-V must be a whole number of 32-bit words, but there are {bytes} bytes; compile the module again"
    )]
    PartialWord {
        /// Length of the input in bytes.
        bytes: usize,
    },
    /// Changes to a module would make one that the format has no room for. The text completes "the module cannot be
    /// changed: ".
    #[error("the SPIR-V module cannot be changed: {0}")]
    Edit(String),
}

impl SpirvError {
    pub(crate) fn at(word: usize, message: impl Into<String>) -> Self {
        SpirvError::Invalid { word, message: message.into() }
    }
}

/// Why a kernel cannot be changed as asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// The words are no valid module, or have no such entry point.
    #[error(transparent)]
    Spirv(#[from] SpirvError),
    /// The kernel is valid, but does something that the change does not support. The text completes "the kernel cannot
    /// be changed: ".
    #[error("{0}")]
    Unsupported(String),
}

/// The answer for a kernel that a change does not support.
pub(crate) fn unsupported<T>(why: impl Into<String>) -> Result<T, ChangeError> {
    Err(ChangeError::Unsupported(why.into()))
}
