//! `halite.Sequence`: tokens, and the caches of what a model computed of them.

use halite::Sequence as Inner;
use numpy::PyArray1;
use pyo3::{prelude::*, pybacked::PyBackedBytes, types::PyBytes};

use crate::{
    options::{Bounds, CancelToken},
    prompt, schema,
    stream::{Stream, Wanted},
    tokens::Tokens,
};

/// A sequence of tokens of a generator, with its caches on the device. One call at a time uses it. A call that fails leaves the tokens
/// as they were.
#[pyclass(frozen, module = "halite")]
pub struct Sequence {
    pub tokens: Tokens,
    generator: Py<PyAny>,
}

impl Sequence {
    /// A sequence of the library, and the `Generator` that it belongs to.
    pub fn new(inner: Inner, generator: Py<PyAny>) -> Sequence {
        Sequence { tokens: Tokens::new(inner), generator }
    }
}

#[pymethods]
impl Sequence {
    /// Makes the sequence this prompt (a text, messages, or tokens). What it has in common with it from the beginning on is kept, and not
    /// computed again; returns how many tokens that are.
    #[pyo3(signature = (prompt, /, *, timeout=None, cancel=None))]
    fn prompt(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
    ) -> PyResult<usize> {
        let tokens = prompt::tokens(self.tokens.generator(), prompt)?;
        self.tokens.begin(py, tokens, &Bounds::new(py, timeout, cancel, None)?)
    }

    /// Adds tokens and computes the logits behind them.
    #[pyo3(signature = (tokens, /, *, timeout=None, cancel=None))]
    fn append(
        &self,
        py: Python<'_>,
        tokens: Vec<u32>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
    ) -> PyResult<()> {
        let bounds = Bounds::new(py, timeout, cancel, None)?;
        self.tokens.with_long(py, &bounds, move |inner, options| inner.append(&tokens, options))
    }

    /// Adds tokens, and gives how likely each was behind those before it, as natural logarithms. For generators made with `scoring`.
    #[pyo3(signature = (tokens, /, *, timeout=None, cancel=None))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        tokens: Vec<u32>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let bounds = Bounds::new(py, timeout, cancel, None)?;
        let scores =
            self.tokens.with_long(py, &bounds, move |inner, options| inner.score(&tokens, options))?;
        Ok(PyArray1::from_vec(py, scores))
    }

    /// Writes on behind its tokens: an iterator of texts. See `Generator.generate`.
    #[pyo3(signature = (
        *, max_tokens=256, stop=None, temperature=None, top_k=None, top_p=None, min_p=None, repeat_penalty=None, repeat_last=None,
        seed=None, ignore_end=false, json_schema=None, timeout=None, cancel=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python, and defaults")]
    fn generate(
        own: &Bound<'_, Self>,
        py: Python<'_>,
        max_tokens: usize,
        stop: Option<&Bound<'_, PyAny>>,
        temperature: Option<f32>,
        top_k: Option<usize>,
        top_p: Option<f32>,
        min_p: Option<f32>,
        repeat_penalty: Option<f32>,
        repeat_last: Option<usize>,
        seed: Option<u64>,
        ignore_end: bool,
        json_schema: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
    ) -> PyResult<Stream> {
        let json_schema = schema::given(json_schema)?;
        let wanted = Wanted {
            temperature,
            top_k,
            top_p,
            min_p,
            repeat_penalty,
            repeat_last,
            seed,
            ignore_end,
            json_schema,
        };
        let bounds = Bounds::new(py, timeout, cancel, None)?;
        let written = (own.get().tokens.clone(), own.clone().into_any().unbind());
        Stream::new(py, written, own.get().tokens.generator(), &wanted, max_tokens, stop, bounds)
    }

    /// Takes the tokens behind the first `count` back, which takes no time.
    fn truncate(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.tokens.with(py, |inner| {
            inner.truncate(count);
            Ok(())
        })
    }

    /// A second sequence with the same tokens and a copy of the caches.
    fn fork(&self, py: Python<'_>) -> PyResult<Sequence> {
        Ok(Sequence::new(self.tokens.with(py, Inner::fork)?, self.generator.clone_ref(py)))
    }

    /// Tokens and caches as bytes, which `load()` takes.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.tokens.with(py, Inner::save)?))
    }

    /// Becomes what `save()` gave, for the same model, context and types of caches.
    fn load(&self, py: Python<'_>, saved: PyBackedBytes) -> PyResult<()> {
        self.tokens.with(py, |inner| inner.load(&saved))
    }

    /// All tokens so far.
    #[getter]
    fn tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.tokens.with(py, |inner| Ok(inner.tokens().to_vec()))
    }

    /// Logits of the token that comes next, one for each token that the model knows. Empty where nothing was computed yet.
    #[getter]
    fn logits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(PyArray1::from_vec(py, self.tokens.with(py, |inner| Ok(inner.logits().to_vec()))?))
    }

    /// Bytes of its caches on the device.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.tokens.with(py, |inner| Ok(inner.byte_len()))
    }

    /// The generator that it belongs to.
    #[getter]
    fn generator(&self, py: Python<'_>) -> Py<PyAny> {
        self.generator.clone_ref(py)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.tokens.with(py, |inner| Ok(inner.tokens().len()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Sequence({} tokens)", self.__len__(py)?))
    }
}
