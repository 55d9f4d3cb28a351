//! GGUF files: metadata, tensors, and damage. The models: `conformance/models/gguf_tiny.py`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::Path;

use bytes::Bytes;
use halite_formats::gguf::{Gguf, GgufError, Value, is_gguf};

fn file() -> Bytes {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf/llama.gguf");
    std::fs::read(path).unwrap().into()
}

#[test]
fn metadata_and_tensors_are_read() {
    let bytes = file();
    assert!(is_gguf(&bytes) && !is_gguf(b"GGU"));
    let read = Gguf::read(&bytes).unwrap();
    assert_eq!(read.version, 3);
    assert_eq!(read.value("llama.block_count"), Some(&Value::Int(2)));
    assert_eq!(read.value("general.architecture"), Some(&Value::Text("llama".to_owned())));
    assert!(
        matches!(read.value("llama.attention.layer_norm_rms_epsilon"), Some(Value::Float(e)) if *e > 0.0)
    );
    let Some(Value::Array(texts)) = read.value("tokenizer.ggml.tokens") else { panic!("tokens") };
    assert_eq!(texts.texts().nth(1), Some(&b"<s>"[..]));
    assert_eq!((texts.texts().count() as u64, texts.scalars().count()), (texts.len(), 0));
    let Some(Value::Array(scores)) = read.value("tokenizer.ggml.scores") else { panic!("scores") };
    assert_eq!((scores.scalars().count() as u64, scores.texts().count()), (texts.len(), 0));
    let table = read.tensors.iter().find(|tensor| tensor.name == "token_embd.weight").unwrap();
    assert_eq!((table.element.name, &table.dims[..]), ("Q8_0", &[texts.len(), 32][..]));
    assert_eq!(table.length, texts.len() * 34);
}

#[test]
fn files_that_end_anywhere_are_errors() {
    let bytes = file();
    let data = Gguf::read(&bytes).unwrap().tensors.iter().map(|tensor| tensor.offset).min().unwrap();
    for end in (0..data as usize).chain([bytes.len() - 1]) {
        let error = Gguf::read(&bytes.slice(..end)).unwrap_err();
        assert!(matches!(error, GgufError::OutOfRange { .. } | GgufError::Invalid { .. }), "{end}: {error}");
    }
}

#[test]
fn counts_that_the_file_does_not_have_take_no_memory() {
    for (place, what) in [(8, "tensor"), (16, "key")] {
        let mut bytes = file().to_vec();
        bytes[place..place + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        let error = Gguf::read(&bytes.into()).unwrap_err().to_string();
        assert!(error.contains(what) || error.contains("value"), "{error}");
    }
}

#[test]
fn arrays_lie_in_arrays_to_a_bounded_depth() {
    // A file of one key and no tensor, whose value is an array of arrays down to one of bytes.
    let nested = |depth: u32| {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend([0u64, 1, 1].map(u64::to_le_bytes).concat());
        bytes.push(b'k');
        bytes.extend(9u32.to_le_bytes());
        for _ in 1..depth {
            bytes.extend(9u32.to_le_bytes());
            bytes.extend(1u64.to_le_bytes());
        }
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
        bytes.push(7);
        Gguf::read(&bytes.into())
    };
    assert!(matches!(nested(1).unwrap().value("k"), Some(Value::Array(array)) if array.len() == 1));
    nested(8).unwrap();
    for depth in [9, 10, 1000] {
        let error = nested(depth).unwrap_err().to_string();
        assert!(error.contains("nested deeper"), "{depth}: {error}");
    }
}
