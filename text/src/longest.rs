//! Tokens as bytes, of which the longest that a text goes on with is taken each time (RWKV's "world" tokenizer).

use crate::{
    TextError,
    prefixes::{LONGEST, Prefixes},
    vocabulary::{TokenKind, Vocabulary},
};

/// How texts become the longest tokens.
#[derive(Clone, Debug)]
pub(crate) struct Longest {
    tokens: Prefixes,
    /// What stands for a byte that no token begins with.
    unknown: Option<u32>,
}

impl Longest {
    pub fn new(vocabulary: &Vocabulary, unknown: Option<u32>) -> Result<Longest, TextError> {
        if let Some((id, _)) = vocabulary.all().find(|(_, token)| token.text.len() > LONGEST) {
            return Err(TextError::Unsupported(format!("the token {id} has more than {LONGEST} bytes")));
        }
        // What controls is no text.
        let all = vocabulary.all().filter(|(_, token)| token.kind != TokenKind::Control);
        let tokens = Prefixes::new(all.map(|(id, token)| (token.text.clone(), id)));
        Ok(Longest { tokens, unknown })
    }

    /// Adds the tokens of a text.
    pub fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let length = match self.tokens.longest(rest) {
                Some((length, id)) => {
                    tokens.push(id);
                    length
                }
                None => {
                    tokens.extend(self.unknown);
                    1
                }
            };
            rest = &rest[length..];
        }
    }
}

/// The bytes of a token that is written as Python writes texts, without the signs around it.
pub(crate) fn unescaped(text: &[u8]) -> Vec<u8> {
    let (mut made, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, behind)) = rest.split_first() {
        let (byte, length) = match (first, behind) {
            (b'\\', [b'n', ..]) => (b'\n', 1),
            (b'\\', [b't', ..]) => (b'\t', 1),
            (b'\\', [b'r', ..]) => (b'\r', 1),
            (b'\\', [b'x', high, low, ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high * 16 + low, 3),
                _ => (b'x', 1),
            },
            (b'\\', [own, ..]) => (*own, 1),
            (own, _) => (*own, 0),
        };
        made.push(byte);
        rest = &behind[length..];
    }
    made
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn escapes_become_bytes() {
        assert_eq!(unescaped(br"a\n\t\\\x80\xffz\'"), b"a\n\t\\\x80\xffz'");
        assert_eq!(unescaped("né\\".as_bytes()), "né\\".as_bytes());
        assert_eq!(unescaped(br"\xg1"), b"xg1");
    }
}
