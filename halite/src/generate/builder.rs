//! From the builder of a session to a generator.

use std::sync::Arc;

use halite_formats::gguf::{self, Gguf, Value};
use halite_text::{ChatTemplate, Tokenizer};

use super::{Generator, Inner, text_error};
use crate::{Error, ErrorKind, Result, SessionBuilder, Sizes, Source};

/// Tokens that a call takes: one, and pieces of prompts. What is left of a prompt is filled up.
const PIECES: [usize; 3] = [1, 32, 512];
/// Room for tokens where the caller names none, if the model has as much.
const CONTEXT: usize = 4096;

/// What a [`Generator`] is made for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GeneratorOptions {
    context: Option<usize>,
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
}

impl SessionBuilder {
    /// Builds a session of a language model and all that writing text with it takes. The model is a GGUF file.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`]; and the file is no GGUF file, or its tokenizer is not supported.
    pub fn generator(mut self, options: GeneratorOptions) -> Result<Generator> {
        let limits = self.options.begin();
        let Some(main) = self.main.take() else {
            return Err(Error::invalid("a generator needs a model: give it one with model(\"model.gguf\")"));
        };
        let loaded = main.load(self.mode(), &limits)?;
        if !gguf::is_gguf(&loaded.bytes) {
            let text = format!("'{}' is no GGUF file; text is generated with these", loaded.name);
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let file = Gguf::read(&loaded.bytes)
            .map_err(|error| Error::new(ErrorKind::InvalidModel, format!("'{}': {error}", loaded.name)))?;
        let tokenizer = Tokenizer::read(&file).map_err(text_error)?;
        let template = ChatTemplate::read(&file, &tokenizer).map_err(text_error)?;
        let trained = trained_context(&file);
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
        let again = match (&loaded.path, &loaded.input) {
            (Some(path), Some(_)) => Source::path(path),
            // A stream cannot be read twice.
            _ => Source::bytes(loaded.bytes.clone()).named(loaded.name.clone()),
        };
        let sizes = Sizes::new().dimension("tokens", pieces.clone()).dimension("rows", [1]);
        let session = self.model(again).sizes(sizes.dimension("context", [context])).build()?;
        Ok(Generator { inner: Arc::new(Inner { session, tokenizer, template, context, pieces }) })
    }
}

/// Tokens that the model was trained for, if its file says so.
fn trained_context(file: &Gguf) -> Option<usize> {
    let Some(Value::Text(architecture)) = file.value("general.architecture") else { return None };
    match file.value(&format!("{architecture}.context_length")) {
        Some(Value::Int(tokens)) => usize::try_from(*tokens).ok().filter(|tokens| *tokens > 0),
        _ => None,
    }
}
