//! What is done to texts before they are split: step by step, as files of tokenizers list it.

use std::{borrow::Cow, sync::LazyLock};

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};
use unicode_segmentation::UnicodeSegmentation;

use crate::{charsmap::Charsmap, merges::characters, pattern::Pattern, prefixes::Prefixes};

/// What SentencePiece writes for a space.
pub(crate) const SPACE: char = '\u{2581}';

/// A step.
#[derive(Clone, Debug)]
pub(crate) enum Normalize {
    /// Writes something before the text.
    Prepend(String),
    /// Writes something in the place of all matches.
    Replace {
        pattern: Pattern,
        with: String,
    },
    /// Unicode's forms.
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Lowercase,
    /// Takes white space away at the ends.
    Strip {
        left: bool,
        right: bool,
    },
    /// Takes accents away: of all kinds of marks, or of those without a width.
    Accents {
        all_marks: bool,
    },
    /// Replaces what a map has, by clusters of characters.
    Clusters(Charsmap),
    /// What SentencePiece does.
    Pieces(PieceNormalizer),
    /// Takes away control characters, and makes all white space spaces.
    Clean,
    /// Writes spaces around Chinese characters.
    Chinese,
    /// Writes each byte as a character.
    Bytes,
}

impl Normalize {
    /// How many times as long a text may become, beyond what Unicode's forms do.
    pub fn growth(&self) -> usize {
        match self {
            Normalize::Replace { pattern, with } => match pattern.shortest {
                0 => with.len().max(1),
                shortest => with.len().div_ceil(shortest).max(1),
            },
            Normalize::Clusters(map) => map.longest.max(1),
            Normalize::Pieces(own) => own.map.as_ref().map_or(3, |map| map.longest.max(3)),
            Normalize::Bytes => 2,
            Normalize::Chinese => 2,
            _ => 1,
        }
    }

    /// The text after this step.
    pub fn apply<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        if text.is_empty() {
            return text;
        }
        match self {
            Normalize::Prepend(before) => format!("{before}{text}").into(),
            Normalize::Replace { pattern, with } => replace(&text, pattern, with).map_or(text, Cow::Owned),
            Normalize::Nfc => text.nfc().collect::<String>().into(),
            Normalize::Nfd => text.nfd().collect::<String>().into(),
            Normalize::Nfkc => text.nfkc().collect::<String>().into(),
            Normalize::Nfkd => text.nfkd().collect::<String>().into(),
            // Letter by letter: the end of a word makes no other sigma.
            Normalize::Lowercase => text.chars().flat_map(char::to_lowercase).collect::<String>().into(),
            Normalize::Strip { left, right } => {
                let own = if *left { text.trim_start() } else { &text };
                let own = if *right { own.trim_end() } else { own };
                own.to_owned().into()
            }
            Normalize::Accents { all_marks: true } => {
                text.nfd().filter(|c| !is_combining_mark(*c)).collect::<String>().into()
            }
            Normalize::Accents { all_marks: false } => {
                replace(&text, &NON_SPACING, "").map_or(text, Cow::Owned)
            }
            Normalize::Clusters(map) => clusters(&text, map).into(),
            Normalize::Pieces(own) => own.apply(&text).into(),
            Normalize::Clean => clean(&text).into(),
            Normalize::Chinese => chinese(&text).into(),
            Normalize::Bytes => {
                let all = characters();
                text.bytes().map(|byte| all[usize::from(byte)]).collect::<String>().into()
            }
        }
    }
}

/// Marks without a width.
static NON_SPACING: LazyLock<Pattern> = LazyLock::new(|| Pattern::class(r"\p{Mn}"));
/// Characters that nobody sees. What Unicode has no character for is none of them.
static OTHERS: LazyLock<Pattern> = LazyLock::new(|| Pattern::class(r"[\p{Cc}\p{Cf}\p{Co}]"));

/// The text with something in the place of all matches; `None` where there is none.
pub(crate) fn replace(text: &str, pattern: &Pattern, with: &str) -> Option<String> {
    let mut made = String::new();
    let mut done = 0;
    for (start, end) in pattern.matches(text) {
        made.push_str(&text[done..start]);
        made.push_str(with);
        done = end;
    }
    (done > 0).then(|| made + &text[done..])
}

/// Short clusters of characters are replaced as a whole by what the first text of the map is replaced by that they begin with;
/// others character by character. This is how models that were converted from SentencePiece's have it.
fn clusters(text: &str, map: &Charsmap) -> String {
    let mut made = String::with_capacity(text.len());
    for cluster in text.graphemes(true) {
        if let Some((_, with)) = map.of(cluster.as_bytes()).next().filter(|_| cluster.len() < 6) {
            made.push_str(with);
            continue;
        }
        for c in cluster.chars() {
            match map.of(c.encode_utf8(&mut [0; 4]).as_bytes()).next() {
                Some((_, with)) => made.push_str(with),
                None => made.push(c),
            }
        }
    }
    made
}

/// Takes control characters away, and makes all white space spaces.
fn clean(text: &str) -> String {
    let kept = |c: &char| match *c {
        '\t' | '\n' | '\r' => true,
        '\0' | char::REPLACEMENT_CHARACTER => false,
        c if c.is_ascii() => !c.is_control(),
        c => !OTHERS.has(c),
    };
    text.chars().filter(kept).map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
}

/// Writes spaces around Chinese characters.
fn chinese(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for c in text.chars() {
        match is_chinese(c) {
            true => made.extend([' ', c, ' ']),
            false => made.push(c),
        }
    }
    made
}

/// Whether a character is one of those that BERT calls Chinese.
fn is_chinese(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x2_0000..=0x2_A6DF | 0x2_A700..=0x2_B73F | 0x2_B740..=0x2_B81F
        | 0x2_B920..=0x2_CEAF | 0xF900..=0xFAFF | 0x2_F800..=0x2_FA1F)
}

/// What SentencePiece does to a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct PieceNormalizer {
    pub map: Option<Charsmap>,
    /// Texts that stay as they are.
    pub whole: Prefixes,
    pub space_before: bool,
    /// Whether spaces at the ends go, and of several in a row one stays.
    pub few_spaces: bool,
    /// Whether spaces are written as U+2581.
    pub marks_spaces: bool,
}

impl PieceNormalizer {
    fn apply(&self, text: &str) -> String {
        let mut made = String::with_capacity(text.len() + 3);
        let mut rest = text;
        let space = if self.marks_spaces { SPACE } else { ' ' };
        let mut behind_space = self.few_spaces;
        let mut is_begun = false;
        while !rest.is_empty() {
            let (length, own) = self.next(rest);
            rest = &rest[length..];
            // What begins the text is a space or is more than spaces.
            if !is_begun && self.few_spaces && own == " " {
                continue;
            }
            if !is_begun && self.space_before {
                made.push(space);
            }
            is_begun = true;
            let own = if behind_space { own.trim_start_matches(' ') } else { own };
            made.extend(own.chars().map(|c| if c == ' ' { space } else { c }));
            if !own.is_empty() {
                behind_space = self.few_spaces && own.ends_with(' ');
            }
        }
        if self.few_spaces {
            made.truncate(made.trim_end_matches(space).len());
        }
        made
    }

    /// What the beginning of a text becomes, and its length.
    fn next<'a>(&'a self, text: &'a str) -> (usize, &'a str) {
        if let Some((length, _)) = self.whole.longest(text.as_bytes()) {
            return (length, &text[..length]);
        }
        if let Some(found) = self.map.as_ref().and_then(|map| map.of(text.as_bytes()).last())
            && text.is_char_boundary(found.0)
        {
            return found;
        }
        let length = text.chars().next().map_or(text.len(), char::len_utf8);
        (length, &text[..length])
    }
}
