//! Language models that write text.

use std::ffi::c_char;

use halite::{CacheType, ChooseOn, Generator, GeneratorOptions, Message};

use crate::{
    blob::halite_blob,
    builder::{self, halite_session_builder},
    error::{call, halite_error},
    failure::{Failure, Result, quiet},
    options::{Bounds, halite_run_options},
    raw::{self, Grows, Out},
    sequence::halite_sequence,
    session::halite_session,
    tokens::{given, halite_tokens},
};

/// A language model that writes text, from a GGUF file: its session, tokenizer and chat template. Any thread may use it. Sequences
/// share its weights; each has caches of its own.
pub struct halite_generator(Generator);

/// How caches hold keys or values: one of `HALITE_CACHE_…`.
pub type halite_cache_type = u32;

/// 16-bit floats.
pub const HALITE_CACHE_F16: halite_cache_type = 0;
/// Blocks of 32 elements: 8 bits for each, and a scale.
pub const HALITE_CACHE_Q8_0: halite_cache_type = 1;
/// Blocks of 32 elements: 4 bits for each, and a scale.
pub const HALITE_CACHE_Q4_0: halite_cache_type = 2;

/// Where the next token of a sequence is chosen: one of `HALITE_CHOOSE_ON_…`.
pub type halite_choose_on = u32;

/// On the device, if it is a GPU; otherwise on the host.
pub const HALITE_CHOOSE_ON_AUTO: halite_choose_on = 0;
/// On the host.
pub const HALITE_CHOOSE_ON_HOST: halite_choose_on = 1;
/// On the device, where it can: it takes the most likely token, or draws among the most likely 64 at most, without a penalty.
/// The host does the rest.
pub const HALITE_CHOOSE_ON_DEVICE: halite_choose_on = 2;

/// The settings of a generator. Begin with `HALITE_GENERATOR_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_generator_options {
    /// `sizeof(halite_generator_options)`.
    pub struct_size: usize,
    /// How many tokens a sequence has room for, prompt and answer. 0 is 4096, or the model's training length if that is less.
    pub context: usize,
    /// How caches hold keys.
    pub keys: halite_cache_type,
    /// How caches hold values.
    pub values: halite_cache_type,
    /// Whether you will call `halite_sequence_score`.
    pub scoring: bool,
    /// The tokenizer's file, for models without a tokenizer. NULL looks for one beside the model.
    pub tokenizer: *const c_char,
    /// Where tokens are chosen by `halite_sequence_generate` and `halite_generator_step`.
    pub choose_on: halite_choose_on,
    /// The largest number of sequences that take a step together in `halite_generator_step`. 0 is 1: each sequence alone.
    pub batch: usize,
}

// SAFETY: the size comes first; zeros are the defaults.
unsafe impl Grows for halite_generator_options {
    const NAME: &'static str = "halite_generator_options";
    const FIRST: usize = std::mem::offset_of!(halite_generator_options, scoring) + 1;
}

/// A message of a conversation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_message {
    /// The speaker: `system`, `user`, `assistant`.
    pub role: *const c_char,
    /// What is said.
    pub content: *const c_char,
}

impl halite_generator {
    pub(crate) fn inner(&self) -> &Generator {
        &self.0
    }
}

fn cache_type(number: halite_cache_type) -> Result<CacheType> {
    match number {
        HALITE_CACHE_F16 => Ok(CacheType::F16),
        HALITE_CACHE_Q8_0 => Ok(CacheType::Q8_0),
        HALITE_CACHE_Q4_0 => Ok(CacheType::Q4_0),
        other => Err(Failure::invalid(format!(
            "there is no type {other} of caches; there are HALITE_CACHE_F16, HALITE_CACHE_Q8_0, HALITE_CACHE_Q4_0"
        ))),
    }
}

fn place(number: halite_choose_on) -> Result<ChooseOn> {
    match number {
        HALITE_CHOOSE_ON_AUTO => Ok(ChooseOn::Auto),
        HALITE_CHOOSE_ON_HOST => Ok(ChooseOn::Host),
        HALITE_CHOOSE_ON_DEVICE => Ok(ChooseOn::Device),
        other => Err(Failure::invalid(format!(
            "there is no place {other} where tokens are chosen; there are HALITE_CHOOSE_ON_AUTO, HALITE_CHOOSE_ON_HOST, \
             HALITE_CHOOSE_ON_DEVICE"
        ))),
    }
}

/// Reads a language model (a GGUF file, or a decoder in another format) and builds all that writing text with it takes;
/// otherwise as `halite_session_builder_build`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_generator(
    builder: *mut halite_session_builder,
    wanted: *const halite_generator_options,
    options: *const halite_run_options,
    out: *mut *mut halite_generator,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_session_builder_generator", || unsafe {
        let out = Out::handle(out, "out")?;
        let stated = raw::structure(wanted)?;
        let (keys, values) = (cache_type(stated.keys)?, cache_type(stated.values)?);
        let mut wanted = GeneratorOptions::new().cache_types(keys, values).scoring(stated.scoring);
        wanted = wanted.choose_on(place(stated.choose_on)?);
        wanted = wanted.batch(stated.batch);
        if stated.context > 0 {
            wanted = wanted.context(stated.context);
        }
        if !stated.tokenizer.is_null() {
            wanted = wanted.tokenizer(raw::path(stated.tokenizer, "tokenizer")?);
        }
        let (builder, bounds) = (builder::collected(builder)?, Bounds::read(options)?);
        out.give(halite_generator(builder.options(bounds.options.clone()).generator(wanted)?));
        Ok(())
    })
}

/// The session of the model.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_session(
    generator: *const halite_generator,
    out: *mut *mut halite_session,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generator_session", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_session::new(raw::handle(generator, "generator")?.0.session().clone()));
        Ok(())
    })
}

/// How many tokens a sequence has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_context(generator: *const halite_generator) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_generator_context", 0, || unsafe { Ok(raw::handle(generator, "generator")?.0.context()) })
}

/// The number of tokens in the model's vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_vocabulary_size(generator: *const halite_generator) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_generator_vocabulary_size", 0, || unsafe {
        Ok(raw::handle(generator, "generator")?.0.vocabulary_len())
    })
}

/// Whether a token ends an answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_is_end(generator: *const halite_generator, token: u32) -> bool {
    // SAFETY: the contract of the interface.
    quiet("halite_generator_is_end", false, || unsafe {
        Ok(raw::handle(generator, "generator")?.0.is_end(token))
    })
}

/// The tokens of a text, with a token for its beginning if the model expects one. Names of control tokens in the text, such as
/// `<|im_end|>`, are plain text, unless `with_control` makes tokens of them: for what `halite_generator_chat` made.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_tokenize(
    generator: *const halite_generator,
    text: *const c_char,
    with_control: bool,
    out: *mut *mut halite_tokens,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generator_tokenize", || unsafe {
        let out = Out::handle(out, "out")?;
        let (generator, text) = (raw::handle(generator, "generator")?, raw::text(text, "text")?);
        out.give(halite_tokens(generator.0.tokenize(text, with_control)));
        Ok(())
    })
}

/// The text of tokens. Control tokens have no text. Bytes that are not UTF-8 are replaced.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_text(
    generator: *const halite_generator,
    tokens: *const u32,
    count: usize,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generator_text", || unsafe {
        let out = Out::handle(out, "out")?;
        let text = raw::handle(generator, "generator")?.0.text(given(tokens, count)?);
        out.give(halite_blob::new(text));
        Ok(())
    })
}

/// The prompt of a conversation as text, by the model's chat template, up to the place where the model answers.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_chat(
    generator: *const halite_generator,
    messages: *const halite_message,
    count: usize,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generator_chat", || unsafe {
        let out = Out::handle(out, "out")?;
        let generator = raw::handle(generator, "generator")?;
        out.give(halite_blob::new(generator.0.chat(&stated(messages, count)?)?));
        Ok(())
    })
}

/// The same with tools that the model may call, and values that its template may know; each is NULL for none. `tools` is a list as JSON,
/// in OpenAI's form (`[{"type": "function", "function": {…}}]`), `values` an object as JSON, such as `{"enable_thinking": false}`.
/// Values that the template does not know change nothing. It is an error if the template takes no tools.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_chat_with(
    generator: *const halite_generator,
    messages: *const halite_message,
    count: usize,
    tools: *const c_char,
    values: *const c_char,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generator_chat_with", || unsafe {
        let out = Out::handle(out, "out")?;
        let generator = raw::handle(generator, "generator")?;
        let tools = raw::optional_text(tools, "tools")?;
        let values = raw::optional_text(values, "values")?.unwrap_or("{}");
        let messages = stated(messages, count)?;
        let made = generator.0.chat_with_values(&messages, tools, values, &halite::RunOptions::new())?;
        out.give(halite_blob::new(made));
        Ok(())
    })
}

/// Messages as a program states them.
///
/// # Safety
/// There are so many of them.
unsafe fn stated(messages: *const halite_message, count: usize) -> Result<Vec<Message>> {
    // SAFETY: the contract of the interface.
    let all = unsafe { raw::slice(messages, count, "messages")? };
    let one = |message: &halite_message| {
        // SAFETY: the same.
        let (role, content) =
            unsafe { (raw::text(message.role, "role")?, raw::text(message.content, "content")?) };
        Ok(Message::new(role, content))
    };
    all.iter().map(one).collect()
}

/// A sequence without tokens. Memory for its caches is taken when it gets some.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_sequence(
    generator: *const halite_generator,
    out: *mut *mut halite_sequence,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generator_sequence", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_sequence::new(raw::handle(generator, "generator")?.0.sequence()?));
        Ok(())
    })
}

/// Frees a generator. Sequences made from it keep what they need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_free(generator: *mut halite_generator) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_generator_free", generator) }
}
