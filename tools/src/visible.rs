//! Text of files for a terminal, to which control characters would be orders: to clear it, to write elsewhere, to rename it.

use std::{
    borrow::Cow,
    io::{self, Write},
};

/// Whether a character makes a terminal do something else than show it: control characters, but for ends of lines and tabs, and those that
/// turn the direction of what follows.
fn is_order(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && !matches!(c, '\n' | '\t')
}

/// The text with all such characters as what they are.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_order) {
        return text.into();
    }
    text.chars().map(|c| if is_order(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// Writes texts so. Each has to come whole, as formatted output does; bytes that are no text stay as they are.
pub(crate) struct Visible<W>(pub W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for chunk in bytes.utf8_chunks() {
            self.0.write_all(visible(chunk.valid()).as_bytes())?;
            self.0.write_all(chunk.invalid())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_to_terminals_are_shown_and_not_given() {
        assert_eq!(visible("a\tb\nc é 中"), "a\tb\nc é 中");
        assert_eq!(visible("\u{1b}[2J\u{9b}31m\r\u{7}\u{7f}"), r"\u{1b}[2J\u{9b}31m\u{d}\u{7}\u{7f}");
        assert_eq!(visible("a\u{202e}b\u{2066}"), r"a\u{202e}b\u{2066}");
        let mut out = Visible(Vec::new());
        write!(out, "\u{1b}c {}", 7).unwrap();
        out.write_all(b"\xff\x07").unwrap();
        assert_eq!(out.0, b"\\u{1b}c 7\xff\\u{7}");
    }
}
