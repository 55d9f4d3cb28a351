//! Owns the account of a compilation: which kernels were chosen and why, memory, and sizes; as data and as text. Does not
//! own: any decision.

use std::fmt;

use serde::Serialize;

/// What was decided, and what it costs. In JSON as it is here; as text through `Display`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Name of the module.
    pub module: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "module {}", self.module)
    }
}
