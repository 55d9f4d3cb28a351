//! What models write, `data/answers`: thoughts are told apart and calls are found in the same way, however a text is cut.

use std::{fs, path::Path};

use halite_text::{CallScanner, Callable, Divided, Thoughts, ToolCall};

/// Tools with the names that the texts have.
struct Tools;

impl Callable for Tools {
    fn has(&self, name: &str) -> bool {
        ["f", "g"].contains(&name)
    }

    fn is_text(&self, _: &str, argument: &str) -> bool {
        argument == "s"
    }
}

/// Thoughts, an answer and calls, of a text that comes in pieces, as a server takes them.
fn made(prompt: &str, pieces: &[&str]) -> (String, String, Vec<ToolCall>) {
    let (mut thoughts, mut scanner) = (Thoughts::new(prompt, |_| true), CallScanner::default());
    let (mut thought, mut answer) = (String::new(), String::new());
    let mut add = |part: Divided| {
        thought.push_str(&part.thoughts);
        answer.push_str(&scanner.push(&part.answer));
    };
    pieces.iter().for_each(|piece| add(thoughts.push(piece)));
    add(thoughts.finish());
    let (rest, calls) = scanner.finish(&Tools);
    (thought, answer + &rest, calls)
}

fn texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/answers");
    let files = fs::read_dir(folder).expect("the folder is part of the crate");
    let mut paths: Vec<_> = files.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).expect("it is text")).collect()
}

const PROMPTS: [&str; 4] = ["hi", "hi<think>\n", "hi<|start|>assistant", "hi<|open|>think<|sep|>"];

#[test]
fn every_cut_of_a_text_makes_the_same() {
    let texts = texts();
    assert!(texts.len() > 35);
    let (mut calls, mut thoughts) = (0, 0);
    for prompt in PROMPTS {
        // One behind the other, too: thoughts in front of calls.
        let joined = texts.iter().zip(texts.iter().rev()).map(|(one, other)| format!("{one}\n{other}"));
        for text in texts.iter().cloned().chain(joined) {
            let whole = made(prompt, &[&text]);
            (calls, thoughts) = (calls + whole.2.len(), thoughts + usize::from(!whole.0.is_empty()));
            let letters: Vec<&str> = text.split_inclusive(|_: char| true).collect();
            assert_eq!(made(prompt, &letters), whole, "{text:?} letter by letter behind {prompt:?}");
            for (at, _) in text.char_indices() {
                let (front, behind) = text.split_at(at);
                assert_eq!(made(prompt, &[front, behind]), whole, "{front:?}, {behind:?} behind {prompt:?}");
            }
        }
    }
    assert!(calls > 100 && thoughts > 50, "{calls} calls, {thoughts} with thoughts");
}

/// Any two cuts of the shorter ones.
#[test]
fn two_cuts_of_a_text_make_the_same() {
    for text in texts().iter().filter(|text| text.len() < 120) {
        for prompt in PROMPTS {
            let whole = made(prompt, &[text]);
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            for (number, first) in places.iter().enumerate() {
                for second in &places[number..] {
                    let pieces = [&text[..*first], &text[*first..*second], &text[*second..]];
                    assert_eq!(made(prompt, &pieces), whole, "{pieces:?} behind {prompt:?}");
                }
            }
        }
    }
}
