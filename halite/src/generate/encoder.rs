//! Encoders in front of what writes.

use crate::{Error, ErrorKind, Function, Result, Session};

/// Fewest tokens of a call.
const FEWEST: usize = 16;

/// The encoder of a model, and what it begins to write with.
pub(super) struct Encoder {
    pub function: Function,
    /// Tokens of a call, with those that fill it up, the fewest first.
    sizes: Vec<usize>,
    /// The token that is before all that the model writes.
    pub start: u32,
}

impl Encoder {
    /// The encoder of a session's model, if it has one, for prompts of this length at most: of a model whose answers begin with a token of
    /// those that are known.
    pub fn of(
        session: &Session,
        (start, known): (Option<u32>, usize),
        context: usize,
    ) -> Result<Option<Encoder>> {
        let Ok(function) = session.function(halite_compiler::ENCODE) else { return Ok(None) };
        let start = start.ok_or_else(|| {
            let text = "the metadata name no token that answers begin with: neither 'decoder_start_token_id' of the architecture nor \
                        'tokenizer.ggml.bos_token_id'";
            Error::new(ErrorKind::InvalidModel, text)
        })?;
        if start as usize >= known {
            return Err(Error::new(ErrorKind::InvalidModel, unknown_token(start, known)));
        }
        Ok(Some(Encoder { function, sizes: sizes(context), start }))
    }

    /// Tokens of the call for so many.
    pub fn size(&self, tokens: usize) -> usize {
        self.sizes.iter().copied().find(|size| *size >= tokens).unwrap_or(tokens)
    }
}

/// Tokens of an encoder's calls, for texts of this length at most.
pub(super) fn sizes(context: usize) -> Vec<usize> {
    let smaller = std::iter::successors(Some(FEWEST), |size| size.checked_mul(2));
    smaller.take_while(|size| *size < context).chain([context]).collect()
}

/// What is told of a token that there is not.
pub(super) fn unknown_token(token: u32, known: usize) -> String {
    format!("there is no token {token}; the model knows {known}")
}

#[cfg(test)]
mod tests {
    use super::sizes;

    #[test]
    fn calls_are_as_long_as_texts_may_be() {
        assert_eq!(sizes(512), [16, 32, 64, 128, 256, 512]);
        assert_eq!(sizes(100), [16, 32, 64, 100]);
        assert_eq!(sizes(16), [16]);
        assert_eq!(sizes(3), [3]);
    }
}
