//! Owns the error value of this crate.
//! Does not own: how a driver or a tool words it for the user.

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
}

impl SpirvError {
    pub(crate) fn at(word: usize, message: impl Into<String>) -> Self {
        SpirvError::Invalid { word, message: message.into() }
    }
}
