//! Owns what bounds a piece of work and tells how far it is: deadline, cancellation, progress. Does not own: the work.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use halite_hal::Deadline;
use halite_runtime::CallOptions;
pub use halite_runtime::CancelToken;

/// How far a piece of work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What is being done, for people: `importing`, `choosing kernels for hopper-h200-linux`, `building pipelines`, ….
    pub stage: &'a str,
    /// Steps of the stage that are done.
    pub done: usize,
    /// Steps of the stage.
    pub total: usize,
}

/// A function that is told how far a piece of work is. Called from the threads that work; it should return soon.
pub type ProgressFn = dyn Fn(Progress<'_>) + Send + Sync;

/// Bounds of one call or of the making of a session: when it gives up, what stops it, who is told how far it is.
///
/// Work looks at them in all its stages: reading, importing, planning, pipelines, transfers, running. It ends with
/// [`ErrorKind::DeadlineExceeded`](crate::ErrorKind::DeadlineExceeded) or
/// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), and the text names the stage. What a device has begun runs to its end,
/// without anybody waiting.
#[derive(Clone, Default)]
pub struct Limits {
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancel: Option<CancelToken>,
    pub(crate) progress: Option<Arc<ProgressFn>>,
}

impl Limits {
    /// No limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up at a point in time.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Gives up after this long from now. One that reaches further than clocks do is none.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.deadline = Instant::now().checked_add(timeout);
        self
    }

    /// Stops when the token is set.
    #[must_use]
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.cancel = Some(token.clone());
        self
    }

    /// Tells how far the work is.
    #[must_use]
    pub fn progress(mut self, told: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(told));
        self
    }

    pub(crate) fn call_options(&self) -> CallOptions {
        let deadline = self.deadline.map_or(Deadline::Never, Deadline::At);
        CallOptions { deadline, cancel: self.cancel.clone() }
    }

    /// Fails when the work should end.
    pub(crate) fn check(&self, stage: &str) -> crate::Result<()> {
        use crate::{Error, ErrorKind};
        if self.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(Error::new(ErrorKind::Cancelled, format!("cancelled while {stage}")));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::new(ErrorKind::DeadlineExceeded, format!("the deadline passed while {stage}")));
        }
        Ok(())
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits")
            .field("deadline", &self.deadline)
            .field("cancel", &self.cancel)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}
