//! Tokenizers that operators of models have in them (`SentencepieceTokenizer` and others of onnxruntime-extensions).

use halite::Tokenizer as Inner;
use pyo3::prelude::*;

use crate::error::OrRaise;

/// A tokenizer of a file's bytes.
#[pyclass(frozen, name = "_Tokenizer", module = "halite._halite")]
pub struct Tokenizer {
    inner: Inner,
}

#[pymethods]
impl Tokenizer {
    #[new]
    fn new(py: Python<'_>, file: &[u8]) -> PyResult<Self> {
        let inner = py.detach(|| Inner::from_bytes(file)).or_raise(py)?;
        Ok(Tokenizer { inner })
    }

    /// The tokens of each text.
    #[pyo3(signature = (texts, marks=false))]
    fn encode(&self, py: Python<'_>, texts: Vec<String>, marks: bool) -> Vec<Vec<u32>> {
        py.detach(|| texts.iter().map(|text| self.inner.encode(text, marks)).collect())
    }

    /// The text of tokens.
    fn decode(&self, py: Python<'_>, tokens: Vec<u32>) -> String {
        py.detach(|| self.inner.decode(&tokens, true))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// The token of the beginning.
    #[getter]
    fn begin(&self) -> Option<u32> {
        self.inner.begin()
    }

    /// The token of the end.
    #[getter]
    fn end(&self) -> Option<u32> {
        self.inner.end()
    }
}
