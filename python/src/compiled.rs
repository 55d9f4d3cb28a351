//! `halite.compile()` and `halite.inspect()`: models without running them.

use std::{io::BufWriter, path::PathBuf};

use halite::compile::{Compiler, Model, OpenOptions, Target};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::{
    device,
    error::{OrRaise, fault},
    info::FunctionInfo,
    options::{Bounds, CancelToken, GivenSizes, pairs, precision, tuning},
    profile::from_json,
    source,
    work::short,
};

/// A module that was made from a model.
#[pyclass(frozen, module = "halite")]
pub struct Compiled(halite::compile::Compiled);

#[pymethods]
impl Compiled {
    /// The module file in memory.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.to_vec()))
    }

    /// Writes the module file, and the weights that are kept outside of it to `parameters`.
    #[pyo3(signature = (path, *, parameters=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, parameters: Option<PathBuf>) -> PyResult<()> {
        py.detach(|| {
            let mut file = BufWriter::new(std::fs::File::create(path)?);
            self.0.write(&mut file)?;
            file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            if let Some(path) = parameters {
                let mut file = BufWriter::new(std::fs::File::create(path)?);
                self.0.write_parameters(&mut file)?;
                file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            }
            Ok(())
        })
    }

    /// Bytes of the module file.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.byte_len()
    }

    /// Bytes of the weights that are kept outside of it; `None` where there are none.
    #[getter]
    fn parameter_bytes(&self) -> Option<u64> {
        self.0.parameter_bytes()
    }

    /// What was decided, and what it costs, as a dictionary.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(self.0.report()).map_err(|error| fault(py, &error.to_string()))?;
        from_json(py, &text)
    }

    /// The same as text for people: kernels and why they, memory, work, sizes.
    fn explain(&self) -> String {
        self.0.report().to_string()
    }

    fn __repr__(&self) -> String {
        format!("Compiled({} bytes)", self.0.byte_len())
    }
}

/// Names of targets, or devices at hand.
fn targets(py: Python<'_>, mut compiler: Compiler, given: Option<&Bound<'_, PyAny>>) -> PyResult<Compiler> {
    let drivers = device::drivers(false, None);
    let Some(given) = given else { return Ok(compiler) };
    let several =
        given.is_instance_of::<pyo3::types::PyList>() || given.is_instance_of::<pyo3::types::PyTuple>();
    let all: Vec<Bound<'_, PyAny>> =
        if several { given.try_iter()?.collect::<PyResult<_>>()? } else { vec![given.clone()] };
    for one in all {
        let target = match one.extract::<std::borrow::Cow<'_, str>>() {
            // A URI has a scheme, or is the name of a driver.
            Ok(name) if !name.contains("://") && name != "vulkan" => Target::named(&name).or_raise(py)?,
            _ => {
                let device = device::open(py, &one, &drivers)?;
                Target::of_device(&device).or_raise(py)?
            }
        };
        compiler = compiler.target(target);
    }
    Ok(compiler)
}

/// Compiles a model to a module, for targets by name (`rdna3`) or devices at hand (`vulkan://0`, a `Device`).
#[pyfunction]
#[pyo3(signature = (
    model, *, targets=None, baseline=true, precision=None, dimensions=None, shapes=None, values=None, seed=None, functions=None,
    states=None, find_states=false, name=None, external_parameters=None, tuning=None, timeout=None, cancel=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python, and defaults")]
pub fn compile(
    py: Python<'_>,
    model: &Bound<'_, PyAny>,
    targets: Option<&Bound<'_, PyAny>>,
    baseline: bool,
    precision: Option<&str>,
    dimensions: Option<Bound<'_, PyDict>>,
    shapes: Option<Bound<'_, PyDict>>,
    values: Option<Bound<'_, PyDict>>,
    seed: Option<u64>,
    functions: Option<Vec<String>>,
    states: Option<&Bound<'_, PyDict>>,
    find_states: bool,
    name: Option<String>,
    external_parameters: Option<String>,
    tuning: Option<&Bound<'_, PyAny>>,
    timeout: Option<f64>,
    cancel: Option<&CancelToken>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Compiled> {
    let mut compiler = Compiler::new()
        .baseline(baseline)
        .precision(self::precision(py, precision)?)
        .tuning(self::tuning(tuning)?)
        .sizes(GivenSizes { dimensions, shapes, values, seed }.sizes()?)
        .find_state(find_states);
    compiler = self::targets(py, compiler, targets)?;
    compiler = functions.into_iter().flatten().fold(compiler, Compiler::function);
    for (input, output) in pairs(states)? {
        compiler = compiler.state(input, output);
    }
    compiler = name.into_iter().fold(compiler, Compiler::module_name);
    compiler = external_parameters.into_iter().fold(compiler, Compiler::external_parameters);
    let (source, bounds) = (source::source(model)?, Bounds::new(py, timeout, cancel, progress)?);
    let compiled = bounds.long(py, move |options| {
        let model = Model::open_with(source, &OpenOptions::new().options(options.clone()))?;
        compiler.compile_with(&model, options)
    });
    compiled.map(Compiled)
}

/// The functions of a model: what they take and give. No device is needed.
#[pyfunction]
pub fn inspect(py: Python<'_>, model: &Bound<'_, PyAny>) -> PyResult<Vec<FunctionInfo>> {
    let source = source::source(model)?;
    let functions = short(py, || Model::open(source)?.functions())?;
    Ok(functions.into_iter().map(FunctionInfo).collect())
}
