//! Tokenizers from the files that people have of them.

mod beside;
pub(crate) mod gguf;
mod json;
mod sentencepiece;
mod tiktoken;

pub use beside::TextFiles;

use bytes::Bytes;
use halite_formats::gguf::{Gguf, is_gguf};

use crate::{
    TextError, Tokenizer,
    normalize::Normalize,
    pattern::Pattern,
    split::{Behaviour, Split},
};

impl Tokenizer {
    /// Reads a file of any kind that is known: Hugging Face's `tokenizer.json`, SentencePiece's `.model`, tiktoken's lists of
    /// tokens, and GGUF files. Time and memory are in proportion to the file.
    ///
    /// # Errors
    /// The file is none of these or damaged, or it asks for something that is not known, which the error names.
    pub fn from_file_bytes(file: &Bytes) -> Result<Tokenizer, TextError> {
        if is_gguf(file) {
            let file =
                Gguf::read(file).map_err(|error| TextError::file("the GGUF file:", error.to_string()))?;
            return Tokenizer::read(&file);
        }
        match file.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => json::read(file),
            _ if tiktoken::is_list(file) => tiktoken::read(file),
            _ if sentencepiece::is_model(file) => sentencepiece::read(file),
            _ => Err(TextError::Unsupported(
                "the file is no tokenizer that is known; there are: tokenizer.json of Hugging Face, .model of SentencePiece, \
                 lists of tokens of tiktoken, GGUF"
                    .to_owned(),
            )),
        }
    }
}

/// What BERT does to texts: cleans them, parts Chinese characters, takes accents away (all marks, or those without a width), and
/// makes letters small.
fn bert_steps([cleans, chinese, accents, small]: [bool; 4], all_marks: bool) -> Vec<Normalize> {
    let mut steps = Vec::new();
    if cleans {
        steps.push(Normalize::Clean);
    }
    if chinese {
        steps.push(Normalize::Chinese);
    }
    if accents {
        steps.extend((!all_marks).then_some(Normalize::Nfd));
        steps.push(Normalize::Accents { all_marks });
    }
    if small {
        steps.push(Normalize::Lowercase);
    }
    steps
}

/// How BERT splits texts: at white space, and each sign is a word of its own.
fn bert_splits() -> Result<Vec<Split>, TextError> {
    let step = |pattern: &str, behaviour| {
        let pattern = Pattern::regex(pattern, "the splitting of BERT")?;
        Ok::<_, TextError>(Split::Matches { pattern, behaviour, inverted: false })
    };
    Ok(vec![step(r"\s+", Behaviour::Removed)?, step(SIGN, Behaviour::Isolated)?])
}

/// A sign: ASCII's, and punctuation of all scripts.
const SIGN: &str = r"[\p{P}!-/:-@\[-`{-~]";
