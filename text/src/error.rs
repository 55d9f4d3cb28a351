//! Why a text is no tokens, or a conversation no prompt.

use thiserror::Error;

/// Why a tokenizer or a template is not there, or refuses what it was given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextError {
    /// The metadata say nothing of it, or what they say is wrong.
    #[error("the metadata key '{key}' {problem}")]
    Metadata {
        /// The key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Something that is right, and that is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// A text or a number that the caller gave.
    #[error("{0}")]
    Invalid(String),
}

impl TextError {
    pub(crate) fn metadata(key: &str, problem: impl Into<String>) -> Self {
        TextError::Metadata { key: key.to_owned(), problem: problem.into() }
    }
}
