//! Tools for models whose chat template knows none: they are told of them in the text of the conversation, in the form of Hermes.

use halite::Message;
use serde_json::Value;

use super::tools::Tools;

/// What is told of tools, in front of them and behind them.
const AHEAD: &str =
    "You may call functions to help the user. They are described here, one JSON object a line:\n<tools>\n";
const BEHIND: &str = "</tools>\nTo call one, write a JSON object with its name and its arguments, and nothing else:\n<tool_call>\n\
    {\"name\": \"the function's name\", \"arguments\": {\"an argument's name\": \"its value\"}}\n</tool_call>\n\
    What it gives comes in <tool_response> tags. If no function helps, answer the user in plain text.";
/// What every prompt with tools has.
pub(super) const SHOWN: &str = "</tools>\n";
const ONE_OF: &str = " Call a function now.";

/// Messages for a template that knows no tools: calls and what they gave are texts, and the first message tells of the tools: that of the
/// system, or of the user where the template has none of the system (`of_user`).
pub(super) fn told(messages: &[Message], tools: &Tools, of_user: bool) -> Vec<Message> {
    let mut made: Vec<Message> = Vec::with_capacity(messages.len() + 1);
    for message in messages.iter().map(plain) {
        match made.last_mut() {
            // What several calls gave is one message: templates want users and models in turns.
            Some(last) if last.role == "user" && message.role == "user" => {
                last.content = format!("{}\n{}", last.content, message.content);
            }
            _ => made.push(message),
        }
    }
    let text = told_of(tools);
    let system = made.first().filter(|first| first.role == "system").map(|first| first.content.clone());
    let text = match system {
        Some(system) => {
            made.remove(0);
            format!("{system}\n\n{text}").trim_start().to_owned()
        }
        None => text,
    };
    match of_user {
        true => front(&mut made, &text),
        false => made.insert(0, Message::new("system", text)),
    }
    made
}

/// Puts a text in front of what the user says first.
fn front(messages: &mut Vec<Message>, text: &str) {
    match messages.first_mut().filter(|first| first.role == "user") {
        Some(first) => first.content = format!("{text}\n\n{}", first.content),
        None => messages.insert(0, Message::new("user", text)),
    }
}

/// What a model is told of its tools.
fn told_of(tools: &Tools) -> String {
    let all: Vec<Value> = serde_json::from_str(tools.json()).unwrap_or_default();
    let lines = all.iter().map(|tool| format!("{}\n", tool.get("function").unwrap_or(tool)));
    let lines: String = lines.collect();
    format!("{AHEAD}{lines}{BEHIND}{}", if tools.is_forced() { ONE_OF } else { "" })
}

/// A message without what such a template does not know: calls, and the role `tool`.
fn plain(message: &Message) -> Message {
    if message.role == "tool" {
        return Message::new("user", format!("<tool_response>\n{}\n</tool_response>", message.content));
    }
    let calls = message.value("tool_calls").and_then(|json| serde_json::from_str::<Vec<Value>>(json).ok());
    let Some(calls) = calls else { return message.clone() };
    let call = |call: &Value| call.get("function").map(|call| format!("<tool_call>\n{call}\n</tool_call>"));
    let texts = Some(message.content.clone()).filter(|text| !text.is_empty()).into_iter();
    let texts: Vec<String> = texts.chain(calls.iter().filter_map(call)).collect();
    Message::new(message.role.clone(), texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::serve::fields::Fields;

    fn tools(choice: &str) -> Tools {
        let function = |name: &str| json!({"type": "function", "function": {"name": name}});
        let body = json!({"tools": [function("f"), function("g")], "tool_choice": choice});
        Tools::read(&Fields::read(body.to_string().as_bytes()).unwrap()).unwrap().unwrap()
    }

    #[test]
    fn tools_calls_and_results_are_texts() {
        let call = r#"[{"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]"#;
        let messages = [
            Message::new("system", "Be brief."),
            Message::new("user", "x"),
            Message::new("assistant", "I look.").with("tool_calls", call),
            Message::new("tool", "1").with("tool_call_id", "\"c\""),
            Message::new("tool", "2"),
            Message::new("user", "y"),
        ];
        let made = told(&messages, &tools("auto"), false);
        let roles: Vec<&str> = made.iter().map(|own| own.role.as_str()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "user"]);
        let text = &made[0].content;
        assert!(text.starts_with("Be brief.\n\nYou may call functions"), "{text}");
        assert!(text.contains("<tools>\n{\"name\":\"f\"}\n{\"name\":\"g\"}\n</tools>"), "{text}");
        assert!(text.ends_with("in plain text."), "{text}");
        let wanted = "I look.\n<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>";
        assert_eq!(made[2], Message::new("assistant", wanted));
        let answers = [1, 2].map(|one| format!("<tool_response>\n{one}\n</tool_response>\n")).concat();
        assert_eq!(made[3], Message::new("user", answers + "y"));
    }

    #[test]
    fn users_tell_of_tools_where_there_is_no_system() {
        let system = Message::new("system", "Be brief.");
        let user = Message::new("user", "x");
        for (messages, first) in [
            (vec![system.clone(), user.clone()], "Be brief.\n\nYou may"),
            (vec![user], "You may"),
            (vec![system, Message::new("assistant", "Hello")], "Be brief.\n\nYou may"),
        ] {
            let made = told(&messages, &tools("required"), true);
            assert!(made[0].role == "user" && made[0].content.starts_with(first), "{made:?}");
            assert!(made[0].content.contains(" Call a function now."), "{made:?}");
            assert!(made.iter().all(|own| own.role != "system"));
        }
        assert_eq!(told(&[], &tools("auto"), false).len(), 1);
    }
}
