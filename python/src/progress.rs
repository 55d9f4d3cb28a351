//! `halite.Progress`, and who is told of it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use halite::{CancelToken, RunOptions, Stage};
use parking_lot::Mutex;
use pyo3::{prelude::*, types::PyBool};

/// How far a piece of work is.
#[pyclass(frozen, get_all, module = "halite")]
pub struct Progress {
    /// What is being done: `reading`, `importing`, `optimizing`, `planning`, `choosing_kernels`, `writing`, `loading_weights`,
    /// `building_pipelines`, `other`.
    stage: &'static str,
    /// The same for people.
    detail: String,
    /// Steps of the stage that are done.
    done: u64,
    /// Steps of the stage.
    total: u64,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        format!("Progress({}: {} of {})", self.detail, self.done, self.total)
    }
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Reading => "reading",
        Stage::Importing => "importing",
        Stage::Optimizing => "optimizing",
        Stage::Planning => "planning",
        Stage::ChoosingKernels => "choosing_kernels",
        Stage::Writing => "writing",
        Stage::LoadingWeights => "loading_weights",
        Stage::BuildingPipelines => "building_pipelines",
        _ => "other",
    }
}

/// A function of Python that is told, and what it raised.
pub struct Watcher {
    told: Option<Arc<Py<PyAny>>>,
    raised: Arc<Mutex<Option<PyErr>>>,
    /// Set at the end: drivers build pipelines longer than a session takes to be there.
    is_over: Arc<AtomicBool>,
}

impl Watcher {
    /// Of what a call was given: a function, `True` for a line of text, or nothing.
    pub fn new(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Watcher> {
        let given = given.filter(|given| !given.is_none());
        let told = match given {
            Some(flag) if flag.is_instance_of::<PyBool>() => match flag.extract()? {
                true => Some(py.import("halite._progress")?.call_method0("Bar")?.unbind()),
                false => None,
            },
            Some(function) if function.is_callable() => Some(function.clone().unbind()),
            Some(_) => {
                return Err(crate::error::invalid(
                    py,
                    "progress is True, or a function that takes a Progress",
                ));
            }
            None => None,
        };
        Ok(Watcher { told: told.map(Arc::new), raised: Arc::default(), is_over: Arc::default() })
    }

    /// Whether there is a function to tell.
    pub fn is_watching(&self) -> bool {
        self.told.is_some()
    }

    /// Adds the function to options. What it raises stops the work.
    pub fn watch(&self, options: RunOptions, token: &CancelToken) -> RunOptions {
        let Some(told) = self.told.clone() else { return options };
        let (raised, token, is_over) = (self.raised.clone(), token.clone(), self.is_over.clone());
        options.progress(move |progress| {
            if is_over.load(Ordering::Acquire) {
                return;
            }
            let progress = Progress {
                stage: stage_name(progress.stage),
                detail: progress.detail.to_owned(),
                done: progress.done,
                total: progress.total,
            };
            // The interpreter may be going away: then nobody is told.
            let outcome = Python::try_attach(|py| told.call1(py, (progress,)).map(drop));
            if let Some(Err(error)) = outcome {
                raised.lock().get_or_insert(error);
                token.cancel();
            }
        })
    }

    /// The outcome of the work: what the function raised counts first. Ends a line of text.
    pub fn end<T>(self, py: Python<'_>, outcome: PyResult<T>) -> PyResult<T> {
        self.is_over.store(true, Ordering::Release);
        if let Some(told) = &self.told
            && let Ok(close) = told.getattr(py, "close")
        {
            close.call0(py)?;
        }
        match self.raised.lock().take() {
            Some(error) => Err(error),
            None => outcome,
        }
    }
}
