//! Compiling models ahead of time, and modules.

use std::{
    ffi::c_char,
    fs::File,
    io::{self, BufWriter, Write},
    ptr,
};

use halite::compile::{Compiled, Model, OpenOptions};

use crate::{
    blob::halite_blob,
    error::{call, halite_error},
    failure::{Failure, Result, quiet},
    options::{Bounds, halite_run_options},
    raw::{self, Out},
    signature::halite_signature,
    source::{self, halite_source},
};

/// A model that was read, to be compiled ahead of time for other devices. A session reads and compiles its model by itself.
pub struct halite_model {
    pub(crate) model: Model,
    signatures: Vec<halite_signature>,
}

/// A module that was made from a model.
pub struct halite_compiled(pub(crate) Compiled);

/// Reads a model. The library finds the format by its content.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_model_open(
    source: *const halite_source,
    options: *const halite_run_options,
    out: *mut *mut halite_model,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_model_open", || unsafe {
        let out = Out::handle(out, "out")?;
        let source = source::read(source)?;
        let bounds = Bounds::read(options)?;
        let model = Model::open_with(source, &OpenOptions::new().options(bounds.options.clone()))?;
        let signatures = model.functions()?.iter().map(halite_signature::of).collect();
        out.give(halite_model { model, signatures });
        Ok(())
    })
}

/// Number of functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_model_function_count(model: *const halite_model) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_model_function_count", 0, || unsafe { Ok(raw::handle(model, "model")?.signatures.len()) })
}

/// The signature of a function, by its index; NULL after the last. It belongs to the model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_model_signature(
    model: *const halite_model,
    index: usize,
) -> *const halite_signature {
    // SAFETY: the contract of the interface.
    quiet("halite_model_signature", ptr::null(), || unsafe {
        Ok(raw::handle(model, "model")?.signatures.get(index).map_or(ptr::null(), ptr::from_ref))
    })
}

/// Frees a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_model_free(model: *mut halite_model) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_model_free", model) }
}

/// The module file in memory, for a session (`halite_source.data`) or a file.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiled_module(
    compiled: *const halite_compiled,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_compiled_module", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_blob::new(raw::handle(compiled, "compiled")?.0.to_vec()));
        Ok(())
    })
}

/// Writes the module file (`.vmfb`). The weights go from the model's file to it without a copy in memory.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiled_write(
    compiled: *const halite_compiled,
    path: *const c_char,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_compiled_write", || unsafe {
        let compiled = &raw::handle(compiled, "compiled")?.0;
        write(path, |file| compiled.write(file))
    })
}

/// Writes the weights that the module asks for under the scope of `halite_compiler_external_parameters`, as an archive (`.irpa`).
/// Fails if the weights are in the module.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiled_write_parameters(
    compiled: *const halite_compiled,
    path: *const c_char,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_compiled_write_parameters", || unsafe {
        let compiled = &raw::handle(compiled, "compiled")?.0;
        if compiled.parameter_bytes().is_none() {
            return Err(Failure::invalid(
                "the weights are in the module; halite_compiler_external_parameters keeps them out",
            ));
        }
        write(path, |file| compiled.write_parameters(file))
    })
}

/// What the compiler decided and what it costs, as JSON: targets, kernels and the reasons for them, memory, work, sizes. Later
/// versions only add fields.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiled_explain_json(
    compiled: *const halite_compiled,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_compiled_explain_json", || unsafe {
        let out = Out::handle(out, "out")?;
        let report = raw::handle(compiled, "compiled")?.0.report();
        let json = serde_json::to_string(report).map_err(|e| Failure::internal(e.to_string()))?;
        out.give(halite_blob::new(json));
        Ok(())
    })
}

/// The same as text for people.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiled_explain(
    compiled: *const halite_compiled,
    out: *mut *mut halite_blob,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_compiled_explain", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_blob::new(raw::handle(compiled, "compiled")?.0.report().to_string()));
        Ok(())
    })
}

/// Frees a module that was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiled_free(compiled: *mut halite_compiled) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_compiled_free", compiled) }
}

/// Writes a file.
///
/// # Safety
/// The pointer is null or a text of C.
unsafe fn write(
    path: *const c_char,
    content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let path = unsafe { raw::path(path, "path") }?;
    let written = File::create(&path).and_then(|file| {
        let mut file = BufWriter::new(file);
        content(&mut file)?;
        file.flush()
    });
    written.map_err(|e| Failure::io("cannot write", &path, &e))
}
