//! `halite.Stream`: what a language model writes, text by text.

use std::sync::Arc;

use halite::{RunOptions, Sampler, Sampling, Sequence as Inner, StopTexts, TextDecoder};
use parking_lot::Mutex;
use pyo3::{prelude::*, types::PyString};

use crate::{
    error::{fault, invalid},
    options::Bounds,
    tokens::Tokens,
};

/// Why nothing more comes where no logit is a number.
const DAMAGED: &str = "damaged";

/// How tokens are chosen, as far as the program says so.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub temperature: Option<f32>,
    pub top_k: Option<usize>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repeat_penalty: Option<f32>,
    pub repeat_last: Option<usize>,
    pub seed: Option<u64>,
}

impl Wanted {
    /// With the library's own choices for the rest.
    pub fn sampling(self) -> Sampling {
        let own = Sampling::default();
        Sampling {
            temperature: self.temperature.unwrap_or(own.temperature),
            top_k: self.top_k.unwrap_or(own.top_k),
            top_p: self.top_p.unwrap_or(own.top_p),
            min_p: self.min_p.unwrap_or(own.min_p),
            repeat_penalty: self.repeat_penalty.unwrap_or(own.repeat_penalty),
            repeat_last: self.repeat_last.unwrap_or(own.repeat_last),
            seed: self.seed.unwrap_or(own.seed),
        }
    }
}

/// What is written, and what was.
struct Writing {
    sampler: Sampler,
    decoder: TextDecoder,
    stops: StopTexts,
    /// How many tokens may still come.
    left: usize,
    /// A token that was chosen, and is not in the sequence yet: its text is told before the next one is computed.
    chosen: Option<u32>,
    tokens: Vec<u32>,
    text: String,
    /// Why nothing more comes.
    stop: Option<&'static str>,
}

impl Writing {
    /// The next text; nothing when it ended.
    fn next(&mut self, sequence: &mut Inner, options: &RunOptions) -> halite::Result<Option<String>> {
        while self.stop.is_none() {
            let text = match self.token(sequence, options)? {
                Ok(token) => {
                    let (text, ended) =
                        self.stops.push(&self.decoder.push(&sequence.generator().bytes(token)));
                    if ended {
                        self.stop = Some("text");
                        self.add(sequence, options)?;
                    }
                    text
                }
                Err(why) => {
                    self.stop = Some(why);
                    let (mut text, ended) = self.stops.push(&self.decoder.finish());
                    if !ended {
                        text.push_str(&self.stops.finish());
                    }
                    text
                }
            };
            if !text.is_empty() {
                self.text.push_str(&text);
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// The token that was chosen goes into the sequence.
    fn add(&mut self, sequence: &mut Inner, options: &RunOptions) -> halite::Result<()> {
        if let Some(token) = self.chosen {
            sequence.append(&[token], options)?;
            self.chosen = None;
        }
        Ok(())
    }

    /// The next token, or why there is none.
    fn token(
        &mut self,
        sequence: &mut Inner,
        options: &RunOptions,
    ) -> halite::Result<Result<u32, &'static str>> {
        self.add(sequence, options)?;
        if self.left == 0 {
            return Ok(Err("length"));
        }
        let Some(token) = sequence.choose(&mut self.sampler, options)? else {
            return Ok(Err(DAMAGED));
        };
        if sequence.generator().is_end(token) {
            return Ok(Err("end"));
        }
        if sequence.tokens().len() >= sequence.generator().context() {
            return Ok(Err("context"));
        }
        self.left -= 1;
        self.chosen = Some(token);
        self.tokens.push(token);
        Ok(Ok(token))
    }
}

/// What a language model writes: an iterator of texts, each computed when it is asked for. The token that a text came with joins the
/// sequence when the next one is asked for, and at the end.
#[pyclass(frozen, module = "halite")]
pub struct Stream {
    tokens: Tokens,
    /// The `Sequence` of these tokens.
    sequence: Py<PyAny>,
    writing: Arc<Mutex<Writing>>,
    bounds: Bounds,
}

impl Stream {
    /// A stream behind tokens, with the `Sequence` that has them.
    pub fn new(
        py: Python<'_>,
        (tokens, sequence): (Tokens, Py<PyAny>),
        sampling: Sampling,
        most: usize,
        stop: Option<&Bound<'_, PyAny>>,
        bounds: Bounds,
    ) -> PyResult<Stream> {
        let stops = match stop {
            None => Vec::new(),
            Some(text) if text.is_instance_of::<PyString>() => vec![text.extract()?],
            Some(texts) => texts
                .extract::<Vec<String>>()
                .map_err(|_| invalid(py, "texts that end an answer are a text, or a list of texts"))?,
        };
        if stops.iter().any(String::is_empty) {
            return Err(invalid(py, "a text that ends an answer is not empty"));
        }
        let writing = Writing {
            sampler: Sampler::new(sampling),
            decoder: TextDecoder::default(),
            stops: StopTexts::new(stops),
            left: most,
            chosen: None,
            tokens: Vec::new(),
            text: String::new(),
            stop: None,
        };
        Ok(Stream { tokens, sequence, writing: Arc::new(Mutex::new(writing)), bounds })
    }

    fn with_writing<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Writing, &mut Inner, &RunOptions) -> halite::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let writing = self.writing.clone();
        // Who has the sequence has what is written: nobody waits for one and holds the other.
        let (made, stop) = self.tokens.with_long(py, &self.bounds, move |tokens, options| {
            let mut writing = writing.lock();
            Ok((work(&mut writing, tokens, options)?, writing.stop))
        })?;
        if stop == Some(DAMAGED) {
            let text = "no logit is a number: the model's weights, or a device's results, are damaged";
            return Err(fault(py, text));
        }
        Ok(made)
    }

    /// Something that was written; the lock is held shortly by whoever has it, unless a call is under way.
    fn look<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&Writing) -> T + Send) -> T {
        py.detach(|| look(&self.writing.lock()))
    }
}

#[pymethods]
impl Stream {
    fn __iter__(own: PyRef<'_, Self>) -> PyRef<'_, Self> {
        own
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with_writing(py, Writing::next)
    }

    /// Writes to the end, and gives all text, also what was iterated over before.
    fn read(&self, py: Python<'_>) -> PyResult<String> {
        self.with_writing(py, |writing, tokens, options| {
            while writing.next(tokens, options)?.is_some() {}
            Ok(writing.text.clone())
        })
    }

    /// All text so far.
    #[getter]
    fn text(&self, py: Python<'_>) -> String {
        self.look(py, |writing| writing.text.clone())
    }

    /// The tokens that were written so far.
    #[getter]
    fn tokens(&self, py: Python<'_>) -> Vec<u32> {
        self.look(py, |writing| writing.tokens.clone())
    }

    /// Why nothing more comes: `end` (the model ended its answer), `length` (`max_tokens`), `context` (it is full), `text` (one of `stop`
    /// came). `None` while it goes on.
    #[getter]
    fn stop(&self, py: Python<'_>) -> Option<&'static str> {
        self.look(py, |writing| writing.stop)
    }

    /// The sequence that it writes on in.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> Py<PyAny> {
        self.sequence.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.look(py, |writing| {
            format!("Stream({} tokens, {})", writing.tokens.len(), writing.stop.unwrap_or("not ended"))
        })
    }
}
