//! How likely tokens were, in the forms of OpenAI's interface.

use halite::{Generator, Likely};
use serde_json::{Map, Value, json};

/// A token that was written, and others in its place.
#[derive(Clone, Debug)]
pub(super) struct Told {
    bytes: Vec<u8>,
    /// Nothing where there is nothing before it.
    logprob: Option<f32>,
    top: Vec<(Vec<u8>, f32)>,
    /// Characters of the text in front of it.
    offset: usize,
    /// Its own: control tokens have none.
    length: usize,
}

/// What is told of a logarithm that is not finite, as OpenAI has it.
const LEAST: f32 = -9999.0;

fn finite(logprob: f32) -> f32 {
    if logprob.is_finite() { logprob } else { LEAST }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Told {
    /// Of a choice, behind those before.
    pub fn new(generator: &Generator, likely: &Likely, before: Option<&Told>) -> Told {
        let bytes = |token: u32| generator.bytes_with_control(token);
        Told {
            logprob: Some(finite(likely.logprob)),
            top: likely.top.iter().map(|(token, logprob)| (bytes(*token), finite(*logprob))).collect(),
            ..Told::alone(generator, likely.token, before)
        }
    }

    /// Of a token that nobody chose.
    pub fn alone(generator: &Generator, token: u32, before: Option<&Told>) -> Told {
        Told {
            bytes: generator.bytes_with_control(token),
            logprob: None,
            top: Vec::new(),
            offset: before.map_or(0, |own| own.offset + own.length),
            length: text(&generator.bytes(token)).chars().count(),
        }
    }
}

/// For conversations: tokens as texts and bytes.
pub(super) fn of_chat(all: &[Told]) -> Value {
    let one = |bytes: &[u8], logprob: f32| json!({"token": text(bytes), "logprob": logprob, "bytes": bytes});
    let told = |own: &Told| {
        let mut made = one(&own.bytes, own.logprob.unwrap_or(LEAST));
        made["top_logprobs"] = own.top.iter().map(|(bytes, logprob)| one(bytes, *logprob)).collect();
        made
    };
    json!({"content": all.iter().map(told).collect::<Vec<_>>(), "refusal": null})
}

/// For completions: lists.
pub(super) fn of_completion(all: &[Told]) -> Value {
    let top = |own: &Told| {
        if own.logprob.is_none() {
            return Value::Null;
        }
        // Tokens with the same text are one here: the first is the most likely.
        let mut made = Map::new();
        for (bytes, logprob) in &own.top {
            made.entry(text(bytes)).or_insert_with(|| (*logprob).into());
        }
        Value::Object(made)
    };
    json!({
        "tokens": all.iter().map(|own| text(&own.bytes)).collect::<Vec<_>>(),
        "token_logprobs": all.iter().map(|own| own.logprob).collect::<Vec<_>>(),
        "top_logprobs": all.iter().map(top).collect::<Vec<_>>(),
        "text_offset": all.iter().map(|own| own.offset).collect::<Vec<_>>(),
    })
}
