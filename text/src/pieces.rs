//! WordPiece, the tokenizer of BERT: words are split into the longest tokens there are, from the beginning on (Wu et al., Google's
//! Neural Machine Translation System, 2016, section 4.1). Words are in lower case and without accents; what has a piece that is no
//! token is unknown as a whole.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::vocabulary::Vocabulary;

/// What stands before the first piece of a word in GGUF files.
pub(crate) const WORD: char = '\u{2581}';
/// Bytes of a word that may be a token or several; longer ones are unknown.
const LONGEST_WORD: usize = 400;

/// The tokens of a text.
pub(crate) fn encode(text: &str, vocabulary: &Vocabulary, unknown: Option<u32>, tokens: &mut Vec<u32>) {
    for word in words(text) {
        let before = tokens.len();
        if !pieces(&word, vocabulary, tokens) {
            tokens.truncate(before);
            tokens.extend(unknown);
        }
    }
}

/// Adds the tokens of a word; says whether it is made of some.
fn pieces(word: &str, vocabulary: &Vocabulary, tokens: &mut Vec<u32>) -> bool {
    let marked = format!("{WORD}{word}");
    if marked.len() > LONGEST_WORD {
        return false;
    }
    let mut rest = marked.as_str();
    while !rest.is_empty() {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let found = ends.rev().find_map(|end| Some((end, vocabulary.find(&rest.as_bytes()[..end])?)));
        let Some((end, token)) = found else { return false };
        tokens.push(token);
        rest = &rest[end..];
    }
    true
}

/// The words of a text: signs and Chinese characters are words of their own.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.nfd().filter(|c| !is_combining_mark(*c)) {
        if c.is_whitespace() {
            words.push(String::new());
        } else if c == '\0' || c == char::REPLACEMENT_CHARACTER || c.is_control() {
            // Nothing.
        } else if is_sign(c) || is_chinese(c) {
            words.extend([c.to_string(), String::new()]);
        } else if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a character is a sign: ASCII's, and punctuation of other scripts.
fn is_sign(c: char) -> bool {
    c.is_ascii_punctuation() || (!c.is_ascii() && PUNCTUATION.iter().any(|range| range.contains(&c)))
}

/// Ranges of punctuation beyond ASCII, of Unicode's categories P, as far as texts have them.
const PUNCTUATION: &[std::ops::RangeInclusive<char>] = &[
    '\u{A1}'..='\u{A1}',
    '\u{A7}'..='\u{A7}',
    '\u{AB}'..='\u{AB}',
    '\u{B6}'..='\u{B7}',
    '\u{BB}'..='\u{BB}',
    '\u{BF}'..='\u{BF}',
    '\u{37E}'..='\u{37E}',
    '\u{387}'..='\u{387}',
    '\u{55A}'..='\u{55F}',
    '\u{589}'..='\u{58A}',
    '\u{5BE}'..='\u{5BE}',
    '\u{5C0}'..='\u{5C0}',
    '\u{5C3}'..='\u{5C3}',
    '\u{5F3}'..='\u{5F4}',
    '\u{60C}'..='\u{60D}',
    '\u{61B}'..='\u{61B}',
    '\u{61E}'..='\u{61F}',
    '\u{66A}'..='\u{66D}',
    '\u{6D4}'..='\u{6D4}',
    '\u{964}'..='\u{965}',
    '\u{E4F}'..='\u{E4F}',
    '\u{2010}'..='\u{2027}',
    '\u{2030}'..='\u{2043}',
    '\u{2045}'..='\u{2051}',
    '\u{2053}'..='\u{205E}',
    '\u{207D}'..='\u{207E}',
    '\u{208D}'..='\u{208E}',
    '\u{2308}'..='\u{230B}',
    '\u{2329}'..='\u{232A}',
    '\u{2768}'..='\u{2775}',
    '\u{27E6}'..='\u{27EF}',
    '\u{2E00}'..='\u{2E5D}',
    '\u{3001}'..='\u{3003}',
    '\u{3008}'..='\u{3011}',
    '\u{3014}'..='\u{301F}',
    '\u{3030}'..='\u{3030}',
    '\u{303D}'..='\u{303D}',
    '\u{30A0}'..='\u{30A0}',
    '\u{30FB}'..='\u{30FB}',
    '\u{FE10}'..='\u{FE19}',
    '\u{FE30}'..='\u{FE52}',
    '\u{FE54}'..='\u{FE61}',
    '\u{FF01}'..='\u{FF03}',
    '\u{FF05}'..='\u{FF0A}',
    '\u{FF0C}'..='\u{FF0F}',
    '\u{FF1A}'..='\u{FF1B}',
    '\u{FF1F}'..='\u{FF20}',
    '\u{FF3B}'..='\u{FF3D}',
    '\u{FF5F}'..='\u{FF65}',
];

/// Whether a character is one of those that BERT calls Chinese.
fn is_chinese(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x2_0000..=0x2_A6DF | 0x2_A700..=0x2_B73F | 0x2_B740..=0x2_B81F
        | 0x2_B920..=0x2_CEAF | 0xF900..=0xFAFF | 0x2_F800..=0x2_FA1F)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_plain() {
        assert_eq!(
            words("Ünïted  States, don't\n中文x"),
            ["united", "states", ",", "don", "'", "t", "中", "文", "x"]
        );
        assert_eq!(words("\u{0}a\u{200B}b — c"), ["a\u{200B}b", "—", "c"]);
    }
}
