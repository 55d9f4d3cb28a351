//! The failures of reading and writing modules and executables.

use crate::flatbuffer::FlatbufferError;
use thiserror::Error;

/// Why a module or executable was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VmfbError {
    /// The file is not an IREE module, or its container is damaged.
    #[error("not a usable IREE module: {problem}; expected a .vmfb written by iree-compile or by Halite")]
    Container {
        /// What is wrong, with offsets and limits.
        problem: String,
    },
    /// The FlatBuffer is damaged.
    #[error(transparent)]
    Flatbuffer(#[from] FlatbufferError),
    /// The bytecode version is another.
    #[error(
        "module has bytecode version {found_major}.{found_minor}, this reader supports {major}.0 to {major}.{minor}; \
         compile it again with a matching compiler"
    )]
    BytecodeVersion {
        /// Major version of the module.
        found_major: u16,
        /// Minor version of the module.
        found_minor: u16,
        /// Major version that is read.
        major: u16,
        /// Highest minor version that is read.
        minor: u16,
    },
    /// Unknown requirement bits: the module needs features that this reader does not know.
    #[error("{what} requires features {bits:#x}, of which {unknown:#x} are unknown here (known: {known:#x})")]
    Requirements {
        /// `the module` or a function.
        what: String,
        /// All bits.
        bits: u32,
        /// Those unknown.
        unknown: u32,
        /// Those known.
        known: u32,
    },
    /// A value is outside what the format allows.
    #[error("{what}: {problem}")]
    Invalid {
        /// Table, field and index, such as `BytecodeModuleDef.rodata_segments[3]`.
        what: String,
        /// What is wrong, with the limit.
        problem: String,
    },
    /// The caller did not want to go on.
    #[error("the caller ended the work")]
    Stopped,
    /// The executable is not a Vulkan one, or its wrapper is damaged.
    #[error("not a usable Vulkan executable: {problem}")]
    ExecutableHeader {
        /// What is wrong.
        problem: String,
    },
    /// The executable has another format version. Maps to INCOMPATIBLE.
    #[error(
        "Vulkan executable has {what} {found}, this reader supports {supported}; compile the module again"
    )]
    ExecutableVersion {
        /// Which version: `wrapper version`, `BDA ABI version`, …
        what: &'static str,
        /// What the file has.
        found: u32,
        /// What is read.
        supported: u32,
    },
}

impl VmfbError {
    /// Whether the file is sound but of another version.
    pub fn is_incompatible(&self) -> bool {
        matches!(self, VmfbError::BytecodeVersion { .. } | VmfbError::ExecutableVersion { .. })
    }

    pub(super) fn invalid(what: impl Into<String>, problem: impl Into<String>) -> Self {
        VmfbError::Invalid { what: what.into(), problem: problem.into() }
    }
}
