//! What a request asks for: models, text, vectors.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use halite::{CancelToken, Embedder, Generator, Message, RunOptions};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    sync::{
        Semaphore,
        mpsc::{self, error::TrySendError},
    },
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use super::{
    answers::{self, Form, Head},
    body::{self, Body, EndOnDrop},
    error::Refusal,
    request::{Fields, Text, Wanted},
    slots::{Slots, Turn},
    write::{Answer, Limits, write},
};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Tokens of a completion that says nothing of it, as OpenAI has them.
const USUAL_COMPLETION: usize = 16;
/// Events that wait for a client.
const EVENTS: usize = 64;
/// Requests that are made tokens of at the same time.
const PREPARING: usize = 2;

/// The models of a server, and what runs on them.
pub(super) struct Work {
    pub model: String,
    pub writer: Option<Slots>,
    pub embedder: Option<Embedder>,
    /// A permit for each request that makes vectors at the same time.
    pub embedding: Semaphore,
    /// How many requests are made tokens of at a time.
    preparing: Semaphore,
    pub timeout: Duration,
    pub created: u64,
    numbers: AtomicU64,
    /// What runs, by number.
    running: Mutex<HashMap<u64, CancelToken>>,
}

/// A request that runs; it is none of these any more once this is gone.
struct Running {
    work: Arc<Work>,
    number: u64,
    limits: Limits,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.work.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Refuses prompts that there is no room for, or that have nothing.
fn check_room(own: usize, context: usize, form: Form) -> Result<()> {
    let field = match form {
        Form::Chat => "messages",
        Form::Completion => "prompt",
    };
    if own == 0 {
        return Err(Refusal::field(field, format!("'{field}' has no tokens; there is at least one")));
    }
    match own < context {
        true => Ok(()),
        false => Err(Refusal::field(
            field,
            format!(
                "a prompt of {own} tokens; there is room for 1 to {} with its answer: shorten it, or serve the model with a larger --context",
                context.saturating_sub(1)
            ),
        )
        .code("context_length_exceeded")),
    }
}

impl Work {
    /// The work of a server with one model.
    pub fn new(
        model: String,
        writer: Option<Slots>,
        embedder: Option<Embedder>,
        parallel: usize,
        timeout: Duration,
    ) -> Work {
        Work {
            model,
            writer,
            embedder,
            embedding: Semaphore::new(parallel),
            preparing: Semaphore::new(PREPARING),
            timeout,
            created: now(),
            numbers: AtomicU64::new(0),
            running: Mutex::default(),
        }
    }

    /// Ends all that runs.
    pub fn cancel(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().for_each(CancelToken::cancel);
    }

    fn begin(self: &Arc<Self>) -> Running {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let token = CancelToken::new();
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(number, token.clone());
        Running { work: self.clone(), number, limits: Limits { timeout: self.timeout, cancel: token } }
    }

    fn card(&self) -> Value {
        json!({"id": self.model, "object": "model", "created": self.created, "owned_by": "halite"})
    }

    /// That the server answers, and in how many steps requests that ran at the same time had their tokens.
    pub fn health(&self) -> Value {
        let (steps, tokens) = self.writer.as_ref().map_or((0, 0), |slots| slots.together().shared());
        json!({"status": "ok", "shared": {"steps": steps, "tokens": tokens}})
    }

    /// The models that there are.
    pub fn models(&self) -> Value {
        json!({"object": "list", "data": [self.card()]})
    }

    /// One of them.
    pub fn model(&self, id: &str) -> Result<Value> {
        self.is_known(Some(id)).map(|()| self.card())
    }

    fn is_known(&self, id: Option<&str>) -> Result<()> {
        match id {
            Some(id) if id != self.model => {
                let text = format!("there is no model '{id}'; there is: {}", self.model);
                Err(Refusal::with(StatusCode::NOT_FOUND, text).code("model_not_found"))
            }
            _ => Ok(()),
        }
    }

    fn writer(&self) -> Result<&Slots> {
        self.writer.as_ref().ok_or_else(|| {
            Refusal::wrong("the model makes vectors of texts and writes none; ask /v1/embeddings")
                .code("unsupported")
        })
    }

    /// The tokens of a conversation. Not made on a thread that serves others: a template works for as long as messages are long.
    async fn conversation(&self, generator: Generator, messages: Vec<Message>) -> Result<Vec<u32>> {
        let options = RunOptions::new().timeout(self.timeout);
        self.prepared(move || {
            let prompt = generator.chat_with(&messages, &options).map_err(|error| Refusal::of(&error))?;
            Ok(generator.tokenize(&prompt, true))
        })
        .await
    }

    /// Makes tokens of a request. Few are made at a time: texts are long, and what waits for its turn has not begun to work.
    async fn prepared(&self, make: impl FnOnce() -> Result<Vec<u32>> + Send + 'static) -> Result<Vec<u32>> {
        let turn = self.preparing.acquire().await;
        let _turn = turn.map_err(|_| Refusal::with(StatusCode::SERVICE_UNAVAILABLE, "the server ends"))?;
        joined(spawn_blocking(make).await)
    }

    /// Answers a request for text.
    pub async fn text(self: &Arc<Self>, form: Form, body: &[u8]) -> Result<Response<Body>> {
        let fields = Fields::read(body)?;
        self.is_known(fields.text("model")?)?;
        let (slots, mut wanted) = (self.writer()?, fields.wanted()?);
        let generator = slots.generator();
        let prompt = match form {
            Form::Chat => self.conversation(generator.clone(), fields.messages()?).await?,
            Form::Completion => {
                wanted.most.get_or_insert(USUAL_COMPLETION);
                match &fields.prompts()?[..] {
                    [Text::Plain(text)] => {
                        let (generator, text) = (generator.clone(), text.clone());
                        self.prepared(move || Ok(generator.tokenize(&text, false))).await?
                    }
                    [Text::Tokens(tokens)] => tokens.clone(),
                    all => {
                        let text = format!("{} prompts; there is one for each request", all.len());
                        return Err(Refusal::field("prompt", text));
                    }
                }
            }
        };
        check_room(prompt.len(), generator.context(), form)?;
        // It may wait for long.
        drop(fields);
        let turn = slots.turn().await?;
        let running = self.begin();
        let id = format!(
            "{}-{:x}-{}",
            if form == Form::Chat { "chatcmpl" } else { "cmpl" },
            self.created,
            running.number
        );
        let head = Head { form, id, created: now(), model: self.model.clone() };
        match wanted.stream {
            true => Ok(stream(running, turn, prompt, wanted, head)),
            false => whole(running, turn, prompt, wanted, head).await,
        }
    }

    /// Answers a request for vectors.
    pub async fn vectors(self: &Arc<Self>, body: &[u8]) -> Result<Response<Body>> {
        let fields = Fields::read(body)?;
        self.is_known(fields.text("model")?)?;
        let embedder = self.embedder.clone().ok_or_else(|| {
            Refusal::wrong("the model makes no vectors of texts: its file does not say how")
                .code("unsupported")
        })?;
        let (inputs, in_base64) = (fields.inputs()?, fields.wants_base64()?);
        drop(fields);
        let turn = self.embedding.acquire().await;
        let _turn = turn.map_err(|_| Refusal::with(StatusCode::SERVICE_UNAVAILABLE, "the server ends"))?;
        let running = self.begin();
        let _guard = EndOnDrop(running.limits.cancel.clone());
        let made = spawn_blocking(move || {
            let options = running.limits.options();
            let (mut tokens, mut vectors) = (0, Vec::new());
            for input in &inputs {
                let own = match input {
                    Text::Plain(text) => embedder.tokenize(text),
                    Text::Tokens(tokens) => tokens.clone(),
                };
                vectors.push(embedder.embed(&own, &options).map_err(|error| Refusal::of(&error))?);
                tokens += own.len();
            }
            Ok((tokens, vectors))
        });
        let (tokens, vectors) = joined(made.await)?;
        Ok(body::json(StatusCode::OK, &answers::vectors(&self.model, &vectors, tokens, in_base64)))
    }
}

/// What work on a thread of its own gave.
fn joined<T>(made: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    made.unwrap_or_else(|_| Err(Refusal::broken_off()))
}

/// Answers at once, when all is written.
async fn whole(
    running: Running,
    turn: Turn,
    prompt: Vec<u32>,
    wanted: Wanted,
    head: Head,
) -> Result<Response<Body>> {
    // The client may be gone before.
    let _guard = EndOnDrop(running.limits.cancel.clone());
    let made = spawn_blocking(move || {
        let _turn = turn;
        let Some(slots) = &running.work.writer else {
            return Ok((prompt.len(), Vec::new()));
        };
        let one = |number| {
            write(slots, &prompt, &wanted, number, &running.limits, |_, _| ControlFlow::Continue(()))
        };
        Ok((prompt.len(), (0..wanted.choices).map(one).collect::<Result<Vec<Answer>>>()?))
    });
    let (prompt, answers) = joined(made.await)?;
    Ok(body::json(StatusCode::OK, &head.whole(&answers, prompt)))
}

/// Whether somebody took an event in time. A time that is further away than clocks reach is no bound.
async fn sent_until(until: Option<Instant>, send: &mpsc::Sender<Bytes>, bytes: Bytes) -> bool {
    match until {
        Some(until) => timeout_at(until, send.send(bytes)).await.is_ok_and(|sent| sent.is_ok()),
        None => send.send(bytes).await.is_ok(),
    }
}

/// Answers piece by piece.
fn stream(running: Running, turn: Turn, prompt: Vec<u32>, wanted: Wanted, head: Head) -> Response<Body> {
    let (send, receive) = mpsc::channel::<Bytes>(EVENTS);
    let guard = EndOnDrop(running.limits.cancel.clone());
    spawn_blocking(move || {
        let _turn = turn;
        let Some(slots) = &running.work.writer else { return };
        // A client that is gone ends the work by what its body holds, and one that reads slowly by the time that a request has.
        let until = Instant::now().checked_add(running.work.timeout);
        let handle = Handle::current();
        let tell_bytes = |bytes| handle.block_on(sent_until(until, &send, bytes));
        let tell = |value: &Value| tell_bytes(body::event(value));
        if let Some(begin) = head.begin() {
            tell(&begin);
        }
        let made = write(slots, &prompt, &wanted, 0, &running.limits, |text, seat| {
            let event = body::event(&head.piece(Some(text), None));
            let is_told = match send.try_send(event) {
                // Others do not wait for a client that is slow.
                Err(TrySendError::Full(event)) => seat.away(|| tell_bytes(event)),
                told => told.is_ok(),
            };
            if is_told { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        match made {
            Ok(answer) => {
                tell(&head.piece(None, Some(answer.reason)));
                if wanted.counts {
                    tell(&head.counts(answers::usage(prompt.len(), answer.tokens, answer.kept)));
                }
            }
            Err(refusal) => {
                tell(&refusal.json());
            }
        }
        tell_bytes(body::last_event());
    });
    body::events(receive, guard)
}
