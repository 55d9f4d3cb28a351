//! The errors of reading a target.

use std::fmt;

/// The grammar, as error messages state it.
pub(crate) const GRAMMAR: &str = "a target is <arch-or-vendor>-<product>-<os>, such as valhall-g78-android30, \
                                  ampere-unknown-windows or cpu-llvmpipe-linux, or one name such as rtx3080 or sm_90";

/// Why a text is no target. The messages name what was read, names that are spelled like it, and the grammar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Nothing was given.
    #[error("an empty text is no target: {GRAMMAR}")]
    Empty,
    /// Neither a triple nor a known name.
    #[error("'{text}' is no known target{near}: {GRAMMAR}")]
    UnknownName {
        /// What was given.
        text: String,
        /// Known names like it.
        near: NearNames,
    },
    /// The first component is no architecture, vendor or alias of one.
    #[error("target '{text}': '{arch}' is no known architecture or vendor{near}: {GRAMMAR}")]
    UnknownArch {
        /// The whole text.
        text: String,
        /// The component.
        arch: String,
        /// Known names like it.
        near: NearNames,
    },
    /// The product is not one of the architecture.
    #[error(
        "target '{text}': '{arch}' has no product '{product}'{near}; '{arch}-unknown-{os}' stands for any"
    )]
    UnknownProduct {
        /// The whole text.
        text: String,
        /// The architecture or vendor.
        arch: String,
        /// The component.
        product: String,
        /// The system, as given.
        os: String,
        /// Known names like it.
        near: NearNames,
    },
    /// The last component is no operating system.
    #[error("target '{text}': '{os}' is no known operating system{near}: {GRAMMAR}")]
    UnknownOs {
        /// The whole text.
        text: String,
        /// The component.
        os: String,
        /// Known names like it.
        near: NearNames,
    },
}

/// Names that are spelled like an unknown one; shows as ` (did you mean a or b?)`, or as nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NearNames(pub Vec<String>);

impl fmt::Display for NearNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => Ok(()),
            [one] => write!(f, " (did you mean {one}?)"),
            [first @ .., last] => write!(f, " (did you mean {} or {last}?)", first.join(", ")),
        }
    }
}
