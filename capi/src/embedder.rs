//! Language models that make vectors of texts.

use std::ffi::c_char;

use halite::{Embedder, Tensor};

use crate::{
    builder::{self, halite_session_builder},
    error::{call, halite_error},
    failure::quiet,
    options::{Bounds, halite_run_options},
    raw::{self, Out},
    tensor::halite_tensor,
    tokens::{self, halite_tokens},
};

/// A language model that makes vectors of texts, from a GGUF file. Texts with similar meanings have vectors that point in similar
/// directions. Any thread may use it.
pub struct halite_embedder(Embedder);

/// Reads a GGUF file of a model for embeddings; otherwise as `halite_session_builder_build`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_embedder(
    builder: *mut halite_session_builder,
    options: *const halite_run_options,
    out: *mut *mut halite_embedder,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_session_builder_embedder", || unsafe {
        let out = Out::handle(out, "out")?;
        let (builder, bounds) = (builder::collected(builder)?, Bounds::read(options)?);
        out.give(halite_embedder(builder.options(bounds.options.clone()).embedder()?));
        Ok(())
    })
}

/// Most tokens of a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_embedder_longest(embedder: *const halite_embedder) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_embedder_longest", 0, || unsafe { Ok(raw::handle(embedder, "embedder")?.0.longest()) })
}

/// The tokens of a text, with the tokens that the model expects at its beginning and end.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_embedder_tokenize(
    embedder: *const halite_embedder,
    text: *const c_char,
    out: *mut *mut halite_tokens,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_embedder_tokenize", || unsafe {
        let out = Out::handle(out, "out")?;
        let (embedder, text) = (raw::handle(embedder, "embedder")?, raw::text(text, "text")?);
        out.give(halite_tokens(embedder.0.tokenize(text)));
        Ok(())
    })
}

/// The vector of a text's tokens, a tensor of floats on the host. `normalize` scales it to length 1.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_embedder_embed(
    embedder: *const halite_embedder,
    tokens: *const u32,
    count: usize,
    normalize: bool,
    options: *const halite_run_options,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_embedder_embed", || unsafe {
        let out = Out::handle(out, "out")?;
        let (embedder, tokens) = (raw::handle(embedder, "embedder")?, tokens::given(tokens, count)?);
        let bounds = Bounds::read(options)?;
        let vector = match normalize {
            true => embedder.0.embed(tokens, &bounds.options)?,
            false => embedder.0.embed_raw(tokens, &bounds.options)?,
        };
        out.give(halite_tensor(Tensor::from_slice(&vector, [vector.len()])?));
        Ok(())
    })
}

/// Frees an embedder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_embedder_free(embedder: *mut halite_embedder) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_embedder_free", embedder) }
}
