//! Calls that run in the background.

use halite::Pending;

use crate::{
    error::{call, halite_error},
    failure::quiet,
    options::{Bounds, halite_run_options},
    raw::{self, Out},
    values::halite_outputs,
};

/// A call whose work may still be in progress.
pub struct halite_pending(Pending);

impl halite_pending {
    pub(crate) fn new(pending: Pending) -> Self {
        halite_pending(pending)
    }
}

/// Whether the call has finished, with results or a failure. Then waiting does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_pending_is_done(pending: *const halite_pending) -> bool {
    // SAFETY: the contract of the interface.
    quiet("halite_pending_is_done", false, || unsafe { Ok(raw::handle(pending, "pending")?.0.is_done()) })
}

/// Waits for the results. If the options end a wait, the call continues: wait again, or free it. Every wait gives the same
/// results.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_pending_wait(
    pending: *const halite_pending,
    options: *const halite_run_options,
    out: *mut *mut halite_outputs,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_pending_wait", || unsafe {
        let out = Out::handle(out, "out")?;
        let bounds = Bounds::read(options)?;
        out.give(halite_outputs::new(raw::handle(pending, "pending")?.0.wait_with(&bounds.options)?));
        Ok(())
    })
}

/// Frees a call. Its work runs to its end, and its results are lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_pending_free(pending: *mut halite_pending) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_pending_free", pending) }
}
