//! Sessions: models and modules that are ready to run.

use std::{ffi::c_char, ptr, sync::Arc};

use halite::{FunctionInfo, Session};

use crate::{
    device::halite_device,
    error::{call, halite_error},
    failure::{Result, quiet},
    function::halite_function,
    options::{Bounds, halite_run_options},
    raw::{self, Out},
    signature::halite_signature,
    state::halite_state,
    values::{self, halite_input, halite_outputs},
};

/// A model or module, ready to run on its devices. Any thread may use it, and many may run it at the same time. When it is freed,
/// and the functions, states and results made from it, all memory is freed.
pub struct halite_session {
    session: Session,
    signatures: Arc<[halite_signature]>,
}

impl halite_session {
    pub(crate) fn new(session: Session) -> Self {
        let signatures = session.functions().iter().map(halite_signature::of).collect();
        halite_session { session, signatures }
    }

    /// A function: by name, or the one that runs when none is named.
    fn function(&self, name: Option<&str>) -> Result<halite_function> {
        let function = match name {
            Some(name) => self.session.function(name)?,
            None => self.session.default_function()?,
        };
        let is_it = |info: &FunctionInfo| ptr::eq(info, function.info());
        let place = self.session.functions().iter().position(is_it).unwrap_or_default();
        Ok(halite_function::new(function, self.signatures.clone(), place))
    }
}

/// Opens a model or module from a file, with default settings. `halite_session_builder_create` has the others.
/// `device` is a URI such as `vulkan`; NULL is the best device that can run it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_open(
    path: *const c_char,
    device: *const c_char,
    out: *mut *mut halite_session,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_session_open", || unsafe {
        let out = Out::handle(out, "out")?;
        let mut builder = Session::builder().model(raw::path(path, "path")?);
        if let Some(device) = raw::optional_text(device, "device")? {
            builder = builder.device(device);
        }
        out.give(halite_session::new(builder.build()?));
        Ok(())
    })
}

/// Number of functions: `main` of an ONNX model, the methods of an ExecuTorch program, what a module exports.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_function_count(session: *const halite_session) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_session_function_count", 0, || unsafe {
        Ok(raw::handle(session, "session")?.signatures.len())
    })
}

/// The signature of a function, by its index; NULL after the last. It belongs to the session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_signature(
    session: *const halite_session,
    index: usize,
) -> *const halite_signature {
    // SAFETY: the contract of the interface.
    quiet("halite_session_signature", ptr::null(), || unsafe {
        Ok(raw::handle(session, "session")?.signatures.get(index).map_or(ptr::null(), ptr::from_ref))
    })
}

/// A function: by `name`, or by `module.name`. NULL is the one that `halite_session_run` runs: the only one of the module, the
/// first one of a model.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_function(
    session: *const halite_session,
    name: *const c_char,
    out: *mut *mut halite_function,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_session_function", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(raw::handle(session, "session")?.function(raw::optional_text(name, "name")?)?);
        Ok(())
    })
}

/// Runs the default function and waits for its results, which stay on the device until they are read. Sizes of a model that were
/// not seen before are compiled first.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_run(
    session: *const halite_session,
    inputs: *const halite_input,
    input_count: usize,
    options: *const halite_run_options,
    out: *mut *mut halite_outputs,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_session_run", || unsafe {
        let out = Out::handle(out, "out")?;
        let (session, inputs) = (raw::handle(session, "session")?, values::inputs(inputs, input_count)?);
        let bounds = Bounds::read(options)?;
        out.give(halite_outputs::new(session.session.run_with(inputs, &bounds.options)?));
        Ok(())
    })
}

/// A new state of the default function; see `halite_function_state`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_state(
    session: *const halite_session,
    out: *mut *mut halite_state,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_session_state", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_state::new(raw::handle(session, "session")?.session.state()?));
        Ok(())
    })
}

/// Number of devices; 0 for a module that uses none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_device_count(session: *const halite_session) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_session_device_count", 0, || unsafe {
        Ok(raw::handle(session, "session")?.session.devices().len())
    })
}

/// A handle to a device of the session. Inputs and results lie on the first, number 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_device(
    session: *const halite_session,
    index: usize,
    out: *mut *mut halite_device,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_session_device", || unsafe {
        let out = Out::handle(out, "out")?;
        let device = raw::at(raw::handle(session, "session")?.session.devices(), index, "device")?;
        out.give(halite_device::new(device.clone()));
        Ok(())
    })
}

/// How many compiled versions of a model are loaded, each for other sizes. A module is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_loaded_versions(session: *const halite_session) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_session_loaded_versions", 0, || unsafe {
        Ok(raw::handle(session, "session")?.session.loaded_versions())
    })
}

/// Frees a session. Functions, states and results made from it keep what they need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_free(session: *mut halite_session) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_session_free", session) }
}
