//! Tokens that are found in a text before it is split: control tokens and those that are never split.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::{
    TextError,
    pattern::Pattern,
    vocabulary::{TokenKind, Vocabulary},
};

/// A part of a text, with where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Text(usize, &'a str),
    Token(u32),
}

/// A token that texts are searched for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Special {
    pub text: String,
    pub id: u32,
    /// Whether it is text that everybody may write.
    pub everybody: bool,
    /// Whether it takes the white space before it with it.
    pub strips_before: bool,
    /// Whether it takes the white space behind it with it.
    pub strips_behind: bool,
    /// Whether it is found only where no letters are around it.
    pub single_word: bool,
}

/// The tokens that texts are searched for: of those that begin at a place, the longest is found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specials {
    all: Vec<Special>,
    /// Finds all of them, and those that everybody may write.
    search: Option<[AhoCorasick; 2]>,
    /// Of the second search: its numbers of those of `all`.
    everybody: Vec<usize>,
}

impl Specials {
    /// These tokens. Empty texts are never found.
    pub fn new(mut all: Vec<Special>) -> Result<Specials, TextError> {
        all.retain(|special| !special.text.is_empty());
        if all.is_empty() {
            return Ok(Specials::default());
        }
        let everybody: Vec<usize> = (0..all.len()).filter(|own| all[*own].everybody).collect();
        let search = |texts: Vec<&str>| {
            let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
            built.map_err(|error| TextError::Unsupported(format!("the tokens that are never split: {error}")))
        };
        let search = [
            search(all.iter().map(|own| own.text.as_str()).collect())?,
            search(everybody.iter().map(|own| all[*own].text.as_str()).collect())?,
        ];
        Ok(Specials { all, search: Some(search), everybody })
    }

    /// These tokens and more.
    pub fn with(self, more: Vec<Special>) -> Result<Specials, TextError> {
        Specials::new(self.all.into_iter().chain(more).collect())
    }

    /// Control tokens, and others that are never split, of a vocabulary.
    pub fn of(vocabulary: &Vocabulary) -> Vec<Special> {
        let special = |(id, token): (u32, &crate::vocabulary::Token)| {
            let everybody = match token.kind {
                TokenKind::Control | TokenKind::Unknown => false,
                TokenKind::UserDefined => true,
                _ => return None,
            };
            let text = std::str::from_utf8(&token.text).ok()?.to_owned();
            Some(Special { text, id, everybody, ..Special::default() })
        };
        vocabulary.all().filter_map(special).collect()
    }

    /// The parts of a text. Control tokens are found only `with_control`: whoever writes a text must not write the turns of a
    /// conversation.
    pub fn split<'a>(&self, text: &'a str, with_control: bool) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut done = 0;
        let [all, everybody] = match &self.search {
            None if text.is_empty() => return parts,
            None => return vec![Part::Text(0, text)],
            Some(search) => search,
        };
        for found in if with_control { all } else { everybody }.find_iter(text) {
            let number = found.pattern().as_usize();
            let number = if with_control { Some(&number) } else { self.everybody.get(number) };
            let Some(special) = number.and_then(|number| self.all.get(*number)) else { continue };
            let (before, behind) = (&text[..found.start()], &text[found.end()..]);
            if found.start() < done || special.single_word && (ends_in_word(before) || begins_in_word(behind))
            {
                continue;
            }
            let start = if special.strips_before { before.trim_end().len().max(done) } else { before.len() };
            let stripped = if special.strips_behind { behind.trim_start() } else { behind };
            if start > done {
                parts.push(Part::Text(done, &text[done..start]));
            }
            parts.push(Part::Token(special.id));
            done = text.len() - stripped.len();
        }
        if done < text.len() {
            parts.push(Part::Text(done, &text[done..]));
        }
        parts
    }
}

/// What words are made of, marks and joints included.
static WORD: LazyLock<Pattern> = LazyLock::new(|| Pattern::class(r"\w"));

fn ends_in_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(|c| WORD.has(c))
}

fn begins_in_word(text: &str) -> bool {
    text.chars().next().is_some_and(|c| WORD.has(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn special(text: &str, id: u32) -> Special {
        Special { text: text.to_owned(), id, everybody: true, ..Special::default() }
    }

    #[test]
    fn the_longest_token_is_found_first() {
        let specials =
            Specials::new(vec![special("ab", 1), special("abc", 2), special("", 3), special(" ", 4)])
                .unwrap();
        assert_eq!(
            specials.split("xabcab ", false),
            [Part::Text(0, "x"), Part::Token(2), Part::Token(1), Part::Token(4)]
        );
        assert_eq!(specials.split("", true), []);
    }

    #[test]
    fn control_tokens_are_text_unless_they_are_wanted() {
        let all = vec![
            Special { everybody: false, strips_behind: true, ..special("<s>", 1) },
            Special { single_word: true, strips_before: true, ..special("me", 2) },
        ];
        let specials = Specials::new(all).unwrap();
        assert_eq!(specials.split("<s>  a", true), [Part::Token(1), Part::Text(5, "a")]);
        assert_eq!(specials.split("<s> a", false), [Part::Text(0, "<s> a")]);
        assert_eq!(
            specials.split("some  me me_", true),
            [Part::Text(0, "some"), Part::Token(2), Part::Text(8, " me_")]
        );
    }
}
