//! Hugging Face's `tokenizer.json`: a list of steps with their settings, and the model.

mod added;
pub(crate) mod at;
mod decoder;
mod model;
mod normalizer;
mod post;
mod splitter;

use serde_json::Value;

use crate::{TextError, Tokenizer, pattern::Pattern, special::Special, vocabulary::Vocabulary};

use at::At;

/// Reads one.
pub(super) fn read(bytes: &[u8]) -> Result<Tokenizer, TextError> {
    const FILE: &str = "tokenizer.json";
    let document: Value = serde_json::from_slice(bytes)
        .map_err(|error| TextError::file(FILE, format!("is no JSON: {error}")))?;
    let root = At::root(&document, FILE);
    root.only(&[
        "version",
        "truncation",
        "padding",
        "added_tokens",
        "normalizer",
        "pre_tokenizer",
        "post_processor",
        "decoder",
        "model",
    ])?;
    let added = added::read(&root.get("added_tokens"))?;
    let read = model::read(&root.get("model"), &added)?;
    let vocabulary = read.vocabulary;
    let mut tokenizer = Tokenizer::new(vocabulary, read.model);
    tokenizer.normalizer = normalizer::read(&root.get("normalizer"))?;
    tokenizer.splitter = splitter::read(&root.get("pre_tokenizer"))?;
    tokenizer.decoding = decoder::read(&root.get("decoder"))?;
    let (now, later) = added::specials(added, &tokenizer.normalizer);
    let differs = |own: &&Special| tokenizer.vocabulary.text(own.id).is_some_and(|text| text != own.text);
    tokenizer.decoding.shown = later.iter().filter(differs).map(|own| (own.id, own.text.clone())).collect();
    tokenizer.search(now, later)?;
    let template = post::read(&root.get("post_processor"), &tokenizer.vocabulary)?;
    tokenizer.begin = template.before.first().copied();
    tokenizer.end = template.behind.last().copied();
    tokenizer.ends.extend(tokenizer.end);
    tokenizer.begins_twice = template.begins_twice;
    (tokenizer.before, tokenizer.behind) = (template.before, template.behind);
    tokenizer.checked(FILE)
}

/// A pattern: a text, or a regular expression.
fn pattern(at: &At<'_>) -> Result<Pattern, TextError> {
    if let Some(text) = at.get("String").some() {
        return Pattern::literal(text.text()?, &text.place);
    }
    let regex = at.get("Regex");
    Pattern::regex(regex.text()?, &regex.place)
}

/// The number of the token with a text, which must be there.
fn token(at: &At<'_>, text: &str, vocabulary: &Vocabulary) -> Result<u32, TextError> {
    vocabulary.find(text.as_bytes()).ok_or_else(|| at.wrong(format!("is {text:?}, which is no token")))
}
