//! Chat templates beside Jinja2, which transformers renders them with.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, path::PathBuf};

use halite_text::{ChatTemplate, Message};
use serde_json::Value as Json;

/// What Halite makes of a case.
fn rendered(case: &Json) -> Result<String, String> {
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let messages: Vec<_> = case["messages"].as_array().unwrap().iter().collect();
    let messages: Vec<_> = messages.iter().map(|pair| Message::new(text(&pair[0]), text(&pair[1]))).collect();
    let template = ChatTemplate::new(case["source"].as_str().unwrap(), "<s>", "</s>");
    template.and_then(|template| template.prompt(&messages)).map_err(|error| error.to_string())
}

/// Compares all cases of a file that `made_templates.py` made; gives how many were compared, and what differs.
fn compared(path: &PathBuf) -> (usize, Vec<String>) {
    let cases: Vec<Json> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut differ = Vec::new();
    for case in &cases {
        let made = rendered(case);
        // Where Jinja2 fails, with whatever words, so does Halite.
        let is_same = match (&made, case["text"].as_str()) {
            (Ok(made), Some(wanted)) => made == wanted,
            (Err(_), None) => true,
            _ => false,
        };
        if !is_same {
            let wanted = case["text"].as_str().or(case["error"].as_str()).unwrap();
            differ
                .push(format!("{} {}:\n  made   {made:?}\n  wanted {wanted:?}", case["file"], case["name"]));
        }
    }
    (cases.len(), differ)
}

#[test]
fn templates_give_what_jinja2_gives() {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/templates.json");
    let others = std::env::var_os("HALITE_TEMPLATES").map(PathBuf::from);
    for path in [own].into_iter().chain(others) {
        let (count, differ) = compared(&path);
        println!("{}: {count} compared, {} differ", path.display(), differ.len());
        assert!(differ.is_empty(), "{}", differ.join("\n"));
    }
}
