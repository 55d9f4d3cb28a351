//! The answers of a request: at once, or piece by piece.

use std::{ops::ControlFlow, time::Duration};

use bytes::Bytes;
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::mpsc::{self, error::TrySendError},
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use super::{
    answers::Counts,
    body::{self, Body, EndOnDrop},
    error::Refusal,
    slots::Slots,
    together::Seat,
    work::{Job, joined},
    write::{Answer, write},
};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Events that wait for a client.
pub(super) const EVENTS: usize = 64;

/// Answers a request.
pub(super) async fn answer(job: Job) -> Result<Response<Body>> {
    match job.wanted.stream {
        true => Ok(stream(job)),
        false => whole(job).await,
    }
}

impl Job {
    /// Writes all answers, one behind the other: `each` is given the number of an answer, its prompt, and its number among those of the
    /// prompt.
    pub fn write_all(
        &self,
        mut each: impl FnMut(&Slots, usize, &[u32], u64) -> Result<Answer>,
    ) -> Result<Vec<Answer>> {
        let Some(slots) = &self.running.work.writer else { return Ok(Vec::new()) };
        let mut answers = Vec::new();
        for prompt in &self.prompts {
            for number in 0..self.wanted.choices {
                let answer = each(slots, answers.len(), prompt, number)?;
                answers.push(answer);
            }
        }
        Ok(answers)
    }

    /// The text that an answer begins with, if that is its prompt.
    pub fn echo(&self, index: usize) -> Option<&str> {
        let choices = usize::try_from(self.wanted.choices).unwrap_or(1).max(1);
        self.wanted.echoes.get(index / choices).map(String::as_str)
    }

    /// The tokens of all prompts and answers.
    pub fn counts(&self, answers: &[Answer]) -> Counts {
        let choices = usize::try_from(self.wanted.choices).unwrap_or(1).max(1);
        Counts {
            prompt: self.prompts.iter().map(Vec::len).sum(),
            written: answers.iter().map(|answer| answer.tokens).sum(),
            thinking: answers.iter().map(|answer| answer.thinking).sum(),
            kept: answers.iter().step_by(choices).map(|answer| answer.kept).sum(),
        }
    }
}

/// Answers at once, when all is written.
async fn whole(job: Job) -> Result<Response<Body>> {
    // The client may be gone before.
    let _guard = EndOnDrop(job.running.limits.cancel.clone());
    let made = spawn_blocking(move || {
        let limits = &job.running.limits;
        let answers = job.write_all(|slots, index, prompt, number| {
            write(slots, (prompt, job.echo(index)), &job.wanted, number, limits, |_, _| {
                ControlFlow::Continue(())
            })
        })?;
        Ok(job.head.whole(&answers, job.counts(&answers)))
    });
    Ok(body::json(StatusCode::OK, &joined(made.await)?))
}

/// Whether somebody took an event in time. A time that is further away than clocks reach is no bound.
async fn sent_until(until: Option<Instant>, send: &mpsc::Sender<Bytes>, bytes: Bytes) -> bool {
    match until {
        Some(until) => timeout_at(until, send.send(bytes)).await.is_ok_and(|sent| sent.is_ok()),
        None => send.send(bytes).await.is_ok(),
    }
}

/// A client that events go to.
pub(super) struct Client {
    send: mpsc::Sender<Bytes>,
    until: Option<Instant>,
    handle: Handle,
}

impl Client {
    /// One that has so long to take what there is.
    pub fn new(send: mpsc::Sender<Bytes>, timeout: Duration) -> Client {
        // A client that is gone ends the work by what its body holds, and one that reads slowly by the time that a request has.
        Client { send, until: Instant::now().checked_add(timeout), handle: Handle::current() }
    }

    pub fn tell_bytes(&self, bytes: Bytes) -> bool {
        self.handle.block_on(sent_until(self.until, &self.send, bytes))
    }

    fn tell(&self, value: &Value) -> bool {
        self.tell_bytes(body::event(value))
    }

    /// Tells something while others write, who do not wait for a client that is slow.
    pub fn tell_beside(&self, event: Bytes, seat: &Seat<'_>) -> ControlFlow<()> {
        let is_told = match self.send.try_send(event) {
            Err(TrySendError::Full(event)) => seat.away(|| self.tell_bytes(event)),
            told => told.is_ok(),
        };
        if is_told { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// Answers piece by piece.
fn stream(job: Job) -> Response<Body> {
    let (send, receive) = mpsc::channel::<Bytes>(EVENTS);
    let guard = EndOnDrop(job.running.limits.cancel.clone());
    let client = Client::new(send, job.running.work.timeout);
    spawn_blocking(move || {
        let (head, wanted, limits) = (&job.head, &job.wanted, &job.running.limits);
        let made = job.write_all(|slots, index, prompt, number| {
            if let Some(begin) = head.begin(index) {
                client.tell(&begin);
            }
            let answer = write(slots, (prompt, job.echo(index)), wanted, number, limits, |piece, seat| {
                client.tell_beside(body::event(&head.piece(index, piece)), seat)
            })?;
            if !answer.calls.is_empty() {
                client.tell(&head.calls(index, &answer.calls));
            }
            client.tell(&head.end(index, answer.reason));
            Ok(answer)
        });
        match made {
            Ok(answers) if wanted.counts => _ = client.tell(&head.counts(job.counts(&answers))),
            Ok(_) => {}
            Err(refusal) => _ = client.tell(&refusal.json()),
        }
        client.tell_bytes(body::last_event());
        drop(job.turn);
    });
    body::events(receive, guard)
}
