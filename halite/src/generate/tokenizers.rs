//! Tokenizers that lie beside models.

use std::path::Path;

use halite_text::TextFiles;

use super::text_error;
use crate::{Error, Result};

/// The tokenizer of a model, with its chat template: from a file or folder that is named, or from the model's folder.
pub(super) fn open(named: Option<&Path>, model: Option<&Path>) -> Result<TextFiles> {
    // A name without a folder is in this one.
    let folder = model.and_then(Path::parent).map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    match named.or(folder) {
        Some(path) => TextFiles::open(path).map_err(|error| match named {
            Some(_) => text_error(error),
            None => without(&format!(": {error}")),
        }),
        None => Err(without("")),
    }
}

fn without(why: &str) -> Error {
    Error::invalid(format!(
        "the model has no tokenizer; give it the file of one with GeneratorOptions::tokenizer (--tokenizer){why}"
    ))
}
