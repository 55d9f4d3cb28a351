//! `halite.Stream`: what a language model writes, text by text.

use std::{ops::ControlFlow, sync::Arc};

use halite::{
    Generator, JsonSchema, RunOptions, Sampler, Sampling, Sequence as Inner, Stop, StopTexts, TextDecoder,
};
use parking_lot::Mutex;
use pyo3::{prelude::*, types::PyString};

use crate::{
    error::{fault, invalid},
    options::Bounds,
    tokens::Tokens,
};

/// Why nothing more comes where no logit is a number.
const DAMAGED: &str = "damaged";
/// The library has another reason, which this module has no name for.
const UNKNOWN: &str = "unknown";

/// How tokens are chosen, as far as the program says so, and whether texts go on behind their end.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub temperature: Option<f32>,
    pub top_k: Option<usize>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repeat_penalty: Option<f32>,
    pub repeat_last: Option<usize>,
    pub seed: Option<u64>,
    pub ignore_end: bool,
    pub json_schema: Option<JsonSchema>,
}

impl Wanted {
    /// What chooses tokens of a generator so.
    pub fn sampler(&self, generator: &Generator) -> Sampler {
        match &self.json_schema {
            Some(schema) => generator.schema_sampler(self.sampling(), schema),
            None => Sampler::new(self.sampling()),
        }
    }

    /// With the library's own choices for the rest.
    pub fn sampling(&self) -> Sampling {
        let own = Sampling::default();
        Sampling {
            temperature: self.temperature.unwrap_or(own.temperature),
            top_k: self.top_k.unwrap_or(own.top_k),
            top_p: self.top_p.unwrap_or(own.top_p),
            min_p: self.min_p.unwrap_or(own.min_p),
            repeat_penalty: self.repeat_penalty.unwrap_or(own.repeat_penalty),
            repeat_last: self.repeat_last.unwrap_or(own.repeat_last),
            seed: self.seed.unwrap_or(own.seed),
            ..own
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
    /// Whether the token that ends a text is one like others.
    ignores_end: bool,
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
                Err(why) => self.end(why),
            };
            if !text.is_empty() {
                self.text.push_str(&text);
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// Writes to the end. Unlike [`Self::next`], which leaves every choice to the host, this has the device choose where the generator
    /// says so: nobody waits for a text before the next one is computed.
    fn rest(&mut self, sequence: &mut Inner, options: &RunOptions) -> halite::Result<()> {
        if self.stop.is_some() {
            return Ok(());
        }
        self.add(sequence, options)?;
        sequence.ignore_end(self.ignores_end);
        let (generator, before, written) =
            (sequence.generator().clone(), sequence.tokens().len(), self.tokens.len());
        let mut by_text = false;
        let Writing { sampler, decoder, stops, left, tokens, text, .. } = self;
        let why = sequence.generate(sampler, *left, options, |piece| {
            *left -= 1;
            tokens.push(piece.token);
            let (part, ended) = stops.push(&decoder.push(&generator.bytes(piece.token)));
            text.push_str(&part);
            by_text = ended;
            if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if sequence.tokens().len() - before < self.tokens.len() - written {
            // The call that was to take it failed: the next one tries again.
            self.chosen = self.tokens.last().copied();
        }
        let why = match why? {
            Stop::End => "end",
            Stop::Length => "length",
            Stop::Context => "context",
            Stop::Caller => "text",
            _ => UNKNOWN,
        };
        if by_text {
            self.stop = Some(why);
        } else {
            let last = self.end(why);
            self.text.push_str(&last);
        }
        Ok(())
    }

    /// Nothing more comes; what was held back.
    fn end(&mut self, why: &'static str) -> String {
        self.stop = Some(why);
        let (mut text, ended) = self.stops.push(&self.decoder.finish());
        if !ended {
            text.push_str(&self.stops.finish());
        }
        text
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
        if !self.ignores_end && sequence.generator().is_end(token) {
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
        generator: &Generator,
        wanted: &Wanted,
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
            sampler: wanted.sampler(generator),
            decoder: TextDecoder::default(),
            stops: StopTexts::new(stops),
            left: most,
            chosen: None,
            tokens: Vec::new(),
            text: String::new(),
            ignores_end: wanted.ignore_end,
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

    /// Writes to the end, and gives all text, also what was iterated over before. Where the generator has the device choose tokens
    /// (`choose_on`), this does so; who iterates has the host choose each when it is asked for.
    fn read(&self, py: Python<'_>) -> PyResult<String> {
        self.with_writing(py, |writing, tokens, options| {
            writing.rest(tokens, options)?;
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
