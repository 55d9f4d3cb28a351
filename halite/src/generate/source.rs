//! Sequences of models with an encoder in front: the prompt goes to the encoder, and what the model writes begins behind a token of its own.

use super::{Calls, Sequence};
use crate::{Error, Result, RunOptions, Tensor};

impl Sequence {
    /// The encoder in front of the model, if it has one.
    pub(super) fn has_encoder(&self) -> bool {
        matches!(&self.generator.inner.calls, Calls::Pieces(pieces) if pieces.encoder.is_some())
    }

    /// The tokens that the encoder read; none where the model has no encoder, or there was no prompt.
    pub fn source(&self) -> &[u32] {
        &self.source
    }

    /// As [`Sequence::prompt`], where the prompt goes to an encoder: what was written before is taken back.
    pub(super) fn prompt_encoder(&mut self, tokens: &[u32], options: &RunOptions) -> Result<usize> {
        let inner = self.generator.inner.clone();
        let Calls::Pieces(pieces) = &inner.calls else { return Ok(0) };
        let Some(encoder) = &pieces.encoder else { return Ok(0) };
        let is_same = self.source == tokens;
        let is_known = !self.logits.is_empty() || self.knows_next();
        if is_same && self.tokens == [encoder.start] && is_known {
            return Ok(tokens.len());
        }
        self.truncate(0);
        if !is_same {
            // What a call that fails leaves is no text's.
            self.source.clear();
            let size = encoder.size(tokens.len());
            let filled = tokens.iter().map(|token| *token as i32).chain(std::iter::repeat(0)).take(size);
            let filled = Tensor::from_slice(&filled.collect::<Vec<_>>(), [size])?;
            let count = Tensor::from_slice(&[tokens.len() as i32], [1])?;
            let state = self.kept()?;
            state.change(&encoder.function)?;
            state.run_with([("tokens", &filled), ("count", &count)], options)?;
            self.source = tokens.to_vec();
        }
        self.append(&[encoder.start], options)?;
        Ok(if is_same { tokens.len() } else { 0 })
    }

    /// Whether the encoder read something, if there is one.
    pub(super) fn check_source(&self) -> Result<()> {
        if !self.has_encoder() || !self.source.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(
            "the model has an encoder, which reads a prompt before the model writes or tells how likely an answer is: there is no prompt \
             yet (Sequence::prompt)",
        ))
    }
}
