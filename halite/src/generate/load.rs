//! What generators and embedders read of a model's file before its session is built.

use std::path::PathBuf;

use halite_compiler::ModelFormat;
use halite_formats::gguf::{self, Gguf, Value};
use halite_text::Tokenizer;

use super::text_error;
use crate::{
    Error, ErrorKind, Result, SessionBuilder, Source,
    session::{detect, known_formats},
};

/// A language model on its way into a session.
pub(super) enum Loaded {
    /// A GGUF file.
    Gguf(Box<Opened>),
    /// Another one, whose tokenizer lies elsewhere.
    Other {
        builder: Box<SessionBuilder>,
        /// Where its file is, if it is one.
        path: Option<PathBuf>,
        again: Source,
    },
}

/// A GGUF file on its way into a session.
pub(super) struct Opened {
    pub builder: SessionBuilder,
    pub file: Gguf,
    pub tokenizer: Tokenizer,
    /// The file once more, for the session.
    pub again: Source,
}

impl Loaded {
    /// Reads the file that a builder was given.
    pub fn of(mut builder: SessionBuilder, what: &str) -> Result<Loaded> {
        let limits = builder.options.begin()?;
        let Some(main) = builder.main.take() else {
            return Err(Error::invalid(format!(
                "{what} needs a model: give it one with model(\"model.gguf\")"
            )));
        };
        let loaded = main.load(builder.mode(), &limits)?;
        let again = match (&loaded.path, &loaded.input) {
            (Some(path), Some(_)) => Source::path(path),
            // A stream cannot be read twice.
            _ => Source::bytes(loaded.bytes.clone()).named(loaded.name.clone()),
        };
        if !gguf::is_gguf(&loaded.bytes) {
            // Before somebody looks for its tokenizer.
            if !ModelFormat::is_module(&loaded.bytes) && detect(&loaded)?.is_none() {
                let (name, known) = (&loaded.name, known_formats());
                let text = format!("'{name}' is no model of a format that is known ({known})");
                return Err(Error::new(ErrorKind::InvalidModel, text));
            }
            return Ok(Loaded::Other { builder: Box::new(builder), path: loaded.path.clone(), again });
        }
        let file = Gguf::read(&loaded.bytes)
            .map_err(|error| Error::new(ErrorKind::InvalidModel, format!("'{}': {error}", loaded.name)))?;
        let tokenizer = Tokenizer::read(&file).map_err(text_error)?;
        Ok(Loaded::Gguf(Box::new(Opened { builder, file, tokenizer, again })))
    }
}

impl Opened {
    /// The GGUF file that a builder was given.
    pub fn of(builder: SessionBuilder, what: &str) -> Result<Opened> {
        match Loaded::of(builder, what)? {
            Loaded::Gguf(opened) => Ok(*opened),
            Loaded::Other { .. } => {
                let text = format!("the model is no GGUF file; {what} is made of these");
                Err(Error::new(ErrorKind::Unsupported, text))
            }
        }
    }

    /// Tokens that the model was trained for, if its file says so.
    pub fn trained_context(&self) -> Option<usize> {
        match self.own("context_length") {
            Some(Value::Int(tokens)) => usize::try_from(*tokens).ok().filter(|tokens| *tokens > 0),
            _ => None,
        }
    }

    /// Whether tokens attend to those behind them, too: the model makes vectors of texts and writes none.
    pub fn is_encoder(&self) -> bool {
        matches!(self.own("attention.causal"), Some(Value::Bool(false)))
    }

    /// The token that answers of a model with an encoder begin with, where the file says so.
    pub fn start_token(&self) -> Option<u32> {
        match self.own("decoder_start_token_id") {
            Some(Value::Int(token)) if *token >= 0 => u32::try_from(*token).ok(),
            _ => self.tokenizer.begin(),
        }
    }

    /// Whether the model has an encoder in front of what writes.
    pub fn has_encoder(&self) -> bool {
        matches!(self.file.value("general.architecture"), Some(Value::Text(name)) if name == "t5")
    }

    /// Whether layers choose a few experts for each token.
    pub fn has_experts(&self) -> bool {
        matches!(self.own("expert_count"), Some(Value::Int(count)) if *count > 0)
    }

    /// Whether some layer attends to tokens before, so that there are caches with room for a context.
    pub fn attends(&self) -> bool {
        !matches!(self.own("attention.head_count"), Some(Value::Int(0)))
    }

    /// The value of a key of the model's architecture.
    fn own(&self, key: &str) -> Option<&Value> {
        let Some(Value::Text(architecture)) = self.file.value("general.architecture") else { return None };
        self.file.value(&format!("{architecture}.{key}"))
    }
}
