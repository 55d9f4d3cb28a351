//! How far long work has come: the sink that programs give, and the stages that it is told of.

use std::sync::Arc;

use parking_lot::Mutex;

/// Told the stage of the work, how much of it is done, and how much there is: [`PIPELINES`] in pipelines, [`PARAMETERS`] in
/// bytes. Called on the thread that loads or calls, only when a number has changed. It must return soon and must not use the
/// session that calls it.
pub type ProgressSink = Arc<dyn Fn(&str, u64, u64) + Send + Sync>;

/// The stage in which the driver turns kernels into pipelines.
pub const PIPELINES: &str = "pipelines";
/// The stage in which parameters are read into device memory.
pub const PARAMETERS: &str = "parameters";

/// One stage of a sink that may not be there. Repeats nothing.
#[derive(Default)]
pub(crate) struct Progress {
    sink: Option<ProgressSink>,
    stage: &'static str,
    last: Mutex<Option<(u64, u64)>>,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl Progress {
    pub(crate) fn new(sink: Option<ProgressSink>, stage: &'static str) -> Self {
        Progress { sink, stage, last: Mutex::default() }
    }

    /// Whether anybody listens.
    pub(crate) fn is_watched(&self) -> bool {
        self.sink.is_some()
    }

    /// Tells the sink, unless it was told the same before.
    pub(crate) fn report(&self, done: u64, total: u64) {
        let Some(sink) = &self.sink else { return };
        if self.last.lock().replace((done, total)) != Some((done, total)) {
            sink(self.stage, done, total);
        }
    }
}
