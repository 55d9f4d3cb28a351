//! Language models: their sessions and tokenizers, sequences of tokens with their caches, and vectors of texts.

mod ahead;
mod batch;
mod builder;
mod caches;
mod choosing;
mod decoder;
mod draft;
mod drafting;
mod embed;
mod encoder;
mod flight;
mod load;
mod members;
mod pieces;
mod run;
mod saved;
mod schema;
mod score;
mod seats;
mod sequence;
mod source;
mod tokenizers;
mod words;

use std::sync::Arc;

use halite_text::{ChatTemplate, TextError, Told};

pub use builder::GeneratorOptions;
pub use caches::CacheType;
pub use choosing::ChooseOn;
pub use drafting::Drafted;
pub use embed::Embedder;
pub use halite_text::{
    CallScanner, Callable, Decoder as TextDecoder, Divided, Likely, Message, Sampler, Sampling, StopTexts,
    Thoughts, TokenTexts, ToolCall,
};
pub use members::Next;
pub use run::{Piece, Stop};
pub use schema::JsonSchema;
pub use sequence::Sequence;
pub use words::Tokenizer;

use self::{choosing::Choosers, decoder::Decoder, encoder::Encoder, pieces::Costs, seats::Seats};
use crate::{Error, ErrorKind, Function, Result, RunOptions, Session, Stage};

/// A language model that writes text, with its session, tokenizer and chat template: a GGUF file, or a decoder in another format with the
/// file of a tokenizer ([`GeneratorOptions::tokenizer`]).
///
/// Sequences share its weights; each has caches of its own. Any number of threads may use a generator; a [`Sequence`] is used by
/// one at a time.
///
/// ```no_run
/// use std::ops::ControlFlow;
///
/// use halite::{GeneratorOptions, Message, RunOptions, Sampler, Sampling, Session};
///
/// let generator = Session::builder().model("model.gguf").generator(GeneratorOptions::new())?;
/// let prompt = generator.chat(&[Message::new("user", "What is a GPU?")])?;
/// let mut sequence = generator.sequence()?;
/// sequence.prompt(&generator.tokenize(&prompt, true), &RunOptions::new())?;
/// let mut sampler = Sampler::new(Sampling::default());
/// let stop = sequence.generate(&mut sampler, 256, &RunOptions::new(), |piece| {
///     print!("{}", piece.text);
///     ControlFlow::Continue(())
/// })?;
/// println!("\n{stop:?}");
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Clone)]
pub struct Generator {
    inner: Arc<Inner>,
}

struct Inner {
    session: Session,
    calls: Calls,
    tokenizer: halite_text::Tokenizer,
    template: Option<ChatTemplate>,
    /// Whether it is the model's own, or was given in its place.
    has_template: bool,
    context: usize,
    /// Of keys and values in caches.
    cache_types: [CacheType; 2],
    /// The model that writes ahead of this one.
    draft: Option<Draft>,
}

/// How logits come of tokens.
enum Calls {
    /// By a graph that Halite makes of a GGUF file.
    Pieces(Pieces),
    /// By a model as somebody exported it.
    Decoder(Decoder),
}

/// Calls of a GGUF file's graph.
struct Pieces {
    /// The function that gives logits.
    main: Function,
    /// Those that choose tokens, where the device does.
    choosers: Option<Choosers>,
    /// How many tokens calls take, the fewest first.
    sizes: Vec<usize>,
    /// What decides which of them are the soonest done.
    costs: Costs,
    /// Tokens of calls that give the logits of all, the fewest first.
    scoring: Vec<usize>,
    /// Where caches are of sequences that take steps together, if any do.
    seats: Option<Arc<Seats>>,
    /// How many sequences do.
    batch: usize,
    /// Whether layers keep a state of all tokens so far, which cannot be cut back.
    recurrent: bool,
    /// What reads prompts, where the model has an encoder in front.
    encoder: Option<Encoder>,
}

/// What a generator needs to write with a draft.
struct Draft {
    /// The model that writes ahead.
    writer: Generator,
    /// The function that looks at what it wrote.
    verify: Function,
    /// Tokens of a call of that, the fewest first.
    sizes: Vec<usize>,
    /// Most tokens that are drafted.
    most: usize,
}

impl Inner {
    /// Whether layers keep a state of all tokens so far, which cannot be cut back.
    fn is_recurrent(&self) -> bool {
        matches!(&self.calls, Calls::Pieces(pieces) if pieces.recurrent)
    }

    /// Functions that choose tokens on the device.
    fn choosers(&self) -> Option<&Choosers> {
        match &self.calls {
            Calls::Pieces(pieces) => pieces.choosers.as_ref(),
            Calls::Decoder(_) => None,
        }
    }
}

impl Generator {
    /// The session of the model.
    pub fn session(&self) -> &Session {
        &self.inner.session
    }

    /// How many tokens a sequence has room for.
    pub fn context(&self) -> usize {
        self.inner.context
    }

    /// How the caches of its sequences hold keys and values.
    pub fn cache_types(&self) -> [CacheType; 2] {
        self.inner.cache_types
    }

    /// How many tokens the model knows.
    pub fn vocabulary_len(&self) -> usize {
        self.inner.tokenizer.vocabulary().len()
    }

    /// The tokens of a text, with that of the beginning if the model is used to it.
    ///
    /// Names of control tokens in the text, such as `<|im_end|>`, are plain text, unless `with_control` makes tokens of them: for
    /// what [`Generator::chat`] made.
    pub fn tokenize(&self, text: &str, with_control: bool) -> Vec<u32> {
        self.inner.tokenizer.encode(text, with_control)
    }

    /// The text of tokens. Control tokens have none; bytes that are no UTF-8 are replaced.
    pub fn text(&self, tokens: &[u32]) -> String {
        self.inner.tokenizer.decode(tokens, false)
    }

    /// The bytes of a token's text, for programs that put text together as it comes: [`TextDecoder`] waits for the other bytes of a
    /// character. Control tokens have none.
    pub fn bytes(&self, token: u32) -> Vec<u8> {
        self.inner.tokenizer.bytes(token, false)
    }

    /// The bytes of a token with those of control tokens, such as `[TOOL_CALLS]`, which [`Generator::bytes`] leaves out.
    pub fn bytes_with_control(&self, token: u32) -> Vec<u8> {
        self.inner.tokenizer.bytes(token, true)
    }

    /// The token that texts begin with, if the model has one.
    pub fn begin(&self) -> Option<u32> {
        self.inner.tokenizer.begin()
    }

    /// Whether a token ends what the model says.
    pub fn is_end(&self, token: u32) -> bool {
        self.inner.tokenizer.is_end(token)
    }

    /// A sampler whose tokens make one JSON object, whatever the model likes, and then end. The host chooses them.
    /// What the object says is the model's: ask for JSON in the prompt, too. An answer that ends for its length is the beginning of an object.
    pub fn json_sampler(&self, sampling: Sampling) -> Sampler {
        self.schema_sampler(sampling, &JsonSchema::object())
    }

    /// A sampler whose tokens make one JSON value that follows a schema, whatever the model likes, and then end. The rest is as with
    /// [`Generator::json_sampler`].
    pub fn schema_sampler(&self, sampling: Sampling, schema: &JsonSchema) -> Sampler {
        self.inner.tokenizer.schema_sampler(sampling, &schema.0)
    }

    /// The prompt of a conversation, by the model's chat template, up to where the model is to answer.
    ///
    /// A template is a program that came with the model. What it may take is bounded: less than a second and 256 MiB for messages of
    /// usual length, and more for longer ones.
    ///
    /// # Errors
    /// The model has no template, or it refuses the messages, or takes more than it may ([`ErrorKind::OutOfMemory`]).
    pub fn chat(&self, messages: &[Message]) -> Result<String> {
        self.chat_with(messages, &RunOptions::new())
    }

    /// The same, within bounds: a template works for as long as messages are long. The progress has the stage [`Stage::Other`] and
    /// counts the template's steps; its total is the most that it may make.
    ///
    /// # Errors
    /// As those of [`Generator::chat`]; the deadline passed, or the token was set.
    pub fn chat_with(&self, messages: &[Message], options: &RunOptions) -> Result<String> {
        self.chat_rendered(messages, Told::default(), options)
    }

    /// The same with other values that the model's template may know, by their names: an object, as JSON, such as
    /// `{"enable_thinking": false}`. Values that the template does not know change nothing ([`Generator::chat_asks_for`]). Tools, if there
    /// are some, are those of [`Generator::chat_with_tools`].
    ///
    /// # Errors
    /// As those of [`Generator::chat_with_tools`]; the values are no object, or have the name of something that templates are given anyway.
    pub fn chat_with_values(
        &self,
        messages: &[Message],
        tools: Option<&str>,
        values: &str,
        options: &RunOptions,
    ) -> Result<String> {
        self.check_tools(tools)?;
        self.chat_rendered(messages, Told { tools, values: Some(values) }, options)
    }

    /// Whether the model's chat template looks at a value of this name.
    pub fn chat_asks_for(&self, name: &str) -> bool {
        self.inner.template.as_ref().is_some_and(|template| template.asks_for(name))
    }

    /// The same with tools that the model may call: a list of them, as JSON, in OpenAI's form (`{"type": "function", "function": {…}}`).
    ///
    /// # Errors
    /// As those of [`Generator::chat_with`]; the template takes no tools ([`Generator::takes_tools`]).
    pub fn chat_with_tools(&self, messages: &[Message], tools: &str, options: &RunOptions) -> Result<String> {
        self.check_tools(Some(tools))?;
        self.chat_rendered(messages, Told { tools: Some(tools), values: None }, options)
    }

    /// What tells thoughts apart from the answer in the text behind a prompt, by the marks that the model's template and its tokens have.
    /// Control tokens may be marks: [`Generator::bytes_for`] has their names, too.
    ///
    /// ```no_run
    /// # fn divided(generator: &halite::Generator, prompt: &str, tokens: &[u32]) {
    /// let (mut thoughts, mut decoder) = (generator.thoughts(prompt), halite::TextDecoder::default());
    /// for token in tokens {
    ///     let part = thoughts.push(&decoder.push(&generator.bytes_for(*token, &thoughts)));
    ///     print!("{}", part.answer);
    /// }
    /// println!("{}", thoughts.finish().answer);
    /// # }
    /// ```
    pub fn thoughts(&self, prompt: &str) -> Thoughts {
        let vocabulary = self.inner.tokenizer.vocabulary();
        let template = self.inner.template.as_ref();
        Thoughts::new(prompt, |mark| {
            vocabulary.find(mark.as_bytes()).is_some() || template.is_some_and(|own| own.has(mark))
        })
    }

    /// The bytes of a token's text, as [`Generator::bytes`], with those of control tokens that divide thoughts from the answer.
    pub fn bytes_for(&self, token: u32, thoughts: &Thoughts) -> Vec<u8> {
        let bytes = self.bytes(token);
        if !bytes.is_empty() {
            return bytes;
        }
        let control = self.bytes_with_control(token);
        let is_wanted = std::str::from_utf8(&control).is_ok_and(|text| thoughts.wants(text));
        if is_wanted { control } else { bytes }
    }

    fn check_tools(&self, tools: Option<&str>) -> Result<()> {
        match tools.is_none() || self.takes_tools() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Unsupported, "the model's chat template takes no tools")),
        }
    }

    /// Whether the model has a chat template of its own, or was given one in its place ([`GeneratorOptions::chat_template`]).
    pub fn has_chat_template(&self) -> bool {
        self.inner.has_template
    }

    /// Whether the model's chat template tells it which tools there are.
    pub fn takes_tools(&self) -> bool {
        self.inner.template.as_ref().is_some_and(ChatTemplate::takes_tools)
    }

    fn chat_rendered(&self, messages: &[Message], told: Told<'_>, options: &RunOptions) -> Result<String> {
        let template = self.inner.template.as_ref().ok_or_else(|| {
            let text =
                "the model has no chat template ('tokenizer.chat_template'); give it one (GeneratorOptions::chat_template; the tools' --chat-template), or a prompt as it is";
            Error::new(ErrorKind::Unsupported, text)
        })?;
        let limits = options.begin()?;
        let stop = {
            let limits = limits.clone();
            Box::new(move |done, most| {
                limits.tell(Stage::Other, "the chat template", done, most);
                limits.check("").is_err()
            })
        };
        let made = template.prompt_until(messages, told, Some(stop));
        if made.is_err() {
            limits.check("the chat template was at work")?;
        }
        made.map_err(text_error)
    }

    /// A sequence without tokens. Memory for its caches is taken when it gets some.
    ///
    /// # Errors
    /// The session has no device.
    pub fn sequence(&self) -> Result<Sequence> {
        Sequence::new(self.clone())
    }
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator").field("context", &self.inner.context).finish_non_exhaustive()
    }
}

/// Of the room for tokenizers and templates.
fn text_error(error: TextError) -> Error {
    let kind = match &error {
        TextError::Metadata { .. } => ErrorKind::InvalidModel,
        TextError::Unsupported(_) => ErrorKind::Unsupported,
        TextError::TooMuch(_) => ErrorKind::OutOfMemory,
        _ => ErrorKind::InvalidInput,
    };
    Error::new(kind, error.to_string())
}
