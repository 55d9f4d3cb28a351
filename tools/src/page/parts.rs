//! What pages consist of: the frame, tables, bars, and text that is safe in HTML.

use std::fmt::{Display, Write as _};

use crate::units;

const STYLE: &str = include_str!("style.css");

/// A page under construction.
pub(super) struct Page {
    text: String,
}

impl Page {
    /// A page with this title.
    pub fn new(title: &str) -> Page {
        let title = escaped(title);
        let text = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n{STYLE}</style></head>\n\
             <body><main>\n<h1>{title}</h1>\n"
        );
        Page { text }
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
        self.raw("</main></body></html>");
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

/// Text within elements and attributes.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // What XML cannot have, such as zero bytes in names of models.
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
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
    fn names_of_models_stay_text() {
        assert_eq!(escaped("<script>&\"'\0"), "&lt;script&gt;&amp;&quot;&#39;\u{fffd}");
        assert_eq!(shortened("abcdef", 4), "abc\u{2026}");
        assert_eq!(shortened("abc", 3), "abc");
    }
}
