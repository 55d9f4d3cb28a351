//! A model with an encoder in front of what writes, on the host beside llama.cpp. The model: `conformance/models/gguf_t5.py`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use halite_compiler::{CompileError, Control, Model, Precision, graph::Graph, signature::Bindings};
use halite_ops::Values;
use serde_json::Value as Json;

use crate::gguf::{CONTEXT, bytes, open};

fn graph(model: &Model, function: &str, size: u64) -> Result<Graph, CompileError> {
    let dims = [("tokens", size), ("rows", 1), ("source", size), ("context", CONTEXT)];
    let dims: BTreeMap<String, u64> = dims.map(|(name, size)| (name.to_owned(), size)).into();
    let all = [Bindings { dims, ..Bindings::default() }];
    let (mut function, _) = model.function(function, &all, Precision::Model, &Control::default())?;
    Ok(function.versions.remove(0))
}

/// What a text leaves, in a call that is filled up to `size`.
fn read(model: &Model, text: &[i64], size: usize) -> Vec<Values> {
    let graph = graph(model, "encode", size as u64).unwrap();
    let filled = text.iter().copied().chain(std::iter::repeat(9)).take(size).collect();
    let mut inputs = vec![Values::Int(filled), Values::Int(vec![text.len() as i64])];
    inputs.extend(graph.inputs[2..].iter().map(|port| {
        let tensor = graph.tensor(port.tensor);
        let count = tensor.elements() as usize;
        if port.name == "past.source" { Values::Int(vec![0; count]) } else { Values::Float(vec![0.0; count]) }
    }));
    graph.evaluate(&inputs).unwrap()
}

/// Logits of the last of some tokens behind `first` others, and what is left.
fn write(model: &Model, tokens: &[i64], first: i64, kept: &[Values]) -> (Vec<f64>, Vec<Values>) {
    let graph = graph(model, "main", tokens.len() as u64).unwrap();
    let mut inputs = vec![
        Values::Int(tokens.to_vec()),
        Values::Int((first..first + tokens.len() as i64).collect()),
        Values::Int(vec![tokens.len() as i64 - 1]),
    ];
    inputs.extend_from_slice(kept);
    let mut results = graph.evaluate(&inputs).unwrap();
    (results.remove(0).floats(), results)
}

/// How far logits of a model are from llama.cpp's at most: behind the first token of an answer, and behind the last of some. These are
/// written one by one, all in one call, and behind a text that is not filled up.
fn apart(gguf: Vec<u8>, json: &[u8]) -> f64 {
    let model = open(gguf).unwrap();
    let json: Json = serde_json::from_slice(json).unwrap();
    let tokens = |key: &str| -> Vec<i64> {
        json[key].as_array().unwrap().iter().map(|token| token.as_i64().unwrap()).collect()
    };
    let logits = |key: &str| -> Vec<f64> {
        json[key].as_array().unwrap().iter().map(|logit| logit.as_f64().unwrap()).collect()
    };
    let (text, answer) = (tokens("prompt"), tokens("tokens"));
    let kept = read(&model, &text, text.len().next_multiple_of(32));
    let (first, mut state) = write(&model, &answer[..1], 0, &kept);
    let mut last = Vec::new();
    for (place, token) in (1..).zip(&answer[1..]) {
        (last, state) = write(&model, &[*token], place, &state);
    }
    let at_once = write(&model, &answer, 0, &kept).0;
    let bare = write(&model, &answer, 0, &read(&model, &text, text.len())).0;
    let largest = |found: &[f64], key: &str| {
        let wanted = logits(key);
        assert_eq!(found.len(), wanted.len());
        // A number that is none counts.
        found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, |a: f64, b| if b <= a { a } else { b })
    };
    let all = [&last, &at_once, &bare].map(|found| largest(found, "last"));
    all.into_iter().fold(largest(&first, "logits"), |a, b| if b <= a { a } else { b })
}

#[test]
fn answers_are_those_of_llama_cpp() {
    let apart = apart(bytes("t5.gguf"), &bytes("t5.json"));
    assert!(apart < 0.03, "{apart}");
}

/// More models, in a folder that a variable names: those that `conformance/models/gguf_t5.py` draws.
#[test]
fn answers_of_named_models_are_those_of_llama_cpp() {
    let Some(folder) = std::env::var_os("HALITE_T5_MODELS") else {
        eprintln!("SKIPPED: HALITE_T5_MODELS names no folder");
        return;
    };
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "gguf"));
    all.sort();
    let apart_of = |path: PathBuf| {
        let apart = apart(fs::read(&path).unwrap(), &fs::read(path.with_extension("json")).unwrap());
        println!("{}: {apart}", path.display());
        (apart, path)
    };
    let apart: Vec<(f64, PathBuf)> = all.into_iter().map(apart_of).collect();
    let wrong: Vec<_> = apart.iter().filter(|(apart, _)| apart.is_nan() || *apart >= 0.08).collect();
    assert!(!apart.is_empty() && wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), apart.len());
}

#[test]
fn what_is_missing_is_told() {
    let refused = |function: &str, from: &str, to: &str| {
        let mut bytes = bytes("t5.gguf");
        let at = bytes.windows(from.len()).position(|own| own == from.as_bytes()).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        open(bytes).and_then(|model| graph(&model, function, 8)).err().map(|error| error.to_string())
    };
    let text = refused("main", "relative_buckets_count", "relative_buckets_coumt").unwrap();
    assert!(text.contains("'t5.attention.relative_buckets_count' is missing"), "{text}");
    let (from, to) = ("dec.blk.1.cross_attn_k.weight", "dec.blk.1.cross_attn_y.weight");
    assert!(refused("encode", from, to).unwrap().contains("'dec.blk.1.cross_attn_k.weight' is missing"));
    assert!(refused("main", from, to).unwrap().contains("known to have: dec.blk.1.cross_attn_y.weight"));
    let (from, to) = ("enc.blk.1.attn_k.weight", "enc.blk.1.attn_y.weight");
    assert!(refused("encode", from, to).unwrap().contains("'enc.blk.1.attn_k.weight' is missing"));
}

#[test]
fn nothing_is_drafted_or_written_together() {
    let model = || open(bytes("t5.gguf")).unwrap();
    assert!(model().verify_drafts().unwrap_err().to_string().contains("an encoder in front"));
    assert!(model().decode_batches(false).unwrap_err().to_string().contains("an encoder in front"));
    let error = graph(&model(), "embed", 8).unwrap_err().to_string();
    assert!(error.contains("there are: main, encode"), "{error}");
}

/// The model with another number for a key.
fn with(key: &str, count: u32) -> Vec<u8> {
    let (mut bytes, name) = (bytes("t5.gguf"), format!("t5.{key}"));
    let at = bytes.windows(name.len()).position(|own| own == name.as_bytes()).unwrap() + name.len();
    // A type is between a key and its number.
    bytes[at + 4..at + 8].copy_from_slice(&count.to_le_bytes());
    bytes
}

#[test]
fn counts_that_no_model_has_are_told_by_their_keys() {
    for (key, count) in [
        ("decoder_block_count", 0),
        ("decoder_block_count", 1 << 31),
        ("decoder_block_count", u32::MAX),
        ("block_count", 0),
        ("block_count", 1 << 31),
        ("attention.head_count", 0),
        ("attention.head_count", 1 << 31),
        ("attention.key_length", 0),
        ("attention.value_length", 1 << 31),
        ("attention.relative_buckets_count", 0),
        ("attention.relative_buckets_count", 3),
        ("attention.relative_buckets_count", 256),
        ("attention.relative_buckets_count", 1 << 31),
        ("embedding_length", 0),
    ] {
        let error = open(with(key, count)).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(&format!("'t5.{key}'")), "{key} {count}: {error}");
    }
}

#[test]
fn counts_that_tensors_do_not_have_are_told_by_those() {
    for (key, count, function, tensor) in [
        ("decoder_block_count", 3, "main", "dec.blk.2.attn_norm.weight"),
        ("decoder_block_count", 4096, "encode", "dec.blk.2.cross_attn_k.weight"),
        ("block_count", 4096, "encode", "enc.blk.3.attn_norm.weight"),
        ("attention.head_count", 3, "main", "dec.blk.0.attn_q.weight"),
        ("attention.key_length", 26, "encode", "enc.blk.0.attn_q.weight"),
        ("attention.relative_buckets_count", 8, "main", "dec.blk.0.attn_rel_b.weight"),
        ("embedding_length", 1 << 31, "main", "token_embd.weight"),
    ] {
        let made = open(with(key, count)).and_then(|model| graph(&model, function, 8));
        let error = made.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(&format!("'{tensor}'")), "{key} {count}: {error}");
    }
}
