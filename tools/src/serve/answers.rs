//! Answers in the forms of OpenAI's interface: completions and conversations, whole and in pieces, and vectors.

use serde_json::{Value, json};

use super::write::Answer;

/// Which of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Completion,
    Chat,
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
pub(super) fn usage(prompt: usize, written: usize, kept: usize) -> Value {
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": kept},
    })
}

impl Head {
    fn object(&self, kind: &str, choices: Vec<Value>) -> Value {
        json!({"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices})
    }

    /// A whole answer.
    pub fn whole(&self, answers: &[Answer], prompt: usize) -> Value {
        let choice = |(index, answer): (usize, &Answer)| match self.form {
            Form::Chat => json!({
                "index": index,
                "message": {"role": "assistant", "content": answer.text},
                "logprobs": null,
                "finish_reason": answer.reason,
            }),
            Form::Completion => json!({
                "index": index, "text": answer.text, "logprobs": null, "finish_reason": answer.reason,
            }),
        };
        let kind = if self.form == Form::Chat { "chat.completion" } else { "text_completion" };
        let mut made = self.object(kind, answers.iter().enumerate().map(choice).collect());
        let written = answers.iter().map(|answer| answer.tokens).sum();
        let kept = answers.first().map_or(0, |answer| answer.kept);
        made["usage"] = usage(prompt, written, kept);
        made
    }

    /// A piece of an answer: text, or in the end the reason why there is no more.
    pub fn piece(&self, text: Option<&str>, reason: Option<&str>) -> Value {
        let choice = match self.form {
            Form::Chat => {
                let delta = text.map_or(json!({}), |text| json!({"content": text}));
                json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason})
            }
            Form::Completion => {
                json!({"index": 0, "text": text.unwrap_or(""), "logprobs": null, "finish_reason": reason})
            }
        };
        self.object(self.piece_kind(), vec![choice])
    }

    /// What a conversation's pieces begin with: who speaks.
    pub fn begin(&self) -> Option<Value> {
        let choice = json!({
            "index": 0,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": null,
            "finish_reason": null,
        });
        (self.form == Form::Chat).then(|| self.object(self.piece_kind(), vec![choice]))
    }

    /// The counts behind all pieces.
    pub fn counts(&self, usage: Value) -> Value {
        let mut made = self.object(self.piece_kind(), Vec::new());
        made["usage"] = usage;
        made
    }

    fn piece_kind(&self) -> &'static str {
        if self.form == Form::Chat { "chat.completion.chunk" } else { "text_completion" }
    }
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
mod tests {
    #[test]
    fn bytes_become_base64() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(super::base64(bytes.as_bytes()), text);
        }
    }
}
