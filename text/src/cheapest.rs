//! Of all ways to part a text into tokens, that with the least cost, found from the end on: PLaMo 2's tokenizer. Costs are whole
//! numbers, so that sums do not depend on their order. A character that is part of no token is written as its bytes.

use crate::{
    TextError,
    prefixes::{LONGEST, Prefixes},
    vocabulary::{TokenKind, Vocabulary},
};

/// How many of the parts that costs are counted in make one of a score.
const PARTS: f64 = 1e4;
/// What a character costs that is no part of a token.
const UNKNOWN: i64 = 10_000_000;
/// Tokens that cost this much or more are never chosen.
const TOO_MUCH: i64 = 20_000_000;

/// How texts become the cheapest tokens.
#[derive(Clone, Debug)]
pub(crate) struct Cheapest {
    tokens: Prefixes,
    /// What each token costs.
    costs: Vec<i64>,
    bytes: Box<[u32; 256]>,
}

/// The cheapest way from a place in a text to its end.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    cost: i64,
    length: usize,
    /// The token that it begins with, or none of a character's bytes.
    token: Option<u32>,
}

impl Cheapest {
    pub fn new(vocabulary: &Vocabulary) -> Result<Cheapest, TextError> {
        if let Some((id, _)) = vocabulary.all().find(|(_, token)| token.text.len() > LONGEST) {
            return Err(TextError::Unsupported(format!("the token {id} has more than {LONGEST} bytes")));
        }
        let mut bytes = Box::new([0; 256]);
        for (byte, own) in (0u8..=255).zip(bytes.iter_mut()) {
            let found = vocabulary.byte(byte).filter(|id| vocabulary.kind(*id) == Some(TokenKind::Byte));
            *own = found
                .ok_or_else(|| TextError::Unsupported(format!("the byte <0x{byte:02X}> has no token")))?;
        }
        let cost = |score: f64| match (score * PARTS).round() {
            parts if parts.is_finite() => -(parts as i64),
            _ => TOO_MUCH,
        };
        // What controls is no text.
        let is_text = |kind| !matches!(kind, TokenKind::Control | TokenKind::Unknown | TokenKind::Byte);
        let texts = vocabulary.all().filter(|(_, token)| is_text(token.kind));
        let texts = texts.filter(|(_, token)| cost(token.score) < TOO_MUCH);
        Ok(Cheapest {
            tokens: Prefixes::new(texts.map(|(id, token)| (token.text.clone(), id))),
            costs: vocabulary.all().map(|(_, token)| cost(token.score)).collect(),
            bytes,
        })
    }

    /// Adds the tokens of a text. Takes as many steps as the text has bytes, times the longest token's.
    pub fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        let mut ways = vec![Way::default(); text.len() + 1];
        for (from, c) in text.char_indices().rev() {
            let mut best: Option<Way> = None;
            for (length, token) in self.tokens.of(&text.as_bytes()[from..]) {
                let own = self.costs.get(token as usize).copied().unwrap_or(TOO_MUCH);
                let cost = ways.get(from + length).map_or(0, |way| way.cost).saturating_add(own);
                // Of equal ways that with the longest token.
                if text.is_char_boundary(from + length) && best.is_none_or(|best| cost <= best.cost) {
                    best = Some(Way { cost, length, token: Some(token) });
                }
            }
            let length = c.len_utf8();
            let cost = ways[from + length].cost.saturating_add(UNKNOWN);
            if best.is_none_or(|best| cost < best.cost) {
                best = Some(Way { cost, length, token: None });
            }
            ways[from] = best.unwrap_or_default();
        }
        let mut at = 0;
        while let Some(way) = ways.get(at).filter(|way| way.length > 0) {
            match way.token {
                Some(token) => tokens.push(token),
                None => {
                    let own = &text.as_bytes()[at..at + way.length];
                    tokens.extend(own.iter().map(|byte| self.bytes[usize::from(*byte)]));
                }
            }
            at += way.length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::Token;

    /// Bytes, and texts with scores.
    fn vocabulary(texts: &[(&str, f64)]) -> Vocabulary {
        let byte =
            |byte: u8| Token { kind: TokenKind::Byte, ..Token::new(format!("<0x{byte:02X}>").as_bytes()) };
        let text = |(text, score): &(&str, f64)| Token { score: *score, ..Token::new(text.as_bytes()) };
        Vocabulary::new((0u8..=255).map(byte).chain(texts.iter().map(text)).collect())
    }

    fn encode(texts: &[(&str, f64)], text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        Cheapest::new(&vocabulary(texts)).unwrap().encode(text, &mut tokens);
        tokens
    }

    #[test]
    fn the_cheapest_way_is_taken() {
        let texts = [("a", -1.0), ("b", -1.0), ("ab", -3.0), ("bc", -2.0), ("c", -9.0)];
        assert_eq!(encode(&texts, "ab"), [256, 257]);
        assert_eq!(encode(&texts, "abc"), [256, 259]);
        // Of equal costs the longest token first.
        assert_eq!(encode(&[("a", -1.0), ("b", -1.0), ("ab", -2.0)], "ab"), [258]);
        // A token that costs more than an unknown character does is not taken, nor one whose score is no number.
        assert_eq!(encode(&[("a", -1000.5), ("b", f64::NAN)], "ab"), [u32::from(b'a'), u32::from(b'b')]);
    }

    #[test]
    fn what_is_no_token_becomes_bytes() {
        assert_eq!(encode(&[("a", 0.0)], "aé😀"), [256, 0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80]);
        assert!(Cheapest::new(&Vocabulary::new(vec![Token::new(b"a")])).is_err());
        assert!(encode(&[], "").is_empty());
    }
}
