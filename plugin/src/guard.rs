//! Owns the walls of every function that the far end calls: panics stop here, and objects that saw one are closed.
//! Does not own: what the functions do.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::Ordering,
};

use super::{
    abi::HaliteStatus,
    object::{Exported, ObjectOf, Shared},
    status,
};
use halite_hal::{Code, Result, Status, bail, status};

/// Runs `body`; a panic becomes INTERNAL with its text.
pub(super) fn catch<R>(name: &str, body: impl FnOnce() -> R) -> Result<R> {
    // What a panic left half done is behind an object that is closed from then on.
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let status = status!(Internal, "'{name}' panicked: {}", panic_text(payload.as_ref()));
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            // A payload whose drop panics with such a payload: there is no end to it.
            std::mem::forget(again);
        }
        status
    })
}

/// Runs what answers nothing, such as a release; a panic is logged.
pub(super) fn swallow(name: &str, body: impl FnOnce()) {
    if let Err(status) = catch(name, body) {
        log::error!("{status}");
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is no text")
}

impl<T: Shared + ?Sized> Exported<T> {
    /// Runs `body` unless an earlier call panicked.
    fn run<R>(&self, name: &str, body: impl FnOnce() -> Result<R>) -> Result<R> {
        if self.poisoned.load(Ordering::Relaxed) {
            bail!(
                FailedPrecondition,
                "this {} is closed because an earlier call of it panicked; asked for was '{name}'",
                T::NOUN
            );
        }
        catch(name, body).unwrap_or_else(|panic| {
            self.poisoned.store(true, Ordering::Relaxed);
            Err(panic)
        })
    }
}

/// A function that succeeds or fails.
///
/// # Safety
/// `object` is null or a live handle of an object that this library exported.
pub(super) unsafe fn call<T: Shared + ?Sized>(
    object: *mut ObjectOf<T>,
    name: &str,
    body: impl FnOnce(&Exported<T>) -> Result<()>,
) -> *mut HaliteStatus {
    // SAFETY: the caller's promise.
    let result = match unsafe { Exported::<T>::borrow(object) } {
        Some(exported) => exported.run(name, || body(exported)),
        None => Err(null_handle::<T>(name)),
    };
    result.map_or_else(status::give, |()| std::ptr::null_mut())
}

/// A function that makes something and answers its handle.
///
/// # Safety
/// As for [`call`]; `out` is null or may be written.
pub(super) unsafe fn make<T: Shared + ?Sized, O>(
    object: *mut ObjectOf<T>,
    name: &str,
    out: *mut *mut O,
    body: impl FnOnce(&Exported<T>) -> Result<*mut O>,
) -> *mut HaliteStatus {
    // SAFETY: the caller's promise.
    unsafe {
        call(object, name, |exported| {
            if out.is_null() {
                bail!(InvalidArgument, "'{name}' was given no place for its result");
            }
            out.write(body(exported)?);
            Ok(())
        })
    }
}

/// A function that cannot say why it fails: it answers `fallback`, and the failure is logged.
///
/// # Safety
/// As for [`call`].
pub(super) unsafe fn value<T: Shared + ?Sized, R>(
    object: *mut ObjectOf<T>,
    name: &str,
    fallback: R,
    body: impl FnOnce(&Exported<T>) -> R,
) -> R {
    // SAFETY: the caller's promise.
    let result = match unsafe { Exported::<T>::borrow(object) } {
        Some(exported) => exported.run(name, || Ok(body(exported))),
        None => Err(null_handle::<T>(name)),
    };
    result.unwrap_or_else(|status| {
        log::error!("{status}");
        fallback
    })
}

fn null_handle<T: Shared + ?Sized>(name: &str) -> Status {
    Status::new(Code::InvalidArgument, format!("'{name}' was called without a {}", T::NOUN))
}
