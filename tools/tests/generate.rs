//! The tool `halite generate`, on the small models of `conformance/models/gguf_tiny.py`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common;
use std::path::Path;

use crate::common::run;
use serde_json::Value;

fn model(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf");
    folder.join(name).display().to_string()
}

#[test]
fn text_is_written_as_text_and_as_json() {
    let model = model("gemma3.gguf");
    let all = [
        "generate",
        &model,
        "--device=vulkan",
        "--max-tokens=6",
        "--temperature=0",
        "--chat",
        "--prompt=in the",
    ];
    let json = run("halite", &[&all[..], &["--json"]].concat());
    if json.stdout.contains("NOT_FOUND") || json.stdout.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", json.stdout);
        return;
    }
    assert_eq!(json.code, 0, "{}{}", json.stdout, json.stderr);
    let made: Value = serde_json::from_str(&json.stdout).unwrap();
    let count = made["tokens"].as_array().unwrap().len();
    assert!(count > 0 && made["generation"]["tokens"] == count, "{made}");
    assert_eq!(made["context"], 128, "what the model was trained for");
    let plain = run("halite", &all);
    assert_eq!(
        (plain.code, plain.stdout.as_str()),
        (0, format!("{}\n", made["text"].as_str().unwrap()).as_str())
    );
    assert!(plain.stderr.contains("tokens/s") && plain.stderr.contains("MiB"), "{}", plain.stderr);
}

#[test]
fn texts_end_in_front_of_what_is_to_end_them() {
    let model = model("gemma3.gguf");
    let written = |more: &[&str]| {
        let all =
            ["generate", &model, "--device=vulkan", "--max-tokens=24", "--temperature=0", "--prompt=in the"];
        run("halite", &[&all[..], &["--ignore-end", "--json"], more].concat())
    };
    let whole = written(&[]);
    if whole.stdout.contains("NOT_FOUND") || whole.stdout.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", whole.stdout);
        return;
    }
    let made: Value = serde_json::from_str(&whole.stdout).unwrap();
    let text: Vec<char> = made["text"].as_str().unwrap().chars().collect();
    // Over the borders of tokens.
    let end: String = text[text.len() / 2..text.len() / 2 + 5].iter().collect();
    let all: String = text.iter().collect();
    let found: Value = serde_json::from_str(&written(&["--stop=\u{1}\u{2}", "--stop", &end]).stdout).unwrap();
    assert_eq!((&found["text"], &found["stop"]), (&all[..all.find(&end).unwrap()].into(), &"text".into()));
    // The beginning of one alone ends nothing.
    let last = format!("{}\u{1}", text[text.len() - 1]);
    let found: Value = serde_json::from_str(&written(&["--stop", &last]).stdout).unwrap();
    assert_eq!((&found["text"], &found["stop"]), (&made["text"], &"length".into()));
    let refused = written(&["--stop="]);
    assert!(refused.code == 2 && refused.stdout.contains("empty text"), "{}", refused.stdout);
}

#[test]
fn nothing_is_kept_of_a_strangers_model() {
    let (model, cache) = (model("llama.gguf"), tempfile::tempdir().unwrap());
    // Drivers keep things of their own beside it.
    let is_kept = || cache.path().join("halite").exists();
    let made = |flags: &[&str]| {
        let mut command = common::command("halite");
        command.env("XDG_CACHE_HOME", cache.path()).stdin(std::process::Stdio::null());
        command.args(["generate", &model, "--device=vulkan", "--max-tokens=2", "--prompt=in"]).args(flags);
        common::finish(command.output().unwrap())
    };
    let ran = made(&["--untrusted"]);
    if ran.stderr.contains("NOT_FOUND") || ran.stderr.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", ran.stderr);
        return;
    }
    assert!(ran.code == 0 && !is_kept(), "{}", ran.stderr);
    let ran = made(&[]);
    assert!(ran.code == 0 && is_kept(), "{}", ran.stderr);
    // Whoever contradicts himself is told.
    let ran = run("halite", &["embed", &model, "x", "--device=vulkan?untrusted=off", "--untrusted"]);
    assert!(ran.code == 2 && ran.stderr.contains("contradicts --untrusted"), "{}", ran.stderr);
}

/// A model with a chat template: a key more in front of its metadata, as long as the alignment of the weights wants it.
fn with_template(name: &str, template: &str) -> Vec<u8> {
    const KEY: &str = "tokenizer.chat_template";
    /// Where the number of keys stands; the keys follow.
    const KEYS: usize = 16;
    const TEXT: u32 = 8;
    let file = std::fs::read(model(name)).unwrap();
    let (count, rest) = file[KEYS..].split_first_chunk::<8>().unwrap();
    let taken = 8 + KEY.len() + 4 + 8;
    let padded = (taken + template.len()).next_multiple_of(32) - taken;
    let template = format!("{template:padded$}");
    let mut made = file[..KEYS].to_vec();
    made.extend((u64::from_le_bytes(*count) + 1).to_le_bytes());
    made.extend((KEY.len() as u64).to_le_bytes());
    made.extend(KEY.as_bytes());
    made.extend(TEXT.to_le_bytes());
    made.extend((template.len() as u64).to_le_bytes());
    made.extend(template.as_bytes());
    made.extend(rest);
    made
}

#[test]
fn a_chat_template_that_takes_all_there_is_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let ask = |template: &str, seconds: u32| {
        std::fs::write(&file, with_template("llama.gguf", template)).unwrap();
        let model = file.display().to_string();
        let limit = format!("--timeout={seconds}");
        let flags = ["--device=vulkan", "--max-tokens=2", "--chat", "--prompt=in", "--untrusted", &limit];
        run("halite", &[&["generate", &model][..], &flags].concat())
    };
    let sound = ask("{{ messages[0].content }}", 120);
    if sound.stderr.contains("NOT_FOUND") || sound.stderr.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", sound.stderr);
        return;
    }
    assert_eq!(sound.code, 0, "{}", sound.stderr);
    // Each step of it takes as long as its text is: all that it asks for would be days.
    let long = ask(
        "{% set s = 'a' * 10000000 %}{% for i in range(9999) %}{% for j in range(99) %}\
         {% set t = s | replace('a', 'bb') %}{% endfor %}{% endfor %}",
        120,
    );
    let wanted = "RESOURCE_EXHAUSTED; the model's chat template: line 1: takes more than";
    assert!(long.code == 1 && long.stderr.contains(wanted), "{}", long.stderr);
    // It wants a stack as deep as its list.
    let deep = ask(
        "{% set n = namespace(a=[]) %}{% for i in range(9999) %}{% for j in range(99) %}{% set n.a = [n.a] %}{% endfor %}{% endfor %}",
        120,
    );
    assert!(deep.code == 1 && deep.stderr.contains("more than 64 deep"), "{}", deep.stderr);
    // What it says goes to a terminal.
    let said = ask("{{ raise_exception('\\x1b[2J gone') }}", 120);
    assert!(said.code == 1 && said.stderr.contains(r"line 1: \u{1b}[2J gone"), "{}", said.stderr);
    assert!(!said.stderr.contains('\u{1b}'), "{}", said.stderr);
}

#[test]
fn a_draft_changes_no_text() {
    let (llama, other) = (model("llama.gguf"), model("qwen3moe.gguf"));
    let made = |more: &[&str]| {
        let flags = ["generate", &llama, "--device=vulkan", "--prompt=in the", "--max-tokens=20", "--seed=5"];
        run("halite", &[&flags[..], &["--ignore-end", "--json"], more].concat())
    };
    let plain = made(&[]);
    if plain.stdout.contains("NOT_FOUND") || plain.stdout.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", plain.stdout);
        return;
    }
    let json = |told: &common::Ran| -> Value {
        assert_eq!(told.code, 0, "{}{}", told.stdout, told.stderr);
        serde_json::from_str(&told.stdout).unwrap()
    };
    let plain = json(&plain);
    assert!(plain["draft"].is_null(), "{plain}");
    for (draft, is_right) in [(&llama, true), (&other, false)] {
        let draft = format!("--draft={draft}");
        for more in [&[&*draft][..], &[&draft, "--draft-tokens=2", "--repeat-penalty=1.2"]] {
            let drafted = json(&made(more));
            let (tokens, taken) = (drafted["draft"]["tokens"].as_u64(), drafted["draft"]["taken"].as_u64());
            assert!(tokens > Some(0) && taken <= tokens, "{drafted}");
            assert!(!is_right || taken > Some(0), "{drafted}");
            if more.len() == 1 {
                assert_eq!((&drafted["tokens"], &drafted["text"]), (&plain["tokens"], &plain["text"]));
            }
        }
    }
    let speed =
        ["bench", &llama, "--device=vulkan", "--generate", "tg12", "--benchmark_repetitions=1", "--json"];
    let told = json(&run("halite", &[&speed[..], &[&format!("--draft={llama}")]].concat()));
    assert!(
        told[0]["draft_taken"].as_u64() > Some(0) && told[0]["draft_taken"] == told[0]["draft_tokens"],
        "{told}"
    );
}

#[test]
fn wrong_usage_is_told() {
    let model = model("llama.gguf");
    let draft = format!("--draft={model}");
    for (arguments, code, wanted) in [
        (&["generate", &model][..], 2, "there is no prompt"),
        (&["generate", &model, "--prompt=x", "--prompt-file=y"], 2, "exclude each other"),
        (&["generate", &model, "--prompt=x", "--top-p=7"], 2, "--top-p=7 is not a number from 0 to 1"),
        (&["generate", &model, "--prompt=x", "--chat"], 1, "has no chat template"),
        (&["generate", &model, "--prompt=x", "--chat-template=chatml"], 2, "--chat makes the prompt one"),
        (&["generate", &model, "--prompt=x", "--chat", "--chat-template=no.jinja"], 1, "no.jinja"),
        (&["generate", "no.gguf", "--prompt=x"], 1, "no.gguf"),
        (&["generate", &model, "--prompt=x", "--draft-tokens=3"], 2, "--draft"),
        (&["bench", &model, "--generate", "pp8", "tg8", &draft], 2, "--draft goes with"),
        (&["bench", &model, "--generate", "tg8x2", &draft], 2, "--draft goes with"),
        (&["bench", &model, &draft], 2, "--generate"),
    ] {
        let ran = run("halite", arguments);
        assert!(
            ran.code == code && ran.stderr.contains(wanted),
            "{arguments:?}: {} {}",
            ran.code,
            ran.stderr
        );
    }
}

#[test]
fn a_file_tells_what_is_in_it() {
    let told = run("halite", &["dump", &model("gemma3.gguf")]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    for wanted in ["gemma3.block_count", "tokenizer.ggml.merges", "blk.5.ffn_down.weight", "Q5_0", "32 x 64"]
    {
        assert!(told.stdout.contains(wanted), "{wanted}\n{}", told.stdout);
    }
    let json = run("halite", &["dump", &model("gemma3.gguf"), "--json"]);
    let made: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(made["metadata"]["gemma3.block_count"], 6);
    assert_eq!(made["tensors"][0]["type"], "Q8_0");
}

#[test]
fn speed_is_told_as_llama_bench_tells_it() {
    let model = model("llama.gguf");
    let told = run(
        "halite",
        &[
            "bench",
            &model,
            "--device=vulkan",
            "--generate",
            "pp40",
            "tg3",
            "tg3x2",
            "--benchmark_repetitions=2",
        ],
    );
    if told.stderr.contains("NOT_FOUND") || told.stderr.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", told.stderr);
        return;
    }
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(
        told.stdout.contains("| llama")
            && told.stdout.contains("| pp40 |")
            && told.stdout.contains("| tg3 |")
            && told.stdout.contains("| tg3x2 |")
    );
    let samples = |more: &[&str]| -> Vec<usize> {
        let flags = ["bench", &model, "--device=vulkan", "--generate", "tg1", "--warmup=0", "--json"];
        let told: Value = serde_json::from_str(&run("halite", &[&flags[..], more].concat()).stdout).unwrap();
        let rows = told.as_array().unwrap().iter();
        rows.map(|row| row["samples_ts"].as_array().unwrap().len()).collect()
    };
    assert_eq!(samples(&[]), [5]);
    assert_eq!(samples(&["--benchmark_repetitions=2"]), [2]);
    let wrong = run("halite", &["bench", &model, "--generate", "xx1"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("pp512"), "{}", wrong.stderr);
}

#[test]
fn texts_follow_the_schema_of_a_file() {
    let (model, folder) = (model("llama.gguf"), tempfile::tempdir().unwrap());
    let file = folder.path().join("schema.json");
    let flag = format!("--json-schema={}", file.display());
    let made = |schema: &str, flags: &[&str]| {
        std::fs::write(&file, schema).unwrap();
        run("halite", &[&["generate", &model, "--device=vulkan", "--prompt=in", &flag], flags].concat())
    };
    let schema = r#"{"type": "object", "properties": {"a": {"enum": ["in the", 12]}, "b": {"type": "boolean"}}, "required": ["a", "b"]}"#;
    // What is wrong with a schema is told with its file, before the model is loaded.
    for (wrong, code, text) in [
        ("{", 1, "is no JSON"),
        (r#"{"not": {}}"#, 1, "'not'"),
        (r#"{"type": "string", "minLength": 2, "maxLength": 1}"#, 1, "schema.json: the JSON schema"),
    ] {
        let ran = made(wrong, &[]);
        assert!(ran.code == code && ran.stderr.contains(text) && ran.stdout.is_empty(), "{}", ran.stderr);
    }
    let flags = ["generate", &model, "--device=vulkan", "--prompt-file=-", "--json-schema=-"];
    let ran = run("halite", &flags);
    assert!(ran.code == 2 && ran.stderr.contains("either the prompt or the schema"), "{}", ran.stderr);
    let first = made(schema, &["--max-tokens=1"]);
    if first.stderr.contains("NOT_FOUND") || first.stderr.contains("UNAVAILABLE") {
        println!("SKIPPED: no Vulkan device: {}", first.stderr);
        return;
    }
    let texts = ["--choose-on=host", "--choose-on=device"].map(|place| {
        let ways = [["--temperature=0", "--json"], ["--seed=3", "--json"]];
        ways.map(|[way, json]| {
            let ran = made(schema, &["--max-tokens=90", place, way, json]);
            assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
            let told: Value = serde_json::from_str(&ran.stdout).unwrap();
            let text = told["text"].as_str().unwrap();
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(told["stop"] == "end" && value["b"].is_boolean(), "{told}");
            assert!(value["a"] == "in the" || value["a"] == 12, "{told}");
            text.to_owned()
        })
    });
    assert_eq!(texts[0], texts[1]);
}
