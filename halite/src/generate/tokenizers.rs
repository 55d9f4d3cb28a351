//! Tokenizers that lie beside models.

use std::path::Path;

use halite_text::TextFiles;

use super::text_error;
use crate::{Error, Result};

/// The tokenizer of a model, with its chat template: from a file or folder that is named, or from the model's folder.
pub(super) fn open(named: Option<&Path>, model: Option<&Path>) -> Result<TextFiles> {
    match (named, model) {
        (Some(path), _) => TextFiles::open(path).map_err(text_error),
        (None, Some(model)) => TextFiles::of_model(model).map_err(|error| without(&format!(": {error}"))),
        (None, None) => Err(without("")),
    }
}

fn without(why: &str) -> Error {
    Error::invalid(format!(
        "the model has no tokenizer; give it the file of one with GeneratorOptions::tokenizer (--tokenizer){why}"
    ))
}
