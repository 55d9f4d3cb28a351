//! What bounds a piece of work and tells how far it is: deadline, cancellation, progress.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use halite_hal::Deadline;
use halite_hal::Fence;
use halite_runtime::{self as runtime, CallOptions};

use crate::{Error, ErrorKind, Result, tensor::Capacity};

/// Stops work from any thread, in all of its stages; see [`RunOptions::cancel`]. Clones are the same switch. Once set, it stays set.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(runtime::CancelToken);

impl CancelToken {
    /// A token that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the work.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was set.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    #[cfg(feature = "compiler")]
    pub(crate) fn flag(&self) -> Arc<std::sync::atomic::AtomicBool> {
        self.0.flag()
    }
}

/// A stage of the way from a file to results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// A file is read and decoded.
    Reading,
    /// A model becomes a graph.
    Importing,
    /// The graph is rewritten to do less work.
    Optimizing,
    /// Constants and the order of the work are decided.
    Planning,
    /// Kernels are chosen for a device.
    ChoosingKernels,
    /// A module is written.
    Writing,
    /// Weights are copied to the device.
    LoadingWeights,
    /// The device's driver compiles kernels.
    BuildingPipelines,
    /// Anything else; the detail names it.
    Other,
}

/// How far a piece of work is; what [`RunOptions::progress`] and [`SessionBuilder::progress`](crate::SessionBuilder::progress) report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What is being done.
    pub stage: Stage,
    /// The same for people: `choosing kernels for hopper-h200-linux`.
    pub detail: &'a str,
    /// Steps of the stage that are done: nodes, pipelines, bytes.
    pub done: u64,
    /// Steps of the stage. A stage may come again, with steps of its own.
    pub total: u64,
}

/// Is told how far a piece of work is, on the thread that works. It should return soon, and must not use the session that it is
/// told of: that would wait for itself.
pub type ProgressFn = dyn Fn(Progress<'_>) + Send + Sync;

/// Bounds one piece of work (a call, building a session, a compilation), lets it be stopped, and watches it. The same options may be
/// used many times; a timeout begins anew each time.
///
/// Work looks at them in all its stages: reading, importing, planning, pipelines, transfers, running. It ends with
/// [`ErrorKind::DeadlineExceeded`] or [`ErrorKind::Cancelled`], and the text names the stage. What a device has begun runs to its
/// end, without anybody waiting; on Vulkan that is at most about 100 ms of work, where no kernel alone takes longer. Calls that keep
/// state run to their end.
///
/// ```
/// use std::time::Duration;
///
/// let stop = halite::CancelToken::new();
/// let options = halite::RunOptions::new().timeout(Duration::from_secs(2)).cancel(&stop);
/// ```
#[derive(Clone, Default)]
pub struct RunOptions {
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    cancel: Option<CancelToken>,
    progress: Option<Arc<ProgressFn>>,
}

impl RunOptions {
    /// No bounds, and nobody is told.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up this long after the work begins.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gives up at a point in time.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Stops when the token is set.
    #[must_use]
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.cancel = Some(token.clone());
        self
    }

    /// Tells how far the work is; see [`ProgressFn`].
    #[must_use]
    pub fn progress(mut self, told: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(told));
        self
    }

    /// The options for work that begins now. Fails where it was stopped before.
    #[cfg(any(test, feature = "compiler"))]
    pub(crate) fn begin(&self) -> Result<Limits> {
        let limits = self.begin_within(None);
        limits.check_begin("the work")?;
        Ok(limits)
    }

    /// The same, with a timeout where none is given and no deadline.
    pub(crate) fn begin_within(&self, otherwise: Option<Duration>) -> Limits {
        let otherwise = otherwise.filter(|_| self.deadline.is_none());
        // A timeout that reaches further than clocks do is none.
        let timeout = self.timeout.or(otherwise).and_then(|timeout| Instant::now().checked_add(timeout));
        let deadline = match (timeout, self.deadline) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Limits { deadline, cancel: self.cancel.clone(), progress: self.progress.clone() }
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("timeout", &self.timeout)
            .field("deadline", &self.deadline)
            .field("cancel", &self.cancel)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// How inputs are handed to a call.
#[derive(Default)]
pub(crate) struct Handed {
    /// Whether whoever calls has kept the state, so that it is handed in as it is; elsewhere as copies.
    pub kept: bool,
    /// What the device is to have done before the call begins.
    pub after: Option<Fence>,
    /// Whether whoever calls hands its work to the device (`Pending::sent`).
    pub held: bool,
    /// The inputs that have rows to spare in their buffers.
    #[cfg_attr(not(feature = "compiler"), expect(dead_code, reason = "the states of modules have none"))]
    pub capacities: Vec<(usize, Capacity)>,
}

/// The bounds of work that has begun.
#[derive(Clone, Default)]
pub(crate) struct Limits {
    pub deadline: Option<Instant>,
    pub cancel: Option<CancelToken>,
    pub progress: Option<Arc<ProgressFn>>,
}

impl Limits {
    pub fn call_options(&self) -> CallOptions {
        let deadline = self.deadline.map_or(Deadline::Never, Deadline::At);
        CallOptions {
            deadline,
            cancel: self.cancel.as_ref().map(|token| token.0.clone()),
            after: None,
            held: false,
        }
    }

    /// Fails when the work should end.
    pub fn check(&self, doing: &str) -> Result<()> {
        self.check_at(&format_args!("while {doing}"))
    }

    /// Fails when work that has not begun should not begin.
    pub fn check_begin(&self, what: &str) -> Result<()> {
        self.check_at(&format_args!("before {what} began"))
    }

    /// Fails when the work should end, and says when it was told so.
    fn check_at(&self, when: &dyn fmt::Display) -> Result<()> {
        if self.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(Error::new(ErrorKind::Cancelled, format!("cancelled {when}")));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::new(ErrorKind::DeadlineExceeded, format!("the deadline passed {when}")));
        }
        Ok(())
    }

    /// Whether the work may go on.
    #[cfg(feature = "compiler")]
    pub fn goes_on(&self) -> bool {
        self.check("").is_ok()
    }

    pub fn tell(&self, stage: Stage, detail: &str, done: u64, total: u64) {
        if let Some(told) = &self.progress {
            told(Progress { stage, detail, done, total });
        }
    }

    /// Who is told of stages of the runtime.
    pub fn runtime_sink(&self) -> Option<runtime::ProgressSink> {
        let told = self.progress.clone()?;
        Some(Arc::new(move |stage: &str, done: u64, total: u64| {
            let (stage, detail) = match stage {
                runtime::PROGRESS_PIPELINES => (Stage::BuildingPipelines, "building pipelines"),
                runtime::PROGRESS_PARAMETERS => (Stage::LoadingWeights, "loading weights"),
                other => (Stage::Other, other),
            };
            told(Progress { stage, detail, done, total });
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_begins_when_the_work_does() {
        let options = RunOptions::new().timeout(Duration::from_secs(3600));
        let first = options.begin().unwrap().deadline.unwrap();
        let next = options.begin().unwrap();
        assert!(next.deadline.unwrap() >= first && next.goes_on());
        let over = RunOptions::new().timeout(Duration::from_secs(3600)).deadline(Instant::now());
        let error = over.begin_within(None).check("waiting").unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::DeadlineExceeded, "the deadline passed while waiting")
        );
        let error = over.begin().err().unwrap();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::DeadlineExceeded, "the deadline passed before the work began")
        );
        assert!(RunOptions::new().timeout(Duration::MAX).begin().unwrap().goes_on());
        let token = CancelToken::new();
        let options = RunOptions::new().cancel(&token);
        let stopped = options.begin().unwrap();
        token.cancel();
        assert_eq!(stopped.check("waiting").unwrap_err().kind(), ErrorKind::Cancelled);
        let error = options.begin().err().unwrap();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Cancelled, "cancelled before the work began")
        );
    }
}
