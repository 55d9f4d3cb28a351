//! Damaged and malicious files of tokenizers: an error, or a tokenizer whose work is bounded.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, path::PathBuf, time::Instant};

use halite_text::{TextError, Tokenizer};
use serde_json::{Value as Json, json};

fn file(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

/// Reads what may be a tokenizer, and uses it.
fn use_it(bytes: Vec<u8>) {
    let lists = Tokenizer::from_tiktoken(&bytes, "gpt-2", &[]);
    for tokenizer in [Tokenizer::from_file_bytes(&bytes.into()), lists].into_iter().flatten() {
        for with_control in [false, true] {
            let tokens = tokenizer.encode("Hello,  world's 12\n\n\u{e9}<s>\u{3000}中", with_control);
            assert!(tokens.iter().all(|token| tokenizer.vocabulary().kind(*token).is_some()));
            tokenizer.decode(&tokens, true);
        }
    }
}

#[test]
fn damaged_files_are_errors_or_tokenizers() {
    let names = [
        "bert.json",
        "llama2.json",
        "gpt2.json",
        "t5.json",
        "sp-bpe-true.model",
        "sp-unigram-true.model",
        "tiktoken-gpt-4o.tiktoken",
    ];
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for name in names {
        let whole = file(name);
        for _ in 0..30 {
            let mut bytes = whole.clone();
            match random(3) {
                0 => bytes.truncate(random(whole.len())),
                1 => (0..=random(4)).for_each(|_| bytes[random(whole.len())] ^= 1 << random(8)),
                _ => {
                    let (from, to) = (random(whole.len()), random(whole.len()));
                    let part = bytes[from..whole.len().min(from + random(40) + 1)].to_vec();
                    bytes.splice(to..to, part);
                }
            }
            use_it(bytes);
        }
    }
}

/// The tokenizer with a value in the place of another.
fn changed(name: &str, path: &str, value: Json) -> Result<Tokenizer, TextError> {
    let mut json: Json = serde_json::from_slice(&file(name)).unwrap();
    let (parent, key) = path.rsplit_once('/').unwrap();
    json.pointer_mut(parent).unwrap()[key] = value;
    Tokenizer::from_file_bytes(&serde_json::to_vec(&json).unwrap().into())
}

#[test]
fn what_is_not_known_is_refused_with_its_key() {
    let refused = |path: &str, value: Json, wanted: &str| {
        let error = changed("llama2.json", path, value).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    refused("/model/type", json!("Other"), "'model.type' is 'Other', which is not known; there are: BPE");
    refused("/model/vocab", json!(null), "'model.vocab' is missing");
    refused("/model/vocab", json!({"a": -1}), "'model.vocab.a' is no token's number");
    refused(
        "/model/vocab",
        json!({"a": 4_000_000_000u32}),
        "'model.vocab' has a token with the number 4000000000",
    );
    refused("/model/merges", json!(["ab"]), "'model.merges' has no pair of texts at 0");
    refused("/model/merges", json!(["q zz"]), "needs the token");
    refused("/model/dropout", json!(0.5), "'model.dropout' asks for chance");
    refused("/model/new_key", json!(1), "'model.new_key' is not known");
    refused("/other", json!(1), "'other' is not known");
    refused(
        "/normalizer",
        json!({"type": "Nmt"}),
        "'normalizer.type' is 'Nmt', which is not known; there are: Sequence",
    );
    refused("/pre_tokenizer", json!({"type": "UnicodeScripts"}), "'pre_tokenizer.type' is 'UnicodeScripts'");
    refused("/decoder", json!({"type": "CTC"}), "'decoder.type' is 'CTC'");
    refused("/post_processor", json!({"type": "X"}), "'post_processor.type' is 'X'");
    let split =
        json!({"type": "Split", "pattern": {"Regex": "(?<=a)b"}, "behavior": "Isolated", "invert": false});
    refused("/pre_tokenizer", split, "looks around elsewhere");
    for bytes in ["{", "", "{}", "no tokenizer", "{\"model\": []}"] {
        assert!(Tokenizer::from_file_bytes(&bytes.to_owned().into()).is_err(), "{bytes}");
    }
}

#[test]
fn files_cannot_ask_for_memory_or_depth() {
    let deep = "{\"model\":".repeat(200_000);
    assert!(Tokenizer::from_file_bytes(&deep.into()).unwrap_err().to_string().contains("is no JSON"));
    // Each step makes the text twice as long.
    let double = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"});
    let steps = json!({"type": "Sequence", "normalizers": vec![double; 60]});
    let error = changed("llama2.json", "/normalizer", steps).unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
    let decoder = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "a".repeat(100_000)});
    assert!(changed("llama2.json", "/decoder", decoder).unwrap_err().to_string().contains("too long"));
    let pattern = json!({"type": "Split", "pattern": {"Regex": "(?:\\w{1000}){1000}"}, "behavior": "Isolated", "invert": false});
    assert!(
        changed("llama2.json", "/pre_tokenizer", pattern)
            .unwrap_err()
            .to_string()
            .contains("is not supported")
    );
}

#[test]
fn long_words_take_no_quadratic_time() {
    for name in [
        "llama2.json",
        "llama3.json",
        "gpt2.json",
        "bert.json",
        "t5.json",
        "sp-bpe-true.model",
        "sp-unigram-true.model",
    ] {
        let tokenizer = Tokenizer::from_file_bytes(&file(name).into()).unwrap();
        for text in ["a".repeat(50_000), " ".repeat(50_000), "ab1".repeat(17_000), "\n".repeat(50_000)] {
            let begin = Instant::now();
            tokenizer.encode(&text, true);
            // Quadratic, it would be many minutes.
            assert!(begin.elapsed().as_secs() < 60, "{name}: {:?}", begin.elapsed());
        }
    }
}
