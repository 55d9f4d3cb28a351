//! Patterns that tokenizers search texts for: texts as they are, or regular expressions in time that is linear in the text.
//!
//! Published patterns look ahead in one way, at the end of an alternative: `\s+(?!\S)` leaves the last white space before a word
//! to that word. The crate `regex` does not look ahead. The same alternative with what follows matched as well, of which the
//! match is then relieved, finds the same.

use regex::{Regex, RegexBuilder};

use crate::TextError;

/// Bytes that a compiled pattern may take.
const LARGEST: usize = 8 << 20;
/// Begins the names of groups that are all that an alternative has before it looks ahead.
const GROUP: &str = "halite_ahead_";

/// What texts are searched for.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// The groups that stand for matches of alternatives that look ahead.
    ahead: Vec<usize>,
    /// Bytes of the shortest match.
    pub shortest: usize,
}

impl Pattern {
    /// A text.
    pub fn literal(text: &str, place: &str) -> Result<Pattern, TextError> {
        if text.is_empty() {
            return Err(TextError::file(place, "is an empty text"));
        }
        let mut pattern = Pattern::regex(&regex::escape(text), place)?;
        pattern.shortest = text.len();
        Ok(pattern)
    }

    /// A regular expression.
    pub fn regex(text: &str, place: &str) -> Result<Pattern, TextError> {
        let refused =
            |problem: String| TextError::Unsupported(format!("{place}: the pattern {text:?} {problem}"));
        let own = without_looking_ahead(text).map_err(refused)?;
        // Begins and ends of lines count, as in Oniguruma, for which these patterns were written.
        let built = RegexBuilder::new(&own).multi_line(true).size_limit(LARGEST).build();
        let regex = built.map_err(|error| refused(format!("is not supported: {error}")))?;
        let is_ahead = |name: Option<&str>| name.is_some_and(|name| name.starts_with(GROUP));
        let ahead = regex.capture_names().enumerate().filter(|(_, name)| is_ahead(*name));
        let ahead = ahead.map(|(group, _)| group).collect();
        Ok(Pattern { regex, ahead, shortest: 0 })
    }

    /// A class of characters that this program knows.
    pub fn class(text: &str) -> Pattern {
        Pattern::regex(text, "a class of characters").expect("it is a pattern of ours, which the tests use")
    }

    /// Whether it matches a character.
    pub fn has(&self, c: char) -> bool {
        self.regex.is_match(c.encode_utf8(&mut [0; 4]))
    }

    /// The first match that begins at a place or behind it.
    fn find_at(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        if self.ahead.is_empty() {
            return self.regex.find_at(text, from).map(|found| (found.start(), found.end()));
        }
        let groups = self.regex.captures_at(text, from)?;
        let whole = groups.get(0)?;
        let end = self.ahead.iter().find_map(|group| groups.get(*group)).map_or(whole.end(), |own| own.end());
        Some((whole.start(), end))
    }

    /// All matches: where they begin and end. None is empty.
    pub fn matches(&self, text: &str) -> impl Iterator<Item = (usize, usize)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            while from <= text.len() {
                let (start, end) = self.find_at(text, from)?;
                if end > start {
                    from = end;
                    return Some((start, end));
                }
                from = start + text[start..].chars().next().map_or(1, char::len_utf8);
            }
            None
        })
    }
}

/// The pattern with groups in the place of what looks ahead at the ends of alternatives.
fn without_looking_ahead(pattern: &str) -> Result<String, String> {
    let mut alternatives = Vec::new();
    for (number, alternative) in alternatives_of(pattern)?.into_iter().enumerate() {
        let Some((before, is_wanted, seen)) = ahead_of(alternative) else {
            if looks_around(alternative) {
                return Err("looks around elsewhere than at the end of an alternative".to_owned());
            }
            alternatives.push(alternative.to_owned());
            continue;
        };
        if looks_around(before) || before.contains("(?i)") || before.contains("(?s)") {
            return Err("looks around, or changes flags, more than once in an alternative".to_owned());
        }
        let behind = match (is_wanted, is_one_character(seen)) {
            (true, _) => format!("(?:{seen})"),
            (false, true) => format!(r"(?:[^{seen}]|\z)"),
            (false, false) => return Err(format!("looks ahead for more than a character: {seen:?}")),
        };
        alternatives.push(format!("(?P<{GROUP}{number}>{before}){behind}"));
    }
    Ok(alternatives.join("|"))
}

/// The alternatives of a pattern that are in no group.
fn alternatives_of(pattern: &str) -> Result<Vec<&str>, String> {
    let (mut all, mut start) = (Vec::new(), 0);
    let mut last = ' ';
    walk(pattern, |at, c, depth| {
        if depth == (0, 0) && c == '|' {
            all.push(&pattern[start..at]);
            start = at + 1;
        }
        // In Oniguruma, such an operator gives nothing back of what it found.
        let is_possessive = depth.1 == 0 && c == '+' && matches!(last, '+' | '*' | '?');
        last = c;
        if is_possessive {
            Err("has a possessive operator, which is not supported".to_owned())
        } else {
            Ok(())
        }
    })?;
    all.push(&pattern[start..]);
    Ok(all)
}

/// Calls something with each character that is not escaped, where it is, and in how many groups and classes. An escaped one is
/// shown as `\`.
fn walk(
    pattern: &str,
    mut each: impl FnMut(usize, char, (u32, u32)) -> Result<(), String>,
) -> Result<(), String> {
    let (mut groups, mut classes) = (0u32, 0u32);
    let mut all = pattern.char_indices();
    while let Some((at, c)) = all.next() {
        match c {
            '\\' => _ = all.next(),
            '[' => classes += 1,
            ']' => classes = classes.saturating_sub(1),
            ')' if classes == 0 => groups = groups.saturating_sub(1),
            _ => {}
        }
        each(at, c, (groups, classes))?;
        if c == '(' && classes == 0 {
            groups += 1;
        }
    }
    Ok(())
}

/// What an alternative has before it looks ahead at its end, whether it wants what it looks for, and that.
fn ahead_of(alternative: &str) -> Option<(&str, bool, &str)> {
    let (mut opened, mut closed) = (None, None);
    walk(alternative, |at, c, depth| {
        match (depth, c) {
            ((0, 0), '(') => opened = Some(at),
            ((0, 0), ')') => closed = Some(at),
            _ => {}
        }
        Ok(())
    })
    .ok()?;
    let (opened, closed) = (opened?, closed?);
    if closed + 1 != alternative.len() {
        return None;
    }
    let inside = alternative.get(opened + 1..closed)?;
    let before = &alternative[..opened];
    match (inside.strip_prefix("?="), inside.strip_prefix("?!")) {
        (Some(seen), _) => Some((before, true, seen)),
        (_, Some(seen)) => Some((before, false, seen)),
        _ => None,
    }
}

fn looks_around(text: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|own| text.contains(own))
}

/// Whether a pattern is a character, or a class of characters.
fn is_one_character(pattern: &str) -> bool {
    let class = ["\\S", "\\s", "\\d", "\\D", "\\w", "\\W"];
    let is_property = (pattern.starts_with("\\p{") || pattern.starts_with("\\P{"))
        && pattern.ends_with('}')
        && pattern.matches('}').count() == 1;
    let mut closed = None;
    let walked = walk(pattern, |at, c, depth| {
        if c == ']' && depth.1 == 0 && closed.is_none() {
            closed = Some(at);
        }
        Ok(())
    });
    let is_class =
        pattern.starts_with('[') && walked.is_ok() && closed.is_some_and(|at| at + 1 == pattern.len());
    let is_plain = pattern.chars().count() == 1 && pattern.chars().all(char::is_alphanumeric);
    class.contains(&pattern) || is_property || is_class || is_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches<'a>(pattern: &str, text: &'a str) -> Vec<&'a str> {
        Pattern::regex(pattern, "x").unwrap().matches(text).map(|(start, end)| &text[start..end]).collect()
    }

    #[test]
    fn patterns_look_ahead_at_the_ends_of_alternatives() {
        assert_eq!(matches(r"a|\s+(?!\S)|\s+", "   a  \n"), ["  ", " ", "a", "  \n"]);
        assert_eq!(matches(r"\s+(?!\S)|\s+", "\n\nb"), ["\n", "\n"]);
        assert_eq!(matches(r"\d{1,3}(?=(?:\d{3})*$)", "1234567"), ["1", "234", "567"]);
        assert_eq!(matches(r"x+(?![yz])|y", "xxxyxx"), ["xx", "y", "xx"]);
        assert_eq!(matches(r"a*", "baac"), ["aa"]);
    }

    #[test]
    fn other_patterns_that_look_around_are_refused() {
        for pattern in
            [r"(?!a)b", r"(?<=a)b", r"a(?!bc)", r"(?:a(?!b)|c)d", r"a++b", "(", r"\p{L}{1000}{1000}"]
        {
            let refused = Pattern::regex(pattern, "'here'").unwrap_err().to_string();
            assert!(refused.starts_with("'here': the pattern"), "{refused}");
        }
        assert!(Pattern::literal("", "x").is_err());
    }
}
