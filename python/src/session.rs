//! `halite.Session`: a model or module that is ready to run.

use std::{collections::BTreeMap, path::PathBuf};

use halite::{Cache, LoadMode, SessionBuilder};
use pyo3::{
    prelude::*,
    types::{PyBool, PyDict},
};

use crate::{
    device::{self, Device},
    error::{OrRaise, invalid},
    function::Function,
    info::{FunctionInfo, ValueInfo, values},
    options::{Bounds, CancelToken, GivenSizes, pairs, precision, tuning},
    outputs::Outputs,
    pending::Pending,
    source,
    state::State,
};

/// A model or module, ready to run on its devices. The page docs/tutorials/python.md shows how.
#[pyclass(frozen, module = "halite")]
pub struct Session {
    inner: halite::Session,
    default: Option<Function>,
}

impl Session {
    /// A session that the library made.
    pub fn of(inner: halite::Session) -> Session {
        let default = inner.default_function().ok().map(Function::new);
        Session { inner, default }
    }

    fn main(&self, py: Python<'_>) -> PyResult<&Function> {
        match &self.default {
            Some(function) => Ok(function),
            None => Err(self.inner.default_function().map_or_else(
                |error| crate::error::raised(py, &error),
                |_| invalid(py, "the session has no function that runs by itself"),
            )),
        }
    }
}

/// What a session is made from beside its model.
#[derive(Default)]
pub struct Choices<'a, 'py> {
    pub device: Option<&'a Bound<'py, PyAny>>,
    pub options: Option<BTreeMap<String, String>>,
    pub plugins: bool,
    pub cache: Option<&'a Bound<'py, PyAny>>,
    pub load: Option<&'a str>,
    pub imports: Option<&'a Bound<'py, PyAny>>,
    pub parameters: Option<&'a Bound<'py, PyAny>>,
}

impl Choices<'_, '_> {
    /// Has a builder take them.
    pub fn apply(self, py: Python<'_>, mut builder: SessionBuilder) -> PyResult<SessionBuilder> {
        builder = builder.drivers(&device::drivers(self.plugins, self.options));
        if let Some(given) = self.device {
            let several = given.is_instance_of::<pyo3::types::PyList>()
                || given.is_instance_of::<pyo3::types::PyTuple>();
            if several {
                for one in given.try_iter()? {
                    builder = builder.device(device::choice(py, &one?)?);
                }
            } else {
                builder = builder.device(device::choice(py, given)?);
            }
        }
        if let Some(cache) = cache(self.cache)? {
            builder = builder.cache(cache);
        }
        builder = match self.load {
            None | Some("map") => builder,
            Some("preload") => builder.load_mode(LoadMode::Preload),
            Some(other) => {
                return Err(invalid(
                    py,
                    &format!("there is no way '{other}' to load; there are: map, preload"),
                ));
            }
        };
        for import in self.imports.map(PyAnyMethods::try_iter).transpose()?.into_iter().flatten() {
            builder = builder.import(source::source(&import?)?);
        }
        for (scope, path) in parameters(self.parameters)? {
            builder = builder.parameters(scope, path);
        }
        Ok(builder)
    }
}

/// `True` or nothing is the user's own, `False` is none, a path is a folder.
fn cache(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Cache>> {
    let Some(given) = given else { return Ok(None) };
    if given.is_instance_of::<PyBool>() {
        return Ok(if given.extract()? { None } else { Some(Cache::off()) });
    }
    Ok(Some(Cache::at(given.extract::<PathBuf>()?)))
}

/// A path, or paths by scope.
fn parameters(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, PathBuf)>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    if let Ok(scopes) = given.cast::<PyDict>() {
        return scopes.iter().map(|(scope, path)| Ok((scope.extract()?, path.extract()?))).collect();
    }
    Ok(vec![(String::new(), given.extract()?)])
}

#[pymethods]
impl Session {
    /// Reads a model or module, opens a device, compiles for it, and loads the weights.
    #[new]
    #[pyo3(signature = (
        model, *, device=None, options=None, plugins=false, precision=None, dimensions=None, shapes=None, values=None, seed=None,
        states=None, cache=None, load=None, imports=None, parameters=None, tuning=None, max_loaded_versions=None,
        compile_ahead=None, program_memory=None, timeout=None, cancel=None, progress=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python, and defaults")]
    fn new(
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, PyAny>>,
        options: Option<BTreeMap<String, String>>,
        plugins: bool,
        precision: Option<&str>,
        dimensions: Option<Bound<'_, PyDict>>,
        shapes: Option<Bound<'_, PyDict>>,
        values: Option<Bound<'_, PyDict>>,
        seed: Option<u64>,
        states: Option<&Bound<'_, PyDict>>,
        cache: Option<&Bound<'_, PyAny>>,
        load: Option<&str>,
        imports: Option<&Bound<'_, PyAny>>,
        parameters: Option<&Bound<'_, PyAny>>,
        tuning: Option<&Bound<'_, PyAny>>,
        max_loaded_versions: Option<usize>,
        compile_ahead: Option<bool>,
        program_memory: Option<u64>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Session> {
        let sizes = GivenSizes { dimensions, shapes, values, seed }.sizes()?;
        let mut builder = halite::Session::builder()
            .model(source::source(model)?)
            .precision(self::precision(py, precision)?)
            .tuning(self::tuning(tuning)?)
            .sizes(sizes);
        builder =
            Choices { device, options, plugins, cache, load, imports, parameters }.apply(py, builder)?;
        for (input, output) in pairs(states)? {
            builder = builder.state(input, output);
        }
        if let Some(count) = max_loaded_versions {
            builder = builder.max_loaded_versions(count);
        }
        if let Some(is_on) = compile_ahead {
            builder = builder.compile_ahead(is_on);
        }
        if let Some(bytes) = program_memory {
            builder = builder.program_memory(bytes);
        }
        let bounds = Bounds::new(py, timeout, cancel, progress)?;
        let inner = bounds.long(py, move |options| builder.options(options.clone()).build())?;
        Ok(Session::of(inner))
    }

    /// Runs the default function and waits for its results.
    ///
    /// Inputs are a dictionary by names, a list by places, or one value: NumPy arrays, tensors, numbers, lists, or objects with
    /// `__dlpack__`. Ctrl-C stops it.
    #[pyo3(signature = (inputs=None, /, *, timeout=None, cancel=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Outputs> {
        self.main(py)?.run(py, inputs, timeout, cancel, progress)
    }

    /// Starts the default function and returns while the device works.
    #[pyo3(signature = (inputs=None, /, *, timeout=None, cancel=None, progress=None))]
    fn start(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Pending> {
        self.main(py)?.start(py, inputs, timeout, cancel, progress)
    }

    /// Makes everything ready for inputs like these, so that the first call is as fast as others. Without inputs: zeros, where no
    /// size is open.
    #[pyo3(signature = (inputs=None, /, *, timeout=None, cancel=None, progress=None))]
    fn prewarm(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.main(py)?.prewarm(py, inputs, timeout, cancel, progress)
    }

    /// Runs the default function once and tells where the time went: the outputs, and a dictionary with times in seconds.
    #[pyo3(signature = (inputs=None, /, *, timeout=None, cancel=None))]
    fn profile<'py>(
        &self,
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
    ) -> PyResult<(Outputs, Bound<'py, PyAny>)> {
        self.main(py)?.profile(py, inputs, timeout, cancel)
    }

    /// A state of its own for a sequence of calls of the default function.
    fn state(&self, py: Python<'_>) -> PyResult<State> {
        self.main(py)?.state(py)
    }

    /// A function by name, or by `module.name`.
    fn function(&self, py: Python<'_>, name: &str) -> PyResult<Function> {
        self.inner.function(name).or_raise(py).map(Function::new)
    }

    /// All functions.
    #[getter]
    fn functions(&self) -> Vec<FunctionInfo> {
        self.inner.functions().iter().cloned().map(FunctionInfo).collect()
    }

    /// Inputs of the default function.
    #[getter]
    fn inputs(&self) -> Vec<ValueInfo> {
        values(self.inner.inputs())
    }

    /// Outputs of the default function.
    #[getter]
    fn outputs(&self) -> Vec<ValueInfo> {
        values(self.inner.outputs())
    }

    /// The device that inputs and results lie on; `None` for a module that uses none.
    #[getter]
    fn device(&self) -> Option<Device> {
        self.inner.device().cloned().map(Device)
    }

    /// All devices, in the order that programs see them.
    #[getter]
    fn devices(&self) -> Vec<Device> {
        self.inner.devices().iter().cloned().map(Device).collect()
    }

    /// How many compiled versions of a model are loaded, each for other sizes.
    #[getter]
    fn loaded_versions(&self) -> usize {
        self.inner.loaded_versions()
    }

    fn __repr__(&self) -> String {
        let functions: Vec<_> = self.inner.functions().iter().map(ToString::to_string).collect();
        format!("Session({} on {:?})", functions.join("; "), self.inner.devices())
    }
}
