//! What models write: thoughts told apart from answers, and calls of tools found in these. However a text is divided into pieces, the same
//! comes of it, and nothing of it is lost.
#![no_main]

use halite_text::{ToolCall, CallScanner, Callable, Divided, Thoughts};
use libfuzzer_sys::fuzz_target;

/// Prompts: without marks, and with the beginnings that templates end with.
const PROMPTS: &[&str] = &[
    "hi",
    "hi<think>\n",
    "hi[THINK]",
    "hi<|start|>assistant",
    "hi<|think|>",
    "hi<|open|>think<|sep|>",
    "hi<|open|>response<|sep|>",
    "hi<thought>\n",
];

/// Tools with short names, whose arguments are texts where their names begin with `s`.
struct Tools;

impl Callable for Tools {
    fn has(&self, name: &str) -> bool {
        name.len() <= 2
    }

    fn is_text(&self, _: &str, argument: &str) -> bool {
        argument.starts_with('s')
    }
}

/// What becomes of a text.
#[derive(Debug, PartialEq)]
struct Made {
    thoughts: String,
    answer: String,
    calls: Vec<ToolCall>,
}

fn made(thoughts: &Thoughts, pieces: &[&str], is_call: bool) -> Made {
    let mut thoughts = thoughts.clone();
    let mut scanner = if is_call { CallScanner::of_calls() } else { CallScanner::default() };
    let (mut made, mut told) =
        (Made { thoughts: String::new(), answer: String::new(), calls: Vec::new() }, String::new());
    let mut add = |part: Divided| {
        told.push_str(&part.thoughts);
        made.answer.push_str(&scanner.push(&part.answer));
    };
    pieces.iter().for_each(|piece| add(thoughts.push(piece)));
    add(thoughts.finish());
    let (rest, calls) = scanner.finish(&Tools);
    made.answer.push_str(&rest);
    (made.thoughts, made.calls) = (told, calls);
    made
}

/// Calls are found in answers that have nothing of thoughts; where none is, the scanner gives back what it was given.
fn none_is_lost(text: &str) {
    let mut scanner = CallScanner::default();
    let told = scanner.push(text);
    let (rest, calls) = scanner.finish(&Tools);
    assert!(!calls.is_empty() || told + &rest == text);
}

// The first byte chooses the prompt and what is known of marks, the second how long pieces are at most.
fuzz_target!(|data: &[u8]| {
    let [first, second, text @ ..] = data else { return };
    let text = String::from_utf8_lossy(text);
    let prompt = PROMPTS[usize::from(*first) % PROMPTS.len()];
    let known = first / 64;
    let thoughts = Thoughts::new(prompt, |mark| match known {
        0 => true,
        1 => mark.starts_with('<') && !mark.starts_with("<|"),
        2 => mark.starts_with("<|"),
        _ => false,
    });
    let is_call = first & 32 != 0;
    let whole = made(&thoughts, &[&text], is_call);
    let letters: Vec<&str> = text.split_inclusive(|_: char| true).collect();
    assert_eq!(made(&thoughts, &letters, is_call), whole, "{text:?} behind {prompt:?}, letter by letter");
    // Pieces whose lengths go through all up to the longest.
    let (mut pieces, mut from, most) = (Vec::new(), 0, usize::from(second % 16) + 1);
    for (place, (at, letter)) in text.char_indices().enumerate() {
        let end = at + letter.len_utf8();
        if place % most == most / 2 || end == text.len() {
            pieces.push(&text[from..end]);
            from = end;
        }
    }
    assert_eq!(made(&thoughts, &pieces, is_call), whole, "{text:?} behind {prompt:?} as {pieces:?}");
    // Cut in two at a place: all of them in turn, for short texts.
    if text.len() <= 256 {
        for (at, _) in text.char_indices() {
            let (front, behind) = text.split_at(at);
            assert_eq!(
                made(&thoughts, &[front, behind], is_call),
                whole,
                "{front:?} and {behind:?} behind {prompt:?}"
            );
        }
    }
    let unchanged = made(&thoughts.clone().whole(), &letters, false);
    assert!(unchanged.thoughts.is_empty());
    let mut plain = thoughts.whole();
    assert_eq!(plain.push(&text).answer + &plain.finish().answer, text);
    none_is_lost(&text);
});
