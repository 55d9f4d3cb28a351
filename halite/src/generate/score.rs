//! How likely texts are to a model: what perplexity is made of.

use super::{
    Calls, Pieces,
    sequence::{Sequence, scores_none},
};
use crate::{Result, RunOptions};

impl Sequence {
    /// Adds tokens, and gives how likely each was behind those before it, as natural logarithms. The first token of a sequence has
    /// nothing before it: 0.
    ///
    /// # Errors
    /// The generator was not made for it ([`super::GeneratorOptions::scoring`]), or as [`Sequence::append`].
    pub fn score(&mut self, tokens: &[u32], options: &RunOptions) -> Result<Vec<f64>> {
        let size = match &self.generator().inner.calls {
            Calls::Pieces(Pieces { scoring: Some(size), .. }) => *size,
            _ => return Err(scores_none()),
        };
        self.land()?;
        self.check_source()?;
        self.check_room(tokens)?;
        let mut scores = Vec::with_capacity(tokens.len());
        let mut rest = tokens;
        while !rest.is_empty() {
            let room = self.generator().context() - self.tokens().len();
            if room < size {
                // No call of full size fits: one by one.
                scores.push(self.last_score(rest[0]));
                self.append(&rest[..1], options)?;
                rest = &rest[1..];
                continue;
            }
            let count = rest.len().min(size);
            scores.push(self.last_score(rest[0]));
            let logits = self.step_of_all(&rest[..count], options)?;
            let width = logits.len() / size;
            let rows = logits.chunks_exact(width.max(1));
            scores.extend(rest[1..count].iter().zip(rows).map(|(token, row)| likelihood(row, *token)));
            rest = &rest[count..];
        }
        Ok(scores)
    }

    /// How likely a token is behind all so far.
    fn last_score(&self, token: u32) -> f64 {
        if self.logits().is_empty() { 0.0 } else { likelihood(self.logits(), token) }
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
