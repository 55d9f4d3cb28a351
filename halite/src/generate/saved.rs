//! Sequences as bytes.

use super::Sequence;
use crate::{Error, ErrorKind, Result, RunOptions};

/// What a saved sequence begins with.
const MAGIC: &[u8; 8] = b"HALSEQ01";
/// The same of a model with an encoder in front: tokens that this read come before the others.
const MAGIC_OF_TWO: &[u8; 8] = b"HALSEQ02";

impl Sequence {
    /// Tokens and caches as bytes, for [`Sequence::load`] of a generator with the same model, context and types of caches.
    ///
    /// # Errors
    /// The device fails.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        self.land()?;
        let (magic, lists) = match self.has_encoder() {
            true => (MAGIC_OF_TWO, vec![&self.source, &self.tokens]),
            false => (MAGIC, vec![&self.tokens]),
        };
        let mut bytes = magic.to_vec();
        for tokens in lists {
            bytes.extend_from_slice(&(tokens.len() as u64).to_le_bytes());
            bytes.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
        }
        self.begin_again(&RunOptions::new())?;
        if let Some(state) = &mut self.state {
            bytes.extend_from_slice(&state.save()?);
        }
        Ok(bytes)
    }

    /// Becomes what was saved.
    ///
    /// # Errors
    /// The bytes are no saved sequence, or one of another model or context. The sequence is without tokens then.
    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let wrong = |what: &str| Error::new(ErrorKind::InvalidInput, format!("no saved sequence: {what}"));
        self.truncate(0);
        self.source.clear();
        let (own, other) = match self.has_encoder() {
            true => (MAGIC_OF_TWO, MAGIC),
            false => (MAGIC, MAGIC_OF_TWO),
        };
        if bytes.starts_with(other) {
            return Err(wrong("it is one of another model"));
        }
        let rest = bytes.strip_prefix(own).ok_or_else(|| wrong("it does not begin like one"))?;
        let short = || wrong("it is cut short");
        let (source, rest) = match self.has_encoder() {
            true => tokens_of(rest).ok_or_else(short)?,
            false => (Vec::new(), rest),
        };
        let (tokens, state) = tokens_of(rest).ok_or_else(short)?;
        self.check(0, &source)?;
        self.check(0, &tokens)?;
        match &mut self.state {
            Some(own) => own.load(state.to_vec())?,
            None if state.is_empty() => {}
            None => return Err(wrong("it has caches, and the model has none")),
        }
        (self.source, self.tokens, self.cut) = (source, tokens, false);
        self.forget();
        Ok(())
    }
}

/// Tokens of a saved sequence behind their number, and what is behind them; `None` where these bytes are too few.
fn tokens_of(bytes: &[u8]) -> Option<(Vec<u32>, &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(4)?;
    let (tokens, rest) = rest.split_at_checked(length)?;
    let tokens = tokens.chunks_exact(4).map(|own| u32::from_le_bytes([own[0], own[1], own[2], own[3]]));
    Some((tokens.collect(), rest))
}
