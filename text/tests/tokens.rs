//! Tokens of texts beside those of llama.cpp, and the chat template, of the small models of `conformance/models/gguf_tiny.py`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, path::PathBuf};

use halite_formats::gguf::Gguf;
use halite_text::{ChatTemplate, Message, Tokenizer};
use serde_json::Value as Json;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf").join(name)
}

fn model(name: &str) -> (Gguf, Json) {
    let file = Gguf::read(&fs::read(path(&format!("{name}.gguf"))).unwrap().into()).unwrap();
    (file, serde_json::from_slice(&fs::read(path(&format!("{name}.json"))).unwrap()).unwrap())
}

#[test]
fn texts_become_the_tokens_of_llama_cpp() {
    for name in ["llama", "gemma3"] {
        let (file, json) = model(name);
        let tokenizer = Tokenizer::read(&file).unwrap();
        for case in json["texts"].as_array().unwrap() {
            let (text, with_control) =
                (case["text"].as_str().unwrap(), case["with_control"].as_bool().unwrap());
            let wanted: Vec<u64> =
                case["tokens"].as_array().unwrap().iter().map(|token| token.as_u64().unwrap()).collect();
            let found = tokenizer.encode(text, with_control);
            assert_eq!(found.iter().map(|t| u64::from(*t)).collect::<Vec<_>>(), wanted, "{name}: {text:?}");
            // With scores, texts and what is behind a token that is never split get a space in front.
            let letters = |text: &str| text.replace("<s>", "").split_whitespace().collect::<String>();
            assert_eq!(letters(&tokenizer.decode(&found, true)), letters(text));
        }
    }
}

#[test]
fn words_become_the_pieces_of_llama_cpp() {
    let (file, json) = model("bert");
    let tokenizer = Tokenizer::read(&file).unwrap();
    for case in json["texts"].as_array().unwrap() {
        let wanted: Vec<u64> =
            case["tokens"].as_array().unwrap().iter().map(|token| token.as_u64().unwrap()).collect();
        let found = tokenizer.encode(case["text"].as_str().unwrap(), false);
        assert_eq!(found.iter().map(|t| u64::from(*t)).collect::<Vec<_>>(), wanted, "{}", case["text"]);
    }
    let tokens = tokenizer.encode("The unplayable play!", false);
    assert_eq!(tokenizer.decode(&tokens, false), " the unplayable play !");
}

#[test]
fn texts_of_many_scripts_become_the_tokens_of_llama_cpp() {
    // `conformance/models/gguf_tokenizers.py` made these.
    for name in ["tokenizer-unigram", "tokenizer-world", "tokenizer-lines", "tokenizer-cheapest"] {
        let (file, json) = model(name);
        let tokenizer = Tokenizer::read(&file).unwrap();
        for case in json["texts"].as_array().unwrap() {
            let (text, with_control) =
                (case["text"].as_str().unwrap(), case["with_control"].as_bool().unwrap());
            let wanted: Vec<u64> =
                case["tokens"].as_array().unwrap().iter().map(|token| token.as_u64().unwrap()).collect();
            let found = tokenizer.encode(text, with_control);
            let mut found: Vec<u64> = found.into_iter().map(u64::from).collect();
            if name == "tokenizer-world" && text.contains("<s>") && !with_control {
                // llama.cpp makes the token of the beginning of its name.
                assert!(!found.contains(&0));
                continue;
            }
            if name == "tokenizer-unigram" && with_control {
                // What a template wrote gets no token of the end here.
                found.push(1);
            }
            assert_eq!(found, wanted, "{name}: {text:?}, {with_control}");
        }
    }
    let (file, _) = model("tokenizer-world");
    let tokenizer = Tokenizer::read(&file).unwrap();
    let text = "Привет,\r\n\u{1F600} \"नमस्ते\" \\n the";
    assert_eq!(tokenizer.decode(&tokenizer.encode(text, false), false), text);
    // The file names its template.
    let template = ChatTemplate::read(&file, &tokenizer).unwrap().unwrap();
    let of = |all: &[(&str, &str)]| {
        let all: Vec<Message> = all.iter().map(|(role, text)| Message::new(*role, *text)).collect();
        template.prompt(&all).unwrap()
    };
    let all = [("system", " be "), ("user", " hi "), ("assistant", " yes\n"), ("user", "more")];
    assert_eq!(of(&all), "System: be\n\nUser: hi\n\nAssistant: yes\n\nUser: more\n\nAssistant:");
    assert_eq!(of(&all[..3]), "System: be\n\nUser: hi\n\nAssistant: yes\n\n");
}

/// A file whose pre-tokenizer has another name.
fn renamed(bytes: &[u8], name: &str) -> Vec<u8> {
    let (key, own) = (b"tokenizer.ggml.pre", b"default");
    let at = bytes.windows(key.len()).position(|part| part == key).unwrap() + key.len() + 4;
    let rest = &bytes[at + 8..];
    assert!(rest.starts_with(own));
    [&bytes[..at], &(name.len() as u64).to_le_bytes(), name.as_bytes(), &rest[own.len()..]].concat()
}

#[test]
fn texts_are_split_as_each_pre_tokenizer_does_it() {
    // `conformance/models/gguf_tokenizers.py` made these: each token is a byte or a pair of neighbours.
    let bytes = fs::read(path("tokenizer-pairs.gguf")).unwrap();
    let json: Json = serde_json::from_slice(&fs::read(path("tokenizer-pairs.json")).unwrap()).unwrap();
    let texts: Vec<&str> =
        json["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    // llama.cpp's own form of these patterns has marks apart from their letters; the published one has not.
    let with_marks = ["gpt-4o", "kimi-k2", "minimax-m2", "talkie", "tekken"];
    let mut apart = Vec::new();
    for (name, all) in json["tokens"].as_object().unwrap() {
        let file = Gguf::read(&renamed(&bytes, name).into()).unwrap();
        let tokenizer = Tokenizer::read(&file).unwrap();
        for (text, wanted) in texts.iter().zip(all.as_array().unwrap()) {
            let wanted: Vec<u32> =
                wanted.as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect();
            let found = tokenizer.encode(text, false);
            let is_other = with_marks.contains(&name.as_str()) && text.contains('\u{301}');
            if (found != wanted) != is_other {
                apart.push(format!("{name}: {text:?}"));
            }
        }
    }
    println!("{}", apart.join("\n"));
    assert!(apart.is_empty());
}

#[test]
fn the_template_of_a_file_makes_its_prompts() {
    let (file, _) = model("gemma3");
    let tokenizer = Tokenizer::read(&file).unwrap();
    let template = ChatTemplate::read(&file, &tokenizer).unwrap().expect("the file has one");
    let prompt = template.prompt(&[Message::new("system", "be"), Message::new("user", " in the ")]).unwrap();
    assert_eq!(
        prompt,
        "<|endoftext|><|turn|>system\nbe<|end|>\n<|turn|>user\nin the<|end|>\n<|turn|>assistant\n"
    );
    let tokens = tokenizer.encode(&prompt, true);
    assert_eq!(Some(tokens[0]), tokenizer.begin());
    assert!(tokens.iter().any(|token| tokenizer.is_end(*token)));
    let (file, _) = model("llama");
    assert!(ChatTemplate::read(&file, &tokenizer).unwrap().is_none());
}

#[test]
fn damaged_metadata_are_errors() {
    let bytes = fs::read(path("gemma3.gguf")).unwrap();
    let changed = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = bytes.windows(from.len()).position(|own| own == from.as_bytes()).unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        Tokenizer::read(&Gguf::read(&bytes.into()).unwrap()).unwrap_err().to_string()
    };
    assert!(
        changed("tokenizer.ggml.tokens", "tokenizer.ggml.tokenz")
            .contains("'tokenizer.ggml.tokens' is missing")
    );
    assert!(
        changed("tokenizer.ggml.merges", "tokenizer.ggml.mergez")
            .contains("'tokenizer.ggml.merges' is missing")
    );
    assert!(changed("qwen2", "qwen9").contains("there are: llama3"));
}
