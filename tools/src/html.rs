//! Pages that need nothing but themselves: their frame, and text that is safe in HTML and XML.

/// The beginning of a page: its head with a style sheet, and the title as a heading. [`end`] ends it.
#[must_use]
pub fn begin(title: &str, style: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n{style}</style></head>\n\
         <body><main>\n<h1>{title}</h1>\n"
    )
}

/// The end of a page, with a script if there is one.
#[must_use]
pub fn end(script: &str) -> String {
    let script = if script.is_empty() { String::new() } else { format!("<script>\n{script}</script>\n") };
    format!("</main>\n{script}</body></html>\n")
}

/// Text within elements and attributes. What XML cannot have, such as zero bytes in names of models, becomes a replacement
/// character.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_stay_text() {
        assert_eq!(escaped("<script>&\"'\0\u{ffff}"), "&lt;script&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}");
        let page = begin("<b>", "") + &end("");
        assert!(page.contains("<h1>&lt;b&gt;</h1>") && page.ends_with("</body></html>\n"), "{page}");
    }
}
