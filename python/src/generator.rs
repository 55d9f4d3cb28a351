//! `halite.Generator`: a language model that writes text.

use std::{collections::BTreeMap, path::PathBuf, str::FromStr};

use halite::{CacheType, ChooseOn, GeneratorOptions};
use pyo3::{prelude::*, types::PyString};

use crate::{
    error::{OrRaise, invalid},
    options::{Bounds, CancelToken, precision, tuning},
    prompt, schema,
    sequence::Sequence,
    session::{Choices, Session},
    source,
    steps::{self, Sampler},
    stream::{Stream, Wanted},
    work::short,
};

/// A language model that writes text: its session, tokenizer and chat template. A GGUF file has all of it; a decoder in another format
/// needs the file of a tokenizer. Sequences share its weights, each
/// has caches of its own. The page docs/tutorials/python.md shows how.
#[pyclass(frozen, module = "halite")]
pub struct Generator(pub halite::Generator);

/// What caches hold keys and values as: a name for both, or one for each.
fn cache_types(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<[CacheType; 2]>> {
    let Some(given) = given else { return Ok(None) };
    let py = given.py();
    let read = |name: &str| CacheType::from_str(name).or_raise(py);
    if given.is_instance_of::<PyString>() {
        let both = read(&given.extract::<String>()?)?;
        return Ok(Some([both, both]));
    }
    let pair: (String, String) = given.extract().map_err(|_| {
        invalid(py, "types of caches are a name, such as 'q8_0', or two: of keys and of values")
    })?;
    Ok(Some([read(&pair.0)?, read(&pair.1)?]))
}

#[pymethods]
impl Generator {
    /// Reads the model, opens a device, compiles for it, and loads the weights.
    #[new]
    #[pyo3(signature = (
        model, *, context=None, cache_types=None, scoring=false, tokenizer=None, choose_on="auto", batch=1, device=None,
        options=None, plugins=false, precision=None, cache=None, load=None, tuning=None, timeout=None, cancel=None, progress=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python, and defaults")]
    fn new(
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        context: Option<usize>,
        cache_types: Option<&Bound<'_, PyAny>>,
        scoring: bool,
        tokenizer: Option<PathBuf>,
        choose_on: &str,
        batch: usize,
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
    ) -> PyResult<Generator> {
        let mut wanted = GeneratorOptions::new().scoring(scoring).batch(batch);
        wanted = wanted.choose_on(ChooseOn::from_str(choose_on).or_raise(py)?);
        if let Some(context) = context {
            wanted = wanted.context(context);
        }
        if let Some(file) = tokenizer {
            wanted = wanted.tokenizer(file);
        }
        if let Some([keys, values]) = self::cache_types(cache_types)? {
            wanted = wanted.cache_types(keys, values);
        }
        let builder = halite::Session::builder()
            .model(source::source(model)?)
            .precision(self::precision(py, precision)?)
            .tuning(self::tuning(tuning)?);
        let choices = Choices { device, options, plugins, cache, load, ..Choices::default() };
        let builder = choices.apply(py, builder)?;
        let bounds = Bounds::new(py, timeout, cancel, progress)?;
        bounds.long(py, move |options| builder.options(options.clone()).generator(wanted)).map(Generator)
    }

    /// Writes on behind a prompt (a text, messages, or tokens) in a sequence of its own: an iterator of texts.
    #[pyo3(signature = (
        prompt, *, max_tokens=256, stop=None, temperature=None, top_k=None, top_p=None, min_p=None, repeat_penalty=None,
        repeat_last=None, seed=None, ignore_end=false, json_schema=None, timeout=None, cancel=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python, and defaults")]
    fn generate(
        own: &Bound<'_, Self>,
        py: Python<'_>,
        prompt: &Bound<'_, PyAny>,
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
        let tokens = prompt::tokens(&own.get().0, prompt)?;
        let sequence = Generator::sequence(own, py)?;
        let bounds = Bounds::new(py, timeout, cancel, None)?;
        sequence.tokens.begin(py, tokens, &bounds)?;
        let tokens = sequence.tokens.clone();
        let sequence = Py::new(py, sequence)?.into_any();
        Stream::new(py, (tokens, sequence), &own.get().0, &wanted, max_tokens, stop, bounds)
    }

    /// The next token of each of these sequences, as its sampler chooses it, which is added to it: what is behind all of them is computed
    /// together. Gives the number of the token, or why there is none: `end` (the model ended what it says), `context` (it is full).
    #[pyo3(signature = (writers, /, *, timeout=None, cancel=None))]
    fn step(
        &self,
        py: Python<'_>,
        writers: Vec<(Bound<'_, Sequence>, Bound<'_, Sampler>)>,
        timeout: Option<f64>,
        cancel: Option<&CancelToken>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        steps::step(py, &self.0, &writers, &Bounds::new(py, timeout, cancel, None)?)
    }

    /// A sampler for sequences of this generator whose tokens make one JSON value that follows a schema (a text, or a dictionary), and
    /// then end.
    #[pyo3(signature = (
        schema, /, *, temperature=None, top_k=None, top_p=None, min_p=None, repeat_penalty=None, repeat_last=None, seed=None,
        ignore_end=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python, and defaults")]
    fn schema_sampler(
        &self,
        schema: &Bound<'_, PyAny>,
        temperature: Option<f32>,
        top_k: Option<usize>,
        top_p: Option<f32>,
        min_p: Option<f32>,
        repeat_penalty: Option<f32>,
        repeat_last: Option<usize>,
        seed: Option<u64>,
        ignore_end: bool,
    ) -> PyResult<Sampler> {
        let json_schema = Some(schema::read(schema)?);
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
        Ok(Sampler::of(wanted.sampler(&self.0), ignore_end))
    }

    /// How many sequences take a step together at most.
    #[getter]
    fn batch(&self) -> usize {
        self.0.batch()
    }

    /// A sequence without tokens.
    fn sequence(own: &Bound<'_, Self>, py: Python<'_>) -> PyResult<Sequence> {
        let generator = &own.get().0;
        let made = short(py, || generator.sequence())?;
        Ok(Sequence::new(made, own.clone().into_any().unbind()))
    }

    /// The tokens of a text, with that of the beginning if the model is used to it. Names of control tokens, such as `<|im_end|>`, are
    /// plain text, unless `control` makes tokens of them: for what `chat()` made.
    #[pyo3(signature = (text, *, control=false))]
    fn tokenize(&self, py: Python<'_>, text: &str, control: bool) -> PyResult<Vec<u32>> {
        short(py, || Ok(self.0.tokenize(text, control)))
    }

    /// The text of tokens.
    fn text(&self, tokens: Vec<u32>) -> String {
        self.0.text(&tokens)
    }

    /// Whether a token ends what the model says.
    fn is_end(&self, token: u32) -> bool {
        self.0.is_end(token)
    }

    /// The prompt of a conversation, by the model's chat template, up to where the model is to answer. `tools` are those that the model
    /// may call, a list in OpenAI's form, and `values` others that the template may know, by name, such as `{"enable_thinking": False}`.
    #[pyo3(signature = (messages, *, tools=None, values=None))]
    fn chat(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        values: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let messages = prompt::messages(messages)?;
        let tools = tools.map(prompt::json).transpose()?;
        let values = values.map(prompt::json).transpose()?;
        let values = values.as_deref().unwrap_or("{}");
        let options = halite::RunOptions::new();
        short(py, || self.0.chat_with_values(&messages, tools.as_deref(), values, &options))
    }

    /// How many tokens a sequence has room for.
    #[getter]
    fn context(&self) -> usize {
        self.0.context()
    }

    /// How many tokens the model knows.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.0.vocabulary_len()
    }

    /// The token that texts begin with, if the model has one.
    #[getter]
    fn begin(&self) -> Option<u32> {
        self.0.begin()
    }

    /// How caches hold keys and values.
    #[getter]
    fn cache_types(&self) -> (&'static str, &'static str) {
        let [keys, values] = self.0.cache_types();
        (keys.name(), values.name())
    }

    /// The session of the model.
    #[getter]
    fn session(&self) -> Session {
        Session::of(self.0.session().clone())
    }

    fn __repr__(&self) -> String {
        format!("Generator(context {} on {:?})", self.0.context(), self.0.session().devices())
    }
}
