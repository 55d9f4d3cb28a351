//! How texts are split into words before these become tokens: step by step, as files of tokenizers list it.

use std::borrow::Cow;

use crate::{merges::characters, pattern::Pattern};

/// A part of a text, and whether the text begins with it.
#[derive(Clone, Debug)]
pub(crate) struct Word<'a> {
    pub text: Cow<'a, str>,
    pub first: bool,
}

/// What becomes of matches, and of what lies between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Matches go.
    Removed,
    /// All are words.
    Isolated,
    /// Matches belong to the word before them.
    WithPrevious,
    /// Matches belong to the word behind them.
    WithNext,
    /// Matches that follow each other are one word.
    Contiguous,
}

/// Which texts get a space before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    All,
    First,
    None,
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) enum Split {
    /// At matches; `inverted` at what lies between them.
    Matches { pattern: Pattern, behaviour: Behaviour, inverted: bool },
    /// Writes another character for spaces, and splits before each.
    Spaces { mark: char, before: Before, splits: bool },
    /// Writes a space before words that have none.
    Space,
    /// Writes each byte as a character.
    Bytes,
    /// Into parts of so many characters.
    Length(usize),
    /// Numbers into groups of three digits, counted from their end.
    Thousands,
    /// The same with digits of ASCII alone, and what is before the first group of a number belongs to that.
    AsciiThousands,
}

impl Split {
    /// How many times as long a text may become.
    pub fn growth(&self) -> usize {
        match self {
            Split::Matches { .. } | Split::Length(_) | Split::Thousands | Split::AsciiThousands => 1,
            Split::Spaces { .. } => 5,
            Split::Space | Split::Bytes => 2,
        }
    }

    /// The words after this step. None is empty.
    pub fn apply<'a>(&self, words: Vec<Word<'a>>, made: &mut Vec<Word<'a>>) {
        for word in words {
            match self {
                Split::Matches { pattern, behaviour, inverted } => {
                    word.cut(cuts(pattern, &word.text, *behaviour, *inverted), made);
                }
                Split::Thousands => word.cut(thousands(&word.text), made),
                Split::AsciiThousands => word.cut(ascii_thousands(&word.text), made),
                Split::Spaces { mark, before, splits } => spaces(word, *mark, *before, *splits, made),
                Split::Space if !word.text.starts_with(' ') => {
                    made.push(Word { text: format!(" {}", word.text).into(), ..word });
                }
                Split::Space => made.push(word),
                Split::Bytes => {
                    let all = characters();
                    let text: String = word.text.bytes().map(|byte| all[usize::from(byte)]).collect();
                    made.push(Word { text: text.into(), ..word });
                }
                Split::Length(length) => {
                    let starts: Vec<usize> =
                        word.text.char_indices().map(|(at, _)| at).step_by((*length).max(1)).collect();
                    let ends = starts.iter().skip(1).copied().chain([word.text.len()]);
                    word.cut(starts.iter().copied().zip(ends).collect(), made);
                }
            }
        }
    }
}

impl<'a> Word<'a> {
    /// Adds parts of it that are not empty.
    fn cut(&self, cuts: Vec<(usize, usize)>, made: &mut Vec<Word<'a>>) {
        for (start, end) in cuts.into_iter().filter(|(start, end)| start < end) {
            let text = match &self.text {
                Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
                Cow::Owned(text) => Cow::Owned(text[start..end].to_owned()),
            };
            made.push(Word { text, first: self.first && start == 0 });
        }
    }
}

/// Where words begin and end.
fn cuts(pattern: &Pattern, text: &str, behaviour: Behaviour, inverted: bool) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize, bool)> = Vec::new();
    let mut done = 0;
    for (start, end) in pattern.matches(text) {
        if start > done {
            all.push((done, start, inverted));
        }
        all.push((start, end, !inverted));
        done = end;
    }
    if done < text.len() {
        all.push((done, text.len(), inverted));
    }
    let mut cuts: Vec<(usize, usize)> = Vec::with_capacity(all.len());
    let mut was_match = false;
    match behaviour {
        Behaviour::Removed => all.retain(|part| !part.2),
        Behaviour::WithNext => all.reverse(),
        _ => {}
    }
    for (start, end, is_match) in all {
        let joins = match behaviour {
            Behaviour::Removed | Behaviour::Isolated => false,
            Behaviour::WithPrevious | Behaviour::WithNext => is_match && !was_match,
            Behaviour::Contiguous => is_match == was_match,
        };
        was_match = is_match;
        match cuts.last_mut() {
            Some(last) if joins => *last = (last.0.min(start), last.1.max(end)),
            _ => cuts.push((start, end)),
        }
    }
    if behaviour == Behaviour::WithNext {
        cuts.reverse();
    }
    cuts
}

/// Where groups of three digits begin and end, and what lies between numbers.
fn thousands(text: &str) -> Vec<(usize, usize)> {
    let all: Vec<(usize, char)> = text.char_indices().collect();
    let mut cuts = Vec::new();
    for run in all.chunk_by(|one, next| one.1.is_numeric() == next.1.is_numeric()) {
        // The first group of a number has what is left.
        let first = match (run.len() % 3, run[0].1.is_numeric()) {
            (_, false) => run.len(),
            (0, true) => 3,
            (rest, true) => rest,
        };
        let (head, tail) = run.split_at(first);
        for group in std::iter::once(head).chain(tail.chunks(3)) {
            if let [(start, _), ..] = group
                && let [.., (last, c)] = group
            {
                cuts.push((*start, last + c.len_utf8()));
            }
        }
    }
    cuts
}

/// Parts that begin where a whole number of groups of three digits of ASCII goes on to the end of the number.
fn ascii_thousands(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut starts = vec![0];
    let mut digits = 0;
    for at in (0..bytes.len()).rev() {
        digits = if bytes[at].is_ascii_digit() { digits + 1 } else { 0 };
        if digits > 0 && digits % 3 == 0 {
            starts.push(at);
        }
    }
    starts.push(bytes.len());
    starts.sort_unstable();
    starts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

fn spaces<'a>(word: Word<'a>, mark: char, before: Before, splits: bool, made: &mut Vec<Word<'a>>) {
    let mut text: String = word.text.chars().map(|c| if c == ' ' { mark } else { c }).collect();
    let is_wanted = match before {
        Before::All => true,
        Before::First => word.first,
        Before::None => false,
    };
    if is_wanted && !text.starts_with(mark) {
        text.insert(0, mark);
    }
    let starts: Vec<usize> =
        text.match_indices(mark).map(|(at, _)| at).filter(|at| splits && *at > 0).collect();
    let own = Word { text: text.into(), ..word };
    let ends = starts.iter().copied().chain([own.text.len()]);
    let starts = [0].into_iter().chain(starts.iter().copied());
    own.cut(starts.zip(ends).collect(), made);
}
