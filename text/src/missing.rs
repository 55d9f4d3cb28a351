//! What becomes of text that is no token.

use crate::vocabulary::Vocabulary;

/// What is written for text that is no token.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Missing {
    /// Tokens of its bytes, `<0x0A>`.
    pub bytes: bool,
    /// Else, or where not all bytes have one, this token.
    pub unknown: Option<u32>,
    /// Whether neighbours get one such token together.
    pub fuses: bool,
    /// Whether bytes without a token get the unknown one each, and the others theirs.
    pub each_byte: bool,
}

impl Missing {
    /// Adds what stands for a text; `again` where the text before it was no token, either. Says whether the unknown one does.
    pub fn write(&self, text: &str, again: bool, vocabulary: &Vocabulary, tokens: &mut Vec<u32>) -> bool {
        if self.bytes {
            let before = tokens.len();
            let mut all = true;
            for byte in text.bytes() {
                match vocabulary.byte(byte) {
                    Some(token) => tokens.push(token),
                    None if self.each_byte => tokens.extend(self.unknown),
                    None => all = false,
                }
            }
            if all {
                return false;
            }
            tokens.truncate(before);
        }
        if !(again && self.fuses) {
            tokens.extend(self.unknown);
        }
        true
    }
}
