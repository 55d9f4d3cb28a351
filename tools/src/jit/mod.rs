//! Owns running models as they are: they are compiled for the device at hand and the shapes of the inputs, and what comes
//! out is kept. Does not own: compiling (`halite-compiler`).

mod cache;

use std::path::Path;

use bytes::Bytes;
use halite_compiler::{
    CompileError, CompileOptions, Control, Model, ModelFormat, Precision, Program, compile as to_module,
    signature::{Arity, Bindings, Signature},
};
use halite_runtime::tensor::{ArgumentKind, HostTensor, HostValue, InputReader};
use halite_shaders::TuningFile;
use halite_status::{Code, Status};
use halite_targets::Capabilities;

use self::cache::{Cache, Key};
use crate::{
    compile::{self, request},
    console::{Failure, Result},
    flags::{DeviceFlags, InputFlags, ModuleFlags},
    place,
};

/// Most inputs that are read for a model before it is known how many it has.
const MOST_INPUTS: usize = 4096;

/// The module for a model: from the cache, or compiled.
pub(crate) fn compile(
    path: &Path,
    format: ModelFormat,
    devices: &DeviceFlags,
    modules: &ModuleFlags,
    inputs: &InputFlags,
) -> Result<Bytes> {
    let given = read(&inputs.input)?;
    let tuning = place::tuning(None)?;
    let place = place::at_hand(devices).map_err(|failure| no_place(path, failure))?.swap_remove(0);
    let cache = Cache::of(modules.compile_cache.as_deref());
    let key = Key::new(path, modules.function(), &given, &place.capabilities, &tuning)?;
    if let Some(module) = cache.as_ref().and_then(|cache| cache.find(&key, &given)) {
        log::info!("'{}' was compiled before", path.display());
        return Ok(module);
    }
    let model = compile::read(path, format, modules.module_mode.into())?;
    let (module, bound) = build(path, &model, modules.function(), &given, &place.capabilities, &tuning)?;
    let module = Bytes::from(module);
    if let Some(cache) = cache {
        let kept = cache.keep(&key, &given, &bound, &model, &module);
        kept.unwrap_or_else(|why| log::warn!("the compiled model is not kept: {why}"));
    }
    Ok(module)
}

/// Why there is no device to compile a model for.
fn no_place(path: &Path, failure: Failure) -> Failure {
    match failure {
        Failure::Status(status) if matches!(status.code(), Code::Unimplemented | Code::Unavailable) => {
            let text = format!(
                "models such as '{}' run on Vulkan devices, and none was found or named; 'list-devices' shows what is here, \
                 and where there is no GPU a Vulkan driver for the processor will do: llvmpipe or SwiftShader",
                path.display()
            );
            Failure::Status(Status::new(status.code(), text))
        }
        other => other,
    }
}

/// The inputs on the host; `None` for what is no tensor.
fn read(texts: &[String]) -> Result<Vec<Option<HostTensor>>> {
    let values = InputReader::new().read_all(texts, &[ArgumentKind::Reference; MOST_INPUTS])?;
    let tensor = |value| if let HostValue::Tensor(tensor) = value { Some(tensor) } else { None };
    Ok(values.into_iter().map(tensor).collect())
}

/// Compiles a model for inputs: for their shapes, and for the values of those that decide sizes, whose places come back.
fn build(
    path: &Path,
    model: &Model,
    function: Option<&str>,
    given: &[Option<HostTensor>],
    device: &Capabilities,
    tuning: &TuningFile,
) -> Result<(Vec<u8>, Vec<usize>)> {
    let name = &asked(model, function)?;
    let signatures = model.inputs(name).map_err(|e| wrong(path, &e))?;
    let mut bindings = shapes(&signatures, given)?;
    let mut bound = Vec::new();
    let function = loop {
        match model.function(name, std::slice::from_ref(&bindings), Precision::Model, &Control::default()) {
            Ok((function, _)) => break function,
            Err(CompileError::NeedsValues { inputs, place, what }) => {
                let before = bound.len();
                for input in &inputs {
                    bind(input, &signatures, given, &mut bindings, &mut bound)?;
                }
                if bound.len() == before {
                    return Err(compile::failure(&CompileError::NeedsValues { place, what, inputs }));
                }
            }
            Err(error) => return Err(wrong(path, &error)),
        }
    };
    let options = CompileOptions {
        targets: vec![device.clone()],
        baseline: false,
        tuning: tuning.tuning(),
        ..CompileOptions::default()
    };
    let program = Program { functions: vec![function], model: Some(model.info()) };
    let compiled = to_module(&program, &options, &Control::default()).map_err(|e| wrong(path, &e))?;
    Ok((compiled.module.to_vec(), bound))
}

/// The model's function that the caller's name means: modules have `NAME` and `NAME$async` of each, and may be told with
/// the module's name.
fn asked(model: &Model, function: Option<&str>) -> Result<String> {
    let mut known = model.functions();
    let Some(function) = function else { return Ok(known.swap_remove(0)) };
    let name = function.strip_suffix("$async").unwrap_or(function);
    let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
    if known.iter().any(|own| own == name) {
        return Ok(name.to_owned());
    }
    Err(Failure::Usage(format!("--function={function}: the model has {}", known.join(", "))))
}

/// Sizes are given by inputs here, not by the flags that the compiler's own message names.
fn wrong(path: &Path, error: &CompileError) -> Failure {
    match error {
        CompileError::Request(text) => Failure::Usage(format!(
            "'{}' is compiled for the inputs that --input gives, and {text}",
            path.display()
        )),
        other => compile::failure(other),
    }
}

/// The shapes of the inputs by name.
fn shapes(signatures: &[Signature], given: &[Option<HostTensor>]) -> Result<Bindings> {
    let needed = signatures.iter().filter(|input| !input.is_optional).count();
    if given.len() > signatures.len() || given.len() < needed {
        let all: Vec<_> = signatures.iter().map(ToString::to_string).collect();
        let text = format!(
            "{} --input were given, the model takes {}: {}",
            given.len(),
            all.len(),
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        );
        return Err(Failure::Usage(text));
    }
    let mut bindings = Bindings::default();
    for (signature, tensor) in signatures.iter().zip(given) {
        if let (Arity::Tensor, Some(tensor)) = (signature.arity, tensor) {
            bindings.shapes.insert(signature.name.clone(), tensor.shape.to_vec());
        }
    }
    Ok(bindings)
}

/// Binds the value of an input that decides sizes.
fn bind(
    input: &str,
    signatures: &[Signature],
    given: &[Option<HostTensor>],
    bindings: &mut Bindings,
    bound: &mut Vec<usize>,
) -> Result<()> {
    let place = signatures.iter().position(|signature| signature.name == input);
    let tensor = place.and_then(|i| given.get(i)).and_then(Option::as_ref);
    if let (Some(place), Some(tensor), false) = (place, tensor, bindings.values.contains_key(input)) {
        let value =
            request::bound(tensor).map_err(|why| Failure::Usage(format!("input '{input}': {why}")))?;
        bindings.shapes.remove(input);
        bindings.values.insert(input.to_owned(), value);
        bound.push(place);
    }
    Ok(())
}
