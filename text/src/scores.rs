//! Byte-pair encoding by scores: neighbours are joined whose text is the token with the highest score (Kudo and Richardson,
//! SentencePiece, 2018).

use std::{cmp::Ordering, collections::HashMap};

use crate::{
    joined::{Part, joined},
    missing::Missing,
    prefixes::Prefixes,
    vocabulary::{TokenKind, Vocabulary},
};

/// A score, of which larger ones go first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Score(f64);

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

/// How texts become tokens by their scores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scores {
    /// Whether a word that is a token stays whole, whatever the scores say.
    pub whole_words: bool,
    /// Texts that are tokens wherever they stand, and are not joined with others.
    pub whole: Prefixes,
    /// Whether unused tokens are taken apart again.
    pub takes_apart: bool,
    pub missing: Missing,
}

/// Where texts of unused tokens were joined, by their text.
type Joints<'a> = HashMap<&'a str, usize>;

impl Scores {
    /// The tokens of a text.
    pub fn encode(&self, text: &str, vocabulary: &Vocabulary, tokens: &mut Vec<u32>) {
        if self.whole_words
            && let Some(id) = vocabulary.find_text(text.as_bytes())
        {
            tokens.push(id);
            return;
        }
        let (parts, whole) = self.parts(text, vocabulary);
        let mut joints = Joints::new();
        let is_whole = |part: Part| !whole.is_empty() && whole.binary_search(&part.start).is_ok();
        let parts = joined(parts, |left, right| {
            if is_whole(left) || is_whole(right) {
                return None;
            }
            let both = &text[left.start..right.end];
            let id = vocabulary.find_text(both.as_bytes())?;
            let token = vocabulary.token(id)?;
            if self.takes_apart && token.kind == TokenKind::Unused {
                joints.insert(both, left.end - left.start);
            }
            Some((Score(token.score), Some(id)))
        });
        let mut again = false;
        for part in parts {
            again = self.write(&text[part.start..part.end], part.id, again, &joints, vocabulary, tokens);
        }
    }

    /// Characters and whole texts, and where the latter begin.
    fn parts(&self, text: &str, vocabulary: &Vocabulary) -> (Vec<Part>, Vec<usize>) {
        let (mut parts, mut whole) = (Vec::new(), Vec::new());
        let mut rest = text.chars();
        let mut start = 0;
        while let Some(c) = rest.next() {
            let end = match self.whole.longest(&text.as_bytes()[start..]) {
                Some((length, _)) => {
                    whole.push(start);
                    start + length
                }
                None => start + c.len_utf8(),
            };
            let id = vocabulary.find_text(&text.as_bytes()[start..end]);
            parts.push(Part { start, end, id });
            start = end;
            rest = text[end..].chars();
        }
        (parts, whole)
    }

    /// Adds the tokens of a part; says whether it is unknown. `again` where the one before was.
    fn write<'a>(
        &self,
        text: &'a str,
        id: Option<u32>,
        mut again: bool,
        joints: &Joints<'a>,
        vocabulary: &Vocabulary,
        tokens: &mut Vec<u32>,
    ) -> bool {
        // Texts that still have to be written, the next one last.
        let mut left = vec![(text, id)];
        while let Some((text, id)) = left.pop() {
            let joint = joints.get(text).filter(|at| **at > 0 && **at < text.len());
            let is_unused = id.and_then(|id| vocabulary.kind(id)) == Some(TokenKind::Unused);
            match (id, joint) {
                (Some(_), Some(at)) if self.takes_apart && is_unused => {
                    let (one, other) = text.split_at(*at);
                    left.push((other, vocabulary.find_text(other.as_bytes())));
                    left.push((one, vocabulary.find_text(one.as_bytes())));
                }
                (Some(id), _) => {
                    tokens.push(id);
                    again = false;
                }
                (None, _) => again = self.missing.write(text, again, vocabulary, tokens),
            }
        }
        again
    }
}

/// The byte of a token with a text such as `<0x0A>`.
pub(crate) fn byte_of(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2)?;
    u8::from_str_radix(digits, 16).ok()
}
