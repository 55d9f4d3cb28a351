//! Sequences: conversations and texts of a language model.

use std::{
    ffi::{c_char, c_void},
    ops::ControlFlow,
};

use halite::{Generator, JsonSchema, Sampler, Sampling, Sequence, Stop, StopTexts, Tensor};
use parking_lot::Mutex;

use crate::{
    blob::halite_blob,
    error::{call, halite_error},
    failure::{Failure, Result, quiet},
    options::{Bounds, halite_run_options},
    raw::{self, Grows, Out},
    tensor::halite_tensor,
    tokens::{HALITE_NO_TOKEN, given, halite_piece, halite_piece_fn, halite_tokens},
};

/// A sequence of tokens, with caches on the device of what the model computed of them. One call at a time uses it; others wait. A
/// call that fails leaves the tokens as they were before it.
pub struct halite_sequence(Mutex<Sequence>);

impl halite_sequence {
    pub(crate) fn new(sequence: Sequence) -> Self {
        halite_sequence(Mutex::new(sequence))
    }

    pub(crate) fn own(&self) -> &Mutex<Sequence> {
        &self.0
    }
}

/// Why a model stopped writing: one of `HALITE_STOP_…`.
pub type halite_stop = u32;

/// The model ended its answer.
pub const HALITE_STOP_END: halite_stop = 1;
/// The limit of tokens was reached.
pub const HALITE_STOP_LENGTH: halite_stop = 2;
/// The context is full.
pub const HALITE_STOP_CONTEXT: halite_stop = 3;
/// The callback stopped it.
pub const HALITE_STOP_CALLER: halite_stop = 4;
/// One of the texts that end an answer appeared.
pub const HALITE_STOP_TEXT: halite_stop = 5;

/// How a model continues a text. Begin with `HALITE_GENERATION_INIT`, which always takes the most likely token, as long as the
/// context has room; `halite_generation_sampling` has Halite's own choices. The steps of the choice go in this order: penalty,
/// `top_k`, `top_p`,
/// `min_p`, temperature.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_generation {
    /// `sizeof(halite_generation)`.
    pub struct_size: usize,
    /// Most tokens that are written; 0 is no limit.
    pub most: usize,
    /// Texts that end the answer; the callback does not receive them. May be NULL.
    pub stops: *const *const c_char,
    /// Number of these texts.
    pub stop_count: usize,
    /// Receives each piece of text; may be NULL.
    pub told: halite_piece_fn,
    /// Handed to `told`.
    pub context: *mut c_void,
    /// The seed of random numbers: the same seed gives the same choices.
    pub seed: u64,
    /// How many of the most likely tokens count; 0 for all.
    pub top_k: usize,
    /// How many of the last tokens `repeat_penalty` is for.
    pub repeat_last: usize,
    /// Divides logits; 0 takes the most likely token.
    pub temperature: f32,
    /// Keeps the most likely tokens that together have this share of the probability; 0 and 1 keep all.
    pub top_p: f32,
    /// The least probability of a token, as a share of the most likely token's; 0 keeps all.
    pub min_p: f32,
    /// Divides the logits of recent tokens, or multiplies them if they are negative; 0 and 1 change nothing.
    pub repeat_penalty: f32,
    /// Whether the model continues after the token that ends a text; then it is a token like others.
    pub ignore_end: bool,
    /// A JSON schema as text: what is written is one JSON value that follows it, and then ends. May be NULL. Schemas that no value
    /// follows, and keywords that are not supported, are errors.
    pub json_schema: *const c_char,
}

// SAFETY: the size comes first; zeros are no limit, no texts, nobody, the most likely token, an end where the text ends, and no schema.
unsafe impl Grows for halite_generation {
    const NAME: &'static str = "halite_generation";
    const FIRST: usize = std::mem::offset_of!(halite_generation, repeat_penalty) + 1;
}

impl halite_generation {
    pub(crate) fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: if self.top_p > 0.0 { self.top_p } else { 1.0 },
            min_p: self.min_p,
            repeat_penalty: self.repeat_penalty,
            repeat_last: self.repeat_last,
            seed: self.seed,
            ..Sampling::default()
        }
    }

    /// The schema that it states.
    ///
    /// # Safety
    /// The text is null or ends with a zero.
    pub(crate) unsafe fn schema(&self) -> Result<Option<JsonSchema>> {
        if self.json_schema.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        let text = unsafe { raw::text(self.json_schema, "json_schema") }?;
        Ok(Some(JsonSchema::parse(text)?))
    }

    /// What chooses tokens of a generator so.
    pub(crate) fn sampler(&self, generator: &Generator, schema: Option<&JsonSchema>) -> Sampler {
        match schema {
            Some(schema) => generator.schema_sampler(self.sampling(), schema),
            None => Sampler::new(self.sampling()),
        }
    }
}

/// Sets Halite's own defaults for choosing tokens, which draw among likely tokens. The rest of the structure stays, the seed
/// among it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generation_sampling(generation: *mut halite_generation) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generation_sampling", || unsafe {
        raw::handle(generation.cast_const(), "generation")?;
        let mut stated = raw::structure(generation)?;
        let own = Sampling::default();
        stated.temperature = own.temperature;
        (stated.top_k, stated.top_p, stated.min_p) = (own.top_k, own.top_p, own.min_p);
        (stated.repeat_penalty, stated.repeat_last) = (own.repeat_penalty, own.repeat_last);
        raw::fill(generation, stated)
    })
}

/// Does something with a sequence.
///
/// # Safety
/// The pointer is null or a handle.
unsafe fn with<T>(
    sequence: *const halite_sequence,
    work: impl FnOnce(&mut Sequence) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    work(&mut unsafe { raw::handle(sequence, "sequence") }?.0.lock())
}

/// Sets the tokens of the sequence. A common beginning is kept, and not computed again; `kept`,
/// which may be NULL, receives its number of tokens.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_prompt(
    sequence: *mut halite_sequence,
    tokens: *const u32,
    count: usize,
    options: *const halite_run_options,
    kept: *mut usize,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sequence_prompt", || unsafe {
        let (tokens, bounds) = (given(tokens, count)?, Bounds::read(options)?);
        let same = with(sequence, |own| Ok(own.prompt(tokens, &bounds.options)?))?;
        if !kept.is_null() {
            Out::value(kept, "kept")?.set(same);
        }
        Ok(())
    })
}

/// Adds tokens and computes the logits that follow them.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_append(
    sequence: *mut halite_sequence,
    tokens: *const u32,
    count: usize,
    options: *const halite_run_options,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sequence_append", || unsafe {
        let (tokens, bounds) = (given(tokens, count)?, Bounds::read(options)?);
        with(sequence, |own| Ok(own.append(tokens, &bounds.options)?))
    })
}

/// Adds tokens, and writes how likely each was after those before it to `scores`, which has room for as many, as natural
/// logarithms. The first token of a sequence has nothing before it: 0. For generators with `scoring`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_score(
    sequence: *mut halite_sequence,
    tokens: *const u32,
    count: usize,
    options: *const halite_run_options,
    scores: *mut f64,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sequence_score", || unsafe {
        let (tokens, bounds) = (given(tokens, count)?, Bounds::read(options)?);
        if count > 0 {
            raw::handle(scores.cast_const(), "scores")?;
        }
        let made = with(sequence, |own| Ok(own.score(tokens, &bounds.options)?))?;
        std::ptr::copy_nonoverlapping(made.as_ptr(), scores, made.len().min(count));
        Ok(())
    })
}

/// Lets the model write, and passes each piece of text to the callback at once. The token that ends the text is neither passed
/// nor added. `stop`, which may be NULL, receives the reason why it ended. If it fails, the sequence keeps the pieces that were
/// passed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_generate(
    sequence: *mut halite_sequence,
    generation: *const halite_generation,
    options: *const halite_run_options,
    stop: *mut halite_stop,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sequence_generate", || unsafe {
        let (stated, bounds) = (raw::structure(generation)?, Bounds::read(options)?);
        let texts = raw::slice(stated.stops, stated.stop_count, "stops")?.iter();
        let texts = texts.map(|text| raw::text(*text, "stops")).collect::<Result<Vec<_>>>()?;
        if texts.iter().any(|text| text.is_empty()) {
            return Err(Failure::invalid("a text that ends what is written is not empty"));
        }
        let schema = stated.schema()?;
        let why = with(sequence, |own| {
            let sampler = stated.sampler(own.generator(), schema.as_ref());
            write(own, &stated, sampler, &texts, &bounds)
        })?;
        if !stop.is_null() {
            Out::value(stop, "stop")?.set(why);
        }
        Ok(())
    })
}

fn write(
    sequence: &mut Sequence,
    stated: &halite_generation,
    mut sampler: Sampler,
    texts: &[&str],
    bounds: &Bounds,
) -> Result<halite_stop> {
    let tell = |text: &str, token: u32| {
        let Some(told) = stated.told else { return true };
        let text = raw::c_text(text);
        let text_size = text.as_bytes().len();
        let piece =
            halite_piece { struct_size: size_of::<halite_piece>(), text: text.as_ptr(), text_size, token };
        // SAFETY: the call that brought the function goes on.
        unsafe { told(stated.context, &piece) }
    };
    let mut stops = StopTexts::new(texts.iter().copied());
    let mut by_text = false;
    let most = if stated.most > 0 { stated.most } else { usize::MAX };
    sequence.ignore_end(stated.ignore_end);
    let why = sequence.generate(&mut sampler, most, &bounds.options, |piece| {
        let (text, ended) = stops.push(&piece.text);
        by_text = ended;
        let goes_on = tell(&text, piece.token);
        if ended || !goes_on { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let held = stops.finish();
    if why != Stop::Caller && !held.is_empty() {
        tell(&held, HALITE_NO_TOKEN);
    }
    match why {
        Stop::End => Ok(HALITE_STOP_END),
        Stop::Length => Ok(HALITE_STOP_LENGTH),
        Stop::Context => Ok(HALITE_STOP_CONTEXT),
        Stop::Caller if by_text => Ok(HALITE_STOP_TEXT),
        Stop::Caller => Ok(HALITE_STOP_CALLER),
        other => Err(Failure::internal(format!("this interface has no number for {other:?}"))),
    }
}

/// Removes all tokens after the first `count`. Takes no time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_truncate(sequence: *mut halite_sequence, count: usize) {
    // SAFETY: the contract of the interface.
    quiet("halite_sequence_truncate", (), || unsafe {
        with(sequence, |own| {
            own.truncate(count);
            Ok(())
        })
    });
}

/// Number of tokens so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_count(sequence: *const halite_sequence) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_sequence_count", 0, || unsafe { with(sequence, |own| Ok(own.tokens().len())) })
}

/// All tokens so far.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_tokens(
    sequence: *const halite_sequence,
    out: *mut *mut halite_tokens,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sequence_tokens", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_tokens(with(sequence, |own| Ok(own.tokens().to_vec()))?));
        Ok(())
    })
}

/// Logits of the token that comes next, one for each token that the model knows: a tensor of floats on the host. NULL, and no
/// error, where they have to be computed first: before the first token, after `halite_sequence_load` and
/// `halite_sequence_truncate`, and where the device chose the next token.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_logits(
    sequence: *const halite_sequence,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sequence_logits", || unsafe {
        let out = Out::handle(out, "out")?;
        let logits = with(sequence, |own| Ok(own.logits().to_vec()))?;
        if !logits.is_empty() {
            out.give(halite_tensor(Tensor::from_slice(&logits, [logits.len()])?));
        }
        Ok(())
    })
}

/// Bytes of its caches on the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_size(sequence: *const halite_sequence) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_sequence_size", 0, || unsafe { with(sequence, |own| Ok(own.byte_len())) })
}

/// A second sequence with the same tokens and a copy of the caches. From then on both are independent.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_fork(
    sequence: *mut halite_sequence,
    out: *mut *mut halite_sequence,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sequence_fork", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_sequence::new(with(sequence, |own| Ok(own.fork()?))?));
        Ok(())
    })
}

/// Tokens and caches as bytes, for `halite_sequence_load` of a generator with the same model, context and types of caches.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_save(
    sequence: *mut halite_sequence,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sequence_save", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_blob::new(with(sequence, |own| Ok(own.save()?))?));
        Ok(())
    })
}

/// Restores a saved sequence. If it does not fit, the sequence has no tokens.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_load(
    sequence: *mut halite_sequence,
    data: *const c_void,
    size: usize,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sequence_load", || unsafe {
        let bytes = raw::slice(data.cast::<u8>(), size, "data")?;
        with(sequence, |own| Ok(own.load(bytes)?))
    })
}

/// Frees a sequence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sequence_free(sequence: *mut halite_sequence) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_sequence_free", sequence) }
}
