//! Calls of tools in what a model writes, in the forms that models are used to.

mod forms;
mod literals;
mod tool;

use self::forms::{MARKS, Mark};
pub use self::tool::{Callable, ToolCall};

/// Divides what a model writes: text that is told at once, and what may be calls, which is kept to the end. What comes in the same
/// order becomes the same, however it is divided into pieces.
#[derive(Debug, Default)]
pub struct CallScanner {
    held: String,
    state: State,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    /// Nothing but white space came.
    #[default]
    Begin,
    /// Text, of which the last part may be the beginning of a mark.
    Text,
    /// What may be calls.
    Calls,
}

impl CallScanner {
    /// One whose text is a call from the beginning on.
    pub fn of_calls() -> CallScanner {
        CallScanner { held: String::new(), state: State::Calls }
    }

    /// Whether a name of a control token is a part of calls: such tokens are text here.
    pub fn is_mark(text: &[u8]) -> bool {
        forms::is_mark(text)
    }

    /// Takes text, and gives that which is no call.
    pub fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        if self.state == State::Begin {
            self.state = match self.held.trim_start().chars().next() {
                None => return String::new(),
                Some('{' | '[') => State::Calls,
                Some(_) => State::Text,
            };
        }
        if self.state == State::Calls {
            return String::new();
        }
        if let Some((place, _)) = first_mark(&self.held) {
            self.state = State::Calls;
            let calls = self.held.split_off(place);
            return std::mem::replace(&mut self.held, calls);
        }
        let begins = |start: &usize| MARKS.iter().any(|mark| mark.begin.starts_with(&self.held[*start..]));
        let longest = MARKS.iter().map(|mark| mark.begin.len()).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest);
        let starts = (from..self.held.len()).filter(|start| self.held.is_char_boundary(*start));
        let keep = starts.into_iter().find(begins).unwrap_or(self.held.len());
        let kept = self.held.split_off(keep);
        std::mem::replace(&mut self.held, kept)
    }

    /// The rest: text, and calls of tools that there are.
    pub fn finish(self, tools: &dyn Callable) -> (String, Vec<ToolCall>) {
        let found = if self.state == State::Calls { parsed(&self.held, tools) } else { None };
        match found {
            Some((text, calls)) if !calls.is_empty() && calls.iter().all(|call| tools.has(&call.name)) => {
                (text, calls)
            }
            _ => (self.held, Vec::new()),
        }
    }
}

/// Where the first mark of calls is.
fn first_mark(text: &str) -> Option<(usize, &'static Mark)> {
    let places = MARKS.iter().filter_map(|mark| text.find(mark.begin).map(|place| (place, mark)));
    places.min_by_key(|(place, _)| *place)
}

/// The calls of a text, and what is beside them; `None` where it has something that only looks like one.
fn parsed(text: &str, tools: &dyn Callable) -> Option<(String, Vec<ToolCall>)> {
    let mut rest = text.trim();
    if first_mark(rest).is_none() {
        return Some((String::new(), forms::objects(rest)?));
    }
    let (mut beside, mut calls) = (String::new(), Vec::new());
    while let Some((place, mark)) = first_mark(rest) {
        beside.push_str(rest[..place].trim());
        let inner = &rest[place + mark.begin.len()..];
        // Some calls end where the next begins.
        let (body, behind) = match inner.split_once(mark.end).filter(|_| !mark.end.is_empty()) {
            Some((body, behind)) => (body, behind),
            None => inner.split_at(inner.find(mark.begin).unwrap_or(inner.len())),
        };
        calls.extend((mark.read)(body.trim(), tools)?);
        rest = behind;
    }
    beside.push_str(rest.trim());
    Some((beside, calls))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// `f` and `g`, whose argument `s` is a text.
    struct Tools;

    impl Callable for Tools {
        fn has(&self, name: &str) -> bool {
            ["f", "g"].contains(&name)
        }

        fn is_text(&self, name: &str, argument: &str) -> bool {
            self.has(name) && argument == "s"
        }
    }

    /// What is told of a text that comes in pieces of so many letters, and its calls.
    fn scanned(text: &str, size: usize) -> (String, Vec<(String, String)>) {
        let (mut scanner, mut told) = (CallScanner::default(), String::new());
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size) {
            told.push_str(&scanner.push(&piece.iter().collect::<String>()));
        }
        let (rest, calls) = scanner.finish(&Tools);
        (told + &rest, calls.into_iter().map(|own| (own.name, own.arguments)).collect())
    }

    /// A text, what is beside its calls, and these: `f` with a number, `g` without arguments, `f` with a text.
    const TEXTS: &[(&str, &str, &str)] = &[
        ("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", "", "f"),
        (
            "Let me <see>. <tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":{}}",
            "Let me <see>. ",
            "fg",
        ),
        (
            "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", \"arguments\": {}}]",
            "",
            "fg",
        ),
        ("[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}", "", "fg"),
        ("{\"name\": \"f\", \"parameters\": {\"a\": 1}}; {\"name\": \"g\", \"parameters\": {}}", "", "fg"),
        ("<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"a\": 1}}", "", "f"),
        ("  {\"name\": \"f\", \"arguments\": \"{\\\"a\\\":1}\"}", "", "f"),
        ("<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>", "", "f"),
        (
            "<tool_call>\n<function=f>\n<parameter=s>\n7 <b>\n\nx\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=g>\n</function>\n</tool_call>",
            "",
            "sg",
        ),
        ("I look.\n<function=f>{\"a\": 1}</function>", "I look.\n", "f"),
        ("<seed:tool_call><function=f><parameter=a>1</parameter></function></seed:tool_call>", "", "f"),
        (
            "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>7 <b>\n\nx</arg_value>\n</tool_call>\n<tool_call>g\n</tool_call>",
            "",
            "sg",
        ),
        (
            "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">1</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>",
            "",
            "fg",
        ),
        (
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"s\" string=\"true\">7 <b>\n\nx</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
            "",
            "s",
        ),
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "",
            "fg",
        ),
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "",
            "f",
        ),
        (
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
            "",
            "fg",
        ),
        (
            "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"a\" type=\"number\"<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool=\"g\" index=\"2\"<|sep|><|open|>json type=\"object\"<|sep|>{}<|close|>json<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
            "",
            "fg",
        ),
        ("<|tool_call_start|>[f(a=1), g()]<|tool_call_end|>Done.", "Done.", "fg"),
        ("[f(s='7 <b>\\n\\nx'), g()]", "", "sg"),
        ("<|tool_call>call:f{a:1}<tool_call|><|tool_call>call:g{}<tool_call|>", "", "fg"),
        ("<|tool_call>call:f{s:<|\"|>7 <b>\n\nx<|\"|>}<tool_call|>", "", "s"),
        ("<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]<|/tool_call|>", "", "f"),
        ("<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", "", "f"),
        ("<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]</TOOLCALL>", "", "f"),
        (
            "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {\"a\": 1}}\n]<|END_ACTION|>",
            "",
            "f",
        ),
        ("<|tools_prefix|>[{\"f\": {\"a\": 1}}, {\"g\": {}}]<|tools_suffix|>", "", "fg"),
        (
            "I look.\n<|channel|>commentary to=functions.f<|message|>{\"a\": 1}\n<|channel|>commentary to=functions.g <|constrain|>json<|message|>{}",
            "I look.\n",
            "fg",
        ),
    ];

    #[test]
    fn calls_are_found_in_all_forms() {
        for (text, beside, wanted) in TEXTS {
            let call = |letter: char| match letter {
                'f' => ("f".to_owned(), r#"{"a":1}"#.to_owned()),
                'g' => ("g".to_owned(), "{}".to_owned()),
                _ => ("f".to_owned(), r#"{"s":"7 <b>\n\nx"}"#.to_owned()),
            };
            let calls: Vec<_> = wanted.chars().map(call).collect();
            for size in [1, 3, 1000] {
                assert_eq!(scanned(text, size), ((*beside).to_owned(), calls.clone()), "{text}");
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_call_is_text() {
        for text in [
            "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
            "<tool_call>{\"name\": \"f\"",
            "<tool_call>f<arg_key>a</arg_key></tool_call>",
            "<function=f><parameter=a>1",
            "{\"a\": 1}",
            "[1, 2]",
            "[f(a=1), 2]",
            "[f(1)]",
            "[f(a=1",
            "a < b and <tool",
            "[TOOL_CALLS]",
            "<|tool_call>call:f{a:}<tool_call|>",
            "é<",
            "plain",
            "",
        ] {
            for size in [1, 2, 1000] {
                assert_eq!(scanned(text, size), (text.to_owned(), Vec::new()), "{text}");
            }
        }
        let deep = "[f(a=".to_owned() + &"[".repeat(100_000);
        assert_eq!(scanned(&deep, 100_000).1, []);
    }

    /// Texts of calls with letters lost, doubled and changed: none is lost, whatever they are.
    #[test]
    fn changed_texts_are_calls_or_text() {
        let mut state = 19u64;
        let mut draw = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % most.max(1)
        };
        let other: Vec<char> = "{}[]()<>|\"'\\=,:\n ｜1".chars().collect();
        for round in 0..20_000 {
            let mut letters: Vec<char> = TEXTS[round % TEXTS.len()].0.chars().collect();
            for _ in 0..=draw(3) {
                let place = draw(letters.len());
                match draw(4) {
                    0 => drop(letters.remove(place)),
                    1 => letters.insert(place, other[draw(other.len())]),
                    2 => letters[place] = other[draw(other.len())],
                    _ => letters.truncate(place + 1),
                }
                if letters.is_empty() {
                    letters.push('x');
                }
            }
            let text: String = letters.iter().collect();
            let (told, calls) = scanned(&text, 1 + draw(9));
            assert!(!calls.is_empty() || told == text, "{text:?} became {told:?}");
            for (_, arguments) in calls {
                assert!(
                    serde_json::from_str::<Value>(&arguments).is_ok() || text.contains(r#""arguments""#),
                    "{text}"
                );
            }
        }
    }
}
