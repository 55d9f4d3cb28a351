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
    /// A tokenizer's file is damaged, or contradicts itself.
    #[error("{place} {problem}")]
    File {
        /// The file's kind or path, and where in it: `tokenizer.json: 'model.vocab'`.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// A file that cannot be read.
    #[error("{path}: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        problem: String,
    },
    /// Something that is right, and that is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// A chat template that takes more steps or memory than it may.
    #[error("{0}")]
    TooMuch(String),
    /// A text or a number that the caller gave.
    #[error("{0}")]
    Invalid(String),
}

impl TextError {
    pub(crate) fn metadata(key: &str, problem: impl Into<String>) -> Self {
        TextError::Metadata { key: key.to_owned(), problem: problem.into() }
    }

    pub(crate) fn file(place: impl Into<String>, problem: impl Into<String>) -> Self {
        TextError::File { place: place.into(), problem: problem.into() }
    }
}
