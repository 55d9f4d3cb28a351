//! The failures of reading and writing parameter archives.

use super::Kind;
use thiserror::Error;

/// Why a parameter archive was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParamError {
    /// Neither the name nor the first bytes tell what the file is.
    #[error("{path}: not a parameter archive that is known here; .irpa, .safetensors and .gguf files are")]
    UnknownKind {
        /// File name.
        path: String,
    },
    /// The name says one thing, the first bytes another.
    #[error("{path}: named like {expected}, but its first bytes are those of {found}; rename it")]
    WrongKind {
        /// File name.
        path: String,
        /// What the name says.
        expected: Kind,
        /// What the bytes say.
        found: Kind,
    },
    /// A version that is not read.
    #[error("{kind}: version {found} is not supported; {supported}")]
    Version {
        /// Format.
        kind: Kind,
        /// What the file has.
        found: String,
        /// What would do.
        supported: &'static str,
    },
    /// A range lies outside the file or segment that should hold it.
    #[error(
        "{kind}: {what} at {offset} of {length} bytes ends past {limit}; the file is damaged or cut short"
    )]
    OutOfRange {
        /// Format.
        kind: Kind,
        /// Segment, entry or field.
        what: String,
        /// From the start of the file or segment; the highest number when it overflowed.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Bytes of the file or segment.
        limit: u64,
    },
    /// A value is outside what the format allows.
    #[error("{kind}: {what}: {problem}")]
    Invalid {
        /// Format.
        kind: Kind,
        /// Segment, entry or field.
        what: String,
        /// What is wrong, with the limit.
        problem: String,
    },
    /// Two parameters have the same name.
    #[error("{kind}: two parameters are named `{name}`; names must be unique")]
    Duplicate {
        /// Format.
        kind: Kind,
        /// The name, shortened.
        name: String,
    },
}

impl ParamError {
    pub(super) fn invalid(kind: Kind, what: impl Into<String>, problem: impl Into<String>) -> Self {
        ParamError::Invalid { kind, what: what.into(), problem: problem.into() }
    }
}

/// A name from the file, cut to a length that fits a message.
pub(super) fn shorten(name: &str) -> String {
    const LONGEST: usize = 80;
    match name.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &name[..cut]),
        None => name.to_owned(),
    }
}
