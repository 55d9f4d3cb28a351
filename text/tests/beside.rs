//! The files beside a tokenizer's: tokens of the beginning and the end, chat templates.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, path::Path};

use halite_text::{Message, TextFiles};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

/// A folder with a tokenizer and other files.
fn folder(name: &str, own: &str, files: &[(&str, Json)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::copy(data.join(name), folder.path().join(own)).unwrap();
    for (file, json) in files {
        let text = json.as_str().map_or_else(|| json.to_string(), str::to_owned);
        fs::write(folder.path().join(file), text).unwrap();
    }
    folder
}

const TEMPLATE: &str =
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";

#[test]
fn tokens_and_templates_come_from_the_files_beside() {
    let config = json!({"bos_token": "<s>", "eos_token": {"content": "<|im_end|>", "lstrip": false}, "add_bos_token": true, "chat_template": TEMPLATE});
    let own = folder(
        "qwen2.json",
        "tokenizer.json",
        &[("tokenizer_config.json", config), ("generation_config.json", json!({"eos_token_id": [1, 3]}))],
    );
    let files = TextFiles::open(own.path()).unwrap();
    let find = |text: &str| files.tokenizer.vocabulary().find(text.as_bytes()).unwrap();
    assert_eq!(files.tokenizer.begin(), Some(find("<s>")));
    assert_eq!(files.tokenizer.encode("a", false), [find("<s>"), find("a")]);
    assert!(files.tokenizer.is_end(find("<|im_end|>")) && files.tokenizer.is_end(1));
    assert!(!files.tokenizer.is_end(find("<|im_start|>")));
    let prompt = files.template.unwrap().prompt(&[Message::new("user", "hi")]).unwrap();
    assert_eq!(prompt, "<s><|im_start|>user\nhi<|im_end|>\n");
    assert_eq!(files.tokenizer.encode(&prompt, true)[..2], [find("<s>"), find("<|im_start|>")]);
}

#[test]
fn templates_are_found_in_each_of_their_places() {
    let several = json!({"chat_template": [{"name": "tools", "template": "tools"}, {"name": "default", "template": "plain"}]});
    let map = json!({"bos_token": "<s>", "eos_token": "</s>"});
    let own = folder(
        "sp-bpe-true.model",
        "tokenizer.model",
        &[("tokenizer_config.json", several.clone()), ("special_tokens_map.json", map)],
    );
    let files = TextFiles::open(own.path()).unwrap();
    assert_eq!(files.template.unwrap().prompt(&[]).unwrap(), "plain");
    let own = folder(
        "gpt2.json",
        "tokenizer.json",
        &[("tokenizer_config.json", several), ("chat_template.jinja", json!("own {{ eos_token }}"))],
    );
    assert_eq!(TextFiles::open(own.path()).unwrap().template.unwrap().prompt(&[]).unwrap(), "own ");
    let own = folder("gpt2.json", "a.json", &[]);
    assert!(TextFiles::open(&own.path().join("a.json")).unwrap().template.is_none());
}

#[test]
fn tokens_that_only_the_configuration_knows_are_added() {
    let added = json!({"900": {"content": "<|end|>", "special": true, "rstrip": true}, "901": {"content": "<tool>"}, "1": {"content": "<s>"}});
    let config = json!({"added_tokens_decoder": added, "eos_token": "<|end|>"});
    let own = folder("sp-bpe-true.model", "tokenizer.model", &[("tokenizer_config.json", config)]);
    let tokenizer = TextFiles::open(own.path()).unwrap().tokenizer;
    assert!(tokenizer.is_end(900) && !tokenizer.is_end(901));
    let tokens = tokenizer.encode_bare("a<tool>b<|end|>  ", true);
    assert_eq!((tokens.contains(&901), tokens.last()), (true, Some(&900)));
    assert!(!tokenizer.encode_bare("<|end|>", false).contains(&900));
    assert_eq!(tokenizer.decode(&tokens, true), "a<tool> b<|end|>");
    for (added, wanted) in [
        (
            json!({"1": {"content": "<pad>"}}),
            "'added_tokens_decoder.1' is \"<pad>\"; the tokenizer's file has \"<s>\"",
        ),
        (json!({"4000000000": {"content": "x"}}), "has a token with the number 4000000000"),
    ] {
        let own = folder(
            "sp-bpe-true.model",
            "tokenizer.model",
            &[("tokenizer_config.json", json!({"added_tokens_decoder": added}))],
        );
        let error = TextFiles::open(own.path()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn errors_name_the_file() {
    let error = |own: &TempDir| TextFiles::open(own.path()).unwrap_err().to_string();
    assert!(
        error(&folder("gpt2.json", "other.json", &[]))
            .contains("has no tokenizer; looked for: tokenizer.json")
    );
    let own = folder("gpt2.json", "tokenizer.json", &[("tokenizer_config.json", json!("{"))]);
    assert!(error(&own).contains("tokenizer_config.json is no JSON"));
    let own =
        folder("gpt2.json", "tokenizer.json", &[("tokenizer_config.json", json!({"eos_token": "<none>"}))]);
    assert!(error(&own).contains("tokenizer_config.json: 'eos_token' is \"<none>\", which is no token"));
    let own =
        folder("gpt2.json", "tokenizer.json", &[("generation_config.json", json!({"eos_token_id": 99_999}))]);
    assert!(error(&own).contains("generation_config.json: 'eos_token_id' is 99999; there are"));
    let missing = TextFiles::open(Path::new("/nothing/here.json")).unwrap_err().to_string();
    assert!(missing.starts_with("/nothing/here.json: cannot be opened"), "{missing}");
    let gguf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf/gemma3.gguf");
    assert!(TextFiles::open(&gguf).unwrap().template.is_some());
}

#[cfg(unix)]
#[test]
fn links_of_a_models_folder_lead_nowhere_else() {
    use std::os::unix::fs::symlink;
    let own = folder("qwen2.json", "tokenizer.json", &[]);
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("chat_template.jinja");
    fs::write(&secret, "secret").unwrap();
    let model = own.path().join("m.onnx");
    fs::write(&model, "").unwrap();
    assert!(TextFiles::of_model(&model).is_ok());
    symlink(&secret, own.path().join("chat_template.jinja")).unwrap();
    let error = TextFiles::of_model(&model).unwrap_err().to_string();
    assert!(error.contains("outside of the model's folder"), "{error}");
    // Whoever names the folder means what is in it.
    assert!(TextFiles::open(own.path()).unwrap().template.is_some());
    // A cache: the model and its files are links to one place.
    let cache = tempfile::tempdir().unwrap();
    symlink(&model, cache.path().join("m.onnx")).unwrap();
    fs::remove_file(own.path().join("chat_template.jinja")).unwrap();
    symlink(own.path().join("tokenizer.json"), cache.path().join("tokenizer.json")).unwrap();
    assert!(TextFiles::of_model(&cache.path().join("m.onnx")).is_ok());
}
