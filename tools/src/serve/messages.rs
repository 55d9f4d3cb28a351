//! The messages of a conversation: who says what, and calls of tools with what they gave.

use halite::Message;
use serde_json::{Value, json};

use super::{error::Refusal, fields::Fields};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// What a message has. Of the last row what clients send back of answers, if there is nothing in it.
const KNOWN: &[&str] = &["role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content"];
const EMPTY: &[&str] = &["refusal", "annotations", "audio", "function_call"];

fn wrong(text: String) -> Refusal {
    Refusal::field("messages", text)
}

/// The messages of a request.
pub(super) fn read(fields: &Fields) -> Result<Vec<Message>> {
    let Some(Value::Array(all)) = fields.get("messages") else {
        return Err(wrong("'messages', a list of messages, is missing".to_owned()));
    };
    if all.is_empty() {
        return Err(wrong("'messages' is empty".to_owned()));
    }
    all.iter().enumerate().map(|(place, message)| one(place, message)).collect()
}

fn one(place: usize, message: &Value) -> Result<Message> {
    let fields = message.as_object().ok_or_else(|| wrong(format!("message {place} is no object")))?;
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    for (name, value) in fields {
        let is_known = KNOWN.contains(&name.as_str());
        if !(is_known || EMPTY.contains(&name.as_str()) && is_empty(value)) {
            let name: String = name.chars().take(64).collect();
            return Err(
                wrong(format!("message {place} has '{name}', which is not supported")).code("unsupported")
            );
        }
    }
    let text = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let role = text("role").and_then(Value::as_str);
    let role = role.ok_or_else(|| wrong(format!("message {place} has no 'role'")))?;
    let calls = match text("tool_calls") {
        Some(Value::Array(all)) if !all.is_empty() => Some(calls(all, place)?),
        Some(Value::Array(_)) | None => None,
        Some(_) => return Err(wrong(format!("'tool_calls' of message {place} is no list"))),
    };
    let content = match text("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts_of(parts, place)?,
        None if calls.is_some() => String::new(),
        _ => return Err(wrong(format!("message {place} has no 'content'"))),
    };
    // Newer models of OpenAI's have another name for it, which templates do not know.
    let mut made = Message::new(if role == "developer" { "system" } else { role }, content);
    if let Some(calls) = calls {
        made = made.with("tool_calls", calls.to_string());
    }
    for name in ["name", "tool_call_id", "reasoning_content"] {
        match text(name) {
            Some(value) if value.is_string() => made = made.with(name, value.to_string()),
            Some(_) => return Err(wrong(format!("'{name}' of message {place} is no text"))),
            None => {}
        }
    }
    Ok(made)
}

/// Calls that a model made before, as templates want them: arguments are objects.
fn calls(all: &[Value], place: usize) -> Result<Value> {
    let wrong = || wrong(format!("a call of message {place} has no 'function' with 'name' and 'arguments'"));
    let one = |call: &Value| {
        let name = call.pointer("/function/name").and_then(Value::as_str).ok_or_else(wrong)?;
        let arguments = match call.pointer("/function/arguments").ok_or_else(wrong)? {
            // What is no JSON stays the text that it is.
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.clone())),
            other => other.clone(),
        };
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        Ok(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
    };
    all.iter().map(one).collect::<Result<Vec<_>>>().map(Value::Array)
}

/// The text of a message that comes in parts.
fn parts_of(parts: &[Value], place: usize) -> Result<String> {
    let part = |part: &Value| match (part.get("type").and_then(Value::as_str), part.get("text")) {
        (Some("text"), Some(Value::String(text))) => Ok(text.clone()),
        (kind, _) => {
            let kind = kind.unwrap_or("nothing");
            Err(wrong(format!("message {place} has a part that is {kind}; there is text")))
        }
    };
    Ok(parts.iter().map(part).collect::<Result<Vec<_>>>()?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(value: Value) -> Result<Vec<Message>> {
        read(&Fields::read(json!({"messages": value}).to_string().as_bytes()).unwrap())
    }

    #[test]
    fn messages_are_texts_parts_and_calls() {
        let parts = json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]);
        assert_eq!(messages(parts).unwrap(), [Message::new("user", "ab")]);
        assert!(messages(json!([{"role": "user", "content": [{"type": "image_url"}]}])).is_err());
        let calls = json!([
            {"role": "developer", "content": "x"},
            {"role": "assistant", "content": null, "refusal": null,
             "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "2"},
        ]);
        let made = messages(calls).unwrap();
        assert_eq!(made[0], Message::new("system", "x"));
        let wanted = r#"[{"id":"c1","type":"function","function":{"name":"f","arguments":{"a":1}}}]"#;
        assert_eq!(made[1], Message::new("assistant", "").with("tool_calls", wanted));
        assert_eq!(made[2], Message::new("tool", "2").with("tool_call_id", "\"c1\""));
        for wrong in [
            json!([{"role": "user"}]),
            json!([{"role": "assistant", "tool_calls": [{"function": {}}]}]),
            json!([{"role": "user", "content": "x", "audio": {"id": "1"}}]),
            json!([]),
            json!(["x"]),
        ] {
            assert!(messages(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
