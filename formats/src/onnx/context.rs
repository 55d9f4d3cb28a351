//! Where the reading of a message is.

use super::OnnxError;

/// Where a message is that may have others of its kind inside.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// Number of graphs that it is in.
    pub(super) depth: u32,
    /// Whether the caller still wants the model.
    pub(super) goes_on: &'a dyn Fn() -> bool,
}

impl Context<'_> {
    /// Whether to go on.
    pub(super) fn check(self) -> Result<(), OnnxError> {
        if (self.goes_on)() { Ok(()) } else { Err(OnnxError::Stopped) }
    }
}
