//! `halite.State`: tensors that live on the device between calls.

use std::{sync::Arc, time::Duration};

use halite::State as Inner;
use parking_lot::Mutex;
use pyo3::{
    prelude::*,
    types::{PyBytes, PyList},
};

use crate::{
    array,
    error::invalid,
    inputs::InputTarget,
    options::{Bounds, CancelToken},
    outputs::Outputs,
    running, tensor,
    work::{long, short},
};

/// How long a call waits for another one to let the state go: one that Ctrl-C ended does so soon.
const PATIENCE: Duration = Duration::from_secs(1);

/// The state of a sequence: tensors that each call reads and replaces, such as a decoder's caches. They stay on the device. One call
/// at a time uses it; any number of states share a session's weights.
#[pyclass(frozen, module = "halite")]
pub struct State {
    inner: Arc<Mutex<Inner>>,
    function: halite::Function,
}

impl State {
    pub fn of(py: Python<'_>, function: &halite::Function) -> PyResult<State> {
        let inner = short(py, || function.state())?;
        Ok(State::new(inner, function))
    }

    fn new(inner: Inner, function: &halite::Function) -> State {
        State { inner: Arc::new(Mutex::new(inner)), function: function.clone() }
    }

    /// Does something with the state, which nobody else may be using.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> halite::Result<T> + Send,
    ) -> PyResult<T> {
        let done = short(py, || {
            let Some(mut inner) = self.inner.try_lock_for(PATIENCE) else { return Ok(None) };
            work(&mut inner).map(Some)
        });
        done?.ok_or_else(|| in_use(py))
    }

    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |state| Ok(state.names().map(str::to_owned).collect()))
    }
}

fn in_use(py: Python<'_>) -> PyErr {
    invalid(
        py,
        "the state is used by another call; each call needs a state of its own, such as a fork() of this one",
    )
}

#[pymethods]
impl State {
    /// Runs the function on this state. The inputs are those that are no state; so are the results.
    #[pyo3(signature = (inputs=None, /, *, timeout=None, cancel=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Outputs> {
        let _call = running::within(py)?;
        let Bounds { options, token, watcher, .. } = Bounds::new(py, timeout, cancel, progress)?;
        let names = self.names(py)?;
        let own = self.function.info().inputs.iter().filter(|input| !names.contains(&input.name));
        let infos: Vec<_> = own.cloned().collect();
        let place = InputTarget { infos: &infos, device: self.function.session().device() };
        let inputs = place.inputs(inputs)?;
        let state = self.inner.clone();
        let done = long(py, &token, move || {
            let Some(mut state) = state.try_lock_for(PATIENCE) else { return Ok(None) };
            state.run_with(inputs, &options).map(Some)
        });
        let outcome = done.and_then(|outputs| outputs.ok_or_else(|| in_use(py)));
        watcher.end(py, outcome).map(Outputs::new)
    }

    /// Back to what it began with.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Inner::reset)
    }

    /// A second state with a copy of the tensors.
    fn fork(&self, py: Python<'_>) -> PyResult<State> {
        Ok(State::new(self.with(py, Inner::fork)?, &self.function))
    }

    /// The state as bytes of a safetensors file, which `load()` takes.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.with(py, Inner::save)?))
    }

    /// Takes a state that `save()` gave, from the same function.
    fn load(&self, py: Python<'_>, saved: Vec<u8>) -> PyResult<()> {
        self.with(py, |state| state.load(saved))
    }

    /// Names of its tensors: those of the inputs.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names(py)?)
    }

    /// Bytes that its tensors take on the device now.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |state| Ok(state.byte_len()))
    }

    /// A copy of a tensor as it is now; `None` where no call has said its sizes yet.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.with(py, |state| state.tensor(name))?;
        found.map(|found| array::array(py, &found)).transpose()
    }

    /// Replaces a tensor by a copy of this one.
    fn __setitem__(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let given = tensor::host_tensor(value)?;
        self.with(py, |state| state.set(name, &given))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.names(py)?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("State({})", self.names(py)?.join(", ")))
    }
}
