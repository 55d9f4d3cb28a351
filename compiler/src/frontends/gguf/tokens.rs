//! What a file says of tokens: how many there are, and which are never written.

use std::collections::BTreeSet;

use halite_formats::gguf::Value;

use super::{
    Result,
    file::{File, invalid},
    keys::Keys,
};

/// Tokens that there are.
pub(super) fn vocabulary(file: &File) -> Result<u64> {
    match file.dims("token_embd.weight") {
        Some([rows, _]) => Ok(*rows),
        _ => Err(invalid("the tensor 'token_embd.weight', a matrix, is missing")),
    }
}

/// Tokens that are never written: those of pictures, those behind the last that an architecture writes, and those that the metadata name.
pub(super) fn suppressed(keys: &Keys<'_>) -> Result<BTreeSet<u64>> {
    let key = "tokenizer.ggml.suppress_tokens";
    let wrong = || invalid(format!("the metadata key '{key}' is no list of tokens"));
    let token = |value: Value| match value {
        Value::Int(token) => u64::try_from(token).ok(),
        _ => None,
    };
    let named: BTreeSet<u64> = match keys.file.value(key) {
        None => BTreeSet::new(),
        Some(Value::Array(array)) => array.scalars().map(token).collect::<Option<_>>().ok_or_else(wrong)?,
        Some(_) => return Err(wrong()),
    };
    let [first, end] = keys.family.pictures;
    let behind = match keys.family.written {
        Some(count) => count..vocabulary(keys.file)?,
        None => 0..0,
    };
    Ok((first..end).chain(behind).chain(named).collect())
}
