//! Unigram language models: of all ways to part a text into tokens, that with the largest sum of scores (Kudo, Subword
//! Regularization, 2018).

use crate::{
    missing::Missing,
    prefixes::Prefixes,
    vocabulary::{TokenKind, Vocabulary},
};

/// How much less than the least likely token a character is worth that is none.
const PENALTY: f64 = 10.0;

/// How texts become tokens by their likelihood.
#[derive(Clone, Debug)]
pub(crate) struct Unigram {
    pieces: Prefixes,
    least: f64,
    most: f64,
    /// Whether sums are rounded to 32 bits, as SentencePiece does.
    pub rounds: bool,
    pub missing: Missing,
}

/// The best way to a place in a text.
#[derive(Clone, Copy, Debug)]
struct Way {
    from: usize,
    score: f64,
    token: Option<u32>,
}

impl Unigram {
    pub fn new(vocabulary: &Vocabulary, rounds: bool, missing: Missing) -> Unigram {
        let is_piece = |kind| matches!(kind, TokenKind::Normal | TokenKind::UserDefined);
        let pieces = vocabulary.all().filter(|(_, token)| is_piece(token.kind));
        let scores = || {
            let scored = vocabulary.all().filter(|(_, token)| token.kind == TokenKind::Normal || !rounds);
            scored.map(|(_, token)| token.score).filter(|score| score.is_finite())
        };
        Unigram {
            pieces: Prefixes::new(pieces.map(|(id, token)| (token.text.clone(), id))),
            least: scores().fold(f64::MAX, f64::min),
            most: scores().fold(f64::MIN, f64::max),
            rounds,
            missing,
        }
    }

    /// The tokens of a text.
    pub fn encode(&self, text: &str, vocabulary: &Vocabulary, tokens: &mut Vec<u32>) {
        let mut again = false;
        for (text, token) in self.best(text, vocabulary) {
            again = match token {
                Some(token) => {
                    tokens.push(token);
                    false
                }
                None => self.missing.write(text, again, vocabulary, tokens),
            };
        }
    }

    fn round(&self, score: f64) -> f64 {
        if self.rounds { f64::from(score as f32) } else { score }
    }

    fn score(&self, id: u32, length: usize, vocabulary: &Vocabulary) -> f64 {
        match vocabulary.token(id) {
            // What is never split is better than all that is split.
            Some(token) if self.rounds && token.kind == TokenKind::UserDefined => {
                self.round(self.round(length as f64 * self.most) - 0.1)
            }
            Some(token) => token.score,
            None => self.least,
        }
    }

    /// The parts of a text on the best way to its end. Takes as many steps as the text has bytes, times the longest token's.
    fn best<'a>(&self, text: &'a str, vocabulary: &Vocabulary) -> Vec<(&'a str, Option<u32>)> {
        let mut ways: Vec<Option<Way>> = vec![None; text.len() + 1];
        let unknown = self.round(self.least - PENALTY);
        for (from, c) in text.char_indices() {
            let here = if from == 0 { 0.0 } else { ways[from].map_or(0.0, |way| way.score) };
            let mut offer = |end: usize, score: f64, token: Option<u32>| {
                let score = self.round(score + here);
                if let Some(way) = ways.get_mut(end)
                    && way.is_none_or(|way| score > way.score)
                {
                    *way = Some(Way { from, score, token });
                }
            };
            let mut is_known = false;
            for (length, id) in self.pieces.of(&text.as_bytes()[from..]) {
                is_known |= length == c.len_utf8();
                offer(from + length, self.score(id, length, vocabulary), Some(id));
            }
            if !is_known {
                offer(from + c.len_utf8(), unknown, None);
            }
        }
        let mut parts = Vec::new();
        let mut end = text.len();
        while let Some(way) = ways.get(end).copied().flatten().filter(|way| way.from < end) {
            parts.push((&text[way.from..end], way.token));
            end = way.from;
        }
        parts.reverse();
        parts
    }
}
