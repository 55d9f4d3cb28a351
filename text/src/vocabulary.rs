//! The tokens that a model knows.

use std::collections::HashMap;

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
    /// The kind with a number, which GGUF files and SentencePiece's have in common.
    pub(crate) fn of(number: i128) -> TokenKind {
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
    pub score: f64,
}

impl Token {
    pub fn new(text: &[u8]) -> Token {
        Token { text: text.into(), kind: TokenKind::Normal, score: 0.0 }
    }
}

/// The tokens of a model, by number and by text.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    tokens: Vec<Token>,
    by_text: HashMap<Box<[u8]>, u32>,
    /// Bytes of the longest text.
    longest: usize,
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

impl Vocabulary {
    /// A vocabulary of tokens, of which those that end what a model says become control tokens. Of equal texts the last is found.
    pub(crate) fn new(mut tokens: Vec<Token>) -> Vocabulary {
        let mut by_text = HashMap::with_capacity(tokens.len());
        for (id, token) in (0u32..).zip(&mut tokens) {
            if ENDS.iter().any(|end| end.as_bytes() == &*token.text) {
                token.kind = TokenKind::Control;
            }
            if token.kind != TokenKind::Unused || !token.text.is_empty() {
                by_text.insert(token.text.clone(), id);
            }
        }
        let longest = tokens.iter().map(|token| token.text.len()).max().unwrap_or(0);
        Vocabulary { tokens, by_text, longest }
    }

    /// A vocabulary of tokens with their numbers, in any order. Numbers that nobody has are unused.
    pub(crate) fn numbered(numbered: Vec<(u32, Token)>, place: &str) -> Result<Vocabulary, TextError> {
        // Numbers may have holes, but no room that the file does not justify.
        let most = numbered.len().saturating_mul(8).saturating_add(1 << 16);
        let end = numbered.iter().map(|(id, _)| *id as usize + 1).max().unwrap_or(0);
        if end > most {
            let problem =
                format!("has a token with the number {}, and only {} tokens", end - 1, numbered.len());
            return Err(TextError::file(place, problem));
        }
        let unused = Token { kind: TokenKind::Unused, ..Token::new(b"") };
        let mut tokens = vec![unused; end];
        for (id, token) in numbered {
            if let Some(place) = tokens.get_mut(id as usize) {
                *place = token;
            }
        }
        Ok(Vocabulary::new(tokens))
    }

    /// Adds a token at a number that nobody has.
    pub(crate) fn add(&mut self, id: u32, token: Token, place: &str) -> Result<(), TextError> {
        let at = id as usize;
        if at > self.tokens.len().saturating_add(1 << 16) {
            let problem = format!("has a token with the number {id}, where there are {}", self.tokens.len());
            return Err(TextError::file(place, problem));
        }
        if at >= self.tokens.len() {
            let unused = Token { kind: TokenKind::Unused, ..Token::new(b"") };
            self.tokens.resize(at + 1, unused);
        }
        self.longest = self.longest.max(token.text.len());
        self.by_text.insert(token.text.clone(), id);
        if let Some(place) = self.tokens.get_mut(at) {
            *place = token;
        }
        Ok(())
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
        if text.len() > self.longest {
            return None;
        }
        self.by_text.get(text).copied()
    }

    /// The token that this text may become: none that only a chat template writes.
    pub(crate) fn find_text(&self, text: &[u8]) -> Option<u32> {
        self.find(text).filter(|id| {
            matches!(self.kind(*id), Some(TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused))
        })
    }

    /// The token of a byte that no other token has.
    pub(crate) fn byte(&self, byte: u8) -> Option<u32> {
        self.find(format!("<0x{byte:02X}>").as_bytes())
    }

    /// What a token is for; `None` for a number that there is not.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.token(id).map(|token| token.kind)
    }

    /// The first token that is another one in two vocabularies: its text differs, or one of them lacks it, and it is for something in the
    /// other. Models of one family fill their tables up with unused tokens, some with more of them.
    pub fn first_difference(&self, other: &Vocabulary) -> Option<u32> {
        let common = self.tokens.iter().zip(&other.tokens).position(|(own, other)| own.text != other.text);
        let (short, long) = if self.len() < other.len() { (self, other) } else { (other, self) };
        let rest = &long.tokens[short.len()..];
        let further = || {
            let used = rest.iter().position(|token| token.kind != TokenKind::Unused);
            used.map(|place| short.len() + place)
        };
        common.or_else(further).and_then(|token| u32::try_from(token).ok())
    }

    /// The text of a token as the file has it; `None` for a number that there is not.
    pub fn text(&self, id: u32) -> Option<String> {
        self.token(id).map(|token| String::from_utf8_lossy(&token.text).into_owned())
    }

    /// All tokens, with their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Token)> {
        (0u32..).zip(&self.tokens)
    }

    /// Tokens whose text says that they end what a model says.
    pub(crate) fn ends(&self) -> impl Iterator<Item = u32> {
        ENDS.iter().filter_map(|end| self.find(end.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(texts: &[&str], unused: usize) -> Vocabulary {
        let used = texts.iter().map(|text| Token::new(text.as_bytes()));
        let pads = (0..unused)
            .map(|place| Token { kind: TokenKind::Unused, ..Token::new(format!("[PAD{place}]").as_bytes()) });
        Vocabulary::new(used.chain(pads).collect())
    }

    #[test]
    fn models_of_a_family_differ_in_unused_tokens_alone() {
        let own = vocabulary(&["a", "b", "c"], 1);
        assert_eq!(own.first_difference(&vocabulary(&["a", "b", "c"], 1)), None);
        for pads in [0, 2, 100] {
            let other = vocabulary(&["a", "b", "c"], pads);
            assert_eq!([own.first_difference(&other), other.first_difference(&own)], [None, None]);
        }
        assert_eq!(own.first_difference(&vocabulary(&["a", "x", "c"], 1)), Some(1));
        assert_eq!(
            own.first_difference(&vocabulary(&["a", "b"], 0)),
            Some(2),
            "a token that is used is missing"
        );
        assert_eq!(own.first_difference(&vocabulary(&["a", "b", "c", "d"], 0)), Some(3));
    }
}
