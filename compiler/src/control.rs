//! How a compilation is watched and stopped from outside: its stages, deadline, cancellation and progress.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use halite_targets::Target;

use crate::CompileError;

/// Steps between two reports of progress within a stage.
const REPORT_EVERY: usize = 32;

/// What a compilation is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The model's file is read and decoded.
    Reading,
    /// The model becomes a graph.
    Importing,
    /// The graph is rewritten to do less work.
    Optimizing,
    /// Constants and the order of the work are decided.
    Planning,
    /// Kernels are chosen for a target, and memory is laid out for them.
    ChoosingKernels(Target),
    /// The module is written.
    Writing,
}

impl fmt::Display for Stage {
    /// Completes "while ".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stage::Reading => f.write_str("reading the model"),
            Stage::Importing => f.write_str("importing the model"),
            Stage::Optimizing => f.write_str("optimizing the graph"),
            Stage::Planning => f.write_str("planning the module"),
            Stage::ChoosingKernels(target) => write!(f, "choosing kernels for {target}"),
            Stage::Writing => f.write_str("writing the module"),
        }
    }
}

/// How far a compilation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Steps of the stage that are done.
    pub done: usize,
    /// Steps of the stage. A stage comes again for each function and target, with its own steps.
    pub total: usize,
}

/// Receives progress. It is called on the thread that compiles, some thousand times for a large model, and should return at
/// once.
pub type ProgressSink = dyn Fn(Progress) + Send + Sync;

/// Called in each check with the stage, and the place in the sources that looks.
#[cfg(test)]
type Observer = dyn Fn(Stage, &'static std::panic::Location<'static>) + Send + Sync;

/// Watches and stops a compilation. Copies are cheap and belong together: [`Control::cancel`] on one stops the work of all.
///
/// The default has no deadline and no progress, and is never cancelled unless somebody keeps a copy. Every stage looks at it
/// after each node or piece of data, so that work ends soon after the deadline or the cancellation, with
/// [`CompileError::DeadlineExceeded`] or [`CompileError::Cancelled`]. What was made until then is dropped.
#[derive(Clone, Default)]
pub struct Control {
    deadline: Option<Instant>,
    cancelled: Arc<AtomicBool>,
    progress: Option<Arc<ProgressSink>>,
    #[cfg(test)]
    at_check: Option<Arc<Observer>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("deadline", &self.deadline)
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl Control {
    /// A control without a deadline that nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same with a flag of the caller's: the compilation is cancelled when it is true, and [`Control::cancel`] sets it.
    #[must_use]
    pub fn with_cancel_flag(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancelled = flag;
        self
    }

    /// The same with a receiver of progress.
    #[must_use]
    pub fn with_progress(mut self, sink: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(sink));
        self
    }

    /// The same without a receiver of progress, for work that is a part of a step.
    pub(crate) fn without_progress(&self) -> Self {
        Control { progress: None, ..self.clone() }
    }

    /// When the work has to be done, if there is a deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Ends the work of this control and its copies. May be called from any thread, and more than once.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Whether the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Whether the work may go on.
    ///
    /// # Errors
    /// [`CompileError::Cancelled`] or [`CompileError::DeadlineExceeded`], with the stage.
    #[cfg_attr(test, track_caller)]
    pub fn check(&self, stage: Stage) -> Result<(), CompileError> {
        #[cfg(test)]
        if let Some(at_check) = &self.at_check {
            at_check(stage, std::panic::Location::caller());
        }
        if self.is_cancelled() {
            return Err(CompileError::Cancelled { stage });
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(CompileError::DeadlineExceeded { stage }),
            _ => Ok(()),
        }
    }

    /// Tells the receiver of progress, if there is one.
    pub fn report(&self, progress: Progress) {
        if let Some(sink) = &self.progress {
            sink(progress);
        }
    }

    /// The control in a stage.
    pub(crate) fn at(&self, stage: Stage) -> Watch<'_> {
        Watch { control: self, stage }
    }

    /// The same, with a function that is called in each check: for tests of where checks are.
    #[cfg(test)]
    pub(crate) fn with_observer(
        mut self,
        at_check: impl Fn(Stage, &'static std::panic::Location<'static>) + Send + Sync + 'static,
    ) -> Self {
        self.at_check = Some(Arc::new(at_check));
        self
    }
}

/// A control in a stage: what is handed to work that several stages do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch<'a> {
    control: &'a Control,
    stage: Stage,
}

impl Watch<'_> {
    /// Whether the work may go on; see [`Control::check`].
    #[cfg_attr(test, track_caller)]
    pub fn check(self) -> Result<(), CompileError> {
        self.control.check(self.stage)
    }

    /// The same as an answer, for those who know no errors of compilations.
    #[cfg_attr(test, track_caller)]
    pub fn goes_on(self) -> bool {
        self.check().is_ok()
    }

    /// Reports progress now and then, and checks.
    #[cfg_attr(test, track_caller)]
    pub fn step(self, done: usize, total: usize) -> Result<(), CompileError> {
        if done.is_multiple_of(REPORT_EVERY) || done >= total {
            self.control.report(Progress { stage: self.stage, done, total });
        }
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use super::*;

    #[test]
    fn copies_are_cancelled_together_and_errors_name_the_stage() {
        let control = Control::new();
        let copy = control.clone();
        assert!(copy.check(Stage::Importing).is_ok());
        control.cancel();
        let error = copy.check(Stage::Importing).unwrap_err();
        assert!(matches!(error, CompileError::Cancelled { stage: Stage::Importing }) && error.is_stop());
        assert!(error.to_string().contains("importing the model"), "{error}");
        let flag = Arc::new(AtomicBool::new(false));
        let flagged = Control::new().with_cancel_flag(flag.clone());
        flag.store(true, Ordering::Release);
        assert!(flagged.is_cancelled() && flagged.check(Stage::Writing).is_err());
    }

    #[test]
    fn a_deadline_that_passed_is_told_with_the_stage() {
        let target = Target::parse("cpu-llvmpipe-linux").unwrap();
        let past = Control::new().with_deadline(Instant::now());
        let error = past.check(Stage::ChoosingKernels(target)).unwrap_err();
        assert!(matches!(error, CompileError::DeadlineExceeded { .. }));
        assert!(error.to_string().contains("choosing kernels for cpu-llvmpipe-linux"), "{error}");
        let far = Control::new().with_deadline(Instant::now() + Duration::from_secs(3600));
        assert!(far.check(Stage::Reading).is_ok());
    }

    #[test]
    fn progress_is_told_now_and_then_and_at_the_end() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let to = told.clone();
        let control = Control::new().with_progress(move |progress| to.lock().unwrap().push(progress.done));
        for done in 0..=70 {
            control.at(Stage::Planning).step(done, 70).unwrap();
        }
        assert_eq!(*told.lock().unwrap(), [0, 32, 64, 70]);
        control.without_progress().at(Stage::Planning).step(0, 70).unwrap();
        assert_eq!(told.lock().unwrap().len(), 4);
    }
}
