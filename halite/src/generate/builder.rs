//! From the builder of a session to a generator.

use std::{path::PathBuf, sync::Arc};

use halite_compiler::{BATCH, TokenChoice, VERIFY};
use halite_formats::gguf::Gguf;
use halite_text::{ChatTemplate, TextFiles, Tokenizer, Vocabulary};

use super::{
    CacheType, Calls, ChooseOn, Decoder, Draft, Generator, Inner, Pieces,
    choosing::Choosers,
    decoder,
    draft::{self, DRAFTED},
    encoder::{self, Encoder},
    load::{Loaded, Opened},
    pieces::{Costs, PIECES, scored},
    seats::{self, Seats},
    text_error, tokenizers,
};
use crate::{DeviceKind, Error, ErrorKind, Function, Result, Session, SessionBuilder, Sizes, ValueType};

/// The function of models that writes.
const MAIN: &str = "main";

/// Most tokens of a call of a model whose prompts go to an encoder.
const SHORT_PIECE: usize = 32;

/// Room for tokens where the caller names none, if the model has as much.
const CONTEXT: usize = 4096;

/// What a [`Generator`] is made for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GeneratorOptions {
    context: Option<usize>,
    scoring: bool,
    cache_types: [CacheType; 2],
    choose_on: ChooseOn,
    tokenizer: Option<PathBuf>,
    template: Option<String>,
    usual_template: Option<String>,
    batch: usize,
    draft: Option<Generator>,
    drafted: Option<usize>,
}

impl GeneratorOptions {
    /// Nothing but defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many tokens a sequence has room for, prompt and answer, or each of them where a model has an encoder in front; by default 4096,
    /// or what the model was trained for, if that is less. Caches take memory for all of them.
    #[must_use]
    pub fn context(mut self, tokens: usize) -> Self {
        self.context = Some(tokens);
        self
    }

    /// How caches hold keys and values; by default as 16-bit floats. Sessions fail to build where a model cannot have it: heads are
    /// whole blocks of 32 elements. Heads of more than 256 elements, or of other sizes for keys than for values, and attention with sinks read
    /// all of such a cache as floats at each step.
    #[must_use]
    pub fn cache_types(mut self, keys: CacheType, values: CacheType) -> Self {
        self.cache_types = [keys, values];
        self
    }

    /// Where tokens are chosen when sequences write; by default on the device, if it is a GPU.
    #[must_use]
    pub fn choose_on(mut self, place: ChooseOn) -> Self {
        self.choose_on = place;
        self
    }

    /// How many sequences [`Generator::step`] takes a step of together at most; by default 1, which is each alone. Their caches lie in
    /// one piece of memory for up to 16 sequences, which is taken with the first of them, and sequences beyond these have caches of
    /// their own. The model is compiled for steps of 2, 4, 8 and 16 sequences, as far as there may be so many. Room in caches is a multiple
    /// of 128 tokens. Only models in GGUF files take steps of several sequences; those of others take theirs one
    /// by one, which a warning says.
    #[must_use]
    pub fn batch(mut self, most: usize) -> Self {
        self.batch = most;
        self
    }

    /// The file of the tokenizer, for models that have none of their own: a `tokenizer.json`, a SentencePiece or tiktoken
    /// `tokenizer.model`, or a GGUF file. Unless this names one, it is looked for beside the model.
    #[must_use]
    pub fn tokenizer(mut self, file: impl Into<PathBuf>) -> Self {
        self.tokenizer = Some(file.into());
        self
    }

    /// What conversations become prompts by, in the place of the model's own: a chat template, as text in the form of Jinja.
    #[must_use]
    pub fn chat_template(mut self, source: impl Into<String>) -> Self {
        self.template = Some(source.into());
        self
    }

    /// The same for models that have none; [`Generator::has_chat_template`] tells whether one has its own.
    #[must_use]
    pub fn usual_chat_template(mut self, source: impl Into<String>) -> Self {
        self.usual_template = Some(source.into());
        self
    }

    /// The template of a model with this tokenizer, and perhaps one of its own; and whether it is no other's.
    fn template_of(
        &self,
        own: Option<ChatTemplate>,
        tokenizer: &Tokenizer,
    ) -> Result<(Option<ChatTemplate>, bool)> {
        let given = match (&self.template, &own) {
            (Some(given), _) => Some((given, true)),
            (None, None) => self.usual_template.as_ref().map(|usual| (usual, false)),
            (None, Some(_)) => None,
        };
        let Some((source, is_own)) = given else {
            let has_own = own.is_some();
            return Ok((own, has_own));
        };
        let [begin, end] = tokenizer.marks();
        Ok((Some(ChatTemplate::new(source, begin, end).map_err(text_error)?), is_own))
    }

    /// The same of a GGUF file. A template that another takes the place of need not be one that can be read.
    fn template_of_file(&self, file: &Gguf, tokenizer: &Tokenizer) -> Result<(Option<ChatTemplate>, bool)> {
        let own = match self.template {
            Some(_) => None,
            None => ChatTemplate::read(file, tokenizer).map_err(text_error)?,
        };
        self.template_of(own, tokenizer)
    }

    /// A second model that writes ahead: a smaller one with the same tokens, made before this one, as a rule on the same device
    /// ([`Session::device`](crate::Session::device)). [`super::Sequence::generate`] lets it write some tokens, looks at all of them in one
    /// call, which reads the weights once, and takes those that it would have chosen itself. So tokens are those of a generator without a
    /// draft, up to what devices round: the most likely ones are, and so are those that samplers draw, with the same random numbers. How
    /// many tokens are drafted follows how many were right. Both models are GGUF files. [`Generator::step`] does not draft.
    #[must_use]
    pub fn draft(mut self, writer: &Generator) -> Self {
        self.draft = Some(writer.clone());
        self
    }

    /// How many tokens the second model writes ahead at most, 1 to 15; 7 unless this says otherwise. Calls look at 2, 4, 8 or 16 tokens, one
    /// more than are drafted.
    #[must_use]
    pub fn draft_tokens(mut self, most: usize) -> Self {
        self.drafted = Some(most);
        self
    }

    /// The model that drafts, and how many tokens, for one with these tokens.
    fn drafting(&self, own: &Vocabulary) -> Result<Option<(Generator, usize)>> {
        let most = self.drafted.unwrap_or(DRAFTED);
        let Some(writer) = &self.draft else { return Ok(None) };
        draft::check(writer, most, own)?;
        Ok(Some((writer.clone(), most)))
    }

    /// How many tokens a sequence has room for, of a model that was made for so many.
    fn context_of(&self, trained: Option<usize>) -> usize {
        let context = self.context.unwrap_or(trained.map_or(CONTEXT, |trained| trained.min(CONTEXT)));
        if let Some(trained) = trained.filter(|trained| context > *trained) {
            log::warn!(
                "a context of {context} tokens is more than the {trained} that the model was made for"
            );
        }
        context
    }

    /// Whether [`super::Sequence::score`] is wanted, which tells how likely texts are. Off unless this says so. Decoders in other formats
    /// than GGUF score token by token, whatever this says.
    #[must_use]
    pub fn scoring(mut self, wanted: bool) -> Self {
        self.scoring = wanted;
        self
    }
}

impl SessionBuilder {
    /// Builds a session of a language model and all that writing text with it takes. The model is a GGUF file, which has its tokenizer;
    /// or a decoder in another format, such as ONNX or ExecuTorch's, with the file of a tokenizer ([`GeneratorOptions::tokenizer`]).
    ///
    /// # Errors
    /// As [`SessionBuilder::build`]; the model writes no text; there is no tokenizer, or it is not supported.
    pub fn generator(self, options: GeneratorOptions) -> Result<Generator> {
        if options.context == Some(0) {
            return Err(Error::invalid("a context of 0 tokens has no room for a prompt"));
        }
        if options.drafted.is_some() && options.draft.is_none() {
            return Err(Error::invalid("there is no model that drafts tokens (GeneratorOptions::draft)"));
        }
        match Loaded::of(self, "a generator")? {
            Loaded::Gguf(opened) if options.tokenizer.is_none() => of_gguf(*opened, &options),
            Loaded::Gguf(_) => Err(Error::invalid("a GGUF file has its own tokenizer; give it none")),
            Loaded::Other { builder, path, again } => of_decoder(builder.model(again), path, &options),
        }
    }
}

/// The generator of a GGUF file.
fn of_gguf(opened: Opened, options: &GeneratorOptions) -> Result<Generator> {
    if opened.is_encoder() {
        return Err(writes_none());
    }
    let (trained, experts, attends) = (opened.trained_context(), opened.has_experts(), opened.attends());
    let (has_encoder, start) = (opened.has_encoder(), opened.start_token());
    let Opened { builder, file, tokenizer, again } = opened;
    let (drafted, cache_types) = (options.drafting(tokenizer.vocabulary())?, options.cache_types);
    let builder = choosing(builder.hold_caches(CacheType::formats(cache_types)), options.choose_on);
    let (template, has_template) = options.template_of_file(&file, &tokenizer)?;
    let context = options.context_of(trained);
    let longest = if has_encoder { SHORT_PIECE } else { context };
    let sizes: Vec<usize> = PIECES.into_iter().filter(|piece| *piece <= context.min(longest)).collect();
    let scoring = if options.scoring { scored(context) } else { Vec::new() };
    let batch = if has_encoder { one_by_one(options.batch) } else { options.batch };
    let (batches, room) = match seats::sizes(batch) {
        none if none.is_empty() => (none, context),
        sizes => (sizes, context.next_multiple_of(seats::ROUND)),
    };
    let read = has_encoder.then(|| encoder::sizes(context));
    let (mut builder, mut all) = (builder, calls_of(&sizes, &scoring, attends.then_some(room), read));
    if !batches.is_empty() {
        (builder, all) = (builder.decode_batches(), all.dimension(BATCH, batches.clone()));
    }
    if let Some((_, most)) = drafted {
        (builder, all) = (builder.verify_drafts(), all.dimension(VERIFY, draft::sizes(most)));
    }
    let session = builder.model(again).sizes(all).build()?;
    if !session.functions().iter().any(|function| function.name == MAIN) {
        return Err(writes_none());
    }
    // Devices that cannot bind the caches of two sequences have none.
    let has_batches = session.functions().iter().any(|function| function.name == BATCH);
    let seats = has_batches.then(|| Seats::new(&session, batch, room));
    let main = session.function(MAIN)?;
    let calls = Calls::Pieces(Pieces {
        recurrent: is_recurrent(&main),
        main,
        choosers: Choosers::of_session(&session, options.choose_on),
        sizes,
        costs: Costs { on_processor: on_processor(&session), experts },
        scoring,
        seats: seats.transpose()?.map(Arc::new),
        batch,
        encoder: Encoder::of(&session, (start, tokenizer.vocabulary().len()), context)?,
    });
    let draft = drafted.map(|drafted| draft_of(&session, drafted)).transpose()?;
    let inner = Inner { session, calls, tokenizer, template, has_template, context, cache_types, draft };
    Ok(Generator { inner: Arc::new(inner) })
}

/// What a session needs to write with this draft.
fn draft_of(session: &Session, (writer, most): (Generator, usize)) -> Result<Draft> {
    let verify = session.function(VERIFY)?;
    Ok(Draft { writer, verify, sizes: draft::sizes(most), most })
}

/// How many sequences of a model with an encoder take steps together.
fn one_by_one(wanted: usize) -> usize {
    if wanted > 1 {
        log::warn!(
            "sequences of a model with an encoder in front take their steps one by one, and not several together \
             (GeneratorOptions::batch)"
        );
    }
    1
}

/// Whether some state has no dimension of tokens: it is one of all so far, and not a cache of each.
fn is_recurrent(function: &Function) -> bool {
    let info = function.info();
    let rank =
        |name: &str| match info.all_inputs().find(|input| input.name == name).map(|own| &own.value_type) {
            Some(ValueType::Tensor { shape: Some(shape), .. }) => shape.len(),
            _ => 0,
        };
    info.states.iter().any(|pair| rank(&pair.input) == 2)
}

fn on_processor(session: &Session) -> bool {
    session.device().is_none_or(|device| device.info().kind() == DeviceKind::Cpu)
}

/// Sizes of calls that give the logits of one token, and of that which gives those of all; with the room of caches, where there are
/// some, and the sizes of calls of an encoder.
fn calls_of(sizes: &[usize], scoring: &[usize], room: Option<usize>, read: Option<Vec<usize>>) -> Sizes {
    let one = Sizes::new().dimension("tokens", sizes.to_vec()).dimension("rows", [1]);
    let all = scoring.iter().map(|size| Sizes::new().dimension("tokens", [*size]).dimension("rows", [*size]));
    let mut calls = Sizes::any_of(std::iter::once(one).chain(all));
    if let Some(room) = room {
        calls = calls.dimension("context", [room]);
    }
    if let Some(read) = read {
        calls = calls.dimension("source", read);
    }
    calls
}

/// With functions that choose tokens, where the device may have to.
fn choosing(builder: SessionBuilder, place: ChooseOn) -> SessionBuilder {
    let sizes = [("tokens".to_owned(), 1), ("rows".to_owned(), 1)].into();
    let choice = TokenChoice { function: MAIN.to_owned(), logits: "logits".to_owned(), sizes };
    match place {
        ChooseOn::Host => builder,
        place => builder.choose_tokens(choice, place == ChooseOn::Device),
    }
}

/// The generator of a decoder in another format.
fn of_decoder(
    builder: SessionBuilder,
    path: Option<PathBuf>,
    options: &GeneratorOptions,
) -> Result<Generator> {
    let only_gguf = |what: &str| Err(Error::invalid(format!("only models in GGUF files {what}")));
    if options.cache_types != [CacheType::default(); 2] {
        return only_gguf("have caches whose type can be chosen (GeneratorOptions::cache_types)");
    }
    if options.choose_on == ChooseOn::Device {
        return only_gguf("choose tokens on the device (GeneratorOptions::choose_on)");
    }
    if options.draft.is_some() {
        return only_gguf("take what another model drafts (GeneratorOptions::draft)");
    }
    if options.batch > 1 {
        log::warn!(
            "only models in GGUF files take steps of several sequences together (GeneratorOptions::batch): Halite makes their \
             graphs, with a cache for each sequence; others have the caches that they were exported with. Sequences of this one \
             take their steps one by one; convert it to GGUF for more"
        );
    }
    let TextFiles { tokenizer, template } = tokenizers::open(options.tokenizer.as_deref(), path.as_deref())?;
    let (template, has_template) = options.template_of(template, &tokenizer)?;
    let session = builder.build()?;
    let decoder = Decoder::of(&session)?;
    let room = decoder.room();
    if let (Some(room), Some(context)) = (room, options.context)
        && context > room
    {
        let text =
            format!("a context of {context} tokens is more than the model's caches have room for: {room}");
        return Err(Error::invalid(text));
    }
    let stated = decoder::stated_context(&session).into_iter().chain(room).min();
    let context = options.context_of(stated);
    let (calls, cache_types, draft) = (Calls::Decoder(decoder), options.cache_types, None);
    Ok(Generator {
        inner: Arc::new(Inner {
            session,
            calls,
            tokenizer,
            template,
            has_template,
            context,
            cache_types,
            draft,
        }),
    })
}

fn writes_none() -> Error {
    let text =
        "the model is an encoder, which makes vectors of texts and writes none (SessionBuilder::embedder)";
    Error::new(ErrorKind::Unsupported, text)
}
