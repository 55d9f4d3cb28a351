//! How likely texts are to a model: what perplexity is made of.

use super::{
    Calls, pieces,
    sequence::{Sequence, scores_none},
};
use crate::{Result, RunOptions};

impl Sequence {
    /// Adds tokens, and gives how likely each was behind those before it, as natural logarithms. The first token of a sequence has
    /// nothing before it: 0.
    ///
    /// # Errors
    /// The generator of a GGUF file was not made for it ([`super::GeneratorOptions::scoring`]), or as [`Sequence::append`].
    pub fn score(&mut self, tokens: &[u32], options: &RunOptions) -> Result<Vec<f64>> {
        if let Calls::Pieces(pieces) = &self.generator().inner.calls
            && pieces.scoring.is_empty()
        {
            return Err(scores_none());
        }
        let mut scores = Vec::with_capacity(tokens.len());
        self.append_told(tokens, options, |token, logits| {
            scores.push(if logits.is_empty() { 0.0 } else { likelihood(logits, token) });
        })?;
        Ok(scores)
    }

    /// Adds tokens as [`Sequence::append`], and tells each with the logits that were there before it, one for each token that the model
    /// knows; there are none where [`Sequence::logits`] are empty. A generator that was made for it
    /// ([`super::GeneratorOptions::scoring`]) takes up to 64 tokens in a call, 8 where there are few, and holds the logits of as many; others take one by one.
    ///
    /// # Errors
    /// As [`Sequence::append`]; what was told before stays.
    pub fn append_told(
        &mut self,
        tokens: &[u32],
        options: &RunOptions,
        mut told: impl FnMut(u32, &[f32]),
    ) -> Result<()> {
        self.land()?;
        self.check_source()?;
        self.check_room(tokens)?;
        let before = self.tokens().len();
        let mut rest = tokens;
        while !rest.is_empty() {
            match self.told_piece(rest, options, &mut told) {
                Ok(count) => rest = &rest[count..],
                Err(error) => {
                    self.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Adds the first of some tokens, and says how many these are.
    fn told_piece(
        &mut self,
        tokens: &[u32],
        options: &RunOptions,
        told: &mut dyn FnMut(u32, &[f32]),
    ) -> Result<usize> {
        told(tokens[0], self.logits());
        let room = self.generator().context() - self.tokens().len();
        let (size, count) = match &self.generator().inner.calls {
            Calls::Pieces(own) => pieces::next_scored(&own.scoring, tokens.len(), room, own.costs),
            Calls::Decoder(_) => (1, 1),
        };
        // A call of one token gives its logits in any case.
        if size == 1 {
            self.append(&tokens[..1], options)?;
            return Ok(1);
        }
        let logits = self.step_of_all(size, &tokens[..count], options)?;
        let rows = logits.chunks_exact((logits.len() / size).max(1));
        tokens[1..count].iter().zip(rows).for_each(|(token, row)| told(*token, row));
        Ok(count)
    }
}

/// The logarithm of a token's probability.
fn likelihood(logits: &[f32], token: u32) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - largest).exp()).sum();
    logits.get(token as usize).map_or(f64::NEG_INFINITY, |logit| f64::from(logit - largest) - sum.ln())
}

#[cfg(test)]
mod tests {
    #[test]
    fn likelihoods_are_those_of_a_softmax() {
        let logits = [1.0f32, 3.0, 2.0];
        let all: f64 = (0..3).map(|token| super::likelihood(&logits, token).exp()).sum();
        assert!((all - 1.0).abs() < 1e-6);
        assert!((super::likelihood(&logits, 1) - super::likelihood(&logits, 2) - 1.0).abs() < 1e-6);
        assert_eq!(super::likelihood(&logits, 3), f64::NEG_INFINITY);
    }
}
