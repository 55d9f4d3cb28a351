//! Session builders.

use std::ffi::c_char;

use halite::{Cache, Precision, Session, SessionBuilder, Sizes, Tuning};
use parking_lot::Mutex;

use crate::{
    device::halite_device,
    drivers::{self, halite_drivers},
    error::{call, halite_error},
    failure::{Failure, Result, quiet},
    options::{Bounds, halite_run_options},
    raw::{self, Out},
    session::halite_session,
    source::{self, halite_load_mode, halite_source},
    tensor::halite_tensor,
};

/// Collects the settings of a session. Only the model is required. Nothing is read or opened before
/// `halite_session_builder_build`, which also reports the first wrong argument of these functions.
pub struct halite_session_builder(Mutex<Collected>);

#[derive(Default)]
struct Collected {
    builder: SessionBuilder,
    /// The first thing that was wrong.
    failure: Option<Failure>,
    /// Whether the settings were taken, and no other were made since.
    is_spent: bool,
}

/// Which floats a model computes with inside: one of `HALITE_PRECISION_…`.
pub type halite_precision = u32;

/// Those of the model.
pub const HALITE_PRECISION_MODEL: halite_precision = 0;
/// 16 bits where kernels support them. Inputs and outputs keep their types.
pub const HALITE_PRECISION_F16: halite_precision = 1;

/// A precision by its number.
pub(crate) fn precision(number: halite_precision) -> Result<Precision> {
    match number {
        HALITE_PRECISION_MODEL => Ok(Precision::Model),
        HALITE_PRECISION_F16 => Ok(Precision::F16),
        other => Err(Failure::invalid(format!(
            "there is no precision {other}; there are HALITE_PRECISION_MODEL, HALITE_PRECISION_F16"
        ))),
    }
}

/// Measurements of a file; without a path those that ship with Halite alone.
///
/// # Safety
/// The pointer is null or a text of C.
pub(crate) unsafe fn tuning(path: *const c_char) -> Result<Tuning> {
    if path.is_null() {
        return Ok(Tuning::Shipped);
    }
    // SAFETY: the caller's promise.
    Ok(Tuning::File(unsafe { raw::path(path, "path") }?))
}

/// Changes what was collected; what goes wrong is kept for the build.
///
/// # Safety
/// The pointer is null or a handle.
unsafe fn change(
    name: &str,
    builder: *mut halite_session_builder,
    change: impl FnOnce(SessionBuilder) -> Result<SessionBuilder>,
) {
    quiet(name, (), || {
        // SAFETY: the caller's promise.
        let mut own = unsafe { raw::handle(builder.cast_const(), "builder") }?.0.lock();
        own.is_spent = false;
        match change(std::mem::take(&mut own.builder)) {
            Ok(builder) => own.builder = builder,
            Err(failure) => {
                own.failure.get_or_insert(failure.within(name));
            }
        }
        Ok(())
    });
}

/// What was collected, which the builder has no more.
///
/// # Safety
/// The pointer is null or a handle.
pub(crate) unsafe fn collected(builder: *mut halite_session_builder) -> Result<SessionBuilder> {
    // SAFETY: the caller's promise.
    let own = unsafe { raw::handle(builder.cast_const(), "builder") }?;
    let collected =
        std::mem::replace(&mut *own.0.lock(), Collected { is_spent: true, ..Collected::default() });
    if collected.is_spent {
        return Err(Failure::invalid(
            "the builder is empty: building took its settings, also where it failed; make another one with \
             halite_session_builder_create",
        ));
    }
    match collected.failure {
        Some(failure) => Err(failure),
        None => Ok(collected.builder),
    }
}

/// A builder with nothing in it.
#[unsafe(no_mangle)]
pub extern "C" fn halite_session_builder_create() -> *mut halite_session_builder {
    Box::into_raw(Box::new(halite_session_builder(Mutex::new(Collected::default()))))
}

/// The model or module that the session runs, from a file. The library finds the format by its content: ONNX, an ExecuTorch
/// program (`.pte`), a module (`.vmfb`), ….
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_model_path(
    builder: *mut halite_session_builder,
    path: *const c_char,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_model_path", builder, |own| Ok(own.model(raw::path(path, "path")?)));
    }
}

/// The model or module that the session runs, from wherever it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_model(
    builder: *mut halite_session_builder,
    source: *const halite_source,
) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_model", builder, |own| Ok(own.model(source::read(source)?))) }
}

/// Adds a module that later ones, and the main one, may import from.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_import(
    builder: *mut halite_session_builder,
    source: *const halite_source,
) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_import", builder, |own| Ok(own.import(source::read(source)?))) }
}

/// The device, by URI. Given several times, a module for several devices sees them in this order. Without any, the best device that
/// can run the model or module is opened, a GPU before a processor; machine code in a module does not run then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_device(
    builder: *mut halite_session_builder,
    uri: *const c_char,
) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_device", builder, |own| Ok(own.device(raw::text(uri, "uri")?))) }
}

/// A device that is open, which several sessions may share.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_open_device(
    builder: *mut halite_session_builder,
    device: *const halite_device,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_open_device", builder, |own| {
            Ok(own.device(&raw::handle(device, "device")?.device))
        });
    }
}

/// The drivers that devices are looked for with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_drivers(
    builder: *mut halite_session_builder,
    drivers: *const halite_drivers,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_drivers", builder, |own| Ok(own.drivers(&drivers::chosen(drivers)?)));
    }
}

/// Adds a parameter archive (`.irpa`, `.safetensors`, `.gguf`) whose entries modules find under `scope`, which may be empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_parameters(
    builder: *mut halite_session_builder,
    scope: *const c_char,
    path: *const c_char,
    mode: halite_load_mode,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_parameters", builder, |own| {
            let (scope, path) = (raw::text(scope, "scope")?, raw::path(path, "path")?);
            Ok(own.parameters_with(scope, path, source::load_mode(mode)?))
        });
    }
}

/// How files of models and modules come into memory; by default they are mapped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_load_mode(
    builder: *mut halite_session_builder,
    mode: halite_load_mode,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change(
            "halite_session_builder_load_mode",
            builder,
            |own| Ok(own.load_mode(source::load_mode(mode)?)),
        );
    }
}

/// Keeps compiled models and pipelines for the next process in this folder. It must be new, empty, or an earlier cache.
/// `limit` is the largest size in bytes; 0 is 4 GiB. The default is a folder among this user's caches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_cache(
    builder: *mut halite_session_builder,
    folder: *const c_char,
    limit: u64,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_cache", builder, |own| {
            let cache = Cache::at(raw::path(folder, "folder")?);
            Ok(own.cache(if limit > 0 { cache.limit(limit) } else { cache }))
        });
    }
}

/// Keeps nothing for the next process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_no_cache(builder: *mut halite_session_builder) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_no_cache", builder, |own| Ok(own.cache(Cache::off()))) }
}

/// Which floats a model computes with inside; by default its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_precision(
    builder: *mut halite_session_builder,
    number: halite_precision,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_precision", builder, |own| Ok(own.precision(precision(number)?)));
    }
}

/// Chooses kernels by the measurements of a file, or with NULL only by those that ship with Halite. Without this, this user's own
/// measurements go first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_tuning(
    builder: *mut halite_session_builder,
    path: *const c_char,
) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_tuning", builder, |own| Ok(own.tuning(tuning(path)?))) }
}

/// The size of an open dimension of a model, by its name. When all of them have sizes, the model is compiled when the session is
/// built, and takes no other sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_dimension(
    builder: *mut halite_session_builder,
    name: *const c_char,
    size: usize,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_dimension", builder, |own| {
            Ok(own.dimension(raw::text(name, "name")?, size))
        });
    }
}

/// The bounds of an open dimension of a model, by its name: the model is compiled for all sizes from `least` to `most` when the
/// session is built, and takes no other sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_bound(
    builder: *mut halite_session_builder,
    name: *const c_char,
    least: usize,
    most: usize,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_bound", builder, |own| {
            Ok(own.bound(raw::text(name, "name")?, least..=most))
        });
    }
}

/// The shape of an input of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_shape(
    builder: *mut halite_session_builder,
    input: *const c_char,
    shape: *const usize,
    rank: usize,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_shape", builder, |own| {
            let shape = raw::slice(shape, rank, "shape")?;
            Ok(own.sizes(Sizes::new().shape(raw::text(input, "input")?, shape)))
        });
    }
}

/// Values of an input that decides sizes. The model accepts no other values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_value(
    builder: *mut halite_session_builder,
    input: *const c_char,
    tensor: *const halite_tensor,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_value", builder, |own| {
            let tensor = raw::handle(tensor, "tensor")?.0.clone();
            Ok(own.sizes(Sizes::new().value(raw::text(input, "input")?, tensor)))
        });
    }
}

/// The seed of random numbers that the model's operators draw; 0 unless this says otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_seed(builder: *mut halite_session_builder, seed: u64) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_seed", builder, |own| Ok(own.seed(seed))) }
}

/// Most compiled versions of a model that stay loaded, which have weights on the device together; 32 unless this says otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_max_loaded_versions(
    builder: *mut halite_session_builder,
    count: usize,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_max_loaded_versions", builder, |own| {
            Ok(own.max_loaded_versions(count))
        });
    }
}

/// Most bytes of host memory that the host code of modules may hold for itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_program_memory(
    builder: *mut halite_session_builder,
    bytes: u64,
) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_program_memory", builder, |own| Ok(own.program_memory(bytes))) }
}

/// Most bytes of memory that buffers take on each device that the session opens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_device_memory(
    builder: *mut halite_session_builder,
    bytes: u64,
) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_device_memory", builder, |own| Ok(own.device_memory(bytes))) }
}

/// For a model or module that you do not trust. The session limits what it can do and use: no machine code, no
/// files but the model's own, nothing kept in this user's caches; building, and each call, end after 60 s; 1 GiB of host
/// memory, 4 GiB on the device. Other functions of the builder, and the options of a call, override these limits. A device that
/// is open has to have been opened with `untrusted=on`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_untrusted(builder: *mut halite_session_builder) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_untrusted", builder, |own| Ok(own.untrusted())) }
}

/// Names state of a model: inputs and the outputs that replace them, such as `past_*` and `present_*`. May be called again.
/// Without it, pairs are found by their names, types and sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_state(
    builder: *mut halite_session_builder,
    input: *const c_char,
    output: *const c_char,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_session_builder_state", builder, |own| {
            Ok(own.state(raw::text(input, "input")?, raw::text(output, "output")?))
        });
    }
}

/// Only inputs that `halite_session_builder_state` names are state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_without_state(builder: *mut halite_session_builder) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_session_builder_without_state", builder, |own| Ok(own.without_state())) }
}

/// Reads the model or modules, opens devices, compiles what has no open sizes, loads weights, and begins to build pipelines. The
/// options limit and report the building itself. The builder is empty afterwards, and you still have to free it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_build(
    builder: *mut halite_session_builder,
    options: *const halite_run_options,
    out: *mut *mut halite_session,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_session_builder_build", || unsafe {
        let out = Out::handle(out, "out")?;
        let builder = collected(builder)?;
        let bounds = Bounds::read(options)?;
        let session: Session = builder.options(bounds.options.clone()).build()?;
        out.give(halite_session::new(session));
        Ok(())
    })
}

/// Frees a builder and its settings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_session_builder_free(builder: *mut halite_session_builder) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_session_builder_free", builder) }
}
