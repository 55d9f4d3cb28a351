//! Tokenizers that lie beside models.

use std::path::Path;

use halite_formats::gguf::{self, Gguf};
use halite_text::{ChatTemplate, Tokenizer};

use super::text_error;
use crate::{Error, ErrorKind, Result};

/// Files that tokenizers are in, the first that is there counts.
const NAMES: &[&str] = &["tokenizer.json", "tokenizer.model"];

/// The tokenizer of a model, with its chat template: a file that is named, or one beside the model.
pub(super) fn open(named: Option<&Path>, model: Option<&Path>) -> Result<(Tokenizer, Option<ChatTemplate>)> {
    let beside = || {
        let folder = model?.parent()?;
        NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file())
    };
    let path = named.map(Path::to_owned).or_else(beside);
    let path = path.ok_or_else(|| {
        let names = NAMES.join(", ");
        Error::invalid(format!(
            "the model has no tokenizer; give it the file of one with GeneratorOptions::tokenizer (--tokenizer): none of {names} lies \
             beside the model"
        ))
    })?;
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::InvalidInput, format!("the tokenizer '{}': {error}", path.display()))
    };
    let bytes = std::fs::read(&path).map_err(|error| failed(&error))?;
    if !gguf::is_gguf(&bytes) {
        return Err(failed(&"not a GGUF file"));
    }
    let file = Gguf::read(&bytes.into()).map_err(|error| failed(&error))?;
    let tokenizer = Tokenizer::read(&file).map_err(text_error)?;
    let template = ChatTemplate::read(&file, &tokenizer).map_err(text_error)?;
    Ok((tokenizer, template))
}
