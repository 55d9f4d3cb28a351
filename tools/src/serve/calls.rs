//! Calls of tools in what a model writes, in the forms that models are used to.

use serde_json::{Value, json};

use super::tools::Tools;

const TAG: &str = "<tool_call>";
const TAG_END: &str = "</tool_call>";
const LIST: &str = "[TOOL_CALLS]";
const ARGUMENTS: &str = "[ARGS]";
const PYTHON: &str = "<|python_tag|>";
/// What calls begin with, where it is no JSON.
const MARKS: [&str; 3] = [TAG, LIST, PYTHON];

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

impl Call {
    /// As an answer has it.
    pub fn json(&self, id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}})
    }
}

/// Whether a name of a control token is a part of calls: such tokens are text here.
pub(super) fn is_mark(text: &[u8]) -> bool {
    let all = MARKS.iter().chain(&[TAG_END, ARGUMENTS]);
    all.into_iter().any(|mark| mark.as_bytes() == text)
}

/// Divides what a model writes: text that is told at once, and what may be calls, which is kept to the end.
#[derive(Debug, Default)]
pub(super) struct Scanner {
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

impl Scanner {
    /// One whose text is a call from the beginning on.
    pub fn of_calls() -> Scanner {
        Scanner { held: String::new(), state: State::Calls }
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
        if let Some(place) = MARKS.iter().filter_map(|mark| self.held.find(mark)).min() {
            self.state = State::Calls;
            let calls = self.held.split_off(place);
            return std::mem::replace(&mut self.held, calls);
        }
        let begins = |start: &usize| MARKS.iter().any(|mark| mark.starts_with(&self.held[*start..]));
        let longest = MARKS.iter().map(|mark| mark.len()).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest);
        let starts = self.held.char_indices().map(|(start, _)| start).filter(|start| *start >= from);
        let keep = starts.into_iter().find(begins).unwrap_or(self.held.len());
        let kept = self.held.split_off(keep);
        std::mem::replace(&mut self.held, kept)
    }

    /// The rest: text, and calls of tools that there are.
    pub fn finish(self, tools: &Tools) -> (String, Vec<Call>) {
        let found = if self.state == State::Calls { parsed(&self.held) } else { None };
        match found {
            Some((text, calls)) if !calls.is_empty() && calls.iter().all(|call| tools.has(&call.name)) => {
                (text, calls)
            }
            _ => (self.held, Vec::new()),
        }
    }
}

/// The calls of a text, and what is beside them; `None` where it has something that only looks like one.
fn parsed(text: &str) -> Option<(String, Vec<Call>)> {
    let trimmed = text.trim();
    if trimmed.contains(TAG) {
        return in_tags(trimmed);
    }
    if let Some(rest) = trimmed.strip_prefix(LIST) {
        let mut calls = Vec::new();
        for part in rest.split(LIST) {
            match part.split_once(ARGUMENTS) {
                Some((name, arguments)) => {
                    let arguments: Value = serde_json::from_str(arguments.trim()).ok()?;
                    calls.push(Call { name: name.trim().to_owned(), arguments: arguments.to_string() });
                }
                None => calls.extend(values(part)?),
            }
        }
        return Some((String::new(), calls));
    }
    Some((String::new(), values(trimmed.strip_prefix(PYTHON).unwrap_or(trimmed))?))
}

fn in_tags(text: &str) -> Option<(String, Vec<Call>)> {
    let (mut beside, mut calls) = (String::new(), Vec::new());
    let mut parts = text.split(TAG);
    beside.push_str(parts.next().unwrap_or_default().trim());
    for part in parts {
        let (call, behind) = part.split_once(TAG_END).unwrap_or((part, ""));
        calls.extend(values(call)?);
        beside.push_str(behind.trim());
    }
    Some((beside, calls))
}

/// Calls that are objects, or lists of them, one behind the other.
fn values(text: &str) -> Option<Vec<Call>> {
    let mut calls = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next()?.ok()? {
            Value::Array(all) => all.iter().try_for_each(|own| call(own).map(|own| calls.push(own)))?,
            own => calls.push(call(&own)?),
        }
        rest = rest[values.byte_offset()..]
            .trim_start_matches(|letter: char| letter.is_whitespace() || letter == ';');
    }
    Some(calls)
}

fn call(value: &Value) -> Option<Call> {
    let value = value.get("function").filter(|own| own.is_object()).unwrap_or(value);
    let arguments = match value.get("arguments").or_else(|| value.get("parameters"))? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(Call { name: value.get("name")?.as_str()?.to_owned(), arguments })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fields::Fields;

    fn tools() -> Tools {
        let function = |name: &str| json!({"type": "function", "function": {"name": name}});
        let body = json!({"tools": [function("f"), function("g")]}).to_string();
        Tools::read(&Fields::read(body.as_bytes()).unwrap()).unwrap().unwrap()
    }

    /// What is told of a text that comes in pieces of so many letters, and its calls.
    fn scanned(text: &str, size: usize) -> (String, Vec<(String, String)>) {
        let (mut scanner, mut told) = (Scanner::default(), String::new());
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size) {
            told.push_str(&scanner.push(&piece.iter().collect::<String>()));
        }
        let (rest, calls) = scanner.finish(&tools());
        (told + &rest, calls.into_iter().map(|own| (own.name, own.arguments)).collect())
    }

    #[test]
    fn calls_are_found_in_all_forms() {
        let one = ("f".to_owned(), r#"{"a":1}"#.to_owned());
        let two = ("g".to_owned(), "{}".to_owned());
        for (text, beside, calls) in [
            ("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", "", vec![&one]),
            (
                "Let me <see>. <tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":{}}",
                "Let me <see>. ",
                vec![&one, &two],
            ),
            (
                "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", \"arguments\": {}}]",
                "",
                vec![&one, &two],
            ),
            ("[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}", "", vec![&one, &two]),
            (
                "{\"name\": \"f\", \"parameters\": {\"a\": 1}}; {\"name\": \"g\", \"parameters\": {}}",
                "",
                vec![&one, &two],
            ),
            (
                "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"a\": 1}}",
                "",
                vec![&one],
            ),
            ("  {\"name\": \"f\", \"arguments\": \"{\\\"a\\\":1}\"}", "", vec![&one]),
        ] {
            for size in [1, 3, 1000] {
                let (told, found) = scanned(text, size);
                assert_eq!(
                    (told.as_str(), found.iter().collect::<Vec<_>>()),
                    (beside, calls.clone()),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_call_is_text() {
        for text in [
            "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
            "<tool_call>{\"name\": \"f\"",
            "{\"a\": 1}",
            "[1, 2]",
            "a < b and <tool",
            "[TOOL_CALLS]",
            "é<",
            "plain",
            "",
        ] {
            for size in [1, 2, 1000] {
                assert_eq!(scanned(text, size), (text.to_owned(), Vec::new()), "{text}");
            }
        }
    }
}
