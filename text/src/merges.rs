//! Byte-pair encoding: neighbours are joined in the order in which training found them. Texts are mostly bytes, each written as
//! a character of its own (Radford et al., GPT-2).

use std::{cmp::Reverse, collections::HashMap};

use crate::{
    TextError,
    joined::{Part, joined},
    missing::Missing,
    vocabulary::{TokenKind, Vocabulary},
};

/// Pairs that are joined, the place of each in the order, and what they become.
#[derive(Clone, Debug)]
pub(crate) struct Merges {
    pairs: HashMap<(u32, u32), (u32, u32)>,
    /// Texts that pairs have and that are no tokens; their numbers follow those of the tokens.
    others: HashMap<Box<str>, u32>,
    /// Whether a word that is a token stays whole, whatever the merges say.
    pub whole_words: bool,
    /// Whether a word of nothing but ends of lines does.
    pub whole_lines: bool,
    /// What stands before all characters of a word but the first.
    pub prefix: String,
    /// What stands behind the last character of a word.
    pub suffix: String,
    pub missing: Missing,
}

/// The character of each byte: printable ones are themselves, others follow behind U+0100.
pub(crate) fn characters() -> [char; 256] {
    let mut all = ['\0'; 256];
    let mut next = 0x100u32;
    for (byte, own) in (0u8..=255).zip(&mut all) {
        *own = match byte {
            b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
            _ => {
                next += 1;
                char::from_u32(next - 1).unwrap_or('\0')
            }
        };
    }
    all
}

/// The byte that a character stands for.
pub(crate) fn byte_of(c: char) -> Option<u8> {
    match u32::from(c) {
        own @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => u8::try_from(own).ok(),
        other @ 0x100..=0x120 => u8::try_from(other - 0x100).ok(),
        other @ 0x121..=0x142 => u8::try_from(other - 0x121 + 0x7F).ok(),
        0x143 => Some(0xAD),
        _ => None,
    }
}

/// Where a pair is parted: at its first space, but not before its first character, which may be one itself.
pub(crate) fn parted(pair: &str) -> Option<(&str, &str)> {
    let at = pair.char_indices().skip(1).find(|(_, c)| *c == ' ').map(|(at, _)| at)?;
    Some((&pair[..at], &pair[at + 1..]))
}

impl Merges {
    pub fn new() -> Merges {
        Merges {
            pairs: HashMap::new(),
            others: HashMap::new(),
            whole_words: false,
            whole_lines: false,
            prefix: String::new(),
            suffix: String::new(),
            missing: Missing::default(),
        }
    }

    /// Adds a pair, whose texts may be no tokens.
    pub fn add(&mut self, rank: u32, left: &str, right: &str, vocabulary: &Vocabulary) {
        let both = self.both(left, right);
        let pair = (self.symbol(left, vocabulary), self.symbol(right, vocabulary));
        let both = self.symbol(&both, vocabulary);
        if vocabulary.kind(both) == Some(TokenKind::Control) {
            return;
        }
        self.pairs.entry(pair).or_insert((rank, both));
    }

    /// Adds a pair of tokens that become a token; of equal ones the last counts.
    pub fn add_tokens(
        &mut self,
        rank: u32,
        [left, right]: [&str; 2],
        vocabulary: &Vocabulary,
    ) -> Result<(), TextError> {
        let token = |text: &str| {
            vocabulary.find(text.as_bytes()).ok_or_else(|| {
                TextError::file(
                    "tokenizer.json: 'model.merges'",
                    format!("at {rank} needs the token {text:?}"),
                )
            })
        };
        let both = token(&self.both(left, right))?;
        // Nobody writes a control token by its letters.
        if vocabulary.kind(both) == Some(TokenKind::Control) {
            return Ok(());
        }
        self.pairs.insert((token(left)?, token(right)?), (rank, both));
        Ok(())
    }

    fn both(&self, left: &str, right: &str) -> String {
        [left, right.strip_prefix(self.prefix.as_str()).unwrap_or(right)].concat()
    }

    fn symbol(&mut self, text: &str, vocabulary: &Vocabulary) -> u32 {
        if let Some(id) = vocabulary.find(text.as_bytes()).or_else(|| self.others.get(text).copied()) {
            return id;
        }
        let id = u32::try_from(vocabulary.len() + self.others.len()).unwrap_or(u32::MAX);
        self.others.insert(text.into(), id);
        id
    }

    /// The tokens of a word.
    pub fn encode(&self, word: &str, vocabulary: &Vocabulary, tokens: &mut Vec<u32>) {
        if (self.whole_words || self.whole_lines && word.bytes().all(|byte| byte == b'\n'))
            && let Some(id) = vocabulary.find_text(word.as_bytes())
        {
            tokens.push(id);
            return;
        }
        let parts = joined(self.characters(word, vocabulary), |left, right| {
            let (rank, both) = self.pairs.get(&(left.id?, right.id?))?;
            Some((Reverse(*rank), Some(*both)))
        });
        let mut again = false;
        for part in parts {
            let text = &word[part.start..part.end];
            again = match part.id {
                Some(id) if (id as usize) < vocabulary.len() => {
                    tokens.push(id);
                    false
                }
                // What is no token is written byte by byte, or character by character.
                Some(_) if self.missing.bytes => self.missing.write(text, again, vocabulary, tokens),
                Some(_) => {
                    for c in text.chars() {
                        let own = c.encode_utf8(&mut [0; 4]).to_owned();
                        match vocabulary.find(own.as_bytes()) {
                            Some(id) => tokens.push(id),
                            None => _ = self.missing.write(&own, false, vocabulary, tokens),
                        }
                    }
                    false
                }
                None => self.missing.write(text, again, vocabulary, tokens),
            };
        }
    }

    fn characters(&self, word: &str, vocabulary: &Vocabulary) -> Vec<Part> {
        let part = |(start, c): (usize, char)| {
            let end = start + c.len_utf8();
            let prefix = if start == 0 { "" } else { self.prefix.as_str() };
            let suffix = if end == word.len() { self.suffix.as_str() } else { "" };
            let text = &word[start..end];
            let id = match prefix.is_empty() && suffix.is_empty() {
                true => self.find(text, vocabulary),
                false => self.find(&[prefix, text, suffix].concat(), vocabulary),
            };
            Part { start, end, id }
        };
        word.char_indices().map(part).collect()
    }

    fn find(&self, text: &str, vocabulary: &Vocabulary) -> Option<u32> {
        vocabulary.find(text.as_bytes()).or_else(|| self.others.get(text).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        let all = characters();
        let set: std::collections::HashSet<char> = all.into_iter().collect();
        assert_eq!(set.len(), 256);
        assert_eq!((all[b' ' as usize], all[b'\n' as usize], all[b'a' as usize]), ('Ġ', 'Ċ', 'a'));
        for (byte, c) in (0u8..=255).zip(all) {
            assert_eq!(byte_of(c), Some(byte));
        }
        assert_eq!((byte_of(' '), byte_of('\u{144}'), byte_of('€')), (None, None, None));
    }
}
