//! `halite.Embedder`: a language model that makes vectors of texts.

use std::collections::BTreeMap;

use numpy::{PyArray1, PyArray2};
use pyo3::{prelude::*, types::PyString};

use crate::{
    error::invalid,
    options::{Bounds, CancelToken, precision, tuning},
    session::{Choices, Session},
    source,
};

/// A language model that makes vectors of texts, from a GGUF file. Texts that mean the like have vectors that point in like directions.
/// Any number of threads may use it.
#[pyclass(frozen, module = "halite")]
pub struct Embedder(halite::Embedder);

/// The tokens of a text or of tokens; `None` for what is neither.
fn tokens(embedder: &halite::Embedder, given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
    if given.is_instance_of::<PyString>() {
        return Ok(Some(embedder.tokenize(&given.extract::<String>()?)));
    }
    Ok(given.extract().ok())
}

#[pymethods]
impl Embedder {
    /// Reads the model, opens a device, and makes the session.
    #[new]
    #[pyo3(signature = (
        model, *, device=None, options=None, plugins=false, precision=None, cache=None, load=None, tuning=None, timeout=None,
        cancel=None, progress=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python, and defaults")]
    fn new(
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, PyAny>>,
        options: Option<BTreeMap<String, String>>,
        plugins: bool,
        precision: Option<&str>,
        cache: Option<&Bound<'_, PyAny>>,
        load: Option<&str>,
        tuning: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Embedder> {
        let builder = halite::Session::builder()
            .model(source::source(model)?)
            .precision(self::precision(py, precision)?)
            .tuning(self::tuning(tuning)?);
        let choices = Choices { device, options, plugins, cache, load, ..Choices::default() };
        let builder = choices.apply(py, builder)?;
        let bounds = Bounds::new(py, timeout, cancel, progress)?;
        bounds.long(py, move |options| builder.options(options.clone()).embedder()).map(Embedder)
    }

    /// The vector of a text or of its tokens; of a list of texts, one row for each. Vectors have length 1, unless `normalize` is false.
    #[pyo3(signature = (text, *, normalize=true, timeout=None, cancel=None))]
    fn embed<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        normalize: bool,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wrong = || invalid(py, "an embedder takes a text, a list of tokens, or a list of these");
        let single = tokens(&self.0, text)?;
        let is_single = single.is_some();
        let all = match single {
            Some(tokens) => vec![tokens],
            None => {
                let rows = text.try_iter().map_err(|_| wrong())?;
                rows.map(|row| tokens(&self.0, &row?)?.ok_or_else(wrong)).collect::<PyResult<_>>()?
            }
        };
        let (bounds, embedder) = (Bounds::new(py, timeout, cancel, None)?, self.0.clone());
        let mut vectors = bounds.long(py, move |options| {
            let one = |tokens: &Vec<u32>| match normalize {
                true => embedder.embed(tokens, options),
                false => embedder.embed_raw(tokens, options),
            };
            all.iter().map(one).collect::<halite::Result<Vec<Vec<f32>>>>()
        })?;
        if is_single {
            return Ok(PyArray1::from_vec(py, vectors.pop().unwrap_or_default()).into_any());
        }
        let rows = PyArray2::from_vec2(py, &vectors);
        rows.map(Bound::into_any).map_err(|_| invalid(py, "vectors of this model differ in length"))
    }

    /// The tokens of a text, with those that the model is used to at its beginning and end.
    fn tokenize(&self, text: &str) -> Vec<u32> {
        self.0.tokenize(text)
    }

    /// Most tokens of a text.
    #[getter]
    fn longest(&self) -> usize {
        self.0.longest()
    }

    /// The session of the model.
    #[getter]
    fn session(&self) -> Session {
        Session::of(self.0.session().clone())
    }

    fn __repr__(&self) -> String {
        format!("Embedder(texts of up to {} tokens on {:?})", self.0.longest(), self.0.session().devices())
    }
}
