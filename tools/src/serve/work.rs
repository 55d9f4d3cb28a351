//! What a request asks for: models, text, vectors.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use halite::{CancelToken, Embedder, Generator, Message, RunOptions};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::spawn_blocking};

use super::{
    answers::{self, Head},
    body::{self, Body, EndOnDrop, now},
    error::Refusal,
    fields::{Fields, Form, unsupported},
    generic,
    limits::Limits,
    messages,
    request::{EFFORT, Text, Wanted},
    responses::{self, Asked},
    slots::{Slots, Turn},
    tools::Style,
};
use crate::text_flags;

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Tokens of a completion that says nothing of it, as OpenAI has them.
const USUAL_COMPLETION: usize = 16;
/// Answers of a request, of all its prompts.
const MOST_ANSWERS: usize = 128;
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
    /// Whether thoughts are told apart from answers, where a request does not say it.
    pub parts_thoughts: bool,
    pub created: u64,
    numbers: AtomicU64,
    /// What runs, by number.
    running: Mutex<HashMap<u64, CancelToken>>,
}

/// A request that runs; it is none of these any more once this is gone.
pub(super) struct Running {
    pub work: Arc<Work>,
    number: u64,
    pub limits: Limits,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.work.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// A request whose turn it is.
pub(super) struct Job {
    pub running: Running,
    pub turn: Turn,
    /// The tokens of each prompt.
    pub prompts: Vec<Vec<u32>>,
    pub wanted: Wanted,
    pub head: Head,
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
        parts_thoughts: bool,
    ) -> Work {
        Work {
            model,
            writer,
            embedder,
            embedding: Semaphore::new(parallel),
            preparing: Semaphore::new(PREPARING),
            timeout,
            parts_thoughts,
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

    /// Makes tokens of a request. Few are made at a time: texts are long, and what waits for its turn has not begun to work. Not on a
    /// thread that serves others: a template works for as long as messages are long, and a schema is as long as somebody likes.
    async fn prepared<T: Send + 'static>(
        &self,
        make: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = self.preparing.acquire().await;
        let _turn = turn.map_err(|_| Refusal::with(StatusCode::SERVICE_UNAVAILABLE, "the server ends"))?;
        joined(spawn_blocking(make).await)
    }

    /// A request for text, when it is its turn.
    pub async fn text(self: &Arc<Self>, form: Form, body: &[u8]) -> Result<Job> {
        self.job(form, Fields::read(body)?.renamed()?).await
    }

    /// A request of the Responses interface, when it is its turn, with what its answer repeats.
    pub async fn response(self: &Arc<Self>, body: &[u8]) -> Result<(Job, Asked)> {
        let (fields, asked) = responses::conversation(&Fields::read(body)?)?;
        let job = self.job(Form::Chat, fields).await.map_err(responses::renamed)?;
        Ok((job, asked))
    }

    async fn job(self: &Arc<Self>, form: Form, fields: Fields) -> Result<Job> {
        self.is_known(fields.text("model")?)?;
        let slots = self.writer()?;
        let (generator, timeout) = (slots.generator().clone(), self.timeout);
        let parts_thoughts = self.parts_thoughts;
        let (wanted, prompts) = self
            .prepared(move || {
                let mut wanted = fields.wanted(form)?;
                wanted.parts_thoughts.get_or_insert(parts_thoughts);
                match form {
                    Form::Chat => conversation(&generator, wanted, messages::read(&fields)?, timeout),
                    Form::Completion => completions(&generator, wanted, &fields.prompts()?),
                }
            })
            .await?;
        for prompt in &prompts {
            check_room(prompt.len(), slots.generator().context(), form)?;
        }
        if prompts.len() * wanted.choices as usize > MOST_ANSWERS {
            return Err(Refusal::field("n", format!("more than {MOST_ANSWERS} answers to all prompts")));
        }
        let turn = slots.turn().await?;
        let running = self.begin();
        let id = format!(
            "{}-{:x}-{}",
            if form == Form::Chat { "chatcmpl" } else { "cmpl" },
            self.created,
            running.number
        );
        let head = Head { form, id, created: now(), model: self.model.clone() };
        Ok(Job { running, turn, prompts, wanted, head })
    }

    /// Answers a request for vectors.
    pub async fn vectors(self: &Arc<Self>, body: &[u8]) -> Result<Response<Body>> {
        let fields = Fields::read(body)?;
        self.is_known(fields.text("model")?)?;
        let embedder = self.embedder.clone().ok_or_else(|| {
            Refusal::wrong("the model makes no vectors of texts: its file does not say how")
                .code("unsupported")
        })?;
        let (inputs, in_base64, most) = (fields.inputs()?, fields.wants_base64()?, fields.dimensions()?);
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
                let vector = embedder.embed(&own, &options).map_err(|error| Refusal::of(&error))?;
                vectors.push(most.map_or(Ok(vector.clone()), |most| answers::shortened(&vector, most))?);
                tokens += own.len();
            }
            Ok((tokens, vectors))
        });
        let (tokens, vectors) = joined(made.await)?;
        Ok(body::json(StatusCode::OK, &answers::vectors(&self.model, &vectors, tokens, in_base64)))
    }
}

/// The tokens of a conversation, and what its answer has to follow where a tool has to be called.
fn conversation(
    generator: &Generator,
    mut wanted: Wanted,
    messages: Vec<Message>,
    timeout: Duration,
) -> Result<(Wanted, Vec<Vec<u32>>)> {
    let options = RunOptions::new().timeout(timeout);
    let mut prompt = prompt_of(generator, &wanted, &messages, &options)?;
    let thoughts = generator.thoughts(&prompt);
    let parts = wanted.parts_thoughts.unwrap_or_default();
    if wanted.schema.is_some() && !(parts && thoughts.is_thinking()) {
        prompt.push_str(&thoughts.skip());
    }
    if let Some(tools) = &wanted.tools {
        let style = Style::of(&prompt);
        if let Some(schema) = tools.schema(style)? {
            (wanted.schema, wanted.is_call_forced) = (Some(schema), true);
            prompt.push_str(&thoughts.skip());
            prompt.push_str(style.ahead());
        }
    }
    // Where something had to follow, thoughts were skipped; an answer that has to follow something has no marks of them.
    let thoughts = if wanted.schema.is_some() { generator.thoughts(&prompt) } else { thoughts };
    wanted.thoughts = Some(if parts { thoughts } else { thoughts.whole() });
    wanted.stops.extend(text_flags::end_of(generator, &prompt));
    let tokens = generator.tokenize(&prompt, true);
    Ok((wanted, vec![tokens]))
}

/// The text of a conversation. A template that takes no tools has them in a message.
fn prompt_of(
    generator: &Generator,
    wanted: &Wanted,
    messages: &[Message],
    options: &RunOptions,
) -> Result<String> {
    check_effort(generator, wanted)?;
    let values = wanted.values.as_deref().unwrap_or("{}");
    let told = |messages: &[Message], tools| generator.chat_with_values(messages, tools, values, options);
    let made = match &wanted.tools {
        Some(tools) if !generator.takes_tools() => {
            // Some templates take no message of the system, and leave it out or say so.
            let own = told(&generic::told(messages, tools, false), None);
            match own {
                Ok(own) if own.contains(generic::SHOWN) => Ok(own),
                _ => told(&generic::told(messages, tools, true), None),
            }
        }
        tools => told(messages, tools.as_ref().map(|tools| tools.json())),
    };
    made.map_err(|error| Refusal::of(&error))
}

/// Refuses to think as much as is wanted where the model's chat template does not ask for that.
fn check_effort(generator: &Generator, wanted: &Wanted) -> Result<()> {
    match wanted.has_effort && !generator.chat_asks_for(EFFORT) {
        true => Err(unsupported(EFFORT, "is not known to the model's chat template; leave it out")),
        false => Ok(()),
    }
}

/// The tokens of prompts.
fn completions(
    generator: &Generator,
    mut wanted: Wanted,
    prompts: &[Text],
) -> Result<(Wanted, Vec<Vec<u32>>)> {
    wanted.most.get_or_insert(USUAL_COMPLETION);
    let echo = |text: &Text| match text {
        Text::Plain(text) => text.clone(),
        Text::Tokens(tokens) => generator.text(tokens),
    };
    if wanted.has_echo {
        wanted.echoes = prompts.iter().map(echo).collect();
    }
    let tokens = |text: &Text| match text {
        Text::Plain(text) => generator.tokenize(text, false),
        Text::Tokens(tokens) => tokens.clone(),
    };
    Ok((wanted, prompts.iter().map(tokens).collect()))
}

/// What work on a thread of its own gave.
pub(super) fn joined<T>(made: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    made.unwrap_or_else(|_| Err(Refusal::broken_off()))
}
