//! Vectors of texts: a model for embeddings, its session and tokenizer.

use std::sync::Arc;

use halite_text::Tokenizer;

use super::load::Opened;
use crate::{Error, ErrorKind, Result, RunOptions, Session, SessionBuilder, Tensor};

/// The function of models that makes vectors.
const EMBED: &str = "embed";
/// Most tokens of a text where the file does not say what the model was trained for.
const LONGEST: usize = 1 << 15;

/// A language model that makes vectors of texts, from a GGUF file: an encoder such as BERT, or a decoder whose metadata say what
/// becomes of the states of a text. Texts that mean the like have vectors that point in like directions.
///
/// Any number of threads may use it.
///
/// ```no_run
/// use halite::{RunOptions, Session};
///
/// let embedder = Session::builder().model("nomic-embed-text.gguf").embedder()?;
/// let options = RunOptions::new();
/// let one = embedder.embed(&embedder.tokenize("search_query: What is a GPU?"), &options)?;
/// let other = embedder.embed(&embedder.tokenize("search_document: A GPU draws."), &options)?;
/// let near: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
/// println!("{near}");
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Clone)]
pub struct Embedder {
    inner: Arc<Inner>,
}

struct Inner {
    session: Session,
    tokenizer: Tokenizer,
    longest: usize,
}

impl SessionBuilder {
    /// Builds a session of a model for embeddings, with its tokenizer. The model is a GGUF file.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`]; and the file is no GGUF file, its tokenizer is not supported, or it makes no vectors.
    pub fn embedder(self) -> Result<Embedder> {
        let opened = Opened::of(self, "an embedder")?;
        let longest = opened.trained_context().map_or(LONGEST, |trained| trained.min(LONGEST));
        let Opened { builder, tokenizer, again, .. } = opened;
        let session = builder.model(again).build()?;
        if !session.functions().iter().any(|function| function.name == EMBED) {
            let text = "the model makes no vectors of texts: it is no encoder, and its metadata have neither 'pooling_type' nor 'attention.causal' = false";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        Ok(Embedder { inner: Arc::new(Inner { session, tokenizer, longest }) })
    }
}

impl Embedder {
    /// The session of the model.
    pub fn session(&self) -> &Session {
        &self.inner.session
    }

    /// Most tokens of a text.
    pub fn longest(&self) -> usize {
        self.inner.longest
    }

    /// The tokens of a text, with those that the model is used to at its beginning and end.
    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        self.inner.tokenizer.encode(text, false)
    }

    /// The vector of a text's tokens, of length 1: the mean of the tokens' states, or the first's or the last's, as the model's
    /// metadata say.
    ///
    /// # Errors
    /// There are no tokens, or more than [`Embedder::longest`]; one is not known; or the device fails.
    pub fn embed(&self, tokens: &[u32], options: &RunOptions) -> Result<Vec<f32>> {
        let mut vector = self.embed_raw(tokens, options)?;
        let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
        }
        Ok(vector)
    }

    /// The same as long as it comes.
    ///
    /// # Errors
    /// As [`Embedder::embed`].
    pub fn embed_raw(&self, tokens: &[u32], options: &RunOptions) -> Result<Vec<f32>> {
        let (known, longest) = (self.inner.tokenizer.vocabulary().len(), self.inner.longest);
        if tokens.is_empty() || tokens.len() > longest {
            let text = format!("a text of {} tokens; the model takes 1 to {longest}", tokens.len());
            return Err(Error::invalid(text));
        }
        if let Some(token) = tokens.iter().find(|token| **token as usize >= known) {
            return Err(Error::invalid(format!("there is no token {token}; the model knows {known}")));
        }
        let tokens: Vec<i32> = tokens.iter().map(|token| *token as i32).collect();
        let tokens = Tensor::from_slice(&tokens, [tokens.len()])?;
        let function = self.inner.session.function(EMBED)?;
        let outputs = function.run_with([("tokens", &tokens)], options)?;
        outputs["embedding"].to_vec::<f32>()
    }
}

impl std::fmt::Debug for Embedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedder").field("longest", &self.inner.longest).finish_non_exhaustive()
    }
}
