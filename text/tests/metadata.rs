//! Metadata of tokenizers as converters and versions of them write it: what llama.cpp accepts is accepted, with the same tokens.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use halite_formats::gguf::Gguf;
use halite_text::Tokenizer;

/// A value of a key.
enum Value<'a> {
    U32(u32),
    Bool(bool),
    Text(&'a str),
    Texts(Vec<&'a str>),
    Ints(Vec<i32>),
    Floats(Vec<f32>),
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// A file of metadata alone.
fn file(values: &[(&str, Value<'_>)]) -> Gguf {
    let mut bytes = [&b"GGUF"[..], &3u32.to_le_bytes(), &0u64.to_le_bytes()].concat();
    bytes.extend((values.len() as u64).to_le_bytes());
    for (key, value) in values {
        text(&mut bytes, key);
        let array = |kind: u32, count: usize| {
            [&9u32.to_le_bytes()[..], &kind.to_le_bytes(), &(count as u64).to_le_bytes()].concat()
        };
        match value {
            Value::U32(value) => bytes.extend([4u32.to_le_bytes(), value.to_le_bytes()].concat()),
            Value::Bool(value) => bytes.extend([&7u32.to_le_bytes()[..], &[u8::from(*value)]].concat()),
            Value::Text(value) => {
                bytes.extend(8u32.to_le_bytes());
                text(&mut bytes, value);
            }
            Value::Texts(all) => {
                bytes.extend(array(8, all.len()));
                all.iter().for_each(|own| text(&mut bytes, own));
            }
            Value::Ints(all) => {
                bytes.extend(array(5, all.len()));
                all.iter().for_each(|own| bytes.extend(own.to_le_bytes()));
            }
            Value::Floats(all) => {
                bytes.extend(array(6, all.len()));
                all.iter().for_each(|own| bytes.extend(own.to_le_bytes()));
            }
        }
    }
    Gguf::read(&bytes.into()).unwrap()
}

/// Pairs of letters, with more keys.
fn pairs<'a>(tokens: &[&'a str], more: Vec<(&'a str, Value<'a>)>) -> Result<Tokenizer, String> {
    let mut values = vec![
        ("tokenizer.ggml.model", Value::Text("gpt2")),
        ("tokenizer.ggml.pre", Value::Text("qwen2")),
        ("tokenizer.ggml.tokens", Value::Texts(tokens.to_vec())),
        ("tokenizer.ggml.merges", Value::Texts(vec!["t h", "nothing", "th e"])),
    ];
    for (key, value) in more {
        values.retain(|own| own.0 != key);
        values.push((key, value));
    }
    Tokenizer::read(&file(&values)).map_err(|error| error.to_string())
}

const LETTERS: [&str; 6] = ["t", "h", "e", "th", "the", "<|end|>"];

#[test]
fn keys_may_be_odd() {
    let end = |id| ("tokenizer.ggml.eos_token_id", Value::U32(id));
    let more = vec![
        end(4),
        ("tokenizer.ggml.bos_token_id", Value::U32(99)),
        ("tokenizer.ggml.scores", Value::Floats(vec![0.0; 9])),
        ("tokenizer.ggml.token_type", Value::Ints(vec![1; 9])),
    ];
    let tokenizer = pairs(&LETTERS, more).unwrap();
    assert_eq!((tokenizer.encode("theth", false), tokenizer.begin()), (vec![4, 3], None));
    assert!(tokenizer.is_end(4) && tokenizer.is_end(5) && !tokenizer.is_end(3));
    let few = pairs(&LETTERS, vec![("tokenizer.ggml.token_type", Value::Ints(vec![1; 5]))]).unwrap_err();
    assert!(few.contains("has 5 values for 6 tokens"), "{few}");
    // Tokens without a text have names, and others have one each.
    let empty = pairs(&["t", "", "h", ""], Vec::new()).unwrap();
    assert_eq!(empty.vocabulary().text(3).as_deref(), Some("[EMPTY_3]"));
    let twice = pairs(&["t", "h", "t"], Vec::new()).unwrap_err();
    assert!(twice.contains("has \"t\" twice, the second time at 2"), "{twice}");
}

#[test]
fn some_names_need_no_merges_and_some_models_no_tokenizer() {
    let of = |model: &'static str, pre: &'static str| {
        let tokens = Value::Texts(LETTERS.to_vec());
        let all = [
            ("tokenizer.ggml.model", Value::Text(model)),
            ("tokenizer.ggml.pre", Value::Text(pre)),
            ("tokenizer.ggml.tokens", tokens),
        ];
        Tokenizer::read(&file(&all)).map_err(|error| error.to_string())
    };
    assert_eq!(of("gpt2", "kimi-k2").unwrap().encode("the", false), [0, 1, 2]);
    for (model, pre) in [("gpt2", "qwen2"), ("gemma4", "default")] {
        assert!(of(model, pre).unwrap_err().contains("'tokenizer.ggml.merges' is missing"));
    }
    assert!(of("none", "default").unwrap_err().contains("the file has no tokenizer"));
    assert!(of("no_vocab", "default").unwrap_err().contains("the file has no tokenizer"));
    assert!(of("plamo2", "default").unwrap_err().contains("the byte <0x00> has no token"));
}

#[test]
fn tokens_that_end_answers_are_known_by_their_texts() {
    let ends = |more: &[&'static str], keys: Vec<(&'static str, Value<'static>)>| -> Vec<String> {
        let tokens: Vec<&str> = ["t", "h"].iter().chain(more).copied().collect();
        let tokenizer = pairs(&tokens, keys).unwrap();
        let all = (0..tokens.len() as u32).filter(|id| tokenizer.is_end(*id));
        all.map(|id| tokens[id as usize].to_owned()).collect()
    };
    assert_eq!(ends(&["<turn|>", "</s>", "x"], Vec::new()), ["<turn|>", "</s>"]);
    // The end of a mark of HTML.
    assert_eq!(ends(&["<|tool_response>", "</s>"], Vec::new()), ["<|tool_response>"]);
    assert_eq!(ends(&["<|end|>", "<|return|>", "<|call|>"], Vec::new()), ["<|return|>", "<|call|>"]);
    assert_eq!(ends(&["<|end|>", "<|call|>"], Vec::new()), ["<|end|>", "<|call|>"]);
    assert_eq!(ends(&["<|file_sep|>", "[PAD]"], Vec::new()), ["<|file_sep|>", "[PAD]"]);
    let key = vec![("tokenizer.ggml.fim_sep_token_id", Value::U32(1))];
    assert_eq!(ends(&["<|file_sep|>"], key), ["h"]);
    // Whoever writes a text does not end an answer.
    let tokenizer = pairs(&["<", "t", "u", "r", "n", "|", ">", "<turn|>"], Vec::new()).unwrap();
    assert_eq!(tokenizer.encode("<turn|>", false), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(tokenizer.encode("<turn|>", true), [7]);
}

#[test]
fn some_pre_tokenizers_begin_texts_whatever_the_metadata_say() {
    let begins = |pre: &'static str, said: Option<bool>| {
        let mut more =
            vec![("tokenizer.ggml.pre", Value::Text(pre)), ("tokenizer.ggml.bos_token_id", Value::U32(5))];
        more.extend(said.map(|said| ("tokenizer.ggml.add_bos_token", Value::Bool(said))));
        pairs(&LETTERS, more).unwrap().encode("the", false)
    };
    assert_eq!(begins("gemma4", Some(false)), [5, 4]);
    assert_eq!([begins("tekken", None), begins("tekken", Some(false))], [vec![5, 4], vec![4]]);
    assert_eq!([begins("qwen2", None), begins("qwen2", Some(true))], [vec![4], vec![5, 4]]);
}
