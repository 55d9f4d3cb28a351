//! Tokens that a file adds to those of its model, and that are found in texts before these are split.

use std::borrow::Cow;

use crate::{TextError, normalize::Normalize, special::Special};

use super::at::At;

/// A token that is added.
#[derive(Clone, Debug)]
pub(super) struct Added {
    pub special: Special,
    /// Whether it is searched for in what the normalizer makes of texts.
    normalized: bool,
}

/// Reads the list.
pub(super) fn read(at: &At<'_>) -> Result<Vec<Added>, TextError> {
    if at.is_null() {
        return Ok(Vec::new());
    }
    at.array()?.iter().map(one).collect()
}

fn one(at: &At<'_>) -> Result<Added, TextError> {
    at.only(&["id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"])?;
    let is_special = at.get("special").flag_or(false)?;
    let special = Special {
        text: at.get("content").text()?.to_owned(),
        id: at.get("id").id()?,
        everybody: !is_special,
        strips_before: at.get("lstrip").flag_or(false)?,
        strips_behind: at.get("rstrip").flag_or(false)?,
        single_word: at.get("single_word").flag_or(false)?,
    };
    Ok(Added { special, normalized: at.get("normalized").flag_or(!is_special)? })
}

/// What is searched for in texts as they are, and in normalized ones. The latter are normalized themselves.
pub(super) fn specials(added: Vec<Added>, normalizer: &[Normalize]) -> (Vec<Special>, Vec<Special>) {
    let (later, now): (Vec<Added>, Vec<Added>) = added.into_iter().partition(|own| own.normalized);
    let normalized = |own: Added| {
        let text = own.special.text.into();
        let text: Cow<'_, str> = normalizer.iter().fold(text, |text, step| step.apply(text));
        Special { text: text.into_owned(), ..own.special }
    };
    (now.into_iter().map(|own| own.special).collect(), later.into_iter().map(normalized).collect())
}
