//! GGUF models that programs draw by lot, on the host beside llama.cpp.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, path::PathBuf};

use crate::gguf::apart_from_llama_cpp;

/// More models, in a folder that a variable names, such as those that `conformance/models/gguf_plamo2.py` draws.
#[test]
fn named_models_have_the_logits_of_llama_cpp() {
    let Some(folder) = std::env::var_os("HALITE_GGUF_MODELS") else {
        eprintln!("SKIPPED: HALITE_GGUF_MODELS names no folder");
        return;
    };
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "gguf"));
    all.sort();
    let apart = |path: &PathBuf| {
        let apart =
            apart_from_llama_cpp(fs::read(path).unwrap(), &fs::read(path.with_extension("json")).unwrap());
        println!("{}: {apart:?}", path.display());
        apart
    };
    let wrong: Vec<&PathBuf> =
        all.iter().filter(|path| !apart(path).iter().all(|apart| *apart < 0.08)).collect();
    assert!(!all.is_empty() && wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), all.len());
}
