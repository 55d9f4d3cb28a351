//! Functions of a session.

use std::{ptr, sync::Arc};

use halite::Function;

use crate::{
    error::{call, halite_error},
    failure::{Failure, quiet},
    options::{Bounds, halite_run_options},
    pending::halite_pending,
    profile::halite_profile,
    raw::{self, Out},
    signature::halite_signature,
    state::halite_state,
    values::{self, halite_input, halite_outputs},
};

/// A function of a session, for models and modules that have several, and for profiles, prewarming and state. Keeps
/// the session alive.
pub struct halite_function {
    function: Function,
    /// Of all functions of the session.
    signatures: Arc<[halite_signature]>,
    place: usize,
}

impl halite_function {
    pub(crate) fn new(function: Function, signatures: Arc<[halite_signature]>, place: usize) -> Self {
        halite_function { function, signatures, place }
    }
}

/// Its signature. It belongs to the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_function_signature(
    function: *const halite_function,
) -> *const halite_signature {
    // SAFETY: the contract of the interface.
    quiet("halite_function_signature", ptr::null(), || unsafe {
        let own = raw::handle(function, "function")?;
        Ok(own.signatures.get(own.place).map_or(ptr::null(), ptr::from_ref))
    })
}

/// Runs it and waits for the results, which stay on the device until they are read.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_function_run(
    function: *const halite_function,
    inputs: *const halite_input,
    input_count: usize,
    options: *const halite_run_options,
    out: *mut *mut halite_outputs,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_function_run", || unsafe {
        let out = Out::handle(out, "out")?;
        let (own, inputs) = (raw::handle(function, "function")?, values::inputs(inputs, input_count)?);
        let bounds = Bounds::read(options)?;
        out.give(halite_outputs::new(own.function.run_with(inputs, &bounds.options)?));
        Ok(())
    })
}

/// Starts it and returns while the device works. The options are for what happens before it returns: sizes of a model that were
/// not seen before are compiled first.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_function_start(
    function: *const halite_function,
    inputs: *const halite_input,
    input_count: usize,
    options: *const halite_run_options,
    out: *mut *mut halite_pending,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_function_start", || unsafe {
        let out = Out::handle(out, "out")?;
        let (own, inputs) = (raw::handle(function, "function")?, values::inputs(inputs, input_count)?);
        let bounds = Bounds::read(options)?;
        out.give(halite_pending::new(own.function.start_with(inputs, &bounds.options)?));
        Ok(())
    })
}

/// Compiles and loads what inputs like these need, builds all pipelines, and runs a model once with them, so that the first call
/// is as fast as the others. Without inputs (`input_count` 0) zeros are taken, where the function states all sizes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_function_prewarm(
    function: *const halite_function,
    inputs: *const halite_input,
    input_count: usize,
    options: *const halite_run_options,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_function_prewarm", || unsafe {
        let function = &raw::handle(function, "function")?.function;
        let mut inputs = values::inputs(inputs, input_count)?;
        let bounds = Bounds::read(options)?;
        if input_count == 0 {
            let open =
                || Failure::invalid("the function leaves sizes or types of its inputs open: give it inputs");
            inputs = function.zeros().ok_or_else(open)?.into();
        }
        Ok(function.prewarm_with(inputs, &bounds.options)?)
    })
}

/// Runs it once and measures where the time goes. `outputs` may be NULL. The first call of a function also waits for its pipelines:
/// profile it after a call, or after `halite_function_prewarm`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_function_profile(
    function: *const halite_function,
    inputs: *const halite_input,
    input_count: usize,
    options: *const halite_run_options,
    outputs: *mut *mut halite_outputs,
    out: *mut *mut halite_profile,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_function_profile", || unsafe {
        let (results, out) = (Out::optional(outputs, "outputs")?, Out::handle(out, "out")?);
        let (own, inputs) = (raw::handle(function, "function")?, values::inputs(inputs, input_count)?);
        let bounds = Bounds::read(options)?;
        let (outputs, profile) = own.function.profile_with(inputs, &bounds.options)?;
        if let Some(results) = results {
            results.give(halite_outputs::new(outputs));
        }
        out.give(halite_profile::new(profile));
        Ok(())
    })
}

/// A new state: tensors that live on the device between the calls of a sequence, such as the caches of a decoder. They begin as
/// zeros. Each state is a sequence of its own; all share the weights of the session. Fails if the function has no state.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_function_state(
    function: *const halite_function,
    out: *mut *mut halite_state,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_function_state", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_state::new(raw::handle(function, "function")?.function.state()?));
        Ok(())
    })
}

/// Frees a handle to a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_function_free(function: *mut halite_function) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_function_free", function) }
}
