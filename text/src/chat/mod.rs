//! Chat templates: conversations to prompts, by the template in a GGUF file's metadata or beside a tokenizer (Jinja2, as transformers renders it).
//!
//! A template is a program of whoever made the model. So what it may take is bounded by what it runs on: each step, each byte that
//! is looked at and each value that is made is counted while it goes on ([`budget`]), and nothing is deeper than the stack is.

mod budget;
mod checks;
mod eval;
mod expressions;
mod filters;
mod given;
mod json;
mod lex;
mod lists;
mod operators;
mod parse;
mod run;
mod scopes;
mod show;
mod texts;
mod tree;
mod value;

use std::{rc::Rc, sync::Arc};

use halite_formats::gguf::Gguf;

use crate::{TextError, Tokenizer, read::gguf::text};
use budget::{Budget, Done, Fault, Stop};
use tree::Template;
use value::{Items, Map, Value};

/// Most steps of a rendering, and how many more each byte of the messages brings.
const STEPS: u64 = 8_000_000;
const STEPS_OF_A_BYTE: u64 = 16;
/// Most bytes that are held at a time, and how many more each byte of the messages brings.
const HELD: usize = 32 << 20;
const HELD_OF_A_BYTE: usize = 8;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who says it: `system`, `user`, `assistant`, or what else the model's template knows.
    pub role: String,
    /// What is said.
    pub content: String,
    /// Other values that templates know, as JSON.
    more: Vec<(String, String)>,
}

impl Message {
    /// A message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message { role: role.into(), content: content.into(), more: Vec::new() }
    }

    /// The same message with another value that the model's template may know, as JSON: `tool_calls`, `tool_call_id`, `name`,
    /// `reasoning_content`. Arguments of calls are objects there. A value of `content` takes the place of the text.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, json: impl Into<String>) -> Message {
        self.more.push((name.into(), json.into()));
        self
    }

    /// A value that [`Message::with`] gave it, as JSON; the last of this name.
    pub fn value(&self, name: &str) -> Option<&str> {
        let own = self.more.iter().rev().find(|(own, _)| own == name);
        own.map(|(_, json)| json.as_str())
    }

    fn byte_len(&self) -> usize {
        let more: usize = self.more.iter().map(|(name, json)| name.len() + json.len()).sum();
        self.role.len() + self.content.len() + more
    }
}

/// A model's chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    template: Template,
    source: Box<str>,
    begin: String,
    end: String,
}

/// What a template is told beside the messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told<'a> {
    /// The tools that there are, if there are some: a list of them, as JSON.
    pub tools: Option<&'a str>,
    /// Other values that it may know, by name: an object, as JSON.
    pub values: Option<&'a str>,
}

const KEY: &str = "tokenizer.chat_template";
/// What templates are given that is of the messages, or of the model.
const FIXED: &[&str] = &["messages", "add_generation_prompt", "bos_token", "eos_token", "tools"];

/// Names that files have in the place of a template, and the templates.
const NAMED: &[(&str, &str)] = &[(
    "rwkv-world",
    "{% for message in messages %}{{ {'system': 'System: ', 'user': 'User: ', 'assistant': 'Assistant: '}[message['role']] }}\
     {{ message['content'] | trim }}{{ '\\n\\n' }}{% endfor %}\
     {% if messages and messages[-1]['role'] != 'assistant' %}Assistant:{% endif %}",
)];

impl ChatTemplate {
    /// The template of a file; `None` where it has none.
    ///
    /// # Errors
    /// It is no template.
    pub fn read(file: &Gguf, tokenizer: &Tokenizer) -> Result<Option<ChatTemplate>, TextError> {
        let Some(source) = text(file, KEY)? else { return Ok(None) };
        let [begin, end] = tokenizer.marks();
        let source = NAMED.iter().find(|(name, _)| *name == source).map_or(source, |(_, own)| own);
        ChatTemplate::new(source, begin, end).map(Some)
    }

    /// A template, with the texts of the tokens of the beginning and the end.
    ///
    /// # Errors
    /// It is no template.
    pub fn new(
        source: &str,
        begin: impl Into<String>,
        end: impl Into<String>,
    ) -> Result<ChatTemplate, TextError> {
        let template = parse::parse(source).map_err(|fault| {
            TextError::metadata(KEY, format!("is no template that can be read: {}", told(&fault)))
        })?;
        Ok(ChatTemplate { template, source: source.into(), begin: begin.into(), end: end.into() })
    }

    /// Whether the template tells a model which tools there are.
    pub fn takes_tools(&self) -> bool {
        self.asks_for("tools")
    }

    /// Whether the template has a text somewhere.
    pub fn has(&self, text: &str) -> bool {
        self.source.contains(text)
    }

    /// Whether the template looks at a value of this name.
    pub fn asks_for(&self, name: &str) -> bool {
        self.template.names.iter().any(|known| **known == *name)
    }

    /// The prompt of a conversation, up to where the model is to answer.
    ///
    /// What a template takes is bounded, by steps and by memory, and grows with the messages.
    ///
    /// # Errors
    /// The template does not take these messages; it says why. It takes more than it may.
    pub fn prompt(&self, messages: &[Message]) -> Result<String, TextError> {
        self.prompt_until(messages, Told::default(), None)
    }

    /// The same with other values. Until somebody says that it is to stop, who is asked first and then every few milliseconds, and told the
    /// steps that were made and the most that may be.
    ///
    /// # Errors
    /// As those of [`ChatTemplate::prompt`]. It was stopped; values have names of what templates are given anyway.
    pub fn prompt_until(
        &self,
        messages: &[Message],
        given: Told<'_>,
        stop: Option<Stop>,
    ) -> Result<String, TextError> {
        let bytes: usize = messages.iter().map(|message| message.byte_len() + 256).sum();
        let bytes = [given.tools, given.values].iter().flatten().fold(bytes, |sum, json| sum + json.len());
        let steps = STEPS + STEPS_OF_A_BYTE * bytes as u64;
        let budget = Budget::new(steps, HELD + HELD_OF_A_BYTE * bytes, stop);
        self.rendered(messages, given, &budget).map_err(|fault| {
            let text = format!("the model's chat template: {}", told(&fault));
            if fault.limit { TextError::TooMuch(text) } else { TextError::Invalid(text) }
        })
    }

    fn rendered(&self, messages: &[Message], given: Told<'_>, budget: &Arc<Budget>) -> Done<String> {
        let mut list = Items::new(budget)?;
        for message in messages {
            let mut map = Map::new(budget)?;
            for (key, value) in [("role", &message.role), ("content", &message.content)] {
                map.insert(Value::text(budget, key)?, Value::text(budget, value)?)?;
            }
            for (key, json) in &message.more {
                map.insert(Value::text(budget, key)?, json::value(budget, json)?)?;
            }
            list.push(Value::Map(Rc::new(map)))?;
        }
        let more = given.values.map(|json| json::value(budget, json)).transpose()?;
        let mut values = vec![
            ("messages", Value::List(list.list())),
            ("add_generation_prompt", Value::Bool(true)),
            ("bos_token", Value::text(budget, &self.begin)?),
            ("eos_token", Value::text(budget, &self.end)?),
            // Templates ask whether they are none, which is not the same as not being defined.
            ("tools", given.tools.map_or(Ok(Value::None), |tools| json::value(budget, tools))?),
            ("documents", Value::None),
        ];
        let entries = match &more {
            None => &[],
            Some(Value::Map(map)) => map.entries(),
            Some(_) => return Err(Fault::new("values for it are an object, by their names")),
        };
        for (name, value) in entries {
            let Value::Text(name) = name else { continue };
            let name: &str = name;
            if FIXED.contains(&name) {
                return Err(Fault::new(format!("'{name}' is no value that somebody gives")));
            }
            // Templates ask whether there are documents, which somebody may give.
            values.retain(|(known, _)| *known != name);
            values.push((name, value.clone()));
        }
        run::run(&self.template, budget, values)
    }
}

fn told(fault: &Fault) -> String {
    match fault.line {
        0 => fault.text.clone(),
        line => format!("line {line}: {}", fault.text),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const SOURCE: &str = "{{ bos_token }}\n{%- for message in messages %}\n    {%- if message['role'] == 'tool' %}\n\
        {{ raise_exception('no tools') }}\n    {%- endif %}\n{{ '<' + message['role'] + '>' + message['content'].strip() }}\n\
        {%- endfor %}\n{%- if add_generation_prompt %}<assistant>{% endif %}";

    #[test]
    fn a_conversation_becomes_a_prompt() {
        let template = ChatTemplate::new(SOURCE, "<s>", "</s>").unwrap();
        let made =
            template.prompt(&[Message::new("user", "  hi "), Message::new("assistant", "ho")]).unwrap();
        assert_eq!(made.replace('\n', ""), "<s><user>hi<assistant>ho<assistant>");
        let refused = template.prompt(&[Message::new("tool", "x")]).unwrap_err().to_string();
        assert!(refused.contains("line 4: no tools"), "{refused}");
    }

    #[test]
    fn what_is_not_given_is_none() {
        let source =
            "{% if tools is none and documents is none %}none{% else %}{{ tools | length }}{% endif %}";
        assert_eq!(ChatTemplate::new(source, "", "").unwrap().prompt(&[]).unwrap(), "none");
    }

    #[test]
    fn tools_and_calls_are_told() {
        let source = "{% for t in tools %}{{ t.name }}({{ t.parameters | tojson }}){% endfor %}{% for m in messages %}\
            {% for c in m.tool_calls %}{{ c.arguments.x + 1 }}{% endfor %}{% if m.content is none %}-{% endif %}{% endfor %}";
        let template = ChatTemplate::new(source, "", "").unwrap();
        assert!(template.takes_tools());
        let messages = [Message::new("assistant", "")
            .with("tool_calls", r#"[{"arguments": {"x": 4}}]"#)
            .with("content", "null")];
        let tools = r#"[{"name": "f", "parameters": {"a": [1.5, true]}}]"#;
        let made = template.prompt_until(&messages, Told { tools: Some(tools), values: None }, None).unwrap();
        assert_eq!(made, r#"f({"a": [1.5, true]})5-"#);
        assert!(template.prompt_until(&messages, Told { tools: Some("["), values: None }, None).is_err());
        assert!(!ChatTemplate::new("{{ 'tools' }} tools", "", "").unwrap().takes_tools());
    }

    #[test]
    fn values_that_somebody_gives_are_known_by_their_names() {
        let source = "{{ 'no ' if enable_thinking is defined and not enable_thinking }}{{ effort | default('low') }}\
            {% set own = 1 %}{{ documents | length if documents else '' }}";
        let template = ChatTemplate::new(source, "", "").unwrap();
        let made = |json| {
            template
                .prompt_until(&[], Told { tools: None, values: Some(json) }, None)
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            made(r#"{"enable_thinking": false, "effort": "high", "unknown": [1]}"#),
            Ok("no high".into())
        );
        assert_eq!(made(r#"{"enable_thinking": true, "documents": [{}, {}]}"#), Ok("low2".into()));
        assert!(made(r#"{"messages": []}"#).unwrap_err().contains("'messages' is no value"));
        assert!(made("[]").unwrap_err().contains("an object") && made("{").is_err());
        assert!(template.asks_for("enable_thinking") && !template.asks_for("enable"));
    }

    #[test]
    fn templates_that_take_long_are_stopped() {
        let source = "{% for a in range(999) %}{% for b in range(999) %}{{ b }}{% endfor %}{% endfor %}";
        let template = ChatTemplate::new(source, "", "").unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let stop = {
            let asked = asked.clone();
            Box::new(move |done: u64, most: u64| {
                assert!(done <= most, "{done} steps of {most}");
                asked.fetch_add(1, Ordering::Relaxed) == 3
            })
        };
        let stopped = template.prompt_until(&[], Told::default(), Some(stop)).unwrap_err().to_string();
        assert!(stopped.contains("was stopped"), "{stopped}");
        assert_eq!(asked.load(Ordering::Relaxed), 4);
        assert!(template.prompt_until(&[], Told::default(), Some(Box::new(|_, _| false))).is_ok());
    }

    #[test]
    fn nothing_is_held_when_a_rendering_is_over() {
        let source = "{% set ns = namespace(a=[]) %}{% macro f(x) %}{{ x }}{% endmacro %}{% for m in messages %}\
            {% set ns.a = ns.a + [m, {'b': f(m.content) | upper}] %}{{ loop.changed(m) }}{% endfor %}{{ ns.a[::-1] }}";
        let template = ChatTemplate::new(source, "", "").unwrap();
        let budget = Budget::new(STEPS, HELD, None);
        let made = template
            .rendered(&[Message::new("user", "a"), Message::new("user", "b")], Told::default(), &budget)
            .unwrap();
        assert!(made.contains("'B'"), "{made}");
        assert!(format!("{budget:?}").contains("held: 0"), "{budget:?}");
        assert!(
            template
                .rendered(&[Message::new("user", "a")], Told::default(), &Budget::new(STEPS, 1000, None))
                .is_err()
        );
    }

    #[test]
    fn what_names_no_template_is_told_with_its_line() {
        for (source, wanted) in [
            ("a\nb{% if %}", "line 2: a value is wanted, and there is '%}'"),
            ("{% include 'x' %}", "'include' is about several templates"),
            ("{% frob %}", "the statement 'frob' is not known here; there are: if, for"),
            ("\n\n{{ a", "line 3: a tag has no end '}}'"),
            ("{% for a in b recursive %}{% endfor %}", "use a macro"),
        ] {
            let error = ChatTemplate::new(source, "", "").unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        for (source, wanted) in [
            ("{{ a.b }}", "line 1: 'a' is not defined, and its 'b' is asked for"),
            ("{{ 'a' | frob }}", "the filter 'frob' is not known; there are: abs, attr"),
            ("{{ 'a'.frob() }}", "a text has no method 'frob'; there are: capitalize"),
            ("{{ [1].append(2) }}", "lists do not change"),
            ("{{ 1 is frob }}", "the test 'frob' is not known; there are: boolean"),
            ("{{ frob(1) }}", "'frob' is not defined, and is called"),
            (
                "{% set ns = namespace() %}{% set ns.a = ns %}",
                "a namespace cannot be a part of something else",
            ),
        ] {
            let error = ChatTemplate::new(source, "", "").unwrap().prompt(&[]).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
