//! Owns a call that was started: asking whether it is done, and waiting for its results.

use std::{fmt, sync::Arc};

use halite_runtime as runtime;

use crate::{Device, Limits, Outputs, Result, Value};

/// A call whose work may still be going on. Dropping it forgets the results; the work runs to its end.
#[must_use = "the results are in it"]
pub struct Pending {
    call: super::shim::PendingCall,
    names: Arc<[String]>,
    device: Option<Device>,
}

impl Pending {
    pub(super) fn new(call: super::shim::PendingCall, names: Arc<[String]>, device: Option<Device>) -> Self {
        Pending { call, names, device }
    }

    /// Whether the results are there, or the call has failed: then waiting does not block.
    pub fn is_done(&self) -> bool {
        self.call.is_done()
    }

    /// Waits for the results.
    ///
    /// # Errors
    /// The device or the program failed.
    pub fn wait(self) -> Result<Outputs> {
        self.wait_with(&Limits::new())
    }

    /// Waits for the results within limits.
    ///
    /// # Errors
    /// As [`Pending::wait`], and when a limit is reached; the work runs to its end without anybody waiting.
    pub fn wait_with(self, limits: &Limits) -> Result<Outputs> {
        let results = self.call.wait(&limits.call_options())?;
        let lift = |value| Value::lift(value, self.device.as_ref());
        Ok(Outputs::new(self.names, results.into_iter().map(lift).collect::<Result<_>>()?))
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("is_done", &self.is_done()).finish_non_exhaustive()
    }
}
