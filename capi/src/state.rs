//! State: tensors that stay on the device between calls.

use std::{
    ffi::{CString, c_char, c_void},
    ptr,
};

use halite::State;
use parking_lot::Mutex;

use crate::{
    blob::halite_blob,
    error::{call, halite_error},
    failure::quiet,
    options::{Bounds, halite_run_options},
    raw::{self, Out},
    tensor::halite_tensor,
    values::{self, halite_input, halite_outputs},
};

/// The state of a sequence: tensors that each call reads and replaces, such as the caches of a decoder or the memory of a recurrent
/// network. They stay on the device. One call uses it at a time; others wait. A call that fails leaves the state as the device left
/// it: reset it, or load it again.
pub struct halite_state {
    state: Mutex<State>,
    names: Vec<CString>,
}

impl halite_state {
    pub(crate) fn new(state: State) -> Self {
        let names = state.names().map(raw::c_text).collect();
        halite_state { state: Mutex::new(state), names }
    }
}

/// Runs the function on this state and waits. Inputs and results are those that are not state.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_run(
    state: *mut halite_state,
    inputs: *const halite_input,
    input_count: usize,
    options: *const halite_run_options,
    out: *mut *mut halite_outputs,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_state_run", || unsafe {
        let out = Out::handle(out, "out")?;
        let (own, inputs) = (raw::handle(state, "state")?, values::inputs(inputs, input_count)?);
        let bounds = Bounds::read(options)?;
        out.give(halite_outputs::new(own.state.lock().run_with(inputs, &bounds.options)?));
        Ok(())
    })
}

/// Resets the state to its beginning, and frees its memory.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_reset(state: *mut halite_state) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_state_reset", || unsafe { Ok(raw::handle(state, "state")?.state.lock().reset()?) })
}

/// A second state with a copy of the tensors. From then on both are independent.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_fork(
    state: *mut halite_state,
    out: *mut *mut halite_state,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_state_fork", || unsafe {
        let out = Out::handle(out, "out")?;
        let own = raw::handle(state, "state")?;
        out.give(halite_state { state: Mutex::new(own.state.lock().fork()?), names: own.names.clone() });
        Ok(())
    })
}

/// Number of its tensors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_count(state: *const halite_state) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_state_count", 0, || unsafe { Ok(raw::handle(state, "state")?.names.len()) })
}

/// The name of a tensor, which is that of the input; NULL after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_name(state: *const halite_state, index: usize) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_state_name", ptr::null(), || unsafe {
        Ok(raw::handle(state, "state")?.names.get(index).map_or(ptr::null(), |name| name.as_ptr()))
    })
}

/// Bytes that its tensors take on the device. Those that no call has used yet take none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_size(state: *const halite_state) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_state_size", 0, || unsafe { Ok(raw::handle(state, "state")?.state.lock().byte_len()) })
}

/// A copy of a tensor as it is now, on the device. NULL, and no error, if it does not exist yet because no call has decided its
/// sizes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_tensor(
    state: *mut halite_state,
    name: *const c_char,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_state_tensor", || unsafe {
        let out = Out::handle(out, "out")?;
        let name = raw::text(name, "name")?;
        if let Some(tensor) = raw::handle(state, "state")?.state.lock().tensor(name)? {
            out.give(halite_tensor(tensor));
        }
        Ok(())
    })
}

/// Replaces a tensor, by a copy of this one.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_set(
    state: *mut halite_state,
    name: *const c_char,
    tensor: *const halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_state_set", || unsafe {
        let (name, tensor) = (raw::text(name, "name")?, &raw::handle(tensor, "tensor")?.0);
        Ok(raw::handle(state, "state")?.state.lock().set(name, tensor)?)
    })
}

/// The state as bytes, which `halite_state_load` takes: a safetensors file with the tensors by their names.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_save(
    state: *mut halite_state,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_state_save", || unsafe {
        let out = Out::handle(out, "out")?;
        let bytes = raw::handle(state, "state")?.state.lock().save()?;
        out.give(halite_blob::new(bytes));
        Ok(())
    })
}

/// Restores a state that `halite_state_save` made, of the same function. The bytes are copied. If it does not fit, nothing is
/// changed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_load(
    state: *mut halite_state,
    data: *const c_void,
    size: usize,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_state_load", || unsafe {
        let bytes = raw::slice(data.cast::<u8>(), size, "data")?.to_vec();
        Ok(raw::handle(state, "state")?.state.lock().load(bytes)?)
    })
}

/// Frees a state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_state_free(state: *mut halite_state) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_state_free", state) }
}
