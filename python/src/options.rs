//! What calls and sessions take beside their inputs, as the library has it.

use std::time::{Duration, Instant};

use halite::{RunOptions, Sizes, Tuning};
use pyo3::{
    prelude::*,
    types::{PyDict, PyInt, PyString, PyTuple},
};

use crate::{error::invalid, progress::Watcher, running, tensor, work::long};

/// Stops work from any thread: give it to calls as `cancel`, and call `cancel()`. Once set, it stays set. Ctrl-C during such a call
/// sets it as well.
#[pyclass(frozen, module = "halite")]
#[derive(Default)]
pub struct CancelToken(pub halite::CancelToken);

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops the work.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was set.
    #[getter]
    fn cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// The bounds of a piece of work.
pub struct Bounds {
    pub options: RunOptions,
    /// The end of its time, which the options have, too.
    pub deadline: Option<Instant>,
    pub token: halite::CancelToken,
    pub watcher: Watcher,
}

impl Bounds {
    /// Out of the arguments `timeout` (seconds), `cancel` and `progress`.
    pub fn new(
        py: Python<'_>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bounds> {
        let token = cancel.map(|token| token.0.clone()).unwrap_or_default();
        let watcher = Watcher::new(py, progress)?;
        let mut options = watcher.watch(RunOptions::new().cancel(&token), &token);
        let deadline = deadline(py, timeout)?;
        if let Some(deadline) = deadline {
            options = options.deadline(deadline);
        }
        Ok(Bounds { options, deadline, token, watcher })
    }

    /// Whether its time is over.
    pub fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Does what may take long within these bounds.
    pub fn long<T: Send + 'static>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&RunOptions) -> halite::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        // Also while the end of the work is told to a function of Python.
        let _call = running::within(py)?;
        let options = self.options;
        let outcome = long(py, &self.token, move || work(&options));
        self.watcher.end(py, outcome)
    }
}

/// The end of a number of seconds that begin now; none where that is further than clocks reach.
pub fn deadline(py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(seconds) = timeout else { return Ok(None) };
    if seconds.is_nan() || seconds < 0.0 {
        return Err(invalid(py, &format!("a timeout is a number of seconds, not {seconds}")));
    }
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    Ok(Instant::now().checked_add(time))
}

/// What a call says of open sizes.
#[derive(Default)]
pub struct GivenSizes<'py> {
    /// Sizes of named dimensions.
    pub dimensions: Option<Bound<'py, PyDict>>,
    /// Shapes of inputs.
    pub shapes: Option<Bound<'py, PyDict>>,
    /// Values of inputs that decide sizes.
    pub values: Option<Bound<'py, PyDict>>,
    /// The seed of random numbers.
    pub seed: Option<u64>,
}

impl GivenSizes<'_> {
    /// As the library has it.
    pub fn sizes(&self) -> PyResult<Sizes> {
        let mut sizes = Sizes::new();
        for (name, given) in self.dimensions.iter().flatten() {
            let name: String = name.extract()?;
            sizes = sizes.dimension(name, dimension(&given)?);
        }
        for (name, given) in self.shapes.iter().flatten() {
            let name: String = name.extract()?;
            match given.extract::<Vec<usize>>() {
                Ok(shape) => sizes = sizes.shape(name, shape),
                Err(_) => {
                    for shape in given.extract::<Vec<Vec<usize>>>()? {
                        sizes = sizes.shape(name.clone(), shape);
                    }
                }
            }
        }
        for (name, given) in self.values.iter().flatten() {
            let name: String = name.extract()?;
            sizes = sizes.value(name, tensor::host_tensor(&given)?);
        }
        Ok(match self.seed {
            Some(seed) => sizes.seed(seed),
            None => sizes,
        })
    }
}

/// The sizes of a named dimension: `8`, `[1, 8]`, `range(1, 9)`, or `(1, 8)` for all from 1 to 8.
fn dimension(given: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    const MOST: usize = 4096;
    let py = given.py();
    if given.is_instance_of::<PyInt>() {
        return Ok(vec![given.extract()?]);
    }
    if let Ok(pair) = given.cast::<PyTuple>() {
        let (least, most): (usize, usize) = pair
            .extract()
            .map_err(|_| invalid(py, "a tuple of sizes is (least, most); give a list for single sizes"))?;
        if most < least || most - least >= MOST {
            let text = format!("from {least} to {most} are no sizes, or more than {MOST}");
            return Err(invalid(py, &text));
        }
        return Ok((least..=most).collect());
    }
    if given.is_instance_of::<PyString>() {
        return Err(invalid(py, "the size of a dimension is a number, a list, a range, or (least, most)"));
    }
    given.try_iter()?.take(MOST + 1).map(|size| size?.extract()).collect()
}

/// The floats that a model computes with.
pub fn precision(py: Python<'_>, name: Option<&str>) -> PyResult<halite::Precision> {
    match name {
        None | Some("model") => Ok(halite::Precision::Model),
        Some("f16" | "float16") => Ok(halite::Precision::F16),
        Some(other) => Err(invalid(py, &format!("there is no precision '{other}'; there are: model, f16"))),
    }
}

/// Which measurements decide the choice of kernels.
pub fn tuning(given: Option<&Bound<'_, PyAny>>) -> PyResult<Tuning> {
    let Some(given) = given else { return Ok(Tuning::User) };
    match given.extract::<std::borrow::Cow<'_, str>>().as_deref() {
        Ok("user") => Ok(Tuning::User),
        Ok("shipped") => Ok(Tuning::Shipped),
        _ => Ok(Tuning::File(given.extract()?)),
    }
}

/// Pairs of names: a dictionary from inputs to outputs.
pub fn pairs(given: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, String)>> {
    let pairs = given.into_iter().flatten();
    pairs.map(|(input, output)| Ok((input.extract()?, output.extract()?))).collect()
}
