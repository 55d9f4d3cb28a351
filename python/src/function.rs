//! `halite.Function`: a function of a session, and how its calls are made.

use halite::Inputs;
use pyo3::prelude::*;

use crate::{
    direct::{self, Pace},
    info::FunctionInfo,
    inputs::InputTarget,
    options::{Bounds, CancelToken},
    outputs::Outputs,
    pending::Pending,
    profile, running,
    state::State,
};

/// A function of a session, for models and modules that have several.
#[pyclass(frozen, module = "halite")]
pub struct Function {
    pub inner: halite::Function,
    /// Of its calls on the main thread.
    pace: Pace,
}

impl Function {
    pub fn new(inner: halite::Function) -> Self {
        Function { inner, pace: Pace::default() }
    }

    /// The inputs of a call, on the session's device.
    pub fn inputs(&self, given: Option<&Bound<'_, PyAny>>) -> PyResult<Inputs> {
        let place = InputTarget { infos: &self.inner.info().inputs, device: self.inner.session().device() };
        place.inputs(given)
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
        let _call = running::within(py)?;
        let bounds = Bounds::new(py, timeout, cancel, progress)?;
        let call = (&self.inner, self.inputs(inputs)?);
        let other = |py: Python<'_>, inputs, bounds: Bounds| {
            let function = self.inner.clone();
            bounds.long(py, move |options| function.run_with(inputs, options))
        };
        self.pace.call(py, call, bounds, direct::run, other).map(Outputs::new)
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
        let _call = running::within(py)?;
        let bounds = Bounds::new(py, timeout, cancel, progress)?;
        let call = (&self.inner, self.inputs(inputs)?);
        let other = |py: Python<'_>, inputs, bounds: Bounds| {
            let function = self.inner.clone();
            bounds.long(py, move |options| function.start_with(inputs, options))
        };
        self.pace.call(py, call, bounds, direct::start, other).map(Pending)
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
        let _call = running::within(py)?;
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
        let _call = running::within(py)?;
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
