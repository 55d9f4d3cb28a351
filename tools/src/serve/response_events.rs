//! Answers in the form of OpenAI's Responses interface: whole, and as events.

use bytes::Bytes;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::spawn_blocking};

use super::{
    answers::Counts,
    body::{self, Body, EndOnDrop},
    calls::Call,
    error::Refusal,
    job::{Client, EVENTS},
    responses::Asked,
    work::{Job, joined},
    write::{Answer, write},
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

    /// A call of a tool.
    fn call(&self, (place, call): (usize, &Call), status: &str, arguments: &str) -> Value {
        let number = format!("{}_{place}", self.number());
        json!({
            "id": format!("fc_{number}"), "call_id": format!("call_{number}"), "type": "function_call", "status": status,
            "name": call.name, "arguments": arguments,
        })
    }

    /// All parts of an answer: its text, unless calls are all that it has.
    fn output(&self, answer: &Answer) -> Vec<Value> {
        let status = if answer.reason == "length" { "incomplete" } else { "completed" };
        let has_text = !answer.text.is_empty() || answer.calls.is_empty();
        let text = has_text.then(|| self.message(status, Some(&answer.text)));
        let calls = answer.calls.iter().enumerate();
        let calls = calls.map(|own| self.call(own, "completed", &own.1.arguments));
        text.into_iter().chain(calls).collect()
    }
}

/// The text of a message.
fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn usage(counts: Counts) -> Value {
    json!({
        "input_tokens": counts.prompt, "input_tokens_details": {"cached_tokens": counts.kept}, "output_tokens": counts.written,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": counts.prompt + counts.written,
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
            write(slots, prompt, &job.wanted, number, limits, |_, _| std::ops::ControlFlow::Continue(()))
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

    /// What text of an answer begins with, the first time.
    fn begin_text(&mut self, form: &Form<'_>) -> Vec<Bytes> {
        if std::mem::replace(&mut self.has_text, true) {
            return Vec::new();
        }
        let item = form.message("in_progress", None);
        let place = json!({"item_id": item["id"], "output_index": 0, "content_index": 0, "part": part("")});
        vec![
            self.event("response.output_item.added", json!({"output_index": 0, "item": item})),
            self.event("response.content_part.added", place),
        ]
    }

    fn text(&mut self, form: &Form<'_>, text: &str) -> Bytes {
        let id = format!("msg_{}", form.number());
        let fields =
            json!({"item_id": id, "output_index": 0, "content_index": 0, "delta": text, "logprobs": []});
        self.event("response.output_text.delta", fields)
    }

    /// The end of text.
    fn end_text(&mut self, answer: &Answer, item: &Value) -> Vec<Bytes> {
        let (id, text) = (&item["id"], &answer.text);
        let place = |name: &str, value: Value| json!({"item_id": id, "output_index": 0, "content_index": 0, name: value});
        let mut whole = place("text", text.as_str().into());
        whole["logprobs"] = json!([]);
        vec![
            self.event("response.output_text.done", whole),
            self.event("response.content_part.done", place("part", part(text))),
            self.event("response.output_item.done", json!({"output_index": 0, "item": item})),
        ]
    }

    /// A call, whole.
    fn call(&mut self, form: &Form<'_>, place: (usize, &Call), index: usize, item: &Value) -> Vec<Bytes> {
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
        let mut all = Vec::new();
        let calls = output.len() - answer.calls.len();
        if calls > 0 {
            all.extend(self.begin_text(form));
            all.extend(self.end_text(answer, &output[0]));
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
            write(slots, prompt, &job.wanted, number, &job.running.limits, |piece, seat| {
                let mut all = events.begin_text(&form);
                all.push(events.text(&form, piece.text));
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
