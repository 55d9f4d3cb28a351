//! GGUF models on the host beside llama.cpp, and what is refused. The models: `conformance/models/gguf_tiny.py`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use halite_compiler::{
    CompileError, Control, Model, ModelFormat, Precision, graph::Graph, signature::Bindings,
};
use halite_ops::Values;
use serde_json::Value as Json;

use crate::gguf_names::{ENCODERS, FAMILIES, KEEPING, RECURRENT, STEPPED, VARIANTS};

/// Tokens that caches have room for.
pub(crate) const CONTEXT: u64 = 128;

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/gguf").join(name)).unwrap()
}

pub(crate) fn open(bytes: Vec<u8>) -> Result<Model, CompileError> {
    Model::from_bytes(bytes.into(), ModelFormat::named("gguf").unwrap(), &Control::default())
}

fn bindings(tokens: u64) -> Bindings {
    let dims = [("tokens", tokens), ("rows", 1), ("context", CONTEXT)];
    let dims: BTreeMap<String, u64> = dims.map(|(name, size)| (name.to_owned(), size)).into();
    Bindings { dims, ..Bindings::default() }
}

pub(crate) fn graph(model: &Model, tokens: u64) -> Result<Graph, CompileError> {
    let all = [bindings(tokens)];
    let (mut function, _) = model.function("main", &all, Precision::Model, &Control::default())?;
    Ok(function.versions.remove(0))
}

/// Runs a call behind `first` tokens; gives the logits of the last token, and the caches.
pub(crate) fn call(model: &Model, tokens: &[i64], first: i64, caches: &[Values]) -> (Vec<f64>, Vec<Values>) {
    let graph = graph(model, tokens.len() as u64).unwrap();
    let mut inputs = vec![
        Values::Int(tokens.to_vec()),
        Values::Int((first..first + tokens.len() as i64).collect()),
        Values::Int(vec![tokens.len() as i64 - 1]),
    ];
    let empty = graph.inputs[3..]
        .iter()
        .map(|port| Values::Float(vec![0.0; graph.tensor(port.tensor).elements() as usize]));
    inputs.extend(if caches.is_empty() { empty.collect() } else { caches.to_vec() });
    let mut results = graph.evaluate(&inputs).unwrap();
    (results.remove(0).floats(), results)
}

/// How far numbers may be apart: keys, values and queries are rounded to f16, 11 bits of logits of up to 15.
const NEAR: f64 = 0.03;

pub(crate) fn furthest(found: &[f64], wanted: &[f64]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    let apart = |(a, b): (&f64, &f64)| if a == b { 0.0 } else { (a - b).abs() };
    found
        .iter()
        .zip(wanted)
        .map(apart)
        .fold(0.0, |most, apart| if apart.is_nan() { f64::NAN } else { apart.max(most) })
}

fn near(name: &str, found: &[f64], wanted: &[f64]) {
    let largest = furthest(found, wanted);
    assert!(largest < NEAR, "{name}: {largest}");
}

#[test]
fn logits_are_those_of_llama_cpp() {
    for name in ["llama", "gemma3", "qwen3moe"] {
        let model = open(bytes(&format!("{name}.gguf"))).unwrap();
        let json: Json = serde_json::from_slice(&bytes(&format!("{name}.json"))).unwrap();
        let numbers = |key: &str| json[key].as_array().unwrap().clone();
        let tokens: Vec<i64> = numbers("prompt").iter().map(|token| token.as_i64().unwrap()).collect();
        let wanted: Vec<f64> = numbers("logits").iter().map(|logit| logit.as_f64().unwrap()).collect();
        let (whole, _) = call(&model, &tokens, 0, &[]);
        near(name, &whole, &wanted);
        // The same in two pieces: what was cached counts.
        let (_, caches) = call(&model, &tokens[..33], 0, &[]);
        let (pieces, _) = call(&model, &tokens[33..], 33, &caches);
        near(name, &pieces, &whole);
    }
}

/// How far logits are from llama.cpp's behind a prompt, and behind tokens that come one by one.
pub(crate) fn apart_from_llama_cpp(model: Vec<u8>, json: &[u8]) -> [f64; 2] {
    let model = open(model).unwrap();
    let json: Json = serde_json::from_slice(json).unwrap();
    let numbers = |key: &str| json[key].as_array().unwrap().clone();
    let tokens = |key| -> Vec<i64> { numbers(key).iter().map(|token| token.as_i64().unwrap()).collect() };
    let number = |logit: &Json| logit.as_f64().unwrap_or(f64::NEG_INFINITY);
    let logits = |key| -> Vec<f64> { numbers(key).iter().map(number).collect() };
    let (prompt, further) = (tokens("prompt"), tokens("further"));
    let (found, mut caches) = call(&model, &prompt, 0, &[]);
    let first = furthest(&found, &logits("logits"));
    // What was cached counts.
    let mut last = found;
    for (place, token) in (prompt.len() as i64..).zip(&further) {
        (last, caches) = call(&model, &[*token], place, &caches);
    }
    [first, furthest(&last, &logits("last"))]
}

/// Logits behind a prompt, and behind tokens that come one by one.
pub(crate) fn has_the_logits_of_llama_cpp(name: &str) {
    let apart = apart_from_llama_cpp(bytes(&format!("{name}.gguf")), &bytes(&format!("{name}.json")));
    assert!(apart.iter().all(|apart| *apart < NEAR), "{name}: {apart:?}");
}

#[test]
fn families_have_the_logits_of_llama_cpp() {
    FAMILIES.into_iter().for_each(has_the_logits_of_llama_cpp);
}

/// The models: `conformance/models/gguf_variants.py`.
#[test]
fn rare_keys_and_tensors_count_as_in_llama_cpp() {
    VARIANTS.into_iter().for_each(has_the_logits_of_llama_cpp);
}

/// llama.cpp computes none. The model: `conformance/models/gguf_gptj.py`.
#[test]
fn gptj_has_the_logits_of_transformers() {
    has_the_logits_of_llama_cpp("gptj");
}

/// The models: `conformance/models/gguf_blocks.py`.
#[test]
fn weights_in_all_blocks_have_the_logits_of_llama_cpp() {
    ["blocks", "blocks-moe"].into_iter().for_each(has_the_logits_of_llama_cpp);
}

/// Factors of whole matrices and of experts' matrices.
#[test]
fn products_have_the_factors_beside_their_weights() {
    has_the_logits_of_llama_cpp("nvfp4");
}

#[test]
fn states_are_the_same_whatever_the_pieces_of_a_text() {
    let text: Vec<i64> = (0..110).map(|place| (place * 37 + 5) % 250 + 3).collect();
    for name in RECURRENT {
        let model = open(bytes(&format!("{name}.gguf"))).unwrap();
        let (whole, kept) = call(&model, &text, 0, &[]);
        let (mut logits, mut caches, mut first) = (Vec::new(), Vec::new(), 0);
        for count in [33, 70, 1, 6] {
            (logits, caches) = call(&model, &text[first..first + count], first as i64, &caches);
            first += count;
        }
        near(name, &logits, &whole);
        for (found, wanted) in caches.iter().zip(&kept) {
            assert!(furthest(&found.floats(), &wanted.floats()) < 2e-2, "{name}: another state");
        }
        // A text that begins does not see what another one left.
        let (again, _) = call(&model, &text[..20], 0, &caches);
        let (alone, _) = call(&model, &text[..20], 0, &[]);
        assert!(furthest(&again, &alone) < 1e-6, "{name}");
    }
}

#[test]
fn tokens_that_fill_a_call_up_leave_no_state() {
    let text: Vec<i64> = (0..20).map(|place| (place * 37 + 5) % 250 + 3).collect();
    for name in RECURRENT {
        let model = open(bytes(&format!("{name}.gguf"))).unwrap();
        let (_, before) = call(&model, &text[..9], 0, &[]);
        let (wanted, kept) = call(&model, &text[9..14], 9, &before);
        let graph = graph(&model, 8).unwrap();
        let mut inputs = vec![
            Values::Int([&text[9..14], &[0, 0, 0]].concat()),
            Values::Int(vec![9, 10, 11, 12, 13, -1, -1, -1]),
            Values::Int(vec![4]),
        ];
        inputs.extend(before.iter().cloned());
        let mut results = graph.evaluate(&inputs).unwrap();
        assert!(furthest(&results.remove(0).floats(), &wanted) < 1e-4, "{name}");
        for (port, (found, wanted)) in graph.outputs[1..].iter().zip(results.iter().zip(&kept)) {
            // What lies behind the tokens in caches counts for nothing.
            let is_state = !["key", "value", "index"].iter().any(|end| port.name.ends_with(end));
            assert!(!is_state || furthest(&found.floats(), &wanted.floats()) < 1e-4, "{name}: {}", port.name);
        }
    }
    let mut model = open(bytes("lfm2.gguf")).unwrap();
    let error = model.verify_drafts().unwrap_err().to_string();
    assert!(error.contains("states that cannot be cut back ('lfm2')"), "{error}");
}

#[test]
fn vectors_of_encoders_are_those_of_llama_cpp() {
    for name in ENCODERS {
        let model = open(bytes(&format!("{name}.gguf"))).unwrap();
        let json: Json = serde_json::from_slice(&bytes(&format!("{name}.json"))).unwrap();
        let tokens = json["tokens"].as_array().unwrap().iter().map(|token| token.as_i64().unwrap());
        let tokens: Vec<i64> = tokens.collect();
        let wanted: Vec<f64> =
            json["vector"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let dims = BTreeMap::from([("tokens".to_owned(), tokens.len() as u64)]);
        let all = [Bindings { dims, ..Bindings::default() }];
        let (mut function, _) = model.function("embed", &all, Precision::Model, &Control::default()).unwrap();
        let found = function.versions.remove(0).evaluate(&[Values::Int(tokens)]).unwrap();
        let (found, largest) = (found[0].floats(), wanted.iter().fold(0.0, |a: f64, x| a.max(x.abs())));
        println!("{name}: {} of {largest}", furthest(&found, &wanted));
        assert!(found.len() == wanted.len() && furthest(&found, &wanted) < 5e-3, "{name}");
    }
}

#[test]
fn vectors_of_texts_are_those_of_llama_cpp() {
    let model = open(bytes("bert.gguf")).unwrap();
    let json: Json = serde_json::from_slice(&bytes("bert.json")).unwrap();
    let text = json["texts"].as_array().unwrap().iter().find(|text| text["text"] == json["text"]).unwrap();
    let tokens = text["tokens"].as_array().unwrap().iter().map(|token| token.as_i64().unwrap());
    let tokens: Vec<i64> = tokens.collect();
    let wanted = json["vector"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap());
    let dims = BTreeMap::from([("tokens".to_owned(), tokens.len() as u64)]);
    let all = [Bindings { dims, ..Bindings::default() }];
    let (mut function, _) = model.function("embed", &all, Precision::Model, &Control::default()).unwrap();
    let found = function.versions.remove(0).evaluate(&[Values::Int(tokens)]).unwrap();
    near("bert", &found[0].floats(), &wanted.collect::<Vec<_>>());
    let error = model.function("main", &all, Precision::Model, &Control::default()).unwrap_err();
    assert!(error.to_string().contains("there are: embed"), "{error}");
}

#[test]
fn what_is_missing_or_not_known_is_told_by_its_key() {
    let refused = |name: &str, changes: &[(&str, &str)]| {
        let mut bytes = bytes(name);
        for (from, to) in changes {
            assert_eq!(from.len(), to.len());
            let at = bytes.windows(from.len()).position(|own| own == from.as_bytes()).unwrap();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
        match open(bytes).and_then(|model| graph(&model, 1)) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{name} is taken with {changes:?}"),
        }
    };
    let text = refused("llama.gguf", &[("llama.block_count", "llama.block_counz")]);
    assert!(text.contains("'llama.block_count' is missing"), "{text}");
    let text = refused("gemma3.gguf", &[("gemma3", "gamma3")]);
    assert!(text.contains("'gamma3'") && text.contains("there are: llama, qwen2"), "{text}");
    assert!(text.contains("of known kinds"), "{text}");
    let strange = |name: &str| refused("llama.gguf", &[("llama", "hy_v9"), ("blk.1.attn_norm.weight", name)]);
    let text = strange("blk.1.indexer.q.weight");
    assert!(text.contains("'hy_v9'") && text.contains("there are: llama, qwen2"), "{text}");
    assert!(
        text.contains("what is missing: attention to keys that an indexer chooses (blk.*.indexer.q.weight)"),
        "{text}"
    );
    // Any key of these: weights are not what they seem. It takes the place of one that nothing reads here.
    let text = refused("llama.gguf", &[("tokenizer.ggml.model", "prism.hadamard.modes")]);
    assert!(text.contains("'prism.hadamard.version' is no count"), "{text}");
    let folded = |own: &str, other: &str| refused("llama-folded.gguf", &[(own, other)]);
    let text = folded("normalized-sylvester-walsh-hadamard", "normalized-sylvester-welsh-hadamard");
    assert!(text.contains("'prism.hadamard.transform' is 'normalized-sylvester-welsh"), "{text}");
    let text = folded("prism.hadamard.sign_mode", "prism.hadamard.sign_code");
    assert!(text.contains("'prism.hadamard.sign_mode' is no text"), "{text}");
    let text = folded("prism.hadamard.tied_output", "prism.hadamard.tied_outgut");
    assert!(text.contains("'tied_output' is true"), "{text}");
    let text = folded("prism.hadamard.inverse_weight_names", "prism.hadamard.inverse_weight_manes");
    assert!(text.contains("'tied_output' is true"), "{text}");
    let text = refused("llama.gguf", &[("llama", "dream")]);
    assert!(text.contains("'dream'") && text.contains("diffusion"), "{text}");
    let text = strange("blk.1.mysteries.weight");
    assert!(text.contains("no known architecture has its tensors blk.*.mysteries.weight;"), "{text}");
    let text = refused("llama.gguf", &[("blk.1.ffn_down.weight", "blk.1.ffn_dowm.weight")]);
    assert!(text.contains("'blk.1.ffn_down.weight' is missing"), "{text}");
    let text = refused("gemma3.gguf", &[("blk.2.post_ffw_norm.weight", "blk.2.post_ffw_nerm.weight")]);
    assert!(text.contains("not known to have: blk.2.post_ffw_nerm.weight"), "{text}");
    let text = open(b"GGUF\x03\0\0\0".to_vec()).unwrap_err().to_string();
    assert!(text.contains("tensor count"), "{text}");
}

#[test]
fn tokens_that_are_never_written_have_no_probability() {
    let model = open(bytes("tokenizer-world.gguf")).unwrap();
    let (logits, _) = call(&model, &[9, 10, 11], 0, &[]);
    let none: Vec<usize> = (0..logits.len()).filter(|id| logits[*id] == f64::NEG_INFINITY).collect();
    assert_eq!(none, [5, 7]);
    assert!(logits.iter().all(|logit| !logit.is_nan()));
}

#[test]
fn models_without_attention_have_no_sizes_of_heads() {
    // Real ones are wider than any head, and their metadata do not say how long keys are.
    let mut bytes = bytes("mamba.gguf");
    for key in ["key_length", "value_length"] {
        let name = format!("mamba.attention.{key}");
        let at = bytes.windows(name.len()).position(|own| own == name.as_bytes()).unwrap() + name.len() + 4;
        bytes[at..at + 4].copy_from_slice(&2560_u32.to_le_bytes());
    }
    assert!(graph(&open(bytes).unwrap(), 1).is_ok());
}

#[test]
fn tensors_of_known_architectures_are_not_told_as_missing() {
    for name in FAMILIES.into_iter().chain(ENCODERS).chain(["llama", "gemma3", "qwen3moe", "t5"]) {
        let mut bytes = bytes(&format!("{name}.gguf"));
        let file = halite_formats::gguf::Gguf::read(&bytes.clone().into()).unwrap();
        let Some(halite_formats::gguf::Value::Text(own)) = file.value("general.architecture") else {
            panic!()
        };
        // The first key of a file is this one.
        let at = bytes.windows(own.len()).position(|part| part == own.as_bytes()).unwrap();
        bytes[at..at + own.len()].fill(b'z');
        let error = open(bytes).unwrap_err().to_string();
        assert!(error.contains("'zz") && error.contains("of known kinds"), "{name}: {error}");
    }
}

#[test]
fn a_model_of_several_files_is_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    // The second file has the tensors, the first the metadata and how many files there are.
    let whole = bytes("llama.gguf");
    let second = folder.path().join("tiny-00002-of-00002.gguf");
    fs::write(&second, &whole).unwrap();
    let (count, pairs) = (8 + 16, 16);
    let file = halite_formats::gguf::Gguf::read(&whole.clone().into()).unwrap();
    let infos = file.tensors[0].name.as_bytes();
    let end = whole.windows(infos.len()).position(|own| own == infos).unwrap() - 8;
    let mut first = whole[..end].to_vec();
    let own = u64::from_le_bytes(first[pairs..count].try_into().unwrap()) + 1;
    first[pairs..count].copy_from_slice(&own.to_le_bytes());
    first[8..16].copy_from_slice(&0u64.to_le_bytes());
    first.extend(11u64.to_le_bytes());
    first.extend(b"split.count");
    first.extend(2u32.to_le_bytes());
    first.extend(2u16.to_le_bytes());
    let path = folder.path().join("tiny-00001-of-00002.gguf");
    fs::write(&path, &first).unwrap();
    let format = ModelFormat::named("gguf").unwrap();
    let model = Model::open(&path, format).unwrap();
    assert!(graph(&model, 1).is_ok());
    let other = folder.path().join("other.gguf");
    fs::copy(&path, &other).unwrap();
    let text = Model::open(&other, format).unwrap_err().to_string();
    assert!(text.contains("open the first, NAME-00001-of-00002.gguf"), "{text}");
    fs::remove_file(second).unwrap();
    assert!(Model::open(&path, format).is_err());
}

/// The caches of several sequences as those of a batch, one behind the other.
fn behind_each_other(all: &[Vec<Values>]) -> Vec<Values> {
    let one = |place: usize| all.iter().flat_map(|caches| caches[place].floats()).collect();
    (0..all[0].len()).map(|place| Values::Float(one(place))).collect()
}

#[test]
fn a_step_of_several_sequences_is_that_of_each() {
    // The third is nobody: its cache stays as it is, and does not count.
    let (lengths, nobody) = ([7usize, 33, 20, 1], 2);
    for name in STEPPED.into_iter().chain(KEEPING) {
        let mut model = open(bytes(&format!("{name}.gguf"))).unwrap();
        model.decode_batches(true).unwrap();
        let text: Vec<i64> = (0..40).map(|place| (place * 37 + 5) % 250 + 3).collect();
        let before: Vec<Vec<Values>> =
            lengths.iter().map(|length| call(&model, &text[..*length], 0, &[]).1).collect();
        let tokens: Vec<i64> = lengths.iter().map(|length| text[*length]).collect();
        let positions = lengths.iter().enumerate();
        let positions =
            positions.map(|(place, length)| if place == nobody { -1 } else { *length as i64 }).collect();
        let dims = [("batch", lengths.len() as u64), ("context", CONTEXT)];
        let dims = dims.map(|(name, size)| (name.to_owned(), size)).into();
        let all = [Bindings { dims, ..Bindings::default() }];
        let (mut function, _) = model.function("batch", &all, Precision::Model, &Control::default()).unwrap();
        let mut inputs = vec![Values::Int(tokens.clone()), Values::Int(positions)];
        inputs.extend(behind_each_other(&before));
        let mut results = function.versions.remove(0).evaluate(&inputs).unwrap();
        let (logits, chosen) = (results.remove(0).floats(), results.remove(0));
        let width = logits.len() / lengths.len();
        let mut after = before.clone();
        for (place, length) in lengths.into_iter().enumerate().filter(|(place, _)| *place != nobody) {
            let (own, caches) = call(&model, &tokens[place..=place], length as i64, &before[place]);
            let found = &logits[place * width..][..width];
            let largest = found.iter().zip(&own).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(largest < 1e-4, "{name}, sequence {place}: {largest}");
            let first = own.iter().position(|logit| *logit == own.iter().copied().fold(f64::MIN, f64::max));
            assert_eq!(chosen.int(place), first.unwrap() as i64, "{name}");
            after[place] = caches;
        }
        for (found, wanted) in results.iter().zip(behind_each_other(&after)) {
            let (found, wanted) = (found.floats(), wanted.floats());
            assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-3), "{name}: other caches");
        }
    }
    let error = open(bytes("llama.gguf")).unwrap().inputs("batch").unwrap_err().to_string();
    assert!(error.contains("no function 'batch'"), "only where it is asked for: {error}");
}

#[test]
fn each_token_that_another_model_wrote_has_what_comes_behind_it() {
    let (before, count) = (17usize, 4usize);
    for name in STEPPED {
        let mut model = open(bytes(&format!("{name}.gguf"))).unwrap();
        let error = model.inputs("verify").unwrap_err().to_string();
        assert!(error.contains("no function 'verify'"), "only where it is asked for: {error}");
        model.verify_drafts().unwrap();
        let text: Vec<i64> = (0..40).map(|place| (place * 37 + 5) % 250 + 3).collect();
        let (_, caches) = call(&model, &text[..before], 0, &[]);
        let dims = [("verify", count as u64), ("context", CONTEXT)];
        let dims = dims.map(|(name, size)| (name.to_owned(), size)).into();
        let all = [Bindings { dims, ..Bindings::default() }];
        let (mut function, _) =
            model.function("verify", &all, Precision::Model, &Control::default()).unwrap();
        let mut inputs = vec![
            Values::Int(text[before..before + count].to_vec()),
            Values::Int((before as i64..(before + count) as i64).collect()),
        ];
        inputs.extend(caches.iter().cloned());
        let results = function.versions.remove(0).evaluate(&inputs).unwrap();
        let logits = results[0].floats();
        let width = logits.len() / count;
        // Caches hold 16 bits: what tokens of one call see of each other is not rounded alike in calls of their own.
        let mut after = caches.clone();
        for row in 0..count {
            let place = before + row;
            let (own, caches) = call(&model, &text[place..=place], place as i64, &after);
            let found = &logits[row * width..][..width];
            assert!(furthest(found, &own) < 1e-2, "{name}, token {row}: {}", furthest(found, &own));
            let most = own.iter().copied().fold(f64::MIN, f64::max);
            let chosen = usize::try_from(results[1].int(row)).unwrap();
            assert!(own[chosen] > most - 2e-2, "{name}, token {row}: {chosen}");
            after = caches;
        }
        // A piece of a prompt is the same call.
        let (last, caches) = call(&model, &text[before..before + count], before as i64, &caches);
        assert!(furthest(&logits[(count - 1) * width..], &last) < 1e-4, "{name}: the last token");
        for (found, wanted) in results[2..].iter().zip(&caches) {
            assert!(furthest(&found.floats(), &wanted.floats()) < 1e-4, "{name}: other caches");
        }
    }
}

/// The largest difference.
/// The token that these numbers draw.
fn drawn_of(logits: &[f64], [count, part, least, factor, random]: [f64; 5]) -> usize {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    let first = logits[order[0]];
    let weight = |place: &usize| (logits[*place] - first).exp();
    order.truncate(count as usize);
    let all: f64 = order.iter().map(weight).sum();
    let mut sum = 0.0;
    order.retain(|place| {
        sum += weight(place);
        sum - weight(place) < all * part && weight(place) >= least
    });
    let scaled = |place: &usize| ((logits[*place] - first) * factor).exp();
    let mut left = random * order.iter().map(scaled).sum::<f64>();
    let wanted = order.iter().find(|place| {
        left -= scaled(place);
        left < 0.0
    });
    *wanted.unwrap()
}

#[test]
fn several_sequences_draw_each_by_its_own_numbers() {
    let mut model = open(bytes("llama.gguf")).unwrap();
    let error = model.inputs("batch_sample").unwrap_err().to_string();
    assert!(error.contains("no function 'batch_sample'"), "only where it is asked for: {error}");
    model.decode_batches(true).unwrap();
    let lengths = [6usize, 20, 11, 3];
    let text: Vec<i64> = (0..40).map(|place| (place * 37 + 5) % 250 + 3).collect();
    let before: Vec<Vec<Values>> =
        lengths.iter().map(|length| call(&model, &text[..*length], 0, &[]).1).collect();
    let evaluate = |name: &str, sampling: Option<Vec<f64>>| {
        let dims = [("batch", lengths.len() as u64), ("context", CONTEXT)];
        let dims = dims.map(|(name, size)| (name.to_owned(), size)).into();
        let all = [Bindings { dims, ..Bindings::default() }];
        let (mut function, _) = model.function(name, &all, Precision::Model, &Control::default()).unwrap();
        let tokens = lengths.iter().map(|length| text[*length]).collect();
        let positions = lengths.iter().map(|length| *length as i64).collect();
        let mut inputs = vec![Values::Int(tokens), Values::Int(positions)];
        inputs.extend(sampling.map(Values::Float));
        inputs.extend(behind_each_other(&before));
        function.versions.remove(0).evaluate(&inputs).unwrap()
    };
    let both = evaluate("batch", None);
    let logits = both[0].floats();
    let width = logits.len() / lengths.len();
    // The most likely one; of three the last; of all within a part and by a temperature; of those half as likely.
    let numbers = [
        [1.0, 2.0, 0.0, 1.0, 0.3],
        [3.0, 2.0, 0.0, 1.0, 0.999_999],
        [64.0, 0.9, 0.0, 0.5, 0.6],
        [64.0, 2.0, 0.5, 1.0, 0.8],
    ];
    let drawn = evaluate("batch_sample", Some(numbers.concat()));
    assert_eq!(drawn.len(), both.len() - 1, "it gives no logits");
    for (row, sampling) in numbers.into_iter().enumerate() {
        let own = &logits[row * width..][..width];
        assert_eq!(drawn[0].int(row), drawn_of(own, sampling) as i64, "row {row}");
    }
    assert_eq!(drawn[0].int(0), both[1].int(0));
}
