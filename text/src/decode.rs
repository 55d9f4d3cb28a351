//! Tokens to text: what becomes of the text of each, step by step.

use std::collections::HashMap;

use crate::{
    TextError, merges,
    normalize::replace,
    pattern::Pattern,
    scores::byte_of,
    vocabulary::{TokenKind, Vocabulary},
};

/// A step, for the text of one token.
#[derive(Clone, Debug)]
pub(crate) enum Decode {
    /// Something in the place of all matches.
    Replace { pattern: Pattern, with: String },
    /// Characters that stand for bytes become these.
    Bytes,
    /// Texts are bytes already.
    Raw,
    /// A mark of spaces becomes a space; `first` says whether it goes from the first token.
    Spaces { mark: char, first: bool },
    /// Pieces of words: what has no mark is a word, with a space before it; `tidies` takes spaces before signs away.
    Words { mark: String, tidies: bool },
    /// The mark of a word's end becomes a space, but not at the end of the text.
    Ends { mark: String },
    /// A space before all tokens but the first.
    Parted,
}

/// How tokens become text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoding {
    pub steps: Vec<Decode>,
    /// What goes from the beginning of the text, and how often at most.
    pub strip: Option<(char, usize)>,
    /// What goes from the end of the text, and how often at most.
    pub strip_end: Option<(char, usize)>,
    /// Texts of tokens that are found in normalized texts, where these are others.
    pub shown: HashMap<u32, String>,
    /// What stands for the unknown token.
    pub unknown: Option<String>,
}

/// Where a token is in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub first: bool,
    pub last: bool,
}

impl Decoding {
    /// The bytes of a token. Control tokens have none, unless they are asked for.
    pub fn bytes(&self, vocabulary: &Vocabulary, token: u32, with_control: bool, place: Place) -> Vec<u8> {
        let Some(own) = vocabulary.token(token) else { return Vec::new() };
        match own.kind {
            TokenKind::Control | TokenKind::Unknown if !with_control => return Vec::new(),
            TokenKind::Unknown if self.unknown.is_some() => {
                return self.unknown.clone().unwrap_or_default().into_bytes();
            }
            TokenKind::Byte => return byte_of(&own.text).map_or(own.text.to_vec(), |byte| vec![byte]),
            TokenKind::Unused if own.text.is_empty() => return Vec::new(),
            TokenKind::UserDefined | TokenKind::Control | TokenKind::Unknown if self.is_bytes() => {
                return own.text.to_vec();
            }
            _ => {}
        }
        if self.steps.iter().any(|step| matches!(step, Decode::Raw)) {
            return own.text.to_vec();
        }
        let mut text = match self.shown.get(&token) {
            Some(text) => text.clone(),
            None => String::from_utf8_lossy(&own.text).into_owned(),
        };
        for step in &self.steps {
            text = match step {
                Decode::Bytes => return bytes(&text),
                other => other.apply(text, place),
            };
        }
        text.into_bytes()
    }

    fn is_bytes(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Decode::Bytes))
    }

    /// A decoding may not make much more of a token than it has.
    pub fn check(&self, place: &str) -> Result<(), TextError> {
        let growth = |step: &Decode| match step {
            Decode::Replace { with, .. } => with.len() + 1,
            _ => 2,
        };
        let all = self.steps.iter().map(growth).fold(1usize, usize::saturating_mul);
        match self.steps.len() > 16 || all > 1 << 16 {
            true => Err(TextError::Unsupported(format!("{place} makes texts too long"))),
            false => Ok(()),
        }
    }
}

/// The bytes that characters stand for. What has other characters stays as it is.
fn bytes(text: &str) -> Vec<u8> {
    let all: Option<Vec<u8>> = text.chars().map(merges::byte_of).collect();
    all.unwrap_or_else(|| text.as_bytes().to_vec())
}

impl Decode {
    fn apply(&self, text: String, place: Place) -> String {
        match self {
            Decode::Replace { pattern, with } => replace(&text, pattern, with).unwrap_or(text),
            Decode::Bytes | Decode::Raw => text,
            Decode::Spaces { mark, first } if *first && place.first => text.replace(*mark, ""),
            Decode::Spaces { mark, .. } => text.replace(*mark, " "),
            Decode::Words { mark, tidies } => {
                let text = match text.strip_prefix(mark.as_str()).filter(|_| !place.first) {
                    Some(rest) => rest.to_owned(),
                    None if place.first => text,
                    None => format!(" {text}"),
                };
                if *tidies { tidy(text) } else { text }
            }
            Decode::Ends { mark } => text.replace(mark.as_str(), if place.last { "" } else { " " }),
            Decode::Parted if place.first => text,
            Decode::Parted => format!(" {text}"),
        }
    }
}

/// English without spaces before signs and suffixes.
fn tidy(text: String) -> String {
    const PAIRS: &[(&str, &str)] = &[
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" do not", " don't"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    PAIRS.iter().fold(text, |text, (from, to)| text.replace(from, to))
}

/// Bytes to text as they come: a character that is not there in full yet waits for its other bytes.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    waiting: Vec<u8>,
}

impl Decoder {
    /// The text that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.waiting.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.waiting) {
                Ok(rest) => {
                    text.push_str(rest);
                    self.waiting.clear();
                    return text;
                }
                Err(error) => {
                    let good = error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.waiting[..good]));
                    match error.error_len() {
                        None => {
                            self.waiting.drain(..good);
                            return text;
                        }
                        Some(wrong) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            self.waiting.drain(..good + wrong);
                        }
                    }
                }
            }
        }
    }

    /// What is left in the end: a replacement for a character that never came in full.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.waiting);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Decoder;

    #[test]
    fn characters_wait_for_all_their_bytes() {
        let mut decoder = Decoder::default();
        let bytes = "é€".as_bytes();
        assert_eq!(decoder.push(&bytes[..1]), "");
        assert_eq!(decoder.push(&bytes[1..4]), "é");
        assert_eq!(decoder.push(&bytes[4..]), "€");
        assert_eq!(decoder.push(&[0xFF, b'a', 0xE2]), "\u{FFFD}a");
        assert_eq!(decoder.finish(), "\u{FFFD}");
    }
}
