//! Compilers: targets, sizes and precision.

use std::ffi::c_char;

use halite::{
    Sizes,
    compile::{Compiler, Target},
};
use parking_lot::Mutex;

use crate::{
    builder::{self, halite_precision},
    compile::{halite_compiled, halite_model},
    device::halite_device,
    error::{call, halite_error},
    failure::{Failure, Result, quiet},
    options::{Bounds, halite_run_options},
    raw::{self, Out},
    tensor::halite_tensor,
};

/// Compiles models to modules. Without a target a module runs on every Vulkan 1.1 device. `halite_compiler_compile` reports the
/// first wrong argument of these functions. You may call it many times.
pub struct halite_compiler(Mutex<Chosen>);

#[derive(Default)]
struct Chosen {
    compiler: Compiler,
    sizes: Sizes,
    /// The first thing that was wrong.
    failure: Option<Failure>,
}

/// Changes what was chosen; what goes wrong is kept for the compilation.
///
/// # Safety
/// The pointer is null or a handle.
unsafe fn change(
    name: &str,
    compiler: *mut halite_compiler,
    change: impl FnOnce(Compiler, Sizes) -> Result<(Compiler, Sizes)>,
) {
    quiet(name, (), || {
        // SAFETY: the caller's promise.
        let mut own = unsafe { raw::handle(compiler.cast_const(), "compiler") }?.0.lock();
        match change(own.compiler.clone(), own.sizes.clone()) {
            Ok((compiler, sizes)) => (own.compiler, own.sizes) = (compiler, sizes),
            Err(failure) => {
                own.failure.get_or_insert(failure.within(name));
            }
        }
        Ok(())
    });
}

/// A compiler with the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn halite_compiler_create() -> *mut halite_compiler {
    Box::into_raw(Box::new(halite_compiler(Mutex::new(Chosen::default()))))
}

/// Adds a target: a kind of GPU, by its triple (`valhall-g78-android30`) or another name (`sm_90`, `rdna3`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_target(compiler: *mut halite_compiler, name: *const c_char) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_target", compiler, |own, sizes| {
            Ok((own.target(Target::named(raw::text(name, "name")?)?), sizes))
        });
    }
}

/// Adds a device of this machine as a target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_target_device(
    compiler: *mut halite_compiler,
    device: *const halite_device,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_target_device", compiler, |own, sizes| {
            Ok((own.target(Target::of_device(&raw::handle(device, "device")?.device)?), sizes))
        });
    }
}

/// Whether the module also has kernels for every Vulkan 1.1 device. The default is yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_baseline(compiler: *mut halite_compiler, is_included: bool) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_baseline", compiler, |own, sizes| Ok((own.baseline(is_included), sizes)));
    }
}

/// Which floats are used inside; by default the model's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_precision(
    compiler: *mut halite_compiler,
    precision: halite_precision,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_precision", compiler, |own, sizes| {
            Ok((own.precision(builder::precision(precision)?), sizes))
        });
    }
}

/// Chooses kernels by the measurements of a file, or with NULL only by those that ship with Halite. Without this, this user's own
/// measurements go first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_tuning(compiler: *mut halite_compiler, path: *const c_char) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_tuning", compiler, |own, sizes| {
            Ok((own.tuning(builder::tuning(path)?), sizes))
        });
    }
}

/// Sizes of an open dimension, by its name: a version of each function for every combination.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_dimension(
    compiler: *mut halite_compiler,
    name: *const c_char,
    all: *const usize,
    count: usize,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_dimension", compiler, |own, sizes| {
            let all = raw::slice(all, count, "all")?.iter().copied();
            Ok((own, sizes.dimension(raw::text(name, "name")?, all)))
        });
    }
}

/// Adds a shape of an input: a version of its function for each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_shape(
    compiler: *mut halite_compiler,
    input: *const c_char,
    shape: *const usize,
    rank: usize,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_shape", compiler, |own, sizes| {
            let shape = raw::slice(shape, rank, "shape")?;
            Ok((own, sizes.shape(raw::text(input, "input")?, shape)))
        });
    }
}

/// Values of an input that decides sizes. The function accepts no other values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_value(
    compiler: *mut halite_compiler,
    input: *const c_char,
    tensor: *const halite_tensor,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_value", compiler, |own, sizes| {
            let tensor = raw::handle(tensor, "tensor")?.0.clone();
            Ok((own, sizes.value(raw::text(input, "input")?, tensor)))
        });
    }
}

/// The seed of random numbers that the model's operators draw; 0 unless this says otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_seed(compiler: *mut halite_compiler, seed: u64) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_compiler_seed", compiler, |own, sizes| Ok((own, sizes.seed(seed)))) }
}

/// Adds a function to compile. Without this, all functions are compiled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_function(compiler: *mut halite_compiler, name: *const c_char) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_function", compiler, |own, sizes| {
            Ok((own.function(raw::text(name, "name")?), sizes))
        });
    }
}

/// The name of the module. The default is the name of the model's file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_module_name(compiler: *mut halite_compiler, name: *const c_char) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_module_name", compiler, |own, sizes| {
            Ok((own.module_name(raw::text(name, "name")?), sizes))
        });
    }
}

/// Names state: inputs and the outputs that replace them, such as `past_*` and `present_*`. May be called again. Without it, a
/// module has no state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_state(
    compiler: *mut halite_compiler,
    input: *const c_char,
    output: *const c_char,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_state", compiler, |own, sizes| {
            Ok((own.state(raw::text(input, "input")?, raw::text(output, "output")?), sizes))
        });
    }
}

/// Whether state is looked for by names, types and sizes, where none is named.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_find_state(compiler: *mut halite_compiler, looks: bool) {
    // SAFETY: the contract of the interface.
    unsafe { change("halite_compiler_find_state", compiler, |own, sizes| Ok((own.find_state(looks), sizes))) }
}

/// Puts the weights into an archive beside the module (`halite_compiled_write_parameters`), which asks for them under this scope.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_external_parameters(
    compiler: *mut halite_compiler,
    scope: *const c_char,
) {
    // SAFETY: the contract of the interface.
    unsafe {
        change("halite_compiler_external_parameters", compiler, |own, sizes| {
            Ok((own.external_parameters(raw::text(scope, "scope")?), sizes))
        });
    }
}

/// Compiles a model. The same model and choices give the same bytes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_compile(
    compiler: *const halite_compiler,
    model: *const halite_model,
    options: *const halite_run_options,
    out: *mut *mut halite_compiled,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_compiler_compile", || unsafe {
        let out = Out::handle(out, "out")?;
        let (compiler, model) = (raw::handle(compiler, "compiler")?, raw::handle(model, "model")?);
        let bounds = Bounds::read(options)?;
        let chosen = {
            let own = compiler.0.lock();
            if let Some(failure) = &own.failure {
                return Err(failure.clone());
            }
            own.compiler.clone().sizes(own.sizes.clone())
        };
        out.give(halite_compiled(chosen.compile_with(&model.model, &bounds.options)?));
        Ok(())
    })
}

/// Frees a compiler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_compiler_free(compiler: *mut halite_compiler) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_compiler_free", compiler) }
}
