//! The tokens of a GGUF file, and which of them end what a model says.

use std::collections::HashSet;

use halite_formats::gguf::{Gguf, Value};

use crate::{
    TextError,
    longest::unescaped,
    special::{Special, Specials},
    vocabulary::{Token, TokenKind, Vocabulary},
};

use super::values::array;

pub(super) const TOKENS: &str = "tokenizer.ggml.tokens";

/// Texts of further tokens that end what a model says, in files that do not name them all. Some of them are text in other models:
/// their kind stays what the file says.
const ENDS: &[&str] = &[
    "<|flush|>",
    "<|calls|>",
    "</s>",
    "<turn|>",
    "<|tool_response>",
    "<\u{FF5C}end\u{2581}of\u{2581}sentence\u{FF5C}>",
    "[e~[",
];
/// Marks of code around a gap: nothing, the next repository, and the next file. Each ends an answer, too. A key names it; without
/// one the first of these texts is it.
const GAPS: &[(&str, &[&str])] = &[
    ("tokenizer.ggml.fim_pad_token_id", &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"]),
    (
        "tokenizer.ggml.fim_rep_token_id",
        &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"],
    ),
    ("tokenizer.ggml.fim_sep_token_id", &["<|file_sep|>"]),
];

/// The tokens, whose texts may be written as Python writes bytes.
pub(super) fn vocabulary(file: &Gguf, escaped: bool) -> Result<Vocabulary, TextError> {
    let texts = array(file, TOKENS)?.ok_or_else(|| TextError::metadata(TOKENS, "is missing"))?;
    if texts.len() >= u64::from(u32::MAX) {
        return Err(TextError::metadata(TOKENS, "has more tokens than 32 bits can count"));
    }
    let mut seen = HashSet::new();
    let mut tokens = Vec::new();
    for (id, text) in texts.texts().enumerate() {
        // A token without a text gets one that nobody writes.
        let named = text.is_empty().then(|| format!("[EMPTY_{id}]").into_bytes());
        if !seen.insert(text) && named.is_none() {
            let problem = format!("has {:?} twice, the second time at {id}", String::from_utf8_lossy(text));
            return Err(TextError::metadata(TOKENS, problem));
        }
        tokens.push(match named {
            Some(named) => Token::new(&named),
            None if escaped => Token::new(&unescaped(text)),
            None => Token::new(text),
        });
    }
    if tokens.is_empty() {
        return Err(TextError::metadata(TOKENS, "has no texts"));
    }
    each(file, "tokenizer.ggml.scores", &mut tokens, |token, value| match value {
        Value::Float(score) => token.score = score,
        Value::Int(score) => token.score = score as f64,
        _ => {}
    })?;
    each(file, "tokenizer.ggml.token_type", &mut tokens, |token, value| {
        if let Value::Int(kind) = value {
            token.kind = TokenKind::of(kind);
        }
    })?;
    Ok(Vocabulary::new(tokens))
}

/// Gives each token the value at its place. There may be more values than tokens.
fn each(
    file: &Gguf,
    key: &str,
    tokens: &mut [Token],
    set: impl Fn(&mut Token, Value),
) -> Result<(), TextError> {
    let Some(values) = array(file, key)? else { return Ok(()) };
    if values.len() < tokens.len() as u64 {
        let problem = format!("has {} values for {} tokens", values.len(), tokens.len());
        return Err(TextError::metadata(key, problem));
    }
    tokens.iter_mut().zip(values.scalars()).for_each(|(token, value)| set(token, value));
    Ok(())
}

/// The token of a key, if the file has the key and there is such a token.
pub(super) fn token_of(file: &Gguf, key: &str, vocabulary: &Vocabulary) -> Result<Option<u32>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Int(id)) => Ok(u32::try_from(*id).ok().filter(|id| vocabulary.token(*id).is_some())),
        Some(_) => Err(TextError::metadata(key, "is no token's number")),
    }
}

/// The tokens that are searched for in texts. Those of `ends` are found only in what a template wrote, whatever their kind.
pub(super) fn specials(vocabulary: &Vocabulary, ends: &[u32]) -> Vec<Special> {
    let mut all = Specials::of(vocabulary);
    for id in ends {
        match all.iter_mut().find(|own| own.id == *id) {
            Some(own) => own.everybody = false,
            None => {
                all.extend(vocabulary.text(*id).map(|text| Special { text, id: *id, ..Special::default() }));
            }
        }
    }
    all
}

/// Tokens that end what a model says by their texts, beyond those of `Vocabulary::ends`.
pub(super) fn further_ends(file: &Gguf, vocabulary: &Vocabulary) -> Result<Vec<u32>, TextError> {
    let find = |text: &str| vocabulary.find(text.as_bytes());
    // A model that calls tools this way has it as text: the end of a mark of HTML.
    let is_text = |text: &str| text == "</s>" && find("<|tool_response>").is_some();
    let mut ends: Vec<u32> =
        ENDS.iter().filter(|text| !is_text(text)).filter_map(|text| find(text)).collect();
    for (key, texts) in GAPS {
        let named = token_of(file, key, vocabulary)?;
        ends.extend(named.or_else(|| texts.iter().find_map(|text| find(text))));
    }
    Ok(ends)
}

/// The token that ends messages and not the answer, in models that say so by tokens of their own for that.
pub(super) fn message_end(vocabulary: &Vocabulary) -> Option<u32> {
    let has = |text: &str| vocabulary.find(text.as_bytes()).is_some();
    let is_kept = has("<|return|>") && (has("<|call|>") || has("<|calls|>"))
        || has("<|flush|>") && (has("<|call|>") || has("<|calls|>"));
    vocabulary.find(b"<|end|>").filter(|_| is_kept)
}
