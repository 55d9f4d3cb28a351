//! Time limits, cancellation and progress.

use std::{
    ffi::{c_char, c_void},
    sync::Arc,
    time::Duration,
};

use halite::{CancelToken, Progress, RunOptions, Stage};
use parking_lot::Mutex;

use crate::{
    failure::{Result, quiet},
    raw::{self, Grows},
};

/// Stops work from any thread, in all of its stages. Once set, it stays set.
pub struct halite_cancel_token(CancelToken);

/// A stage of the way from a file to results: one of `HALITE_STAGE_…`.
pub type halite_stage = u32;

/// Anything else; the detail names it.
pub const HALITE_STAGE_OTHER: halite_stage = 0;
/// A file is read and decoded.
pub const HALITE_STAGE_READING: halite_stage = 1;
/// A model becomes a graph.
pub const HALITE_STAGE_IMPORTING: halite_stage = 2;
/// The graph is rewritten to do less work.
pub const HALITE_STAGE_OPTIMIZING: halite_stage = 3;
/// Constants and the order of the work are decided.
pub const HALITE_STAGE_PLANNING: halite_stage = 4;
/// Kernels are chosen for a device.
pub const HALITE_STAGE_CHOOSING_KERNELS: halite_stage = 5;
/// A module is written.
pub const HALITE_STAGE_WRITING: halite_stage = 6;
/// Weights are copied to the device.
pub const HALITE_STAGE_LOADING_WEIGHTS: halite_stage = 7;
/// The device's driver compiles kernels.
pub const HALITE_STAGE_BUILDING_PIPELINES: halite_stage = 8;

/// How far a piece of work is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_progress {
    /// Bytes of this structure that the library knows.
    pub struct_size: usize,
    /// What is being done.
    pub stage: halite_stage,
    /// The same as text: `choosing kernels for hopper-h200-linux`. Valid until the callback returns.
    pub detail: *const c_char,
    /// Steps of the stage that are done: nodes, pipelines, bytes.
    pub done: u64,
    /// Steps of the stage. A stage may come again, with steps of its own.
    pub total: u64,
}

/// Receives the progress of a piece of work: one call at a time, on any thread, never after the function has returned that was
/// given it. It should return soon, and must not use the session that reports the progress: that would wait for itself.
pub type halite_progress_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, progress: *const halite_progress)>;

/// Limits one piece of work (a call, building a session, a compilation), and lets you stop and watch it. Begin with
/// `HALITE_RUN_OPTIONS_INIT`. Stopped work fails with `HALITE_ERROR_DEADLINE_EXCEEDED` or `HALITE_ERROR_CANCELLED`.
/// What a device has begun runs to its end, without anybody waiting.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_run_options {
    /// `sizeof(halite_run_options)`.
    pub struct_size: usize,
    /// Gives up this many nanoseconds after the work begins; 0 is no limit.
    pub timeout_ns: u64,
    /// Stops when this is set; may be NULL.
    pub cancel: *const halite_cancel_token,
    /// Receives the progress; may be NULL.
    pub progress: halite_progress_fn,
    /// Handed to `progress`.
    pub progress_context: *mut c_void,
}

// SAFETY: the size comes first; zeros are no limit, no token, nobody.
unsafe impl Grows for halite_run_options {
    const NAME: &'static str = "halite_run_options";
    const FIRST: usize = std::mem::offset_of!(halite_run_options, progress_context) + 1;
}

/// Who is told of progress. Taken away when the call ends, after which nobody calls it.
struct Teller {
    function: unsafe extern "C" fn(*mut c_void, *const halite_progress),
    context: *mut c_void,
}

// SAFETY: the contract: progress is told on any thread.
unsafe impl Send for Teller {}

/// The options of a call. While it lives, progress may be told.
pub(crate) struct Bounds {
    pub options: RunOptions,
    teller: Option<Arc<Mutex<Option<Teller>>>>,
}

impl Bounds {
    /// Reads what the caller states.
    ///
    /// # Safety
    /// The pointer is null or points to options, whose parts live until the bounds are dropped.
    pub unsafe fn read(options: *const halite_run_options) -> Result<Bounds> {
        // SAFETY: the caller's promise.
        let (stated, token) = unsafe {
            let stated = raw::structure(options)?;
            (stated, raw::optional(stated.cancel, "cancel")?)
        };
        let mut options = RunOptions::new();
        if stated.timeout_ns > 0 {
            options = options.timeout(Duration::from_nanos(stated.timeout_ns));
        }
        if let Some(token) = token {
            options = options.cancel(&token.0);
        }
        let mut teller = None;
        if let Some(function) = stated.progress {
            let place = Arc::new(Mutex::new(Some(Teller { function, context: stated.progress_context })));
            teller = Some(place.clone());
            options = options.progress(move |progress| tell(&place, progress));
        }
        Ok(Bounds { options, teller })
    }
}

impl Drop for Bounds {
    fn drop(&mut self) {
        // Waits for a call that is going on.
        if let Some(teller) = &self.teller {
            *teller.lock() = None;
        }
    }
}

fn tell(place: &Mutex<Option<Teller>>, progress: Progress<'_>) {
    let stage = match progress.stage {
        Stage::Reading => HALITE_STAGE_READING,
        Stage::Importing => HALITE_STAGE_IMPORTING,
        Stage::Optimizing => HALITE_STAGE_OPTIMIZING,
        Stage::Planning => HALITE_STAGE_PLANNING,
        Stage::ChoosingKernels => HALITE_STAGE_CHOOSING_KERNELS,
        Stage::Writing => HALITE_STAGE_WRITING,
        Stage::LoadingWeights => HALITE_STAGE_LOADING_WEIGHTS,
        Stage::BuildingPipelines => HALITE_STAGE_BUILDING_PIPELINES,
        _ => HALITE_STAGE_OTHER,
    };
    let detail = raw::c_text(progress.detail);
    let told = halite_progress {
        struct_size: size_of::<halite_progress>(),
        stage,
        detail: detail.as_ptr(),
        done: progress.done,
        total: progress.total,
    };
    if let Some(teller) = &*place.lock() {
        // SAFETY: the call that brought the function goes on, as `Bounds` takes it away at its end.
        unsafe { (teller.function)(teller.context, &told) };
    }
}

/// A token that is not set.
#[unsafe(no_mangle)]
pub extern "C" fn halite_cancel_token_create() -> *mut halite_cancel_token {
    Box::into_raw(Box::new(halite_cancel_token(CancelToken::new())))
}

/// Stops the work that has the token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_cancel_token_cancel(token: *const halite_cancel_token) {
    // SAFETY: the contract of the interface.
    quiet("halite_cancel_token_cancel", (), || unsafe {
        raw::handle(token, "token")?.0.cancel();
        Ok(())
    });
}

/// Whether it was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_cancel_token_is_cancelled(token: *const halite_cancel_token) -> bool {
    // SAFETY: the contract of the interface.
    quiet("halite_cancel_token_is_cancelled", false, || unsafe {
        Ok(raw::handle(token, "token")?.0.is_cancelled())
    })
}

/// Frees a token. Work that has it continues, and cannot be stopped any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_cancel_token_free(token: *mut halite_cancel_token) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_cancel_token_free", token) }
}
