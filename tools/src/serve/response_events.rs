//! Answers in the form of OpenAI's Responses interface: whole, and as events.

use bytes::Bytes;
use halite::ToolCall;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::spawn_blocking};

use super::{
    answers::Counts,
    body::{self, Body, EndOnDrop},
    error::Refusal,
    job::{Client, EVENTS},
    responses::Asked,
    work::{Job, joined},
    write::{Answer, Piece, write},
};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// What all events of an answer have.
struct Form<'a> {
    job: &'a Job,
    asked: &'a Asked,
}

impl Form<'_> {
    /// The number that names of this answer's parts have.
    fn number(&self) -> &str {
        let id = &self.job.head.id;
        id.split_once('-').map_or(id.as_str(), |(_, number)| number)
    }

    /// An answer with these parts.
    fn response(&self, status: &str, output: &[Value], done: Option<(&Answer, Counts)>) -> Value {
        let mut made = self.asked.0.clone();
        let head = &self.job.head;
        let ran_out = done.is_some_and(|(answer, _)| answer.reason == "length");
        let details = if ran_out { json!({"reason": "max_output_tokens"}) } else { Value::Null };
        let own = json!({
            "id": format!("resp_{}", self.number()), "object": "response", "created_at": head.created, "model": head.model,
            "status": if ran_out { "incomplete" } else { status }, "error": null, "incomplete_details": details,
            "output": output, "usage": done.map(|(_, counts)| usage(counts)),
        });
        made.extend(own.as_object().cloned().unwrap_or_default());
        Value::Object(made)
    }

    /// The text of an answer.
    fn message(&self, status: &str, content: Option<&str>) -> Value {
        let content: Vec<Value> = content.map(part).into_iter().collect();
        json!({
            "id": format!("msg_{}", self.number()), "type": "message", "status": status, "role": "assistant", "content": content,
        })
    }

    /// What a model thought.
    fn thoughts(&self, status: &str, content: Option<&str>) -> Value {
        let content: Vec<Value> = content.map(part_of_thoughts).into_iter().collect();
        json!({
            "id": format!("rs_{}", self.number()), "type": "reasoning", "status": status, "summary": [], "content": content,
        })
    }

    /// A call of a tool.
    fn call(&self, (place, call): (usize, &ToolCall), status: &str, arguments: &str) -> Value {
        let number = format!("{}_{place}", self.number());
        json!({
            "id": format!("fc_{number}"), "call_id": format!("call_{number}"), "type": "function_call", "status": status,
            "name": call.name, "arguments": arguments,
        })
    }

    /// All parts of an answer: what was thought, its text, unless calls are all that it has.
    fn output(&self, answer: &Answer) -> Vec<Value> {
        let status = if answer.reason == "length" { "incomplete" } else { "completed" };
        let thoughts =
            (!answer.thoughts.is_empty()).then(|| self.thoughts("completed", Some(&answer.thoughts)));
        let has_text = !answer.text.is_empty() || answer.calls.is_empty();
        let text = has_text.then(|| self.message(status, Some(&answer.text)));
        let calls = answer.calls.iter().enumerate();
        let calls = calls.map(|own| self.call(own, "completed", &own.1.arguments));
        thoughts.into_iter().chain(text).chain(calls).collect()
    }
}

/// The text of a message.
fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn part_of_thoughts(text: &str) -> Value {
    json!({"type": "reasoning_text", "text": text})
}

fn usage(counts: Counts) -> Value {
    json!({
        "input_tokens": counts.prompt, "input_tokens_details": {"cached_tokens": counts.kept}, "output_tokens": counts.written,
        "output_tokens_details": {"reasoning_tokens": counts.thinking}, "total_tokens": counts.prompt + counts.written,
    })
}

/// Answers a request.
pub(super) async fn answer((job, asked): (Job, Asked)) -> Result<Response<Body>> {
    if job.wanted.stream {
        return Ok(stream(job, asked));
    }
    // The client may be gone before.
    let _guard = EndOnDrop(job.running.limits.cancel.clone());
    let made = spawn_blocking(move || {
        let limits = &job.running.limits;
        let answers = job.write_all(|slots, _, prompt, number| {
            write(slots, (prompt, None), &job.wanted, number, limits, |_, _| {
                std::ops::ControlFlow::Continue(())
            })
        })?;
        let answer = answers.first().ok_or_else(Refusal::broken_off)?;
        let form = Form { job: &job, asked: &asked };
        Ok(form.response("completed", &form.output(answer), Some((answer, job.counts(&answers)))))
    });
    Ok(body::json(StatusCode::OK, &joined(made.await)?))
}

/// Events, numbered one behind the other.
#[derive(Default)]
struct Events {
    number: u64,
    /// Whether the text of the answer has begun.
    has_text: bool,
    /// What was thought so far.
    thoughts: String,
    /// Whether that has ended.
    is_behind: bool,
}

impl Events {
    fn event(&mut self, kind: &str, fields: Value) -> Bytes {
        let mut made = json!({"type": kind, "sequence_number": self.number});
        if let (Some(own), Some(fields)) = (made.as_object_mut(), fields.as_object()) {
            own.extend(fields.clone());
        }
        self.number += 1;
        body::named_event(kind, &made)
    }

    /// Where the text of an answer is among its parts.
    fn text_index(&self) -> usize {
        usize::from(!self.thoughts.is_empty())
    }

    /// A piece of an answer.
    fn piece(&mut self, form: &Form<'_>, piece: Piece<'_>) -> Vec<Bytes> {
        let mut all = Vec::new();
        if !piece.thoughts.is_empty() {
            all.extend(self.think(form, piece.thoughts));
        }
        if !piece.text.is_empty() {
            all.extend(self.begin_text(form));
            all.push(self.text(form, piece.text));
        }
        all
    }

    /// What is thought: what comes behind the text is in the whole answer only.
    fn think(&mut self, form: &Form<'_>, text: &str) -> Vec<Bytes> {
        if self.has_text {
            return Vec::new();
        }
        let item = form.thoughts("in_progress", None);
        let place = |name: &str, value: Value| json!({"item_id": item["id"], "output_index": 0, "content_index": 0, name: value});
        let mut all = Vec::new();
        if self.thoughts.is_empty() {
            all.push(self.event("response.output_item.added", json!({"output_index": 0, "item": item})));
            all.push(self.event("response.content_part.added", place("part", part_of_thoughts(""))));
        }
        self.thoughts.push_str(text);
        all.push(self.event("response.reasoning_text.delta", place("delta", text.into())));
        all
    }

    /// The end of what is thought, once.
    fn end_thoughts(&mut self, form: &Form<'_>) -> Vec<Bytes> {
        if self.thoughts.is_empty() || std::mem::replace(&mut self.is_behind, true) {
            return Vec::new();
        }
        let text = self.thoughts.clone();
        let item = form.thoughts("completed", Some(&text));
        let place = |name: &str, value: Value| json!({"item_id": item["id"], "output_index": 0, "content_index": 0, name: value});
        vec![
            self.event("response.reasoning_text.done", place("text", text.as_str().into())),
            self.event("response.content_part.done", place("part", part_of_thoughts(&text))),
            self.event("response.output_item.done", json!({"output_index": 0, "item": item})),
        ]
    }

    /// What text of an answer begins with, the first time.
    fn begin_text(&mut self, form: &Form<'_>) -> Vec<Bytes> {
        if std::mem::replace(&mut self.has_text, true) {
            return Vec::new();
        }
        let mut all = self.end_thoughts(form);
        let (item, index) = (form.message("in_progress", None), self.text_index());
        let place =
            json!({"item_id": item["id"], "output_index": index, "content_index": 0, "part": part("")});
        all.push(self.event("response.output_item.added", json!({"output_index": index, "item": item})));
        all.push(self.event("response.content_part.added", place));
        all
    }

    fn text(&mut self, form: &Form<'_>, text: &str) -> Bytes {
        let (id, index) = (format!("msg_{}", form.number()), self.text_index());
        let fields =
            json!({"item_id": id, "output_index": index, "content_index": 0, "delta": text, "logprobs": []});
        self.event("response.output_text.delta", fields)
    }

    /// The end of text.
    fn end_text(&mut self, answer: &Answer, item: &Value) -> Vec<Bytes> {
        let (id, text) = (&item["id"], &answer.text);
        let index = self.text_index();
        let place = |name: &str, value: Value| json!({"item_id": id, "output_index": index, "content_index": 0, name: value});
        let mut whole = place("text", text.as_str().into());
        whole["logprobs"] = json!([]);
        vec![
            self.event("response.output_text.done", whole),
            self.event("response.content_part.done", place("part", part(text))),
            self.event("response.output_item.done", json!({"output_index": index, "item": item})),
        ]
    }

    /// A call, whole.
    fn call(&mut self, form: &Form<'_>, place: (usize, &ToolCall), index: usize, item: &Value) -> Vec<Bytes> {
        let arguments = &place.1.arguments;
        let of = |name: &str| json!({"item_id": item["id"], "output_index": index, name: arguments});
        let mut done = of("arguments");
        done["name"] = place.1.name.as_str().into();
        let begun = form.call(place, "in_progress", "");
        vec![
            self.event("response.output_item.added", json!({"output_index": index, "item": begun})),
            self.event("response.function_call_arguments.delta", of("delta")),
            self.event("response.function_call_arguments.done", done),
            self.event("response.output_item.done", json!({"output_index": index, "item": item})),
        ]
    }

    /// What follows the text of an answer: its calls, and the answer as a whole.
    fn end(&mut self, form: &Form<'_>, answer: &Answer, counts: Counts) -> Vec<Bytes> {
        let output = form.output(answer);
        let mut all = self.end_thoughts(form);
        let (calls, text) = (output.len() - answer.calls.len(), usize::from(!answer.thoughts.is_empty()));
        if calls > text {
            all.extend(self.begin_text(form));
            all.extend(self.end_text(answer, &output[text]));
        }
        for (place, call) in answer.calls.iter().enumerate() {
            all.extend(self.call(form, (place, call), calls + place, &output[calls + place]));
        }
        let made = form.response("completed", &output, Some((answer, counts)));
        let kind = if made["status"] == "completed" { "response.completed" } else { "response.incomplete" };
        all.push(self.event(kind, json!({"response": made})));
        all
    }
}

/// Answers piece by piece.
fn stream(job: Job, asked: Asked) -> Response<Body> {
    let (send, receive) = mpsc::channel::<Bytes>(EVENTS);
    let guard = EndOnDrop(job.running.limits.cancel.clone());
    let client = Client::new(send, job.running.work.timeout);
    spawn_blocking(move || {
        let form = Form { job: &job, asked: &asked };
        let mut events = Events::default();
        for kind in ["response.created", "response.in_progress"] {
            let made = form.response("in_progress", &[], None);
            client.tell_bytes(events.event(kind, json!({"response": made})));
        }
        let made = job.write_all(|slots, _, prompt, number| {
            write(slots, (prompt, None), &job.wanted, number, &job.running.limits, |piece, seat| {
                let all = events.piece(&form, piece);
                client.tell_beside(Bytes::from(all.concat()), seat)
            })
        });
        let last = match &made {
            Ok(answers) => answers.first().map(|answer| events.end(&form, answer, job.counts(answers))),
            Err(refusal) => {
                let mut told = refusal.json()["error"].clone();
                told["type"] = "error".into();
                Some(vec![events.event("error", told)])
            }
        };
        last.into_iter().flatten().for_each(|event| _ = client.tell_bytes(event));
        drop(job.turn);
    });
    body::events(receive, guard)
}
