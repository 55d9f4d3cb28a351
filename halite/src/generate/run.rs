//! Writing on: token after token, as text.

use std::ops::ControlFlow;

use halite_text::{Decoder, Sampler};

use super::sequence::{Sequence, no_number};
use crate::{Result, RunOptions};

/// A token that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// Its number.
    pub token: u32,
    /// The text that it completes: none while bytes of a character are missing.
    pub text: String,
}

/// Why a model writes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// It ended what it says.
    End,
    /// It wrote as many tokens as it was allowed to.
    Length,
    /// The context is full.
    Context,
    /// The caller has enough.
    Caller,
}

impl Sequence {
    /// Lets the model write on for at most `most` tokens, and tells each when it is there. The token that ends the text is neither
    /// told nor added. Where the device chooses ([`super::GeneratorOptions::choose_on`]) and the text ends early, or a second model drafts
    /// ([`super::GeneratorOptions::draft`]), there may be no [`Sequence::logits`] behind it.
    ///
    /// # Errors
    /// There are no tokens yet, no logit is a number, the device fails, or the options end it: what was told stays.
    pub fn generate(
        &mut self,
        sampler: &mut Sampler,
        most: usize,
        options: &RunOptions,
        mut told: impl FnMut(&Piece) -> ControlFlow<()>,
    ) -> Result<Stop> {
        self.land()?;
        let inner = self.generator().inner.clone();
        if let Some(draft) = &inner.draft {
            return self.generate_drafted(draft, sampler, most, options, &mut told);
        }
        // What the device chose and a schema does not allow could not be taken back from a state.
        let is_free = !sampler.follows_schema() || !inner.is_recurrent();
        match inner.choosers().and_then(|all| all.before_schema(sampler)) {
            Some(chooser) if most > 1 && is_free => {
                self.generate_ahead(chooser, sampler, most, options, &mut told)
            }
            _ => self.generate_here(sampler, most, options, &mut told),
        }
    }

    /// The same, where the host chooses.
    fn generate_here(
        &mut self,
        sampler: &mut Sampler,
        most: usize,
        options: &RunOptions,
        told: &mut dyn FnMut(&Piece) -> ControlFlow<()>,
    ) -> Result<Stop> {
        let mut decoder = Decoder::default();
        for _ in 0..most {
            let token = self.chosen(sampler, options)?;
            if self.ends_with(token) {
                return Ok(Stop::End);
            }
            if self.tokens().len() >= self.generator().context() {
                return Ok(Stop::Context);
            }
            let text = decoder.push(&self.generator().inner.tokenizer.bytes(token, false));
            let flow = told(&Piece { token, text });
            self.append(&[token], options)?;
            if flow.is_break() {
                return Ok(Stop::Caller);
            }
        }
        Ok(Stop::Length)
    }

    /// The token that the host chooses.
    pub(super) fn chosen(&mut self, sampler: &mut Sampler, options: &RunOptions) -> Result<u32> {
        self.choose(sampler, options)?.ok_or_else(no_number)
    }

    /// Whether the text ends at this token.
    pub(super) fn ends_with(&self, token: u32) -> bool {
        !self.goes_on && self.generator().is_end(token)
    }
}
