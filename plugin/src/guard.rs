//! What every function that the far end calls goes through: panics stop here, and objects that saw one are closed.

use std::sync::atomic::Ordering;

use super::{
    abi::HaliteStatus,
    object::{Exported, ObjectOf, Shared},
    panics::catch,
    status,
};
use halite_hal::{Code, Result, Status, bail};

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
