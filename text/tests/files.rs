//! Tokens and texts of the small tokenizers of `made_tokenizers.py`, beside those of the libraries that their kinds come from.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, path::PathBuf};

use halite_text::{TokenKind, Tokenizer};
use serde_json::Value as Json;

/// The fixtures; `HALITE_TOKENIZERS` names a folder with more of them.
fn folder() -> PathBuf {
    match std::env::var_os("HALITE_TOKENIZERS") {
        Some(folder) => folder.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data"),
    }
}

fn read(name: &str, suffix: &str) -> Tokenizer {
    let bytes = fs::read(folder().join(format!("{name}{suffix}"))).unwrap();
    match suffix {
        ".tiktoken" => {
            let first =
                u32::try_from(bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count())
                    .unwrap();
            let specials = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"];
            let specials: Vec<_> =
                specials.iter().zip(first..).map(|(text, id)| ((*text).to_owned(), id)).collect();
            Tokenizer::from_tiktoken(&bytes, name.strip_prefix("tiktoken-").unwrap(), &specials).unwrap()
        }
        _ => Tokenizer::from_file_bytes(&bytes.into()).unwrap(),
    }
}

fn tokens(case: &Json, key: &str) -> Option<Vec<u32>> {
    let all = case[key].as_array()?;
    Some(all.iter().map(|token| u32::try_from(token.as_u64().unwrap()).unwrap()).collect())
}

/// Tokens that stand for unknown text in some of the tokenizers.
const UNKNOWN: &[&str] = &["[UNK]", "<unk>", "<s>", "<|im_end|>"];

/// Where tokens begin to differ, and some of them.
fn shown(tokenizer: &Tokenizer, found: &[u32], wanted: &[u32]) -> String {
    let same = wanted.iter().zip(found).take_while(|(one, other)| one == other).count();
    let show = |all: &[u32]| {
        let all = all.iter().skip(same.saturating_sub(1)).take(8);
        all.map(|id| tokenizer.decode(&[*id], true)).collect::<Vec<_>>()
    };
    format!("at {same}\n  found  {:?}\n  wanted {:?}", show(found), show(wanted))
}

/// All differences of a tokenizer's cases.
fn differences(name: &str, suffix: &str) -> Vec<String> {
    let tokenizer = read(name, suffix);
    let cases: Json =
        serde_json::from_slice(&fs::read(folder().join(format!("{name}.cases.json"))).unwrap()).unwrap();
    let (mut all, mut others) = (Vec::new(), 0);
    for case in cases.as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let plain = tokenizer.encode_bare(text, false);
        // What stands for unknown text may be a control token; what texts name may not. In the library, some names may.
        let is_named = |id: &u32| {
            tokenizer.vocabulary().kind(*id) == Some(TokenKind::Control)
                && !UNKNOWN.contains(&tokenizer.decode(&[*id], true).as_str())
        };
        if plain.iter().any(is_named) {
            all.push(format!("{name} {text:?} becomes a control token"));
        }
        let names_unknown = ["t5", "xlmr"].contains(&name) && text.contains("<unk>");
        let differs = names_unknown || tokens(case, "plain").is_some_and(|all| all.iter().any(is_named));
        others += usize::from(differs);
        let mut check = |key: &str, found: Vec<u32>| {
            if let Some(wanted) = tokens(case, key).filter(|wanted| *wanted != found) {
                let shown = shown(&tokenizer, &found, &wanted);
                all.push(format!("{name} {key} {text:?} {shown}"));
            }
        };
        check("control", tokenizer.encode_bare(text, true));
        if !differs {
            check("plain", plain);
            check("whole", tokenizer.encode(text, false));
        }
        let ids = tokens(case, "control").or_else(|| tokens(case, "plain")).unwrap();
        for (key, with_control) in [("decoded", true), ("seen", false)] {
            let found = tokenizer.decode(&ids, with_control);
            if let Some(wanted) = case[key].as_str().filter(|wanted| *wanted != found) {
                all.push(format!("{name} {key} {text:?}\n  found  {found:?}\n  wanted {wanted:?}"));
            }
        }
    }
    let texts = cases.as_array().unwrap().len();
    println!("{name}: {texts} texts, {} differences, {others} where names become control tokens", all.len());
    assert!(others * 8 <= texts, "{name}: of {others} of {texts} texts names become control tokens");
    all
}

#[test]
fn texts_become_the_tokens_of_the_libraries_and_back() {
    let mut wrong = Vec::new();
    let mut names = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".cases.json") else { continue };
        let suffix = [".json", ".model", ".tiktoken"]
            .into_iter()
            .find(|suffix| folder().join(format!("{name}{suffix}")).is_file());
        let own = differences(name, suffix.unwrap());
        own.iter().take(4).for_each(|own| println!("{own}"));
        names += 1;
        wrong.extend(own);
    }
    let least = if std::env::var_os("HALITE_TOKENIZERS").is_some() { 1 } else { 23 };
    assert!(names >= least, "there are {names} tokenizers");
    assert!(wrong.is_empty(), "{} differences, such as\n{}", wrong.len(), wrong[0]);
}
