//! Tokens and pieces of text.

use std::ffi::{c_char, c_void};

use crate::{
    failure::{Result, quiet},
    raw,
};

/// Tokens that the library made: numbers of parts of texts. They never change.
pub struct halite_tokens(pub(crate) Vec<u32>);

/// Tokens of the caller's.
///
/// # Safety
/// The pointer is null or points to `count` tokens.
pub(crate) unsafe fn given<'a>(tokens: *const u32, count: usize) -> Result<&'a [u32]> {
    // SAFETY: the caller's promise.
    unsafe { raw::slice(tokens, count, "tokens") }
}

/// The tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tokens_data(tokens: *const halite_tokens) -> *const u32 {
    // SAFETY: the contract of the interface.
    quiet("halite_tokens_data", std::ptr::null(), || unsafe { Ok(raw::handle(tokens, "tokens")?.0.as_ptr()) })
}

/// Number of tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tokens_count(tokens: *const halite_tokens) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_tokens_count", 0, || unsafe { Ok(raw::handle(tokens, "tokens")?.0.len()) })
}

/// Frees tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tokens_free(tokens: *mut halite_tokens) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_tokens_free", tokens) }
}

/// A piece of what a model writes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_piece {
    /// Bytes of this structure that the library knows.
    pub struct_size: usize,
    /// The text that is certain now: empty while bytes of a character are missing, or while it may be the beginning of a text that
    /// ends the answer. Valid until the callback returns.
    pub text: *const c_char,
    /// Its bytes, without the zero behind them.
    pub text_size: usize,
    /// The token that was written; `HALITE_NO_TOKEN` where text that was held back comes in the end.
    pub token: u32,
}

/// No token.
pub const HALITE_NO_TOKEN: u32 = 0xFFFF_FFFF;

/// Receives each piece of text at once, on the thread that called. Returns whether the model should continue. It must not use the
/// sequence that writes: that would wait for itself.
pub type halite_piece_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, piece: *const halite_piece) -> bool>;
