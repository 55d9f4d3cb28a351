//! Writing on: token after token, as text.

use std::ops::ControlFlow;

use halite_text::{Decoder, Sampler};

use super::sequence::Sequence;
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
    /// told nor added.
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
        let mut decoder = Decoder::default();
        for _ in 0..most {
            let Some(token) = self.choose(sampler, options)? else {
                let text = "no logit is a number: the model's weights, or a device's results, are damaged";
                return Err(crate::Error::new(crate::ErrorKind::Other, text));
            };
            if self.generator().is_end(token) {
                return Ok(Stop::End);
            }
            if self.tokens().len() >= self.generator().context() {
                return Ok(Stop::Context);
            }
            let text = decoder.push(&self.generator().inner.tokenizer.bytes(token, false));
            if told(&Piece { token, text }).is_break() {
                self.append(&[token], options)?;
                return Ok(Stop::Caller);
            }
            self.append(&[token], options)?;
        }
        Ok(Stop::Length)
    }
}
