//! Chameleon on the host: beside llama.cpp, and with norms behind each part beside transformers, whose numbers `conformance/models/gguf_swin.py`
//! tells.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use serde_json::Value as Json;

use crate::gguf::{bytes, call, furthest, has_the_logits_of_llama_cpp, open};

/// A file with one more key, which is true. `name` is so long that what lies behind it stays where it may.
fn with_flag(gguf: &[u8], name: &str) -> Vec<u8> {
    let (head, count, rest) = (&gguf[..16], &gguf[16..24], &gguf[24..]);
    let count = u64::from_le_bytes(count.try_into().unwrap()) + 1;
    let key = [&(name.len() as u64).to_le_bytes()[..], name.as_bytes(), &7u32.to_le_bytes(), &[1]].concat();
    assert_eq!(key.len() % 32, 0, "weights begin at multiples of 32 bytes");
    [head, &count.to_le_bytes(), &key, rest].concat()
}

#[test]
fn norms_behind_parts_are_those_of_transformers() {
    let model = open(with_flag(&bytes("chameleon.gguf"), "chameleon.swin_norm")).unwrap();
    let json: Json = serde_json::from_slice(&bytes("chameleon-swin.json")).unwrap();
    let numbers = |key: &str| json[key].as_array().unwrap().clone();
    let tokens: Vec<i64> = numbers("tokens").iter().map(|token| token.as_i64().unwrap()).collect();
    let wanted: Vec<f64> = numbers("logits").iter().map(|logit| logit.as_f64().unwrap()).collect();
    let (mut logits, _) = call(&model, &tokens, 0, &[]);
    // Pictures are never written.
    logits.drain(4..8196).for_each(|logit| assert_eq!(logit, f64::NEG_INFINITY));
    assert!(furthest(&logits, &wanted) < 0.03, "{}", furthest(&logits, &wanted));
}

#[test]
fn pictures_are_never_written() {
    has_the_logits_of_llama_cpp("chameleon");
    let model = open(bytes("chameleon.gguf")).unwrap();
    let (logits, _) = call(&model, &[5, 6, 7], 0, &[]);
    let pictures = logits.iter().filter(|logit| **logit == f64::NEG_INFINITY).count();
    assert_eq!((pictures, logits[3].is_finite(), logits[8196].is_finite()), (8192, true, true));
}
