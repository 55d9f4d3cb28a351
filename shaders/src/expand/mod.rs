//! Lists of builds and of variants are products of axes: this reads them and writes every product out. The generator uses
//! it for `ops/*/builds.json`, the library for `ops/*/variants.json`, each when it needs the list: no expanded copy is kept.
//!
//! # The form
//! ```json
//! {
//!   "axes": {
//!     "unit": ["1", "2"],
//!     "type": {
//!       "f32": {"memory": "f32", "defines": {"TYPE": "F32"}},
//!       "f16": {"memory": "f16p", "defines": {"TYPE": "F16P"}}
//!     }
//!   },
//!   "builds": [
//!     {"name": "copy_{type.memory}_{unit}", "source": "copy.comp", "defines": {"UNIT": "{unit}"},
//!      "only": [{"type": "f32"}, {"unit": "2"}],
//!      "except": [{"type": "f32", "unit": "2"}],
//!      "also": [{"when": {"type": "f16"}, "defines": {"HALF": ""}}]}
//!   ]
//! }
//! ```
//! An *axis* has values: texts, or objects by their texts. A value's object has fields of an entry, which it adds, and
//! *words*, texts of any other name. An *entry* stands for one item for each combination of the axes that its `name` names:
//! `{type}` is the value's text, `{type.memory}` its word. The first axis of the name is the outermost loop.
//!
//! Every other text of an item may name these axes too. A text in a list (of `signatures`) may name further ones, and
//! stands for one text for each of their values.
//!
//! What values and the entry add is joined: objects by their keys, lists one behind the other, `order` by its sum. Anything
//! else may be said only once. In `params` and `needs`, a text of digits is a number.
//!
//! | key of an entry | means |
//! |---|---|
//! | `only` | a combination counts if one of these conditions holds |
//! | `except` | a combination does not count if one of these conditions holds |
//! | `also` | where the condition `when` holds, the fields beside it replace what is there, key by key |
//!
//! A condition gives an axis a value or a list of values, and holds if each of its axes has one of them.
//!
//! # What is refused
//! Unknown keys, axes, values and words, with a list of the known ones; keys and names that are there twice; and whatever
//! has no effect: an axis, a value or a word that nothing uses, a condition that never holds.

mod item;
mod list;
mod node;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use self::list::List;

/// What a kind of list is called, and what its entries have.
pub struct Schema {
    /// Key of the entries in the file.
    pub list: &'static str,
    /// Fields of an entry.
    pub fields: &'static [&'static str],
}

/// The form of `builds.json`.
pub const BUILDS: Schema = Schema { list: "builds", fields: &["name", "source", "defines", "vulkan"] };

/// The form of `variants.json`.
pub const VARIANTS: Schema = Schema {
    list: "variants",
    fields: &["name", "signatures", "template", "build", "params", "needs", "order", "note"],
};

/// Why a list cannot be expanded.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    /// The text is not JSON, or a key is there twice.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// A name that means nothing there.
    #[error("{place}: unknown {what} '{name}'; there are: {known}")]
    Unknown {
        /// Entry or axis.
        place: String,
        /// What the name should name.
        what: String,
        /// The name.
        name: String,
        /// What could stand there.
        known: String,
    },
    /// Something has another form than it should.
    #[error("{place}: {what}")]
    Form {
        /// Entry or axis.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// A field that two axes, or an axis and the entry, set.
    #[error("{place}: '{field}' is set twice; `also` replaces what is there")]
    Twice {
        /// Name of the entry.
        place: String,
        /// The field.
        field: String,
    },
    /// Something that changes nothing.
    #[error("{place}: {what} has no effect")]
    Idle {
        /// Entry or axis.
        place: String,
        /// What it is.
        what: String,
    },
}

impl ExpandError {
    fn unknown<'a>(
        place: &str,
        what: impl Into<String>,
        name: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let known = known.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        ExpandError::Unknown { place: place.to_owned(), what: what.into(), name: name.to_owned(), known }
    }

    fn form(place: &str, what: impl Into<String>) -> Self {
        ExpandError::Form { place: place.to_owned(), what: what.into() }
    }
}

/// Every item of a list, in the order of its entries and of their axes.
///
/// # Errors
/// The text is not of the form above, or says something without effect.
pub fn expand(text: &str, schema: &Schema) -> Result<Vec<Map<String, Value>>, ExpandError> {
    let mut list = List::read(text, schema)?;
    let entries = std::mem::take(&mut list.entries);
    let mut items: Vec<Map<String, Value>> = Vec::new();
    for mut entry in entries {
        let mut at = vec![0; entry.axes.len()];
        loop {
            if let Some(item) = list.item(&mut entry, &at)? {
                items.push(item);
            }
            if !list.advance(&entry, &mut at) {
                break;
            }
        }
        entry.all_used()?;
    }
    list.all_used()?;
    let mut names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ExpandError::form(pair[0], format!("two of the {} have this name", schema.list))),
        None => Ok(items),
    }
}
