//! Values of a GGUF file's metadata, by their keys.

use halite_formats::gguf::{Array, Gguf, Value};

use crate::TextError;

/// The array of a key, if the file has the key.
pub(super) fn array<'a>(file: &'a Gguf, key: &str) -> Result<Option<&'a Array>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Array(array)) => Ok(Some(array)),
        Some(_) => Err(TextError::metadata(key, "is no array")),
    }
}

/// The text of a key, if the file has the key.
pub(crate) fn text<'a>(file: &'a Gguf, key: &str) -> Result<Option<&'a str>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(_) => Err(TextError::metadata(key, "is no text")),
    }
}

/// What a key says, if the file has the key.
pub(super) fn flag(file: &Gguf, key: &str) -> Result<Option<bool>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(TextError::metadata(key, "is neither true nor false")),
    }
}
