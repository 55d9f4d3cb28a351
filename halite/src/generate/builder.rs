//! From the builder of a session to a generator.

use std::sync::Arc;

use halite_compiler::{ChoiceWay, TokenChoice};
use halite_text::ChatTemplate;

use super::{CacheType, ChooseOn, Generator, Inner, choosing::Choosers, load::Opened, text_error};
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
    choose_on: ChooseOn,
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

    /// Where tokens are chosen when sequences write; by default on the device, if it is a GPU.
    #[must_use]
    pub fn choose_on(mut self, place: ChooseOn) -> Self {
        self.choose_on = place;
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
        let choice = TokenChoice {
            function: MAIN.to_owned(),
            logits: "logits".to_owned(),
            sizes: [("tokens".to_owned(), 1), ("rows".to_owned(), 1)].into(),
        };
        let builder = match options.choose_on {
            ChooseOn::Host => builder,
            place => builder.choose_tokens(choice, place == ChooseOn::Device),
        };
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
        let main = session.function(MAIN)?;
        let chooser = |way: ChoiceWay| session.function(way.name());
        let choosers = match options.choose_on {
            ChooseOn::Host => None,
            _ => chooser(ChoiceWay::Greedy).and_then(|greedy| Ok((greedy, chooser(ChoiceWay::Sample)?))).ok(),
        };
        let choosers = choosers.map(|(greedy, sample)| Choosers { greedy, sample });
        let inner =
            Inner { session, main, choosers, tokenizer, template, context, cache_types, pieces, scoring };
        Ok(Generator { inner: Arc::new(inner) })
    }
}

fn writes_none() -> Error {
    let text =
        "the model is an encoder, which makes vectors of texts and writes none (SessionBuilder::embedder)";
    Error::new(ErrorKind::Unsupported, text)
}
