//! Requests as OpenAI's interface has them: their fields, and what of them is refused.

use halite::{Message, Sampling};
use serde_json::{Map, Value};

use super::error::Refusal;

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Most texts that end an answer.
const MOST_STOPS: usize = 16;
/// Most answers of a request.
const MOST_CHOICES: u64 = 16;
/// Most texts of a request for vectors.
const MOST_INPUTS: usize = 2048;
/// Most objects of a body: messages and their parts.
const MOST_OBJECTS: usize = 1 << 14;
/// Most elements of lists and objects of a body: tokens, mostly.
const MOST_VALUES: usize = 1 << 20;

/// The object that is a request's body.
pub(super) struct Fields(Map<String, Value>);

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
    /// Whether it is a JSON object.
    pub json: bool,
}

/// Refuses a body of very many values: in memory an object takes a hundred times as much as its text.
fn check_count(body: &[u8]) -> Result<()> {
    let (mut objects, mut values) = (0usize, 0usize);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' if !is_text => objects += 1,
            b',' | b'[' if !is_text => values += 1,
            _ => {}
        }
    }
    match objects > MOST_OBJECTS || values > MOST_VALUES {
        true => Err(Refusal::wrong(format!(
            "the body has {objects} objects and {values} values; {MOST_OBJECTS} and {MOST_VALUES} are the most"
        ))),
        false => Ok(()),
    }
}

impl Fields {
    /// Reads a body.
    pub fn read(body: &[u8]) -> Result<Fields> {
        check_count(body)?;
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(_) => Err(Refusal::wrong("the body is no JSON object")),
            Err(error) => Err(Refusal::wrong(format!("the body is no JSON: {error}"))),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A text, if it is there.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>> {
        let wrong = || Refusal::field(name, format!("'{name}' is no text"));
        self.get(name).map(|value| value.as_str().ok_or_else(wrong)).transpose()
    }

    fn flag(&self, name: &'static str) -> Result<bool> {
        let wrong = || Refusal::field(name, format!("'{name}' is neither true nor false"));
        Ok(self.get(name).map(|value| value.as_bool().ok_or_else(wrong)).transpose()?.unwrap_or(false))
    }

    fn count(&self, name: &'static str) -> Result<Option<u64>> {
        let wrong = || Refusal::field(name, format!("'{name}' is no whole number of 0 or more"));
        self.get(name).map(|value| value.as_u64().ok_or_else(wrong)).transpose()
    }

    /// A number of tokens, if it is there; -1 is none at all, as servers for models on one's own machine have it.
    fn most(&self, name: &'static str) -> Result<Option<u64>> {
        match self.get(name).and_then(Value::as_i64) {
            Some(-1) => Ok(Some(u64::MAX)),
            _ => self.count(name),
        }
    }

    fn number(&self, name: &'static str, least: f64, most: f64) -> Result<Option<f32>> {
        let wrong = || Refusal::field(name, format!("'{name}' is no number from {least} to {most}"));
        let within = |value: &Value| value.as_f64().filter(|value| (least..=most).contains(value));
        let value = self.get(name).map(|value| within(value).ok_or_else(wrong)).transpose()?;
        Ok(value.map(|value| value as f32))
    }

    /// Refuses fields that ask for what there is not. `plain` are values that ask for nothing.
    fn refuse(&self, names: &[(&'static str, Value)]) -> Result<()> {
        for (name, plain) in names {
            if let Some(value) = self.get(name)
                && value != plain
                && !(value.as_f64().is_some() && value.as_f64() == plain.as_f64())
            {
                return Err(Refusal::field(name, format!("'{name}' is not supported; leave it out"))
                    .code("unsupported"));
            }
        }
        Ok(())
    }

    /// How an answer is written.
    pub fn wanted(&self) -> Result<Wanted> {
        self.refuse(&[
            ("logprobs", false.into()),
            ("top_logprobs", 0.into()),
            ("logit_bias", Value::Object(Map::new())),
            ("tools", Value::Array(Vec::new())),
            ("functions", Value::Array(Vec::new())),
            ("echo", false.into()),
            ("suffix", "".into()),
            ("best_of", 1.into()),
        ])?;
        let most = match self.most("max_completion_tokens")? {
            None => self.most("max_tokens")?,
            most => most,
        };
        let choices = self.count("n")?.unwrap_or(1);
        if !(1..=MOST_CHOICES).contains(&choices) {
            return Err(Refusal::field(
                "n",
                format!("'n' is {choices}; there are 1 to {MOST_CHOICES} answers"),
            ));
        }
        let stream = self.flag("stream")?;
        if stream && choices > 1 {
            return Err(
                Refusal::field("n", "several answers ('n') do not come in a stream").code("unsupported")
            );
        }
        let counts = self.get("stream_options").and_then(|options| options.get("include_usage"));
        Ok(Wanted {
            most: most.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
            choices,
            stream,
            counts: counts.and_then(Value::as_bool).unwrap_or(false),
            stops: self.stops()?,
            sampling: self.sampling()?,
            json: self.wants_json()?,
        })
    }

    /// Whether the answer has to be a JSON object.
    fn wants_json(&self) -> Result<bool> {
        let field = "response_format";
        let Some(format) = self.get(field) else { return Ok(false) };
        match format.get("type").and_then(Value::as_str) {
            Some("text") => Ok(false),
            Some("json_object") => Ok(true),
            Some(other) => {
                let text = format!("'{field}' of the type {other}; there are text and json_object");
                Err(Refusal::field(field, text).code("unsupported"))
            }
            None => Err(Refusal::field(field, format!("'{field}' is no object with a 'type'"))),
        }
    }

    fn sampling(&self) -> Result<Sampling> {
        let of_users = |value: Option<u64>, usual| {
            value.map_or(usual, |value| usize::try_from(value).unwrap_or(usize::MAX))
        };
        Ok(Sampling {
            temperature: self.number("temperature", 0.0, 100.0)?.unwrap_or(1.0),
            top_p: self.number("top_p", 0.0, 1.0)?.unwrap_or(1.0),
            min_p: self.number("min_p", 0.0, 1.0)?.unwrap_or(0.0),
            top_k: of_users(self.count("top_k")?, 0),
            repeat_penalty: self.number("repeat_penalty", 1e-3, 1e3)?.unwrap_or(1.0),
            frequency_penalty: self.number("frequency_penalty", -2.0, 2.0)?.unwrap_or(0.0),
            presence_penalty: self.number("presence_penalty", -2.0, 2.0)?.unwrap_or(0.0),
            repeat_last: of_users(self.count("repeat_last")?, 64),
            seed: match self.get("seed") {
                Some(seed) => match (seed.as_u64(), seed.as_i64()) {
                    (Some(seed), _) => seed,
                    (None, Some(seed)) => seed as u64,
                    _ => return Err(Refusal::field("seed", "'seed' is no whole number")),
                },
                None => super::random_seed(),
            },
        })
    }

    fn stops(&self) -> Result<Vec<String>> {
        let wrong =
            || Refusal::field("stop", format!("'stop' is neither a text nor up to {MOST_STOPS} of them"));
        let all = match self.get("stop") {
            None => Vec::new(),
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(all)) if all.len() <= MOST_STOPS => all
                .iter()
                .map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect::<Result<_>>()?,
            Some(_) => return Err(wrong()),
        };
        match all.iter().any(String::is_empty) {
            true => Err(Refusal::field("stop", "a text of 'stop' is empty")),
            false => Ok(all),
        }
    }

    /// The messages of a conversation.
    pub fn messages(&self) -> Result<Vec<Message>> {
        let wrong = |what: String| Refusal::field("messages", what);
        let Some(Value::Array(all)) = self.get("messages") else {
            return Err(wrong("'messages', a list of messages, is missing".to_owned()));
        };
        if all.is_empty() {
            return Err(wrong("'messages' is empty".to_owned()));
        }
        let message = |(place, message): (usize, &Value)| {
            let role = message.get("role").and_then(Value::as_str);
            let role = role.ok_or_else(|| wrong(format!("message {place} has no 'role'")))?;
            let content = match message.get("content") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(parts)) => parts_of(parts, place)?,
                _ => return Err(wrong(format!("message {place} has no 'content'"))),
            };
            Ok(Message::new(role, content))
        };
        all.iter().enumerate().map(message).collect()
    }

    /// The prompts of a completion.
    pub fn prompts(&self) -> Result<Vec<Text>> {
        self.texts("prompt")
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
        self.refuse(&[("dimensions", Value::Null)])?;
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

/// The text of a message that comes in parts.
fn parts_of(parts: &[Value], place: usize) -> Result<String> {
    let part = |part: &Value| match (part.get("type").and_then(Value::as_str), part.get("text")) {
        (Some("text"), Some(Value::String(text))) => Ok(text.clone()),
        (kind, _) => {
            let kind = kind.unwrap_or("nothing");
            Err(Refusal::field(
                "messages",
                format!("message {place} has a part that is {kind}; there is text"),
            ))
        }
    };
    Ok(parts.iter().map(part).collect::<Result<Vec<_>>>()?.concat())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        Fields::read(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn bodies_of_very_many_values_are_refused() {
        let body = |one: &str, count: usize| format!(r#"{{"user":[{}]}}"#, vec![one; count].join(","));
        let told =
            |body: String| Fields::read(body.as_bytes()).err().map(|refusal| refusal.json().to_string());
        let objects = told(body(r#"{"":0}"#, MOST_OBJECTS)).unwrap();
        assert!(objects.contains(&format!("{} objects", MOST_OBJECTS + 1)), "{objects}");
        assert!(told(body("0", MOST_VALUES + 1)).unwrap().contains("values"));
        // Tokens of a long prompt, and what only looks like objects.
        assert_eq!(told(body("0", 1 << 17)), None);
        assert_eq!(told(body(r#""{[,\"{""#, MOST_OBJECTS)), None);
    }

    #[test]
    fn what_is_wrong_is_told_by_its_field() {
        let refused = |value: Value| fields(value).wanted().unwrap_err().json()["error"]["param"].clone();
        assert_eq!(refused(json!({"temperature": -1})), "temperature");
        assert_eq!(refused(json!({"n": 0})), "n");
        assert_eq!(refused(json!({"max_tokens": 1.5})), "max_tokens");
        assert_eq!(refused(json!({"max_tokens": -2})), "max_tokens");
        assert_eq!(refused(json!({"frequency_penalty": 3})), "frequency_penalty");
        assert_eq!(refused(json!({"logprobs": 3})), "logprobs");
        assert_eq!(refused(json!({"response_format": {"type": "json_schema"}})), "response_format");
        assert_eq!(refused(json!({"response_format": "text"})), "response_format");
        let wants_json = |kind| fields(json!({"response_format": {"type": kind}})).wanted().unwrap().json;
        assert!(wants_json("json_object") && !wants_json("text"));
        assert_eq!(refused(json!({"stop": [""]})), "stop");
        assert!(
            fields(json!({"logprobs": null, "presence_penalty": 0.0, "logprobs": false})).wanted().is_ok()
        );
        let all = fields(json!({"max_tokens": -1, "presence_penalty": 0.5, "frequency_penalty": -1}))
            .wanted()
            .unwrap();
        assert_eq!(all.most, Some(usize::MAX));
        assert_eq!((all.sampling.presence_penalty, all.sampling.frequency_penalty), (0.5, -1.0));
        assert!(Fields::read(b"[]").is_err() && Fields::read(b"{").is_err());
    }

    #[test]
    fn texts_and_tokens_are_told_apart() {
        assert_eq!(fields(json!({"prompt": [1, 2]})).prompts().unwrap(), [Text::Tokens(vec![1, 2])]);
        let both = fields(json!({"input": ["a", [3]]})).inputs().unwrap();
        assert_eq!(both, [Text::Plain("a".into()), Text::Tokens(vec![3])]);
        assert!(fields(json!({"input": []})).inputs().is_err());
        assert!(fields(json!({"prompt": {"a": 1}})).prompts().is_err());
        let parts = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]});
        assert_eq!(fields(parts).messages().unwrap(), [Message::new("user", "ab")]);
        assert!(
            fields(json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}))
                .messages()
                .is_err()
        );
    }
}
