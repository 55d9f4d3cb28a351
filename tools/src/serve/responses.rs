//! Requests of OpenAI's Responses interface, read as requests of a conversation: they ask for the same in other words.

use serde_json::{Map, Value, json};

use super::{
    error::Refusal,
    fields::{Fields, unsupported},
    request::EFFORT,
};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Fields that mean the same in both, with their names in both.
const SAME: &[(&str, &str)] = &[
    ("model", "model"),
    ("max_output_tokens", "max_completion_tokens"),
    ("parallel_tool_calls", "parallel_tool_calls"),
    ("stream", "stream"),
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    // What OpenAI does not have.
    ("frequency_penalty", "frequency_penalty"),
    ("logit_bias", "logit_bias"),
    ("min_p", "min_p"),
    ("presence_penalty", "presence_penalty"),
    ("reasoning_format", "reasoning_format"),
    ("repeat_last", "repeat_last"),
    ("repeat_penalty", "repeat_penalty"),
    ("seed", "seed"),
    ("stop", "stop"),
    ("top_k", "top_k"),
];
/// Fields that are read here.
const OWN: &[&str] =
    &["input", "instructions", "reasoning", "stream_options", "text", "tool_choice", "tools"];
/// Fields that say nothing about an answer.
const SAYS_NOTHING: &[&str] = &[
    "metadata",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "user",
];
/// Fields that are refused unless they ask for what is done anyway.
const REFUSED: &[&str] = &[
    "background",
    "context_management",
    "conversation",
    "include",
    "max_tool_calls",
    "moderation",
    "previous_response_id",
    "prompt",
    "service_tier",
    "store",
    "top_logprobs",
    "truncation",
];
/// What names in errors of conversations are here.
const RENAMED: &[(&str, &str)] = &[
    ("messages", "input"),
    ("max_completion_tokens", "max_output_tokens"),
    ("response_format", "text"),
    (EFFORT, "reasoning"),
];

/// What an answer repeats of its request.
#[derive(Clone, Debug)]
pub(super) struct Asked(pub Map<String, Value>);

/// A request as that of a conversation, and what its answer repeats.
pub(super) fn conversation(fields: &Fields) -> Result<(Fields, Asked)> {
    let same: Vec<&str> = SAME.iter().map(|(name, _)| *name).collect();
    fields.check_names(&[&same, OWN, SAYS_NOTHING, REFUSED])?;
    refuse_others(fields)?;
    let mut made = Map::new();
    for (name, other) in SAME {
        if let Some(value) = fields.get(name) {
            made.insert((*other).to_owned(), value.clone());
        }
    }
    let mut messages = Vec::new();
    if let Some(text) = fields.text("instructions")? {
        messages.push(json!({"role": "system", "content": text}));
    }
    match fields.get("input") {
        Some(Value::String(text)) => messages.push(json!({"role": "user", "content": text})),
        Some(Value::Array(all)) => {
            for (place, item) in all.iter().enumerate() {
                read_item(&mut messages, place, item)?;
            }
        }
        _ => return Err(wrong("'input', a text or a list, is missing")),
    }
    made.insert("messages".to_owned(), messages.into());
    let format = format(fields)?;
    made.insert("response_format".to_owned(), format_of_chat(&format));
    let tools = tools(fields)?;
    if !tools.is_empty() {
        made.insert("tools".to_owned(), tools.into());
    }
    if let Some(effort) = fields.get("reasoning").and_then(|own| own.get("effort")) {
        made.insert(EFFORT.to_owned(), effort.clone());
    }
    if let Some(choice) = fields.get("tool_choice") {
        made.insert("tool_choice".to_owned(), choice_of_chat(choice)?);
    }
    Ok((Fields::of(made), asked(fields, format)))
}

/// An error of a conversation, with the names that fields have here.
pub(super) fn renamed(refusal: Refusal) -> Refusal {
    RENAMED.iter().fold(refusal, |refusal, (from, to)| refusal.renamed(from, to))
}

fn wrong(text: impl Into<String>) -> Refusal {
    Refusal::field("input", text)
}

/// Refuses what OpenAI's service does and this one does not.
fn refuse_others(fields: &Fields) -> Result<()> {
    let nothing = || Value::Array(Vec::new());
    fields.refuse(&[
        ("background", false.into()),
        ("context_management", nothing()),
        ("conversation", Value::Null),
        ("include", nothing()),
        ("max_tool_calls", Value::Null),
        ("moderation", Value::Null),
        ("prompt", Value::Null),
        ("top_logprobs", 0.into()),
        ("truncation", "disabled".into()),
    ])?;
    for name in ["previous_response_id", "store"] {
        if fields.get(name).is_some_and(|value| *value != Value::Bool(false)) {
            return Err(unsupported(
                name,
                "is not supported: answers are not kept. Send what was said before as 'input'",
            ));
        }
    }
    let reasoning = fields.get("reasoning").and_then(Value::as_object);
    if reasoning.is_some_and(|own| own.iter().any(|(name, value)| !value.is_null() && name != "effort")) {
        return Err(unsupported(
            "reasoning",
            "has something other than 'effort', which is not supported; leave it out",
        ));
    }
    match fields.text("service_tier")? {
        None | Some("auto" | "default") => Ok(()),
        Some(_) => Err(unsupported("service_tier", "is not supported; leave it out")),
    }
}

/// An item of what was said before, as a message, or as a part of the one before.
fn read_item(messages: &mut Vec<Value>, place: usize, item: &Value) -> Result<()> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let need =
        |name: &str| text(name).ok_or_else(|| wrong(format!("item {place} of 'input' has no '{name}'")));
    match text("type") {
        None | Some("message") => {
            let (role, content) = (need("role")?, content(place, item.get("content"))?);
            // Thoughts and what was said behind them are one message.
            let thoughts = messages.last_mut().filter(|last| role == "assistant" && has_only_thoughts(last));
            match thoughts {
                Some(last) => last["content"] = content.into(),
                None => messages.push(json!({"role": role, "content": content})),
            }
        }
        Some("reasoning") => {
            let thoughts = content_of_thoughts(place, item.get("content"))?;
            messages.push(json!({"role": "assistant", "content": "", "reasoning_content": thoughts}));
        }
        Some("function_call") => {
            let function = json!({"name": need("name")?, "arguments": need("arguments")?});
            let call = json!({"id": need("call_id")?, "type": "function", "function": function});
            // Calls and what was said with them are one message.
            let last = messages.last_mut().filter(|last| last["role"] == "assistant");
            match last {
                Some(last) => match last.get_mut("tool_calls").and_then(Value::as_array_mut) {
                    Some(calls) => calls.push(call),
                    None => last["tool_calls"] = json!([call]),
                },
                None => messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]})),
            }
        }
        Some("function_call_output") => {
            let content = content(place, item.get("output"))?;
            messages.push(json!({"role": "tool", "tool_call_id": need("call_id")?, "content": content}));
        }
        Some(kind) => {
            let text = format!(
                "has an item {place} of the type {kind}; there are message, reasoning, function_call and function_call_output"
            );
            return Err(unsupported("input", &text));
        }
    }
    Ok(())
}

/// Whether a message is nothing but what a model thought.
fn has_only_thoughts(message: &Value) -> bool {
    message["content"] == ""
        && message.get("reasoning_content").is_some()
        && message.get("tool_calls").is_none()
}

/// What a model thought.
fn content_of_thoughts(place: usize, content: Option<&Value>) -> Result<String> {
    let part = |part: &Value| match (part.get("type").and_then(Value::as_str), part.get("text")) {
        (Some("reasoning_text"), Some(Value::String(text))) => Ok(text.clone()),
        _ => Err(wrong(format!("item {place} of 'input' has a part that is no reasoning_text"))),
    };
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::Array(parts)) => Ok(parts.iter().map(part).collect::<Result<Vec<_>>>()?.concat()),
        Some(_) => Err(wrong(format!("'content' of item {place} of 'input' is no list"))),
    }
}

/// The text of an item.
fn content(place: usize, content: Option<&Value>) -> Result<String> {
    let part = |part: &Value| match (part.get("type").and_then(Value::as_str), part.get("text")) {
        (Some("input_text" | "output_text" | "text"), Some(Value::String(text))) => Ok(text.clone()),
        (kind, _) => {
            let kind = kind.unwrap_or("nothing");
            let text = format!(
                "item {place} of 'input' has a part that is {kind}; there are input_text and output_text"
            );
            Err(wrong(text).code("unsupported"))
        }
    };
    match content {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => Ok(parts.iter().map(part).collect::<Result<Vec<_>>>()?.concat()),
        _ => Err(wrong(format!("item {place} of 'input' has no content"))),
    }
}

/// What the answer has to follow, as the request says it.
fn format(fields: &Fields) -> Result<Value> {
    let usual = json!({"type": "text"});
    let Some(text) = fields.get("text") else { return Ok(usual) };
    let text = text.as_object().ok_or_else(|| Refusal::field("text", "'text' is no object"))?;
    for (name, value) in text {
        let is_known = name == "format" || value.is_null() || name == "verbosity" && value == "medium";
        if !is_known {
            let name: String = name.chars().take(64).collect();
            return Err(unsupported("text", &format!("has '{name}', which is not supported; leave it out")));
        }
    }
    Ok(text.get("format").filter(|format| !format.is_null()).cloned().unwrap_or(usual))
}

/// The same in a conversation, where the name and the schema are a part of their own.
fn format_of_chat(format: &Value) -> Value {
    match format.get("type").and_then(Value::as_str) {
        Some("json_schema") => json!({"type": "json_schema", "json_schema": format}),
        _ => format.clone(),
    }
}

/// Tools as conversations have them: a function is a part of its own.
fn tools(fields: &Fields) -> Result<Vec<Value>> {
    let wrong = || Refusal::field("tools", "'tools' is no list of tools");
    let all = match fields.get("tools") {
        None => return Ok(Vec::new()),
        Some(Value::Array(all)) => all,
        Some(_) => return Err(wrong()),
    };
    let one = |tool: &Value| {
        let mut function = tool.as_object().cloned().ok_or_else(wrong)?;
        let kind = function.remove("type").unwrap_or(Value::Null);
        Ok(json!({"type": kind, "function": function}))
    };
    all.iter().map(one).collect()
}

/// Which tool has to be called, as conversations have it.
fn choice_of_chat(choice: &Value) -> Result<Value> {
    match choice.get("name").and_then(Value::as_str) {
        Some(name) if choice.get("type").and_then(Value::as_str) == Some("function") => {
            Ok(json!({"type": "function", "function": {"name": name}}))
        }
        _ if choice.is_string() => Ok(choice.clone()),
        _ => Err(unsupported("tool_choice", "is none of auto, none, required and a function")),
    }
}

/// What the answer repeats: what was asked for, or what is usual.
fn asked(fields: &Fields, format: Value) -> Asked {
    let or = |name: &str, usual: Value| (name.to_owned(), fields.get(name).cloned().unwrap_or(usual));
    let mut all: Map<String, Value> = [
        or("instructions", Value::Null),
        or("max_output_tokens", Value::Null),
        or("metadata", json!({})),
        or("parallel_tool_calls", true.into()),
        or("temperature", 1.0.into()),
        or("tool_choice", "auto".into()),
        or("tools", json!([])),
        or("top_p", 1.0.into()),
        or("user", Value::Null),
    ]
    .into_iter()
    .collect();
    let effort = fields.get("reasoning").and_then(|own| own.get("effort"));
    let fixed = json!({
        "background": false, "previous_response_id": null, "reasoning": {"effort": effort, "summary": null},
        "service_tier": "default", "store": false, "text": {"format": format}, "truncation": "disabled",
    });
    all.extend(fixed.as_object().cloned().unwrap_or_default());
    Asked(all)
}

#[cfg(test)]
mod tests {
    use halite::Callable;

    use super::*;
    use crate::serve::{fields::Form, messages};

    fn fields(value: &Value) -> Fields {
        Fields::read(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn items_are_messages() {
        let input = json!([
            {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
            {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
             "content": [{"type": "output_text", "text": "c", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}", "status": "completed"},
            {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "2"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "d"}]},
            {"role": "assistant", "content": "e"},
        ]);
        let request = json!({"instructions": "x", "input": input, "max_output_tokens": 5, "top_p": 0.5});
        let (chat, asked) = conversation(&fields(&request)).unwrap();
        let made = chat.get("messages").unwrap();
        assert_eq!(made[0], json!({"role": "system", "content": "x"}));
        assert_eq!(made[1], json!({"role": "user", "content": "ab"}));
        assert_eq!((&made[2]["content"], made[2]["tool_calls"].as_array().unwrap().len()), (&json!("c"), 2));
        assert_eq!(made[3], json!({"role": "tool", "tool_call_id": "c1", "content": "2"}));
        assert_eq!(made[4], json!({"role": "assistant", "content": "e", "reasoning_content": "d"}));
        assert_eq!(messages::read(&chat).unwrap().len(), 5);
        assert_eq!(chat.wanted(Form::Chat).unwrap().most, Some(5));
        assert_eq!((&asked.0["top_p"], &asked.0["temperature"]), (&json!(0.5), &json!(1.0)));
    }

    #[test]
    fn formats_and_tools_are_those_of_conversations() {
        let schema = json!({"type": "object", "properties": {}});
        let request = json!({"input": "a", "text": {"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": true}}});
        let (chat, _) = conversation(&fields(&request)).unwrap();
        assert!(chat.wanted(Form::Chat).unwrap().schema.is_some());
        let tool = json!({"type": "function", "name": "f", "parameters": schema, "strict": true});
        for choice in [json!("required"), json!({"type": "function", "name": "f"})] {
            let request = json!({"input": "a", "tools": [tool], "tool_choice": choice});
            let (chat, _) = conversation(&fields(&request)).unwrap();
            assert!(chat.wanted(Form::Chat).unwrap().tools.is_some_and(|tools| tools.has("f")));
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_its_field() {
        for (request, field) in [
            (json!({}), "input"),
            (json!({"input": []}), "input"),
            (json!({"input": [{"role": "user"}]}), "input"),
            (json!({"input": [{"type": "item_reference", "id": "x"}]}), "input"),
            (json!({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}), "input"),
            (json!({"input": "a", "max_output_tokens": 0.5}), "max_output_tokens"),
            (json!({"input": "a", "previous_response_id": "resp_1"}), "previous_response_id"),
            (json!({"input": "a", "store": true}), "store"),
            (json!({"input": "a", "reasoning": {"effort": "high", "summary": "auto"}}), "reasoning"),
            (json!({"input": "a", "reasoning": {"effort": 3}}), "reasoning"),
            (json!({"input": "a", "truncation": "auto"}), "truncation"),
            (
                json!({"input": "a", "text": {"format": {"type": "json_schema", "schema": {"not": {}}}}}),
                "text",
            ),
            (json!({"input": "a", "tools": [{"type": "web_search"}]}), "tools"),
            (json!({"input": "a", "tool_choice": {"type": "file_search"}}), "tool_choice"),
        ] {
            let made = conversation(&fields(&request)).and_then(|(chat, _)| {
                messages::read(&chat)?;
                chat.wanted(Form::Chat).map(drop)
            });
            let told = made.map_err(renamed).unwrap_err().json();
            assert_eq!(told["error"]["param"], field, "{told}");
        }
        let told = conversation(&fields(&json!({"input": "a", "messages": []}))).err().map(|own| own.json());
        assert!(told.unwrap().to_string().contains("'messages' is not known"));
    }
}
