//! How words become tokens, of the kinds that there are.

use crate::{
    cheapest::Cheapest, longest::Longest, merges::Merges, pieces::Pieces, scores::Scores, unigram::Unigram,
    vocabulary::Vocabulary,
};

/// How words become tokens.
#[derive(Clone, Debug)]
pub(crate) enum Model {
    /// By merges in their order.
    Merges(Merges),
    /// By merges with the best scores.
    Scores(Scores),
    /// By the likelihood of all of a text.
    Unigram(Unigram),
    /// By the longest pieces of words.
    Pieces(Pieces),
    /// By the longest tokens.
    Longest(Longest),
    /// By the least cost of all of a text.
    Cheapest(Cheapest),
}

impl Model {
    /// Adds the tokens of a word.
    pub fn encode(&self, word: &str, vocabulary: &Vocabulary, tokens: &mut Vec<u32>) {
        match self {
            Model::Merges(merges) => merges.encode(word, vocabulary, tokens),
            Model::Scores(scores) => scores.encode(word, vocabulary, tokens),
            Model::Unigram(unigram) => unigram.encode(word, vocabulary, tokens),
            Model::Pieces(pieces) => pieces.encode(word, vocabulary, tokens),
            Model::Longest(longest) => longest.encode(word, tokens),
            Model::Cheapest(cheapest) => cheapest.encode(word, tokens),
        }
    }
}
