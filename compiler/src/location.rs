//! Where in a model something comes from, for people.

use std::{fmt, sync::Arc};

/// Most bytes of a location's text, which goes with every node and tensor that comes of it.
const MOST_TEXT: usize = 256;

/// Where in a model something is: for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLocation(Arc<str>);

impl SourceLocation {
    /// A location by what it is called, such as `Conv 'features.0'`. Of a long text the end is kept, which is where the names
    /// of places inside of others differ.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        if text.len() <= MOST_TEXT {
            return SourceLocation(text);
        }
        let from = text.ceil_char_boundary(text.len() - MOST_TEXT);
        SourceLocation(format!("…{}", &text[from..]).into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing is known of it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "the model" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_keep_the_end_of_long_names() {
        let location = SourceLocation::new(format!("If '{}' / Add 'last'", "ä".repeat(60_000)));
        assert!(location.as_str().len() < MOST_TEXT + 4, "{}", location.as_str().len());
        assert!(
            location.as_str().starts_with("…ä") && location.as_str().ends_with(" / Add 'last'"),
            "{location}"
        );
        assert_eq!(SourceLocation::new("Add 'a'").as_str(), "Add 'a'");
    }
}
