//! Text of files for a terminal, to which control characters would be orders: to clear it, to write elsewhere, to rename it.

use std::borrow::Cow;

/// The text with all control characters as what they are, but for ends of lines and tabs.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_order = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_order) {
        return text.into();
    }
    text.chars().map(|c| if is_order(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_to_terminals_are_shown_and_not_given() {
        assert_eq!(visible("a\tb\nc é 中"), "a\tb\nc é 中");
        assert_eq!(visible("\u{1b}[2J\u{9b}31m\r\u{7}\u{7f}"), r"\u{1b}[2J\u{9b}31m\r\u{7}\u{7f}");
    }
}
