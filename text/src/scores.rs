//! SentencePiece's byte-pair encoding: neighbours are joined whose text is the token with the highest score (Kudo and
//! Richardson, SentencePiece, 2018). What is no token is written byte by byte.

use std::cmp::Ordering;

use crate::{merges::joined, vocabulary::Vocabulary};

/// A score, of which larger ones go first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Score(f32);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The tokens of a text whose spaces are written as U+2581. `unknown` stands for bytes that are no tokens.
pub(crate) fn encode(text: &str, vocabulary: &Vocabulary, unknown: Option<u32>, tokens: &mut Vec<u32>) {
    let order = |left: &str, right: &str| {
        let both = [left.as_bytes(), right.as_bytes()].concat();
        let token = vocabulary.token(vocabulary.find(&both)?)?;
        Some(Score(token.score))
    };
    for part in joined(text, order) {
        match vocabulary.find(part.as_bytes()) {
            Some(id) => tokens.push(id),
            None => tokens.extend(part.bytes().filter_map(|byte| byte_token(vocabulary, byte).or(unknown))),
        }
    }
}

fn byte_token(vocabulary: &Vocabulary, byte: u8) -> Option<u32> {
    vocabulary.find(format!("<0x{byte:02X}>").as_bytes()).or_else(|| vocabulary.find(&[byte]))
}

/// The byte of a token with a text such as `<0x0A>`.
pub(crate) fn byte_of(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2)?;
    u8::from_str_radix(digits, 16).ok()
}
