//! `halite.Function`: a function of a session, and how its calls are made.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::{Duration, Instant},
};

use halite::{ErrorKind, Inputs, Outputs as InnerOutputs, RunOptions};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::{
    error::raised,
    info::FunctionInfo,
    inputs::Place,
    messages,
    options::{Bounds, CancelToken},
    outputs::Outputs,
    pending::Pending,
    profile,
    state::State,
    work::{LOOK, SHORT, is_main_thread, long},
};

/// Most kinds of calls that are remembered as short.
const MOST_KINDS: usize = 4096;

/// Kinds of calls (by the sizes of inputs) whose start took no time: all was compiled.
#[derive(Default)]
pub struct ShortCalls(Mutex<HashSet<u64>>);

impl ShortCalls {
    pub fn has(&self, kind: u64) -> bool {
        self.0.lock().contains(&kind)
    }

    /// Notes how long the start of a call took.
    pub fn note(&self, kind: u64, took: Duration) {
        let mut kinds = self.0.lock();
        if took >= SHORT {
            kinds.remove(&kind);
        } else {
            if kinds.len() >= MOST_KINDS {
                kinds.clear();
            }
            kinds.insert(kind);
        }
    }
}

/// The kind of a call: names, types and sizes of its tensors.
pub fn kind(inputs: &Inputs) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, value) in inputs.iter() {
        name.hash(&mut hasher);
        match value.as_tensor() {
            Some(tensor) => (tensor.element_type().0, tensor.shape()).hash(&mut hasher),
            None => value.kind().hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// A function of a session, for models and modules that have several.
#[pyclass(frozen, module = "halite")]
pub struct Function {
    pub inner: halite::Function,
    pub short: Arc<ShortCalls>,
}

impl Function {
    pub fn new(inner: halite::Function) -> Self {
        Function { inner, short: Arc::default() }
    }

    /// The inputs of a call, on the session's device.
    pub fn inputs(&self, given: Option<&Bound<'_, PyAny>>) -> PyResult<Inputs> {
        let place = Place { infos: &self.inner.info().inputs, device: self.inner.session().device() };
        place.inputs(given)
    }

    /// Starts a call, waits for it, and looks for Ctrl-C meanwhile.
    pub fn call(&self, py: Python<'_>, inputs: Inputs, bounds: Bounds) -> PyResult<InnerOutputs> {
        let kind = kind(&inputs);
        if !is_main_thread(py)? {
            let outcome = py.detach(|| self.inner.run_with(inputs, &bounds.options));
            messages::deliver(py);
            return bounds.watcher.end(py, outcome.map_err(|error| raised(py, &error)));
        }
        let Bounds { options, deadline, token, watcher } = bounds;
        let begin = Instant::now();
        let first = match self.short.has(kind) {
            true => {
                py.detach(|| begin_call(&self.inner, inputs, &options, deadline)).map_err(|e| raised(py, &e))
            }
            false => {
                let (function, options) = (self.inner.clone(), options.clone());
                long(py, &token, move || begin_call(&function, inputs, &options, deadline))
            }
        };
        let outcome = first.and_then(|begun| {
            self.short.note(kind, begun.launched.saturating_duration_since(begin));
            wait(py, begun, (&options, deadline), &token)
        });
        messages::deliver(py);
        watcher.end(py, outcome)
    }
}

/// A call that was started, and waited for a moment.
struct Begun {
    call: halite::Pending,
    launched: Instant,
    outputs: Option<InnerOutputs>,
}

fn begin_call(
    function: &halite::Function,
    inputs: Inputs,
    options: &RunOptions,
    deadline: Option<Instant>,
) -> halite::Result<Begun> {
    let call = function.start_with(inputs, options)?;
    let launched = Instant::now();
    let outputs = look(&call, options, deadline)?;
    Ok(Begun { call, launched, outputs })
}

/// Waits for a moment: nothing when the results are not there by then, and there is time left.
pub fn look(
    call: &halite::Pending,
    options: &RunOptions,
    deadline: Option<Instant>,
) -> halite::Result<Option<InnerOutputs>> {
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    match call.wait_with(&options.clone().timeout(LOOK)) {
        Err(error) if error.kind() == ErrorKind::DeadlineExceeded && !is_over() && !call.is_done() => {
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// Waits for the rest of a call.
fn wait(
    py: Python<'_>,
    mut begun: Begun,
    (options, deadline): (&RunOptions, Option<Instant>),
    token: &halite::CancelToken,
) -> PyResult<InnerOutputs> {
    loop {
        if let Some(outputs) = begun.outputs {
            return Ok(outputs);
        }
        if let Err(interrupt) = py.check_signals() {
            token.cancel();
            return Err(interrupt);
        }
        let looked = py.detach(|| look(&begun.call, options, deadline));
        begun.outputs = looked.map_err(|error| raised(py, &error))?;
    }
}

#[pymethods]
impl Function {
    /// Its name within its module.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// What it takes and gives.
    #[getter]
    fn info(&self) -> FunctionInfo {
        FunctionInfo(self.inner.info().clone())
    }

    /// Runs it and waits; see `Session.run`.
    #[pyo3(signature = (inputs=None, /, *, timeout=None, cancel=None, progress=None))]
    pub fn run(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Outputs> {
        let bounds = Bounds::new(py, timeout, cancel, progress)?;
        self.call(py, self.inputs(inputs)?, bounds).map(Outputs::new)
    }

    /// Starts it and returns while the device works; see `Session.start`.
    #[pyo3(signature = (inputs=None, /, *, timeout=None, cancel=None, progress=None))]
    pub fn start(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Pending> {
        let bounds = Bounds::new(py, timeout, cancel, progress)?;
        let (inputs, function) = (self.inputs(inputs)?, self.inner.clone());
        bounds.long(py, move |options| function.start_with(inputs, options)).map(Pending)
    }

    /// Makes everything ready for inputs like these; zeros where none are given and no size is open.
    #[pyo3(signature = (inputs=None, /, *, timeout=None, cancel=None, progress=None))]
    pub fn prewarm(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let bounds = Bounds::new(py, timeout, cancel, progress)?;
        let (inputs, function) = (self.given_or_zeros(inputs)?, self.inner.clone());
        bounds.long(py, move |options| function.prewarm_with(inputs, options))
    }

    /// Runs it once and tells where the time went; see `Session.profile`.
    #[pyo3(signature = (inputs=None, /, *, timeout=None, cancel=None))]
    pub fn profile<'py>(
        &self,
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
    ) -> PyResult<(Outputs, Bound<'py, PyAny>)> {
        let bounds = Bounds::new(py, timeout, cancel, None)?;
        let (inputs, function) = (self.given_or_zeros(inputs)?, self.inner.clone());
        let (outputs, measured) = bounds.long(py, move |options| function.profile_with(inputs, options))?;
        Ok((Outputs::new(outputs), profile::told(py, &measured)?))
    }

    /// A state of its own for a sequence of calls.
    pub fn state(&self, py: Python<'_>) -> PyResult<State> {
        State::of(py, &self.inner)
    }

    fn __repr__(&self) -> String {
        format!("Function({})", self.inner.info())
    }
}

impl Function {
    fn given_or_zeros(&self, given: Option<&Bound<'_, PyAny>>) -> PyResult<Inputs> {
        match (given, self.inner.zeros()) {
            (None, Some(zeros)) => Ok(zeros.into()),
            _ => self.inputs(given),
        }
    }
}
