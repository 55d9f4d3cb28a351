//! The tokens that a model knows, from the metadata of its file.

use std::collections::HashMap;

use halite_formats::gguf::{Array, Gguf, Value};

use crate::TextError;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// What stands for text that is no token.
    Unknown,
    /// The beginning of a turn, the end of a text: no text of its own.
    Control,
    /// A piece of text that is never split.
    UserDefined,
    /// Nothing.
    Unused,
    /// A byte.
    Byte,
}

impl TokenKind {
    fn of(number: i128) -> TokenKind {
        match number {
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            _ => TokenKind::Normal,
        }
    }
}

/// A token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub text: Box<[u8]>,
    pub kind: TokenKind,
    /// Larger ones are merged first.
    pub score: f32,
}

/// The tokens of a model, by number and by text.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    tokens: Vec<Token>,
    by_text: HashMap<Box<[u8]>, u32>,
}

/// Texts of tokens that end what a model says, in models whose metadata do not name them all.
const ENDS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
];

const TOKENS: &str = "tokenizer.ggml.tokens";

impl Vocabulary {
    /// Reads it.
    ///
    /// # Errors
    /// The file has none, or its lists are not as long as each other.
    pub fn read(file: &Gguf) -> Result<Vocabulary, TextError> {
        let texts = array(file, TOKENS)?.ok_or_else(|| TextError::metadata(TOKENS, "is missing"))?;
        if texts.len() >= u64::from(u32::MAX) {
            return Err(TextError::metadata(TOKENS, "has more tokens than 32 bits can count"));
        }
        let mut tokens: Vec<Token> = texts
            .texts()
            .map(|text| Token { text: text.into(), kind: TokenKind::Normal, score: 0.0 })
            .collect();
        if tokens.is_empty() {
            return Err(TextError::metadata(TOKENS, "has no texts"));
        }
        each(file, "tokenizer.ggml.scores", &mut tokens, |token, value| {
            if let Value::Float(score) = value {
                token.score = score as f32;
            }
        })?;
        each(file, "tokenizer.ggml.token_type", &mut tokens, |token, value| {
            if let Value::Int(kind) = value {
                token.kind = TokenKind::of(kind);
            }
        })?;
        let mut by_text = HashMap::with_capacity(tokens.len());
        for (id, token) in (0u32..).zip(&mut tokens) {
            if ENDS.iter().any(|end| end.as_bytes() == &*token.text) {
                token.kind = TokenKind::Control;
            }
            by_text.insert(token.text.clone(), id);
        }
        Ok(Vocabulary { tokens, by_text })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    pub(crate) fn token(&self, id: u32) -> Option<&Token> {
        self.tokens.get(id as usize)
    }

    /// The token with this text.
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        self.by_text.get(text).copied()
    }

    /// What a token is for; `None` for a number that there is not.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.token(id).map(|token| token.kind)
    }

    /// All tokens of some kinds.
    pub(crate) fn of_kinds(&self, kinds: &[TokenKind]) -> impl Iterator<Item = (u32, &Token)> {
        (0u32..).zip(&self.tokens).filter(move |(_, token)| kinds.contains(&token.kind))
    }

    /// Tokens whose text says that they end what a model says.
    pub(crate) fn ends(&self) -> impl Iterator<Item = u32> {
        ENDS.iter().filter_map(|end| self.find(end.as_bytes()))
    }
}

/// Gives each token the value at its place.
fn each(
    file: &Gguf,
    key: &str,
    tokens: &mut [Token],
    set: impl Fn(&mut Token, Value),
) -> Result<(), TextError> {
    let Some(values) = array(file, key)? else { return Ok(()) };
    if values.len() != tokens.len() as u64 {
        let problem = format!("has {} values for {} tokens", values.len(), tokens.len());
        return Err(TextError::metadata(key, problem));
    }
    tokens.iter_mut().zip(values.scalars()).for_each(|(token, value)| set(token, value));
    Ok(())
}

/// The array of a key, if the file has the key.
pub(crate) fn array<'a>(file: &'a Gguf, key: &str) -> Result<Option<&'a Array>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Array(array)) => Ok(Some(array)),
        Some(_) => Err(TextError::metadata(key, "is no array")),
    }
}

/// The text of a key, if the file has the key.
pub(crate) fn text<'a>(file: &'a Gguf, key: &str) -> Result<Option<&'a str>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(_) => Err(TextError::metadata(key, "is no text")),
    }
}

/// What a key says, if the file has the key.
pub(crate) fn flag(file: &Gguf, key: &str) -> Result<Option<bool>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(TextError::metadata(key, "is neither true nor false")),
    }
}

/// The token of a key, if the file has the key.
pub(crate) fn token_of(file: &Gguf, key: &str, vocabulary: &Vocabulary) -> Result<Option<u32>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Int(id)) => match u32::try_from(*id).ok().filter(|id| vocabulary.token(*id).is_some()) {
            Some(id) => Ok(Some(id)),
            None => {
                let problem = format!("is {id}; there are {} tokens", vocabulary.len());
                Err(TextError::metadata(key, problem))
            }
        },
        Some(_) => Err(TextError::metadata(key, "is no token's number")),
    }
}
