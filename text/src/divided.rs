//! Text in two kinds, and where marks in it may begin.

/// Text that is sure, of both kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Divided {
    /// What the model thinks.
    pub thoughts: String,
    /// What it says.
    pub answer: String,
}

/// Where a part of one of these marks may begin at the end of a text.
pub(crate) fn partly(text: &str, marks: &[&str]) -> usize {
    let longest = marks.iter().map(|mark| mark.len()).max().unwrap_or(0);
    let from = text.len().saturating_sub(longest);
    let begins = |start: &usize| marks.iter().any(|mark| mark.starts_with(&text[*start..]));
    let starts = (from..text.len()).filter(|start| text.is_char_boundary(*start));
    starts.into_iter().find(begins).unwrap_or(text.len())
}
