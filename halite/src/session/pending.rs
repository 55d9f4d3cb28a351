//! A call that was started: asking whether it is done, and waiting for its results.

use std::{fmt, sync::Arc, time::Duration};

use halite_runtime as runtime;

use super::Session;
use crate::{ErrorKind, Outputs, Result, RunOptions, Value, options::Limits};

/// A call whose work may still be going on, from [`Session::start`] or [`Function::start`](crate::Function::start).
///
/// ```no_run
/// # let session = halite::Session::builder().model("digits.onnx").build()?;
/// # let inputs = halite::Inputs::new();
/// let call = session.start(inputs)?;
/// // Do something else meanwhile.
/// let out = call.wait()?;
/// # Ok::<(), halite::Error>(())
/// ```
///
/// Any thread may ask it and wait for it. Dropping it gives up the results; the work runs to its end.
#[must_use = "the results are in it"]
pub struct Pending {
    call: runtime::PendingCall,
    names: Arc<[String]>,
    session: Session,
}

impl Pending {
    pub(super) fn new(call: runtime::PendingCall, names: Arc<[String]>, session: Session) -> Self {
        Pending { call, names, session }
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
        self.finish(&self.session.begin(&RunOptions::new()))
    }

    /// Waits for the results with options. A wait that they end leaves the call as it is: wait again, or drop it. Every wait
    /// gives the same results.
    ///
    /// # Errors
    /// As [`Pending::wait`], and when the options end it.
    pub fn wait_with(&self, options: &RunOptions) -> Result<Outputs> {
        self.finish(&self.session.begin(options))
    }

    /// Waits no longer than this: `None` when the results are not there by then.
    ///
    /// # Errors
    /// As [`Pending::wait`].
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<Outputs>> {
        match self.wait_with(&RunOptions::new().timeout(timeout)) {
            Err(error) if error.kind() == ErrorKind::DeadlineExceeded && !self.is_done() => Ok(None),
            other => other.map(Some),
        }
    }

    pub(crate) fn finish(&self, limits: &Limits) -> Result<Outputs> {
        let results = self.call.wait(&limits.call_options()).map_err(crate::Error::of_runtime)?;
        let lift = |value| Value::lift(value, self.session.devices());
        Ok(Outputs::new(self.names.clone(), results.into_iter().map(lift).collect::<Result<_>>()?))
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("is_done", &self.is_done()).finish_non_exhaustive()
    }
}
