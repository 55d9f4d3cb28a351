//! WordPiece, the tokenizer of BERT: words are split into the longest tokens there are, from the beginning on (Wu et al., Google's
//! Neural Machine Translation System, 2016, section 4.1). What has a piece that is no token is unknown as a whole.

use crate::vocabulary::Vocabulary;

/// How words become tokens.
#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    /// What stands before the first piece of a word.
    pub first: String,
    /// What stands before the others.
    pub next: String,
    pub unknown: Option<u32>,
    /// Characters of a word that may be a token or several; longer ones are unknown.
    pub longest: usize,
    /// Whether words are tokens, or unknown, and never several.
    pub whole: bool,
}

/// Characters of a word in BERT's own tokenizer.
pub(crate) const LONGEST_WORD: usize = 100;
/// Characters of a word that a file may ask for: the time is quadratic in them.
pub(crate) const LONGEST_ASKED: u64 = 4096;

impl Pieces {
    /// The tokens of a word.
    pub fn encode(&self, word: &str, vocabulary: &Vocabulary, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        if word.chars().count() > self.longest || !self.pieces(word, vocabulary, tokens) {
            tokens.truncate(before);
            tokens.extend(self.unknown);
        }
    }

    /// Adds the tokens of a word; says whether it is made of some.
    fn pieces(&self, word: &str, vocabulary: &Vocabulary, tokens: &mut Vec<u32>) -> bool {
        let mut rest = word;
        let mut mark = self.first.as_str();
        while !rest.is_empty() {
            let marked = format!("{mark}{rest}");
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
            let found = ends
                .rev()
                .take(if self.whole { 1 } else { usize::MAX })
                .find_map(|end| Some((end, vocabulary.find_text(&marked.as_bytes()[..mark.len() + end])?)));
            let Some((end, token)) = found else { return false };
            tokens.push(token);
            rest = &rest[end..];
            mark = self.next.as_str();
        }
        true
    }
}
