//! Blobs: bytes that the library makes (saved state, modules, JSON).

use std::ptr;

use crate::{failure::quiet, raw};

/// Bytes that the library made. They never change. A zero byte lies behind them, so that texts can be used as texts of C.
pub struct halite_blob(Vec<u8>);

impl halite_blob {
    /// Of these bytes.
    pub(crate) fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let mut bytes = bytes.into();
        bytes.push(0);
        halite_blob(bytes)
    }
}

/// The bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_blob_data(blob: *const halite_blob) -> *const u8 {
    // SAFETY: the contract of the interface.
    quiet("halite_blob_data", ptr::null(), || unsafe { Ok(raw::handle(blob, "blob")?.0.as_ptr()) })
}

/// Number of bytes, without the zero byte behind them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_blob_size(blob: *const halite_blob) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_blob_size", 0, || unsafe { Ok(raw::handle(blob, "blob")?.0.len() - 1) })
}

/// Frees bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_blob_free(blob: *mut halite_blob) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_blob_free", blob) }
}
