//! Patterns of names of cases.

use std::fmt;

/// A name, in which `*` stands for any text unless it is taken as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    exact: bool,
}

impl Pattern {
    /// A pattern that is compared with whole names.
    pub fn whole(text: &str) -> Self {
        Pattern { text: text.to_owned(), exact: !text.contains('*') }
    }

    /// A name as it is.
    pub fn name(text: &str) -> Self {
        Pattern { text: text.to_owned(), exact: true }
    }

    /// A pattern for people: one without `*` is compared with any part of a name.
    pub fn part(text: &str) -> Self {
        if text.contains('*') { Self::whole(text) } else { Self::whole(&format!("*{text}*")) }
    }

    /// Whether a name fits.
    pub fn fits(&self, name: &str) -> bool {
        if self.exact {
            return self.text == name;
        }
        let mut pieces = self.text.split('*');
        let head = pieces.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(head) else { return false };
        let mut pieces: Vec<&str> = pieces.collect();
        let Some(tail) = pieces.pop() else { return rest.is_empty() };
        for piece in pieces {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(tail)
    }

    /// Whether it names one case.
    pub fn is_name(&self) -> bool {
        self.exact
    }

    /// The part of it before the first `*`.
    pub fn head(&self) -> &str {
        self.text.split('*').next().unwrap_or_default()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_star_is_any_text_and_all_else_is_itself() {
        let cases = [
            ("a.b", "a.b", true),
            ("a.b", "a.bc", false),
            ("a.*", "a.b", true),
            ("a.*", "a.", true),
            ("a.*", "ba.", false),
            ("*.b", "a.b", true),
            ("*.b", "a.b.b", true),
            ("*.b", "a.b.c", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a.[x]", "a.[x]", true),
        ];
        for (pattern, name, fits) in cases {
            assert_eq!(Pattern::whole(pattern).fits(name), fits, "{pattern} {name}");
        }
        assert!(Pattern::name("a*").fits("a*") && !Pattern::name("a*").fits("ab"));
        assert!(Pattern::part("b").fits("abc") && !Pattern::part("b*").fits("abc"));
    }
}
