//! What can be wrong with an ELF file.

use thiserror::Error;

use super::Machine;

/// Why a file cannot be loaded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElfError {
    /// Something lies outside of the file.
    #[error("{what} at {offset:#x} with {length:#x} bytes lies outside of {limit:#x} bytes")]
    OutOfFile {
        /// What was to be read.
        what: &'static str,
        /// Where it should be.
        offset: u64,
        /// How long it should be.
        length: u64,
        /// Bytes that there are.
        limit: u64,
    },
    /// A header does not say what it has to.
    #[error("{field} is {found:#x}, expected {expected:#x}")]
    Header {
        /// The field.
        field: &'static str,
        /// What it says.
        found: u64,
        /// What it has to say.
        expected: u64,
    },
    /// It is code for another processor.
    #[error("the code is for ELF machine {found}, this processor is {host:?}")]
    Machine {
        /// `e_machine`.
        found: u16,
        /// What the process runs on.
        host: Machine,
    },
    /// It asks for something that embedded code must not need.
    #[error("the file needs {what}, which embedded code cannot have")]
    Unsupported {
        /// What it asks for.
        what: String,
    },
    /// Two parts of the file do not fit together.
    #[error("{what}")]
    Inconsistent {
        /// What does not fit.
        what: String,
    },
    /// A relocation that is not known, or that does not fit.
    #[error("relocation {index} of type {kind} at {offset:#x}: {what}")]
    Relocation {
        /// Number of the relocation.
        index: usize,
        /// Its type.
        kind: u32,
        /// What it changes.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A symbol that was looked for.
    #[error("the file has no function '{name}'")]
    NoSymbol {
        /// Its name.
        name: String,
    },
}

impl ElfError {
    pub(super) fn unsupported(what: impl Into<String>) -> Self {
        ElfError::Unsupported { what: what.into() }
    }

    pub(super) fn inconsistent(what: impl Into<String>) -> Self {
        ElfError::Inconsistent { what: what.into() }
    }
}
