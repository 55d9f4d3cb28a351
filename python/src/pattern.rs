//! Regular expressions in the language of RE2, which operators on texts have (`RegexFullMatch`, `Tokenizer`): matched in time that is
//! linear in the text, on the host.

use std::ops::Range;

use parking_lot::Mutex;
use pyo3::prelude::*;
use regex::{Regex, RegexBuilder};
use regex_automata::{
    Anchored, Input, MatchKind,
    hybrid::dfa::{Cache, DFA},
    util::syntax,
};

use crate::error::invalid;

/// Bytes that a compiled pattern may take.
const LARGEST: usize = 8 << 20;

/// A pattern that models search texts for. Of the matches that begin first it finds the longest one.
#[pyclass(frozen, name = "_Pattern", module = "halite._halite")]
pub struct Pattern {
    /// Finds where a match begins.
    first: Regex,
    /// Finds where the longest one ends that begins there, with its cache.
    longest: DFA,
    cache: Mutex<Cache>,
    /// Whether a text is a match as a whole.
    whole: Regex,
}

#[pymethods]
impl Pattern {
    #[new]
    fn new(py: Python<'_>, pattern: &str) -> PyResult<Self> {
        Pattern::of(pattern)
            .map_err(|problem| invalid(py, &format!("the pattern '{pattern}' cannot be used: {problem}")))
    }

    /// Whether a text is a match as a whole.
    fn is_whole(&self, text: &str) -> bool {
        self.whole.is_match(text)
    }

    /// The matches of at least so many characters. Behind a shorter one the search goes on at its second character.
    fn matches(&self, py: Python<'_>, text: &str, least: usize) -> PyResult<Vec<String>> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(range) = self.find(py, text, at)? {
            let own = &text[range.clone()];
            // Nothing is searched for at the same place again.
            let is_enough = !own.is_empty() && own.chars().count() >= least;
            if is_enough {
                found.push(own.to_owned());
            }
            at = if is_enough { range.end } else { behind(text, range.start) };
        }
        Ok(found)
    }

    /// What lies between the matches, as far as it has at least so many characters.
    fn between(&self, py: Python<'_>, text: &str, least: usize) -> PyResult<Vec<String>> {
        let (mut found, mut at) = (Vec::new(), 0);
        let mut take = |own: &str| {
            if own.chars().count() >= least {
                found.push(own.to_owned());
            }
        };
        while let Some(range) = self.find(py, text, at)? {
            take(&text[at..range.start]);
            at = if range.is_empty() { behind(text, range.start) } else { range.end };
        }
        take(&text[at.min(text.len())..]);
        Ok(found)
    }
}

impl Pattern {
    fn of(pattern: &str) -> Result<Pattern, String> {
        let own = translated(pattern)?;
        let built = |text: &str| {
            RegexBuilder::new(text).size_limit(LARGEST).build().map_err(|error| error.to_string())
        };
        let first = built(&own)?;
        let whole = built(&format!(r"\A(?:{own})\z"))?;
        let config = DFA::config().match_kind(MatchKind::All).skip_cache_capacity_check(true);
        let longest = DFA::builder()
            .configure(config)
            .syntax(syntax::Config::new())
            .build(&own)
            .map_err(|error| error.to_string())?;
        let cache = Mutex::new(longest.create_cache());
        Ok(Pattern { first, longest, cache, whole })
    }

    /// The longest match of those that begin first at or behind a place.
    fn find(&self, py: Python<'_>, text: &str, at: usize) -> PyResult<Option<Range<usize>>> {
        if at > text.len() {
            return Ok(None);
        }
        let Some(found) = self.first.find_at(text, at) else { return Ok(None) };
        let input = Input::new(text).range(found.start()..).anchored(Anchored::Yes);
        let end = self
            .longest
            .try_search_fwd(&mut self.cache.lock(), &input)
            .map_err(|error| invalid(py, &format!("a pattern's search ended: {error}")))?;
        let end = end.map_or(found.end(), |half| half.offset());
        Ok(Some(found.start()..end))
    }
}

/// The place behind the character at a place; behind the end where there is none.
fn behind(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(1, char::len_utf8)
}

/// A pattern of RE2 in the words of the crate `regex`: short names of classes are of ASCII, and classes have no operations.
fn translated(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match (c, in_class) {
            ('\\', _) => {
                let next = rest.next().ok_or("it ends with a backslash")?;
                escaped(next, in_class, &mut out)?;
                // The name of a category follows.
                if matches!(next, 'p' | 'P') {
                    let name = rest.next().ok_or("it ends within an escape")?;
                    out.push(name);
                }
            }
            ('[', false) => {
                in_class = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if rest.next_if_eq(&']').is_some() {
                    out.push_str(r"\]");
                }
            }
            ('[', true) if rest.peek() == Some(&':') => {
                out.push('[');
                for inner in rest.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ('-', true) if rest.peek() == Some(&'-') => return Err("'--' in a class".to_owned()),
            ('[' | '&' | '~', true) => literal(c, &mut out),
            (']', true) => {
                in_class = false;
                out.push(']');
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

fn literal(c: char, out: &mut String) {
    out.push_str(&format!(r"\x{{{:x}}}", u32::from(c)));
}

/// What a backslash and a character stand for.
fn escaped(c: char, in_class: bool, out: &mut String) -> Result<(), String> {
    let class = match c.to_ascii_lowercase() {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => r"\t\n\x0c\r\x20",
        _ => "",
    };
    match c {
        'd' | 'w' | 's' if in_class => out.push_str(class),
        'd' | 'w' | 's' => out.push_str(&format!("[{class}]")),
        'D' | 'W' | 'S' => out.push_str(&format!("[^{class}]")),
        'b' if !in_class => out.push_str(r"(?-u:\b)"),
        'A' | 'z' if !in_class => out.extend(['\\', c]),
        'p' | 'P' | 'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' => out.extend(['\\', c]),
        _ if c.is_ascii_punctuation() => literal(c, out),
        _ => return Err(format!(r"'\{c}' is not supported")),
    }
    Ok(())
}
