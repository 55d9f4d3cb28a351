//! From the builder of a session to a generator.

use std::sync::Arc;

use halite_text::ChatTemplate;

use super::{CacheType, Generator, Inner, load::Opened, text_error};
use crate::{Error, ErrorKind, Result, SessionBuilder, Sizes};

/// The function of models that writes.
const MAIN: &str = "main";
/// Tokens of a call that gives the logits of all of them.
const SCORED: usize = 64;

/// Tokens that a call takes: one, and pieces of prompts. What is left of a prompt is filled up.
const PIECES: [usize; 3] = [1, 32, 512];
/// Room for tokens where the caller names none, if the model has as much.
const CONTEXT: usize = 4096;

/// What a [`Generator`] is made for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GeneratorOptions {
    context: Option<usize>,
    scoring: bool,
    cache_types: [CacheType; 2],
}

impl GeneratorOptions {
    /// Nothing but defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many tokens a sequence has room for, prompt and answer; by default 4096, or what the model was trained for, if that is
    /// less. Caches take memory for all of them.
    #[must_use]
    pub fn context(mut self, tokens: usize) -> Self {
        self.context = Some(tokens);
        self
    }

    /// How caches hold keys and values; by default as 16-bit floats. Sessions fail to build where a model cannot have it: heads are
    /// whole blocks of 32 elements, up to 256, of one size for keys and values, and attention has no sinks.
    #[must_use]
    pub fn cache_types(mut self, keys: CacheType, values: CacheType) -> Self {
        self.cache_types = [keys, values];
        self
    }

    /// Whether [`super::Sequence::score`] is wanted, which tells how likely texts are. Off unless this says so.
    #[must_use]
    pub fn scoring(mut self, wanted: bool) -> Self {
        self.scoring = wanted;
        self
    }
}

impl SessionBuilder {
    /// Builds a session of a language model and all that writing text with it takes. The model is a GGUF file.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`]; and the file is no GGUF file, or its tokenizer is not supported.
    pub fn generator(self, options: GeneratorOptions) -> Result<Generator> {
        let opened = Opened::of(self, "a generator")?;
        if opened.is_encoder() {
            return Err(writes_none());
        }
        let trained = opened.trained_context();
        let Opened { builder, file, tokenizer, again } = opened;
        let cache_types = options.cache_types;
        let builder = builder.hold_caches(CacheType::formats(cache_types));
        let template = ChatTemplate::read(&file, &tokenizer).map_err(text_error)?;
        let context = options.context.unwrap_or(trained.map_or(CONTEXT, |trained| trained.min(CONTEXT)));
        if let Some(trained) = trained.filter(|trained| context > *trained) {
            log::warn!(
                "a context of {context} tokens is more than the {trained} that the model was trained for"
            );
        }
        if context == 0 {
            return Err(Error::invalid("a context of 0 tokens has no room for a prompt"));
        }
        let pieces: Vec<usize> = PIECES.into_iter().filter(|piece| *piece <= context).collect();
        let mut sizes = vec![Sizes::new().dimension("tokens", pieces.clone()).dimension("rows", [1])];
        let scoring = options.scoring.then_some(SCORED.min(context));
        sizes.extend(scoring.map(|size| Sizes::new().dimension("tokens", [size]).dimension("rows", [size])));
        let sizes = Sizes::any_of(sizes).dimension("context", [context]);
        let session = builder.model(again).sizes(sizes).build()?;
        if !session.functions().iter().any(|function| function.name == MAIN) {
            return Err(writes_none());
        }
        let inner = Inner { session, tokenizer, template, context, cache_types, pieces, scoring };
        Ok(Generator { inner: Arc::new(inner) })
    }
}

fn writes_none() -> Error {
    let text =
        "the model is an encoder, which makes vectors of texts and writes none (SessionBuilder::embedder)";
    Error::new(ErrorKind::Unsupported, text)
}
