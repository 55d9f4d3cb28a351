//! Tokenizers by themselves: for programs that need the tokens of texts and have no language model.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use halite_text::{TextFiles, TokenKind, Tokenizer as Inner};

use super::text_error;
use crate::Result;

/// A tokenizer without a model: texts to tokens and back. Clones share it.
///
/// ```no_run
/// use halite::Tokenizer;
///
/// let tokenizer = Tokenizer::open("tokenizer.json")?;
/// let tokens = tokenizer.encode("A GPU is a processor.", true);
/// assert_eq!(tokenizer.decode(&tokens, false), "A GPU is a processor.");
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

impl Tokenizer {
    /// Reads a tokenizer's file, or that of a folder: Hugging Face's `tokenizer.json`, SentencePiece's `.model`, tiktoken's lists, GGUF.
    ///
    /// # Errors
    /// The file is not there, is none of these, is damaged, or asks for something that is not supported.
    pub fn open(path: impl Into<PathBuf>) -> Result<Tokenizer> {
        let files = TextFiles::open(&path.into()).map_err(text_error)?;
        Ok(Tokenizer { inner: Arc::new(files.tokenizer) })
    }

    /// The same of a file's bytes. Time and memory are in proportion to them.
    ///
    /// # Errors
    /// As [`Tokenizer::open`].
    pub fn from_bytes(file: &[u8]) -> Result<Tokenizer> {
        let inner = Inner::from_file_bytes(&Bytes::copy_from_slice(file)).map_err(text_error)?;
        Ok(Tokenizer { inner: Arc::new(inner) })
    }

    /// The tokens of a text; with `marks` those that its file wants before and behind texts, too. Names of control tokens in the text are
    /// text.
    pub fn encode(&self, text: &str, marks: bool) -> Vec<u32> {
        if marks { self.inner.encode(text, false) } else { self.inner.encode_bare(text, false) }
    }

    /// The text of tokens, without what the tokenizer wrote before it and behind it. Control tokens have none, and with `unknown` those
    /// that stand for something that has no token are written as the file says. Bytes that are no UTF-8 are replaced.
    pub fn decode(&self, tokens: &[u32], unknown: bool) -> String {
        let kinds = self.inner.vocabulary();
        let seen: Vec<u32> =
            tokens.iter().copied().filter(|token| kinds.kind(*token) != Some(TokenKind::Control)).collect();
        self.inner.decode(&seen, unknown)
    }

    /// How many tokens there are: they are the numbers below this one.
    pub fn len(&self) -> usize {
        self.inner.vocabulary().len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The token of the beginning of a text, where the file names one.
    pub fn begin(&self) -> Option<u32> {
        self.inner.begin()
    }

    /// The token of the end of a text, where the file names one.
    pub fn end(&self) -> Option<u32> {
        self.inner.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_tokenizer_needs_no_model() {
        let file = r##"{"model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "a": 1, "b": 2, "[E]": 3}},
            "added_tokens": [{"id": 3, "content": "[E]", "special": true}],
            "post_processor": {"type": "BertProcessing", "sep": ["[E]", 3], "cls": ["[E]", 3]},
            "pre_tokenizer": {"type": "Whitespace"}, "decoder": {"type": "WordPiece", "prefix": "#"}}"##;
        let tokenizer = Tokenizer::from_bytes(file.as_bytes()).unwrap();
        assert_eq!((tokenizer.len(), tokenizer.is_empty()), (4, false));
        assert_eq!(tokenizer.encode("a b", false), [1, 2]);
        assert_eq!(tokenizer.encode("b z", true), [3, 2, 0, 3]);
        assert_eq!(tokenizer.decode(&[3, 1, 2, 3], false), "a b");
        assert_eq!(Tokenizer::from_bytes(b"{}").unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(Tokenizer::open("/nowhere/tokenizer.json").unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
