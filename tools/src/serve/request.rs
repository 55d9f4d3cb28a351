//! Requests as OpenAI's interface has them: their fields, and what of them is refused.

use std::sync::Arc;

use halite::{JsonSchema, Sampling, Thoughts};
use serde_json::{Map, Value};

use super::{
    error::Refusal,
    fields::{Fields, Form, unsupported},
    others,
    tools::Tools,
};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Most answers of a request.
const MOST_CHOICES: u64 = 16;
/// Most texts of a request for vectors.
const MOST_INPUTS: usize = 2048;
/// Most tokens whose likelihood is told in the place of one, in the two forms.
const MOST_LIKELY_OF_CHAT: u64 = 20;
const MOST_LIKELY: u64 = 5;
/// Most prompts of a request.
const MOST_PROMPTS: usize = 64;

/// Fields of all requests for text.
const OF_TEXTS: &[&str] = &[
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_tokens",
    "min_p",
    "model",
    "n",
    "presence_penalty",
    "repeat_last",
    "repeat_penalty",
    "response_format",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "top_k",
    "top_p",
];
const OF_CHATS: &[&str] = &[
    "chat_template_kwargs",
    "max_completion_tokens",
    "messages",
    "parallel_tool_calls",
    "reasoning_effort",
    "reasoning_format",
    "tool_choice",
    "tools",
    "top_logprobs",
];
const OF_COMPLETIONS: &[&str] = &["echo", "prompt"];
/// Fields that say nothing about an answer.
const SAYS_NOTHING: &[&str] =
    &["metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user"];
/// Fields that are refused unless they ask for what is done anyway.
const REFUSED: &[&str] = &[
    "audio",
    "best_of",
    "echo",
    "function_call",
    "functions",
    "modalities",
    "prediction",
    "service_tier",
    "store",
    "suffix",
    "verbosity",
    "web_search_options",
];

/// How much a model is to think, where its chat template asks for that.
pub(super) const EFFORT: &str = "reasoning_effort";
/// What templates are given that is no value of a request's.
const FIXED: &[&str] = &["add_generation_prompt", "bos_token", "eos_token", "messages", "tools"];

/// A text, or its tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Text {
    Plain(String),
    Tokens(Vec<u32>),
}

/// How an answer is written.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub most: Option<usize>,
    pub choices: u64,
    pub stream: bool,
    /// Whether the last event of a stream has the counts of tokens.
    pub counts: bool,
    pub stops: Vec<String>,
    pub sampling: Sampling,
    /// What it has to follow.
    pub schema: Option<JsonSchema>,
    /// How many of the most likely tokens are told in the place of each, if any are.
    pub likely: Option<usize>,
    /// What is added to logits of tokens.
    pub bias: Vec<(u32, f32)>,
    /// What the model may call.
    pub tools: Option<Arc<Tools>>,
    /// Values for the model's chat template, as JSON.
    pub values: Option<String>,
    /// Whether it says how much the model is to think.
    pub has_effort: bool,
    /// Whether thoughts are told apart from the answer, if somebody says it.
    pub parts_thoughts: Option<bool>,
    /// What tells them apart, in conversations.
    pub thoughts: Option<Thoughts>,
    /// Whether all of the answer is a call.
    pub is_call_forced: bool,
    /// Whether answers begin with their prompts.
    pub has_echo: bool,
    /// These, as texts.
    pub echoes: Vec<String>,
}

impl Fields {
    /// How an answer is written.
    pub fn wanted(&self, form: Form) -> Result<Wanted> {
        let own = if form == Form::Chat { OF_CHATS } else { OF_COMPLETIONS };
        let plain = others::plain();
        let others: Vec<&str> = plain.iter().map(|(name, _)| *name).collect();
        self.check_names(&[own, OF_TEXTS, SAYS_NOTHING, REFUSED, others::SAY_NOTHING, &others])?;
        self.refuse(&plain)?;
        self.refuse_others(form)?;
        let most = match self.most("max_completion_tokens")? {
            None => self.most("max_tokens")?,
            most => most,
        };
        let schema = self.schema()?;
        let tools = match form {
            Form::Chat => Tools::read(self)?,
            Form::Completion => None,
        };
        if tools.is_some() && schema.is_some() {
            return Err(unsupported("response_format", "is not supported beside 'tools'"));
        }
        Ok(Wanted {
            most: most.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
            choices: self.count_within("n", 1, MOST_CHOICES, 1)?,
            stream: self.flag("stream")?,
            counts: self.counts()?,
            stops: self.stops()?,
            sampling: self.sampling()?,
            schema,
            likely: self.likely(form)?,
            bias: self.bias()?,
            tools: tools.map(Arc::new),
            has_effort: self.effort()?.is_some(),
            parts_thoughts: self.parts_thoughts()?,
            thoughts: None,
            is_call_forced: false,
            has_echo: form == Form::Completion && self.flag("echo")?,
            echoes: Vec::new(),
            values: if form == Form::Chat { self.values()? } else { None },
        })
    }

    /// Refuses what OpenAI's service does and this one does not.
    fn refuse_others(&self, form: Form) -> Result<()> {
        if form == Form::Chat {
            self.refuse(&[("echo", false.into())])?;
        }
        self.refuse(&[
            ("functions", Value::Array(Vec::new())),
            ("function_call", "none".into()),
            ("suffix", "".into()),
            ("best_of", self.get("n").cloned().unwrap_or_else(|| 1.into())),
            ("store", false.into()),
            ("audio", Value::Null),
            ("prediction", Value::Null),
            ("web_search_options", Value::Null),
            ("verbosity", "medium".into()),
            ("modalities", Value::Array(vec!["text".into()])),
        ])?;
        match self.text("service_tier")? {
            None | Some("auto" | "default") => Ok(()),
            Some(_) => Err(unsupported("service_tier", "is not supported; leave it out")),
        }
    }

    /// Whether thoughts are told apart from the answer.
    fn parts_thoughts(&self) -> Result<Option<bool>> {
        match self.text("reasoning_format")? {
            None => Ok(None),
            Some("none") => Ok(Some(false)),
            Some("auto" | "deepseek") => Ok(Some(true)),
            Some(_) => Err(unsupported("reasoning_format", "is none of none, auto and deepseek")),
        }
    }

    /// How much the model is to think.
    fn effort(&self) -> Result<Option<&str>> {
        Ok(self.text(EFFORT)?.filter(|effort| *effort != "none"))
    }

    /// Values for the model's chat template: those that are given as such, and how much it is to think.
    fn values(&self) -> Result<Option<String>> {
        let (field, effort) = ("chat_template_kwargs", self.effort()?);
        let mut values = match self.get(field) {
            None if effort.is_none() => return Ok(None),
            None => Map::new(),
            Some(Value::Object(values)) => values.clone(),
            Some(_) => return Err(Refusal::field(field, format!("'{field}' is no object"))),
        };
        if let Some(name) = FIXED.iter().find(|name| values.contains_key(**name)) {
            return Err(Refusal::field(
                field,
                format!("'{field}' has '{name}', which is a field of its own, or the model's"),
            ));
        }
        if let Some(effort) = effort {
            values.insert(EFFORT.to_owned(), effort.into());
        }
        Ok(Some(Value::Object(values).to_string()))
    }

    /// Whether a stream ends with the counts of tokens.
    fn counts(&self) -> Result<bool> {
        let field = "stream_options";
        let Some(options) = self.get(field) else { return Ok(false) };
        let options =
            options.as_object().ok_or_else(|| Refusal::field(field, "'stream_options' is no object"))?;
        let known = ["include_usage", "include_obfuscation"];
        if let Some(name) = options.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(unsupported(field, &format!("has '{name}', which is not known here")));
        }
        Ok(options.get("include_usage").and_then(Value::as_bool).unwrap_or(false))
    }

    /// What the answer has to follow.
    fn schema(&self) -> Result<Option<JsonSchema>> {
        let field = "response_format";
        let Some(format) = self.get(field) else { return Ok(None) };
        let (kind, given) = match format.get("type").and_then(Value::as_str) {
            Some("text") => return Ok(None),
            Some("json_object") => ("json_object", format.get("schema")),
            Some("json_schema") => ("json_schema", format.pointer("/json_schema/schema")),
            Some(other) => {
                let text = format!("of the type {other}; there are text, json_object and json_schema");
                return Err(unsupported(field, &text));
            }
            None => return Err(Refusal::field(field, format!("'{field}' is no object with a 'type'"))),
        };
        match given {
            Some(schema) => {
                let read = JsonSchema::parse(&schema.to_string());
                Ok(Some(
                    read.map_err(|error| Refusal::field(field, error.message()).code("invalid_json_schema"))?,
                ))
            }
            None if kind == "json_object" => Ok(Some(JsonSchema::object())),
            None => Err(Refusal::field(field, format!("'{field}' has no 'json_schema' with a 'schema'"))),
        }
    }

    /// How many of the most likely tokens are told.
    fn likely(&self, form: Form) -> Result<Option<usize>> {
        if form == Form::Completion {
            let count = self.count_within("logprobs", 0, MOST_LIKELY, 0)?;
            return Ok(self.get("logprobs").map(|_| count as usize));
        }
        let count = self.count_within("top_logprobs", 0, MOST_LIKELY_OF_CHAT, 0)?;
        match self.flag("logprobs")? {
            true => Ok(Some(count as usize)),
            false if count > 0 => {
                Err(Refusal::field("top_logprobs", "'top_logprobs' needs 'logprobs': true"))
            }
            false => Ok(None),
        }
    }

    /// The prompts of a completion.
    pub fn prompts(&self) -> Result<Vec<Text>> {
        let all = self.texts("prompt")?;
        match all.len() {
            1..=MOST_PROMPTS => Ok(all),
            count => Err(Refusal::field("prompt", format!("{count} prompts; there are 1 to {MOST_PROMPTS}"))),
        }
    }

    /// The texts that vectors are wanted of.
    pub fn inputs(&self) -> Result<Vec<Text>> {
        let all = self.texts("input")?;
        match all.len() {
            0 => Err(Refusal::field("input", "'input' is empty")),
            count if count > MOST_INPUTS => {
                Err(Refusal::field("input", format!("{count} texts; there are at most {MOST_INPUTS}")))
            }
            _ => Ok(all),
        }
    }

    fn texts(&self, name: &'static str) -> Result<Vec<Text>> {
        let wrong =
            || Refusal::field(name, format!("'{name}' is no text, no list of texts and no list of tokens"));
        let token = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok()).ok_or_else(wrong);
        let one = |value: &Value| match value {
            Value::String(text) => Ok(Text::Plain(text.clone())),
            Value::Array(all) => Ok(Text::Tokens(all.iter().map(token).collect::<Result<_>>()?)),
            _ => Err(wrong()),
        };
        match self.get(name) {
            None => Err(Refusal::field(name, format!("'{name}' is missing"))),
            Some(Value::Array(all)) if all.first().is_some_and(Value::is_u64) => {
                Ok(vec![one(&Value::Array(all.clone()))?])
            }
            Some(Value::Array(all)) => all.iter().map(one).collect(),
            Some(value) => Ok(vec![one(value)?]),
        }
    }

    /// Whether vectors are wanted as bytes in base64.
    pub fn wants_base64(&self) -> Result<bool> {
        self.check_names(&[&["model", "input", "encoding_format", "dimensions"], SAYS_NOTHING])?;
        match self.text("encoding_format")? {
            None | Some("float") => Ok(false),
            Some("base64") => Ok(true),
            Some(other) => Err(Refusal::field(
                "encoding_format",
                format!("'encoding_format' is {other}; there are float and base64"),
            )),
        }
    }
}

impl Fields {
    /// How many elements vectors are to have, if somebody says it.
    pub fn dimensions(&self) -> Result<Option<usize>> {
        match self.count("dimensions")? {
            Some(0) => Err(Refusal::field("dimensions", "'dimensions' is 0")),
            count => Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        Fields::read(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn what_is_wrong_is_told_by_its_field() {
        let refused =
            |value: Value| fields(value).wanted(Form::Chat).unwrap_err().json()["error"]["param"].clone();
        assert_eq!(refused(json!({"temperature": -1})), "temperature");
        assert_eq!(refused(json!({"n": 0})), "n");
        assert_eq!(refused(json!({"max_tokens": 1.5})), "max_tokens");
        assert_eq!(refused(json!({"max_tokens": -2})), "max_tokens");
        assert_eq!(refused(json!({"frequency_penalty": 3})), "frequency_penalty");
        assert_eq!(refused(json!({"logprobs": 3})), "logprobs");
        assert_eq!(refused(json!({"top_logprobs": 3})), "top_logprobs");
        assert_eq!(refused(json!({"echo": true})), "echo");
        assert_eq!(refused(json!({"logit_bias": {"5": 101}})), "logit_bias");
        assert_eq!(refused(json!({"stream_options": {"x": 1}})), "stream_options");
        assert_eq!(refused(json!({"response_format": {"type": "json_schema"}})), "response_format");
        let wrong = json!({"type": "json_schema", "json_schema": {"schema": {"not": {}}}});
        assert_eq!(refused(json!({"response_format": wrong})), "response_format");
        let told = fields(json!({"best_off": 1})).wanted(Form::Chat).unwrap_err().json().to_string();
        assert!(told.contains("'best_off' is not known"), "{told}");
        assert_eq!(refused(json!({"response_format": "text"})), "response_format");
        let schema =
            |kind| fields(json!({"response_format": {"type": kind}})).wanted(Form::Chat).unwrap().schema;
        assert!(schema("json_object").is_some() && schema("text").is_none());
        assert_eq!(refused(json!({"stop": [""]})), "stop");
        assert!(
            fields(json!({"user": "x", "presence_penalty": 0.0, "logprobs": false}))
                .wanted(Form::Chat)
                .is_ok()
        );
        let all = fields(json!({"max_tokens": -1, "presence_penalty": 0.5, "frequency_penalty": -1}))
            .wanted(Form::Chat)
            .unwrap();
        assert_eq!(all.most, Some(usize::MAX));
        assert_eq!((all.sampling.presence_penalty, all.sampling.frequency_penalty), (0.5, -1.0));
        assert_eq!(refused(json!({"chat_template_kwargs": [1]})), "chat_template_kwargs");
        assert_eq!(refused(json!({"chat_template_kwargs": {"messages": []}})), "chat_template_kwargs");
        assert_eq!(refused(json!({"n": 2, "best_of": 3})), "best_of");
        assert!(fields(json!({"n": 2, "best_of": 2})).wanted(Form::Completion).is_ok());
        let values = |value| fields(value).wanted(Form::Chat).unwrap().values;
        let given = json!({"chat_template_kwargs": {"enable_thinking": false}, "reasoning_effort": "low"});
        assert_eq!(values(given).as_deref(), Some(r#"{"enable_thinking":false,"reasoning_effort":"low"}"#));
        assert_eq!(values(json!({"reasoning_effort": "none"})), None);
        assert!(Fields::read(b"[]").is_err() && Fields::read(b"{").is_err());
    }

    #[test]
    fn texts_and_tokens_are_told_apart() {
        assert_eq!(fields(json!({"prompt": [1, 2]})).prompts().unwrap(), [Text::Tokens(vec![1, 2])]);
        let both = fields(json!({"input": ["a", [3]]})).inputs().unwrap();
        assert_eq!(both, [Text::Plain("a".into()), Text::Tokens(vec![3])]);
        assert!(fields(json!({"input": []})).inputs().is_err());
        assert!(fields(json!({"prompt": {"a": 1}})).prompts().is_err());
        assert_eq!(fields(json!({"prompt": [[1], [2]]})).prompts().unwrap().len(), 2);
        let likely = |form, value| fields(json!({"logprobs": value})).wanted(form).unwrap().likely;
        assert_eq!((likely(Form::Completion, json!(3)), likely(Form::Chat, json!(true))), (Some(3), Some(0)));
    }
}
