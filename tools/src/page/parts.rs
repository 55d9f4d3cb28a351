//! What pages consist of: tables, bars, numbers; `crate::html` has their frame.

use std::fmt::{Display, Write as _};

pub(super) use crate::html::escaped;
use crate::{html, units};

const STYLE: &str = include_str!("style.css");

/// A page under construction.
pub(super) struct Page {
    text: String,
}

impl Page {
    /// A page with this title.
    pub fn new(title: &str) -> Page {
        Page { text: html::begin(title, STYLE) }
    }

    /// HTML as it is.
    pub fn raw(&mut self, html: impl Display) {
        // Writing to a string does not fail.
        _ = writeln!(self.text, "{html}");
    }

    /// A heading of the second order.
    pub fn heading(&mut self, text: &str) {
        self.raw(format_args!("<h2>{}</h2>", escaped(text)));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.raw(format_args!("<p class=\"soft\">{}</p>", escaped(text)));
    }

    /// Numbers with what they are.
    pub fn numbers(&mut self, pairs: &[(&str, String)]) {
        self.raw("<dl>");
        for (name, value) in pairs {
            self.raw(format_args!("<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), escaped(value)));
        }
        self.raw("</dl>");
    }

    /// A table whose first column is names, with a bar for the share in front of the rest.
    pub fn table(&mut self, columns: &[&str], rows: &[TableRow]) {
        self.raw("<div class=\"scroll\"><table><thead><tr>");
        for (index, column) in columns.iter().enumerate() {
            let class = if index > 1 { " class=\"n\"" } else { "" };
            self.raw(format_args!("<th{class}>{}</th>", escaped(column)));
        }
        self.raw("</tr></thead><tbody>");
        for row in rows {
            self.raw(format_args!(
                "<tr><td><code>{}</code><br><span class=\"soft\">{}</span></td><td><i class=\"bar\" style=\"width:{:.2}%\"></i></td>",
                escaped(&row.name),
                escaped(&row.detail),
                100.0 * row.share.clamp(0.0, 1.0)
            ));
            for cell in &row.cells {
                self.raw(format_args!("<td class=\"n\">{}</td>", escaped(cell)));
            }
            self.raw("</tr>");
        }
        self.raw("</tbody></table></div>");
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        self.text.push_str(&html::end(""));
        self.text
    }
}

/// A row of a table.
pub(super) struct TableRow {
    pub name: String,
    pub detail: String,
    /// Of the whole, from 0 to 1.
    pub share: f64,
    pub cells: Vec<String>,
}

/// Bytes, as people compare them.
pub(super) fn size(bytes: u64) -> String {
    units::si(bytes as f64, "B")
}

/// The beginning of a text that is too long.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("abcdef", 4), "abc\u{2026}");
        assert_eq!(shortened("abc", 3), "abc");
    }
}
