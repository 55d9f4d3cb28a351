//! Why a GGUF file is not read.

use thiserror::Error;

/// Why a GGUF file is not read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The version of the format, or the order of its bytes, is not read.
    #[error("version {found} is not supported; {supported}")]
    Version {
        /// The version in the file.
        found: String,
        /// What is supported, and what to do.
        supported: &'static str,
    },
    /// Something in the file is wrong.
    #[error("{what}: {problem}")]
    Invalid {
        /// What.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A range ends behind the file.
    #[error("{what} at {offset} of {length} bytes ends past {limit}; the file is damaged or cut short")]
    OutOfRange {
        /// What lies there.
        what: String,
        /// Where it begins.
        offset: u64,
        /// Its bytes.
        length: u64,
        /// The file's bytes.
        limit: u64,
    },
}

impl GgufError {
    pub(super) fn invalid(what: impl Into<String>, problem: impl Into<String>) -> Self {
        GgufError::Invalid { what: what.into(), problem: problem.into() }
    }
}

/// Checks that a range lies within the file.
pub(super) fn within(
    file_length: usize,
    what: impl FnOnce() -> String,
    offset: Option<u64>,
    length: u64,
) -> Result<u64, GgufError> {
    let limit = file_length as u64;
    match offset {
        Some(o) if o.checked_add(length).is_some_and(|end| end <= limit) => Ok(o),
        _ => {
            let offset = offset.unwrap_or(u64::MAX);
            Err(GgufError::OutOfRange { what: what(), offset, length, limit })
        }
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
