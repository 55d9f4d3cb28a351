//! The forms in which models write calls of tools.

use serde_json::{Map, Value};

use super::{
    literals,
    tool::{Callable, ToolCall},
};

/// What is around calls of a form, and what reads it.
pub(super) struct Mark {
    pub begin: &'static str,
    /// Nothing where calls go on to the next mark. It may be missing at the end of a text.
    pub end: &'static str,
    pub read: fn(&str, &dyn Callable) -> Option<Vec<ToolCall>>,
}

const fn mark(
    begin: &'static str,
    end: &'static str,
    read: fn(&str, &dyn Callable) -> Option<Vec<ToolCall>>,
) -> Mark {
    Mark { begin, end, read }
}

const SECTION: &str = "<|tool_calls_section_begin|>";
/// What calls begin with, where it is no JSON.
pub(super) const MARKS: &[Mark] = &[
    // Hermes, Qwen, GLM, and many others.
    mark("<tool_call>", "</tool_call>", in_tags),
    // Mistral.
    mark("[TOOL_CALLS]", "", in_list),
    // Llama.
    mark("<|python_tag|>", "", |text, _| objects(text)),
    // Nemotron.
    mark("<TOOLCALL>", "</TOOLCALL>", |text, _| objects(text)),
    // Phi, Granite.
    mark("<|tool_call|>", "<|/tool_call|>", |text, _| objects(text)),
    // Command.
    mark("<|START_ACTION|>", "<|END_ACTION|>", |text, _| objects(text)),
    // Functionary, and Qwen without its tags.
    mark("<function=", "</function>", |text, tools| Some(vec![function(text, tools)?])),
    mark("<seed:tool_call>", "</seed:tool_call>", functions),
    mark("<minimax:tool_call>", "</minimax:tool_call>", invocations),
    mark("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", |text, tools| {
        invocations(&text.replace("｜DSML｜", ""), tools)
    }),
    mark("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", |text, _| {
        parts(text, ["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"])
    }),
    // Kimi.
    mark(SECTION, "<|tool_calls_section_end|>", |text, _| {
        parts(text, ["<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"])
    }),
    // Kimi K3.
    mark("<|open|>tools<|sep|>", "<|close|>tools<|sep|>", |text, _| opened(text)),
    // LFM2.
    mark("<|tool_call_start|>", "<|tool_call_end|>", |text, _| objects(text)),
    // Gemma 4.
    mark("<|tool_call>", "<tool_call|>", |text, _| literals::call(text).map(|call| vec![call])),
    // Apertus.
    mark("<|tools_prefix|>", "<|tools_suffix|>", |text, _| by_name(text)),
    // Messages in channels.
    mark("<|channel|>commentary to=functions.", "", in_channel),
];
/// What is within calls, and may be a control token.
const WITHIN: &[&str] = &[
    "[ARGS]",
    "[CALL_ID]",
    "<|message|>",
    "<|constrain|>",
    "<|channel|>",
    "<|\"|>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|open|>",
    "<|close|>",
    "<|sep|>",
];

/// Whether a name of a control token is a part of calls: such tokens are text here.
pub(super) fn is_mark(text: &[u8]) -> bool {
    let all = MARKS.iter().flat_map(|mark| [mark.begin, mark.end]).chain(WITHIN.iter().copied());
    !text.is_empty() && all.into_iter().any(|mark| mark.as_bytes() == text)
}

/// Calls that are objects, or lists of them, one behind the other; or a list of calls as programs have them.
pub(super) fn objects(text: &str) -> Option<Vec<ToolCall>> {
    values(text).or_else(|| literals::calls(text))
}

fn values(text: &str) -> Option<Vec<ToolCall>> {
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

fn call(value: &Value) -> Option<ToolCall> {
    let value = value.get("function").filter(|own| own.is_object()).unwrap_or(value);
    let arguments = match value.get("arguments").or_else(|| value.get("parameters"))? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let name = value.get("name").or_else(|| value.get("tool_name"))?;
    Some(ToolCall { name: name.as_str()?.to_owned(), arguments })
}

/// Calls whose objects have the arguments by the tool's name.
fn by_name(text: &str) -> Option<Vec<ToolCall>> {
    let all: Vec<Map<String, Value>> = serde_json::from_str(text).ok()?;
    let one = |(name, arguments): (String, Value)| ToolCall { name, arguments: arguments.to_string() };
    Some(all.into_iter().flatten().map(one).collect())
}

/// An object, and nothing else but what is around code.
fn object(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches("```json").trim_matches('`').trim();
    let object: Map<String, Value> = serde_json::from_str(text).ok()?;
    Some(Value::Object(object).to_string())
}

/// A call in tags: an object, a function with parameters, or a name with keys and values.
fn in_tags(text: &str, tools: &dyn Callable) -> Option<Vec<ToolCall>> {
    if text.starts_with(['{', '[']) {
        return objects(text);
    }
    if text.starts_with("<function=") {
        return functions(text, tools);
    }
    let (name, mut rest) = text.split_at(text.find("<arg_key>").unwrap_or(text.len()));
    let name = name.trim();
    let mut arguments = Map::new();
    while !rest.is_empty() {
        let (key, behind) = rest.strip_prefix("<arg_key>")?.split_once("</arg_key>")?;
        let behind = behind.trim_start().strip_prefix("<arg_value>")?;
        let (value, behind) = behind.split_once("</arg_value>")?;
        arguments.insert(key.trim().to_owned(), typed(tools, name, key.trim(), value));
        rest = behind.trim_start();
    }
    Some(vec![ToolCall { name: name.to_owned(), arguments: Value::Object(arguments).to_string() }])
}

/// Functions with parameters in tags, one behind the other.
fn functions(text: &str, tools: &dyn Callable) -> Option<Vec<ToolCall>> {
    let all = text.split("</function>").map(str::trim).filter(|part| !part.is_empty());
    all.map(|part| function(part.strip_prefix("<function=")?, tools)).collect()
}

/// A function behind its tag, without the one that ends it: its arguments are parameters in tags, or an object.
fn function(text: &str, tools: &dyn Callable) -> Option<ToolCall> {
    let (name, body) = text.split_once('>')?;
    tagged(name.trim(), body, ["<parameter=", ">"], tools)
}

fn invocations(text: &str, tools: &dyn Callable) -> Option<Vec<ToolCall>> {
    let all = text.split("</invoke>").map(str::trim).filter(|part| !part.is_empty());
    all.map(|part| {
        let (name, body) = part.strip_prefix("<invoke name=\"")?.split_once("\">")?;
        tagged(name, body, ["<parameter name=\"", "\""], tools)
    })
    .collect()
}

/// A call whose arguments are parameters in tags, each with its name between these; or an object.
fn tagged(name: &str, body: &str, [begin, end]: [&str; 2], tools: &dyn Callable) -> Option<ToolCall> {
    let mut rest = body.trim();
    if rest.starts_with('{') {
        return Some(ToolCall { name: name.to_owned(), arguments: object(rest)? });
    }
    let mut arguments = Map::new();
    while !rest.is_empty() {
        let (key, behind) = rest.strip_prefix(begin)?.split_once(end)?;
        // There may be more in the tag.
        let behind = if end == ">" { behind } else { behind.split_once('>')?.1 };
        let (value, behind) = behind.split_once("</parameter>")?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.to_owned(), typed(tools, name, key, value));
        rest = behind.trim_start();
    }
    Some(ToolCall { name: name.to_owned(), arguments: Value::Object(arguments).to_string() })
}

/// A value as text, of the type that the tool's schema has for it.
fn typed(tools: &dyn Callable, name: &str, key: &str, text: &str) -> Value {
    match tools.is_text(name, key) {
        true => Value::from(text),
        false => serde_json::from_str(text.trim()).unwrap_or_else(|_| Value::from(text)),
    }
}

/// A name and its arguments, with a number between them or none; or objects.
fn in_list(text: &str, _: &dyn Callable) -> Option<Vec<ToolCall>> {
    let Some((name, arguments)) = text.split_once("[ARGS]") else { return objects(text) };
    let name = name.split("[CALL_ID]").next().unwrap_or(name);
    Some(vec![ToolCall { name: name.trim().to_owned(), arguments: object(arguments)? }])
}

/// Calls between marks, each with its name and its arguments: what begins one, what is between the two, what ends it.
fn parts(text: &str, [begin, between, end]: [&str; 3]) -> Option<Vec<ToolCall>> {
    let one = |part: &str| {
        let (name, arguments) = part.split(end).next().unwrap_or(part).split_once(between)?;
        // The first models of DeepSeek have the kind of the tool in its place.
        let (name, arguments) = match name.trim() {
            "function" => arguments.split_once('\n')?,
            name => (name, arguments),
        };
        let name = name.trim().trim_start_matches("functions.");
        let name = name.split_once(':').map_or(name, |(name, _)| name);
        Some(ToolCall { name: name.to_owned(), arguments: object(arguments)? })
    };
    text.split(begin).skip(1).map(one).collect()
}

/// Calls whose names, keys and types are in marks that open something.
fn opened(text: &str) -> Option<Vec<ToolCall>> {
    let attribute = |all: &str, name: &str| {
        let (_, value) = all.split_once(&format!("{name}=\""))?;
        Some(value.split_once('"')?.0.replace("&quot;", "\"").replace("&amp;", "&"))
    };
    let one = |part: &str| {
        let (call, mut rest) = part.strip_prefix("<|open|>call")?.split_once("<|sep|>")?;
        let name = attribute(call, "tool")?;
        if let Some(json) = rest.strip_prefix("<|open|>json") {
            let json = json.split_once("<|sep|>")?.1.split_once("<|close|>json<|sep|>")?.0;
            return Some(ToolCall { name, arguments: object(json)? });
        }
        let mut arguments = Map::new();
        while !rest.is_empty() {
            let (own, behind) = rest.strip_prefix("<|open|>argument")?.split_once("<|sep|>")?;
            let (value, behind) = behind.split_once("<|close|>argument<|sep|>")?;
            let is_text = attribute(own, "type").is_none_or(|kind| kind == "string");
            let value = if is_text { value.into() } else { serde_json::from_str(value).ok()? };
            arguments.insert(attribute(own, "key")?, value);
            rest = behind;
        }
        Some(ToolCall { name, arguments: Value::Object(arguments).to_string() })
    };
    let all = text.split("<|close|>call<|sep|>").map(str::trim).filter(|part| !part.is_empty());
    all.map(one).collect()
}

/// A call that is a message in a channel, behind the beginning of its head.
fn in_channel(text: &str, _: &dyn Callable) -> Option<Vec<ToolCall>> {
    let (head, arguments) = text.split_once("<|message|>")?;
    let name = head.split(|letter: char| letter.is_whitespace() || letter == '<').next()?;
    Some(vec![ToolCall { name: name.to_owned(), arguments: object(arguments)? }])
}
