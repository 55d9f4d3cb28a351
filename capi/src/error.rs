//! Errors.

use std::{
    ffi::{CString, c_char},
    ptr,
};

use crate::{
    failure::{self, Failure, Result, halite_error_kind, quiet},
    raw,
};

/// A failure: what went wrong, where, and what to do about it. It belongs to whoever receives it, and never changes.
pub struct halite_error {
    kind: halite_error_kind,
    code: CString,
    message: CString,
    context: Vec<CString>,
    text: CString,
}

impl halite_error {
    fn new(failure: &Failure) -> Self {
        halite_error {
            kind: failure.kind,
            code: raw::c_text(failure.code),
            message: raw::c_text(&failure.message),
            context: failure.context.iter().map(|line| raw::c_text(line)).collect(),
            text: raw::c_text(&failure.text),
        }
    }
}

/// Runs what a function does; a failure and a panic become an error of the caller's.
pub(crate) fn call(name: &str, body: impl FnOnce() -> Result<()>) -> *mut halite_error {
    match failure::catch(name, body).and_then(|outcome| outcome) {
        Ok(()) => ptr::null_mut(),
        Err(failure) => Box::into_raw(Box::new(halite_error::new(&failure))),
    }
}

/// The kind of failure. Programs should decide by it; texts are for people. 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_get_kind(error: *const halite_error) -> halite_error_kind {
    // SAFETY: the contract of the interface.
    quiet("halite_error_get_kind", 0, || unsafe { Ok(raw::handle(error, "error")?.kind) })
}

/// The name of the status code that modules and IREE's tools know it by, such as `INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_code_name(error: *const halite_error) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_error_code_name", ptr::null(), || unsafe { Ok(raw::handle(error, "error")?.code.as_ptr()) })
}

/// What went wrong, without the context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_message(error: *const halite_error) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_error_message", ptr::null(), || unsafe {
        Ok(raw::handle(error, "error")?.message.as_ptr())
    })
}

/// The whole error as one text: code, message, context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_text(error: *const halite_error) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_error_text", ptr::null(), || unsafe { Ok(raw::handle(error, "error")?.text.as_ptr()) })
}

/// What the library was doing, from the innermost step outwards: line `index`, or NULL after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_context(error: *const halite_error, index: usize) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_error_context", ptr::null(), || unsafe {
        Ok(raw::handle(error, "error")?.context.get(index).map_or(ptr::null(), |line| line.as_ptr()))
    })
}

/// Frees an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_error_free(error: *mut halite_error) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_error_free", error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{HALITE_ERROR_INVALID_INPUT, HALITE_ERROR_OTHER};

    #[test]
    fn panics_and_failures_become_errors() {
        for (error, kind, text) in [
            (call("f", || panic!("all is {}", "lost")), HALITE_ERROR_OTHER, "f panicked: all is lost"),
            (call("f", || Err(Failure::invalid("no\0zero"))), HALITE_ERROR_INVALID_INPUT, "no\u{fffd}zero"),
        ] {
            // SAFETY: the error is ours.
            unsafe {
                assert_eq!(halite_error_get_kind(error), kind);
                assert_eq!(std::ffi::CStr::from_ptr(halite_error_message(error)).to_str(), Ok(text));
                assert_eq!(halite_error_context(error, 0), ptr::null());
                halite_error_free(error);
            }
        }
        assert!(call("f", || Ok(())).is_null());
        assert_eq!(quiet("f", 7, || panic!()), 7);
    }
}
