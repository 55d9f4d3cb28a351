//! Answers in the forms of OpenAI's interface: completions and conversations, whole and in pieces, and vectors.

use halite::ToolCall;
use serde_json::{Map, Value, json};

use super::{
    error::Refusal,
    fields::Form,
    likely::{self, Told},
    write::{Answer, Piece},
};

/// A call as an answer has it.
fn call_of(call: &ToolCall, id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

/// What all pieces of an answer have.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub form: Form,
    pub id: String,
    pub created: u64,
    pub model: String,
}

/// Counts of tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub prompt: usize,
    pub written: usize,
    /// Those of them that were thoughts.
    pub thinking: usize,
    /// Tokens of prompts that were there from earlier requests.
    pub kept: usize,
}

impl Counts {
    fn json(self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.written,
            "total_tokens": self.prompt + self.written,
            "prompt_tokens_details": {"cached_tokens": self.kept},
            "completion_tokens_details": {"reasoning_tokens": self.thinking},
        })
    }
}

impl Head {
    fn object(&self, kind: &str, choices: Vec<Value>) -> Value {
        json!({"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices})
    }

    /// Calls of tools. Each has a name that no other has.
    fn call_list(&self, index: usize, calls: &[ToolCall]) -> Vec<Value> {
        let number = self.id.trim_start_matches("chatcmpl-");
        let one =
            |(place, call): (usize, &ToolCall)| call_of(call, &format!("call_{number}-{index}-{place}"));
        calls.iter().enumerate().map(one).collect()
    }

    /// A whole answer.
    pub fn whole(&self, answers: &[Answer], counts: Counts) -> Value {
        let choice = |(index, answer): (usize, &Answer)| match self.form {
            Form::Chat => {
                let mut message = json!({"role": "assistant", "content": answer.text});
                if !answer.thoughts.is_empty() {
                    message["reasoning_content"] = answer.thoughts.as_str().into();
                }
                if !answer.calls.is_empty() {
                    message["tool_calls"] = self.call_list(index, &answer.calls).into();
                    if answer.text.is_empty() {
                        message["content"] = Value::Null;
                    }
                }
                json!({
                    "index": index,
                    "message": message,
                    "logprobs": self.likely(&answer.told),
                    "finish_reason": answer.reason,
                })
            }
            Form::Completion => json!({
                "index": index,
                "text": answer.text,
                "logprobs": self.likely(&answer.told),
                "finish_reason": answer.reason,
            }),
        };
        let kind = if self.form == Form::Chat { "chat.completion" } else { "text_completion" };
        let mut made = self.object(kind, answers.iter().enumerate().map(choice).collect());
        made["usage"] = counts.json();
        made
    }

    /// How likely tokens were, as the form has it; nothing where nobody asked.
    fn likely(&self, told: &[Told]) -> Value {
        match (told, self.form) {
            ([], _) => Value::Null,
            (told, Form::Chat) => likely::of_chat(told),
            (told, Form::Completion) => likely::of_completion(told),
        }
    }

    fn chunk(&self, index: usize, delta: Value, likely: Value, reason: Option<&str>) -> Value {
        let choice = json!({"index": index, "delta": delta, "logprobs": likely, "finish_reason": reason});
        self.object(self.piece_kind(), vec![choice])
    }

    /// A piece of an answer.
    pub fn piece(&self, index: usize, piece: Piece<'_>) -> Value {
        let likely = self.likely(piece.told);
        match self.form {
            Form::Chat => {
                let mut delta = Map::new();
                if !piece.thoughts.is_empty() {
                    delta.insert("reasoning_content".to_owned(), piece.thoughts.into());
                }
                if !piece.text.is_empty() || delta.is_empty() {
                    delta.insert("content".to_owned(), piece.text.into());
                }
                self.chunk(index, delta.into(), likely, None)
            }
            Form::Completion => {
                let choice =
                    json!({"index": index, "text": piece.text, "logprobs": likely, "finish_reason": null});
                self.object(self.piece_kind(), vec![choice])
            }
        }
    }

    /// The calls of an answer, whole.
    pub fn calls(&self, index: usize, calls: &[ToolCall]) -> Value {
        let mut list = self.call_list(index, calls);
        list.iter_mut().enumerate().for_each(|(place, call)| call["index"] = place.into());
        self.chunk(index, json!({"tool_calls": list}), Value::Null, None)
    }

    /// The end of an answer: the reason why there is no more.
    pub fn end(&self, index: usize, reason: &str) -> Value {
        match self.form {
            Form::Chat => self.chunk(index, json!({}), Value::Null, Some(reason)),
            Form::Completion => {
                let choice = json!({"index": index, "text": "", "logprobs": null, "finish_reason": reason});
                self.object(self.piece_kind(), vec![choice])
            }
        }
    }

    /// What a conversation's pieces begin with: who speaks.
    pub fn begin(&self, index: usize) -> Option<Value> {
        let delta = json!({"role": "assistant", "content": ""});
        (self.form == Form::Chat).then(|| self.chunk(index, delta, Value::Null, None))
    }

    /// The counts behind all pieces.
    pub fn counts(&self, counts: Counts) -> Value {
        let mut made = self.object(self.piece_kind(), Vec::new());
        made["usage"] = counts.json();
        made
    }

    fn piece_kind(&self) -> &'static str {
        if self.form == Form::Chat { "chat.completion.chunk" } else { "text_completion" }
    }
}

/// The first elements of a vector, as a vector of length 1.
pub(super) fn shortened(vector: &[f32], most: usize) -> Result<Vec<f32>, Refusal> {
    let first = vector.get(..most).ok_or_else(|| {
        Refusal::field("dimensions", format!("'dimensions' is {most}; the vectors have {}", vector.len()))
    })?;
    let length = first.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    let factor = if length > 0.0 { 1.0 / length } else { 1.0 };
    Ok(first.iter().map(|number| (f64::from(*number) * factor) as f32).collect())
}

/// Vectors of texts, of which all together have so many tokens.
pub(super) fn vectors(model: &str, vectors: &[Vec<f32>], tokens: usize, in_base64: bool) -> Value {
    let one = |(index, vector): (usize, &Vec<f32>)| {
        let numbers = match in_base64 {
            true => {
                let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                Value::from(base64(&bytes))
            }
            false => Value::from(vector.clone()),
        };
        json!({"object": "embedding", "index": index, "embedding": numbers})
    };
    let data: Vec<_> = vectors.iter().enumerate().map(one).collect();
    json!({
        "object": "list",
        "data": data,
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    })
}

/// Bytes as text (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word =
            three.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]
mod tests {
    #[test]
    fn vectors_are_cut_to_length_one() {
        let made = super::shortened(&[3.0, 4.0, 12.0], 2).unwrap();
        assert!((made[0] - 0.6).abs() < 1e-6 && (made[1] - 0.8).abs() < 1e-6);
        assert_eq!(super::shortened(&[0.0, 1.0], 1).unwrap(), [0.0]);
        assert!(super::shortened(&[1.0], 2).is_err());
    }

    #[test]
    fn bytes_become_base64() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(super::base64(bytes.as_bytes()), text);
        }
    }
}
