//! Owns sessions of models: what is compiled when, for which sizes, and loading what came out. Does not own: compiling
//! (`compile`), keeping what was compiled (`kept`), or which versions are loaded (`versions`).

use std::sync::Arc;

use halite_compiler::{self as compiler, ModelFormat, signature::{Arity, Bindings, Signature}};
use halite_hal::DeviceKind;
use halite_runtime::{self as runtime, Parameter, ParameterIndex};
use halite_targets::Capabilities;

#[allow(unused_imports)]
use super::shim::{Named as _, Start as _};
use super::{
    Program, Session, SessionBuilder,
    versions::{ShapeKey, Version, Versions},
};
use crate::{
    Cache, Device, Dimension, Error, ErrorKind, FunctionInfo, Limits, Precision, Progress, Result,
    Tuning, Value, ValueInfo, ValueType,
    compile::{self, Files, Sizes},
    kept::{self, Kept, Request},
    source::Loaded,
};

/// Versions of a model that stay loaded, unless the caller says otherwise.
const MOST_VERSIONS: usize = 32;
/// Executables that models are compiled to.
const FORMAT: &str = "vulkan-spirv-fb";
/// Scope of the weights of a model.
const SCOPE: &str = "model";

/// What a caller chooses for models.
#[derive(Clone, Debug)]
pub(crate) struct ModelOptions {
    pub cache: Cache,
    pub precision: Precision,
    pub tuning: Tuning,
    pub sizes: Sizes,
    pub most_versions: usize,
}

impl Default for ModelOptions {
    fn default() -> Self {
        ModelOptions {
            cache: Cache::default(),
            precision: Precision::default(),
            tuning: Tuning::default(),
            sizes: Sizes::default(),
            most_versions: MOST_VERSIONS,
        }
    }
}

impl SessionBuilder {
    /// Where modules are kept that models were compiled to; without, among this user's caches.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.model.cache = cache;
        self
    }

    /// Which floats a model computes with inside; without, its own. Inputs and outputs keep their types.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.model.precision = precision;
        self
    }

    /// Which measurements of kernels count for their choice; without, those that ship and this user's own.
    #[must_use]
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.model.tuning = tuning;
        self
    }

    /// The size of an open dimension of a model, by its name. With sizes for all of them the model is compiled when the session
    /// is built, and takes no others.
    #[must_use]
    pub fn dimension(mut self, name: impl Into<String>, size: usize) -> Self {
        self.model.sizes = self.model.sizes.dimension(name, [size]);
        self
    }

    /// Bounds of an open dimension of a model, by its name: the session is compiled for all sizes in them when it is built, and
    /// takes no others.
    #[must_use]
    pub fn bound(mut self, name: impl Into<String>, sizes: std::ops::RangeInclusive<usize>) -> Self {
        self.model.sizes = self.model.sizes.dimension(name, sizes);
        self
    }

    /// Sizes and values that a model leaves open, in all forms. With them the model is compiled when the session is built.
    #[must_use]
    pub fn sizes(mut self, sizes: Sizes) -> Self {
        self.model.sizes = sizes;
        self
    }

    /// Most versions of a model that stay loaded: one for each set of sizes that it is called with. Each holds its own weights
    /// on the device. Those that were used longest ago go first.
    #[must_use]
    pub fn most_versions(mut self, count: usize) -> Self {
        self.model.most_versions = count;
        self
    }
}

/// The format, if it is a model.
pub(super) fn detect(file: &Loaded) -> Result<Option<ModelFormat>> {
    Ok(ModelFormat::detect(&file.bytes[..file.bytes.len().min(16)], file.name.as_ref()))
}

/// A model on a device.
pub(crate) struct ModelProgram {
    model: compiler::Model,
    name: String,
    files: Files,
    device: Device,
    capabilities: Capabilities,
    tuning: halite_shaders::TuningFile,
    options: ModelOptions,
    functions: Vec<ModelFunction>,
    versions: Versions,
    program_limits: runtime::Limits,
}

struct ModelFunction {
    name: String,
    inputs: Vec<Signature>,
    /// The sizes that the caller fixed, all of which one version serves; `None` where calls decide.
    fixed: Option<Vec<Bindings>>,
}

/// Reads a model and brings it onto its device.
pub(super) fn build(builder: SessionBuilder, file: Loaded, format: ModelFormat) -> Result<Session> {
    let limits = builder.limits.clone();
    if let [(scope, path, _), ..] = &builder.parameters[..] {
        return Err(Error::invalid(format!(
            "'{}' is a model, whose weights are its own; parameters ('{}' in scope '{scope}') are for modules",
            file.name,
            path.display()
        )));
    }
    let device = open_device(&builder, &file)?;
    let capabilities = compile::capabilities(device.hal().info())?;
    let tuning = builder.model.tuning.read()?;
    let name = file.stem().to_owned();
    let (model, files) = compile::read(file, format, builder.load_mode, &limits)?;
    let mut functions = Vec::new();
    let mut infos = Vec::new();
    for name in model.functions() {
        let (inputs, outputs) = (model.inputs(&name), model.outputs(&name));
        let (inputs, outputs) = (inputs.map_err(compile::error)?, outputs.map_err(compile::error)?);
        infos.push(info(&name, &inputs, &outputs));
        let fixed = builder.model.sizes.for_function(&inputs)?;
        functions.push(ModelFunction { name, inputs, fixed });
    }
    builder.model.sizes.check_names(functions.iter().map(|function| &function.inputs[..]))?;
    let versions = Versions::new(builder.model.most_versions);
    let program = ModelProgram {
        model,
        name,
        files,
        device: device.clone(),
        capabilities,
        tuning,
        options: builder.model,
        functions,
        versions,
        program_limits: builder.program_limits,
    };
    // The function that runs when none is named is ready when the session is; others when they are called.
    if program.functions[0].fixed.is_some() {
        program.fixed_version(0, &limits)?;
    }
    Ok(Session::assemble(vec![device], infos, Some(0), Program::Model(Box::new(program))))
}

fn open_device(builder: &SessionBuilder, file: &Loaded) -> Result<Device> {
    let what = format!("the model '{}'", file.name);
    let devices = builder.open_devices()?;
    let device = match &devices[..] {
        [] => builder.drivers_or_linked().open_best(&[FORMAT], &what)?,
        [only] => only.clone(),
        _ => return Err(Error::invalid(format!("{what} runs on one device; {} were named", devices.len()))),
    };
    let info = device.hal().info();
    if info.kind == DeviceKind::Cpu && info.capabilities.is_none() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "models run on Vulkan devices, and '{}' is not one; a Vulkan driver for the processor is llvmpipe or SwiftShader",
                info.uri()
            ),
        ));
    }
    Ok(device)
}

pub(crate) fn info(name: &str, inputs: &[Signature], outputs: &[Signature]) -> FunctionInfo {
    let values = |all: &[Signature]| all.iter().map(value_info).collect();
    FunctionInfo {
        name: name.to_owned(),
        module: String::new(),
        inputs: values(inputs),
        outputs: values(outputs),
        declaration: None,
        calling_convention: String::new(),
    }
}

pub(crate) fn value_info(signature: &Signature) -> ValueInfo {
    let size = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    let dimension = |dim: &compiler::signature::Dim| match dim {
        compiler::signature::Dim::Known(own) => Dimension::Fixed(size(*own)),
        compiler::signature::Dim::Symbol(name) => Dimension::Named(name.clone()),
        compiler::signature::Dim::UpTo(most) => Dimension::AtMost(size(*most)),
        compiler::signature::Dim::Unknown => Dimension::Open,
    };
    let value_type = match signature.arity {
        Arity::Sequence => ValueType::Sequence,
        Arity::Tensor => ValueType::Tensor {
            element_type: signature.element.and_then(compile::element_type),
            shape: signature.dims.as_ref().map(|dims| dims.iter().map(dimension).collect()),
        },
    };
    ValueInfo {
        name: signature.name.clone(),
        value_type,
        is_optional: signature.is_optional,
        kind: runtime::tensor::ArgumentKind::Reference,
    }
}

impl ModelProgram {
    pub fn version_count(&self) -> usize {
        self.versions.count()
    }

    /// Starts a function for these inputs.
    pub fn start(&self, place: usize, values: &[Value], limits: &Limits) -> Result<super::shim::PendingCall> {
        let version = match &self.functions[place].fixed {
            Some(_) => self.fixed_version(place, limits)?,
            None => self.version_for(place, values, limits)?,
        };
        limits.check("copying inputs")?;
        let device = Some(&self.device);
        let arguments = values.iter().map(|value| value.lower(device)).collect::<Result<Vec<_>>>()?;
        Ok(version.function.start(&arguments, &limits.call_options())?)
    }

    /// The version for the sizes that the caller fixed.
    fn fixed_version(&self, place: usize, limits: &Limits) -> Result<Arc<Version>> {
        let function = &self.functions[place];
        let bindings = function.fixed.as_deref().unwrap_or_default();
        let key = ShapeKey(format!("{place} fixed"));
        let digest = |_: &[usize]| Ok(halite_cache::Digest::of(b""));
        self.versions.get(key, limits, digest, || {
            let request = self.request(function, "fixed", format!("{bindings:?}"));
            self.make(function, request, bindings.to_vec(), &[], limits)
        })
    }

    /// The version for the sizes of these inputs.
    fn version_for(&self, place: usize, values: &[Value], limits: &Limits) -> Result<Arc<Version>> {
        let function = &self.functions[place];
        let shapes = describe(values);
        let key = ShapeKey(format!("{place} {shapes}"));
        let digest = |bound: &[usize]| values_digest(values, bound);
        self.versions.get(key, limits, digest, || {
            let mut bindings = self.options.sizes.single(&function.inputs)?;
            for (signature, value) in function.inputs.iter().zip(values) {
                if let (Arity::Tensor, Some(tensor)) = (signature.arity, value.as_tensor()) {
                    let shape = tensor.shape().iter().map(|size| *size as u64).collect();
                    if !bindings.values.contains_key(&signature.name) {
                        bindings.shapes.insert(signature.name.clone(), shape);
                    }
                }
            }
            let request = self.request(function, "shapes", shapes.clone());
            self.make(function, request, vec![bindings], values, limits)
        })
    }

    fn request<'a>(&'a self, function: &'a ModelFunction, kind: &str, sizes: String) -> Request<'a> {
        let parts = [
            function.name.clone(),
            kind.to_owned(),
            sizes,
            format!("{:?}", self.options.sizes),
            format!("{:?}", self.options.precision),
            format!("{:?}", self.capabilities),
            serde_json::to_string(&self.tuning.rows).unwrap_or_default(),
        ];
        Request { label: &self.name, files: &self.files, parts: parts.into() }
    }

    /// Finds the module or compiles it, and loads it. Gives the places of inputs whose values it is for, too.
    fn make(
        &self,
        function: &ModelFunction,
        request: Request<'_>,
        bindings: Vec<Bindings>,
        values: &[Value],
        limits: &Limits,
    ) -> Result<(Vec<usize>, Arc<Version>)> {
        limits.check("looking for the compiled model")?;
        let store = self.options.cache.open();
        let digest = |bound: &[usize]| values_digest(values, bound);
        let found = store.as_ref().and_then(|store| kept::find(store, &request, &digest));
        let kept = match found {
            Some(kept) => {
                log::info!("'{}' was compiled before", self.name);
                kept
            }
            None => {
                let kept = self.compile(function, bindings, values, limits)?;
                if let Some(store) = &store {
                    kept::keep(store, &request, &kept, &digest);
                }
                kept
            }
        };
        let version = self.load(function, &kept, limits)?;
        Ok((kept.bound, Arc::new(version)))
    }

    /// Compiles a function; the values of inputs that decide sizes are bound as they are found to be needed.
    fn compile(
        &self,
        function: &ModelFunction,
        mut bindings: Vec<Bindings>,
        values: &[Value],
        limits: &Limits,
    ) -> Result<Kept> {
        let control = compile::control(limits);
        let precision = self.options.precision.into();
        let mut bound = Vec::new();
        let built = loop {
            match self.model.function(&function.name, &bindings, precision, &control) {
                Ok((built, _)) => break built,
                Err(compiler::CompileError::NeedsValues { inputs, place, what }) => {
                    let before = bound.len();
                    for input in &inputs {
                        bind(function, input, values, &mut bindings, &mut bound)?;
                    }
                    if bound.len() == before {
                        let again = compiler::CompileError::NeedsValues { inputs, place, what };
                        return Err(compile::error(again));
                    }
                }
                Err(error) => return Err(compile::error(error).while_doing(format!("compiling '{}'", self.name))),
            }
        };
        let options = compiler::CompileOptions {
            targets: vec![self.capabilities.clone()],
            baseline: false,
            tuning: self.tuning.tuning(),
            module_name: "module".to_owned(),
            parameters: compiler::ParameterStorage::External { scope: SCOPE.to_owned() },
        };
        let program = compiler::Program { functions: vec![built] };
        let compiled = compiler::compile(&program, &options, &control).map_err(compile::error)?;
        let parameters = compiled.parameters.map(|archive| archive.entries).unwrap_or_default();
        Ok(Kept { module: compiled.module.to_vec().into(), parameters, bound })
    }

    fn load(&self, function: &ModelFunction, kept: &Kept, limits: &Limits) -> Result<Version> {
        let mut index = ParameterIndex::default();
        for (key, bytes) in &kept.parameters {
            let length = bytes.len() as u64;
            let file = halite_hal::File::Memory(bytes.clone());
            index.insert(SCOPE, key.clone(), Parameter::Stored { file, offset: 0, length });
        }
        let mut builder = runtime::Session::builder()
            .devices(vec![self.device.hal().clone()])
            .limits(self.program_limits)
            .init_options(limits.call_options())
            .parameter_index(index)
            .named_module(self.name.clone(), kept.module.clone());
        if let Some(told) = limits.progress.clone() {
            builder = builder.progress(Arc::new(move |stage, done, total| told(Progress { stage, done, total })));
        }
        let session = builder.build()?;
        Ok(Version::new(session.function(&function.name)?))
    }
}

/// Type and shape of each input.
fn describe(values: &[Value]) -> String {
    let one = |value: &Value| match value {
        Value::Tensor(tensor) => crate::tensor::describe(tensor.element_type(), tensor.shape()),
        other => other.kind().to_owned(),
    };
    values.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// The digest of the values of some inputs.
fn values_digest(values: &[Value], bound: &[usize]) -> Result<halite_cache::Digest> {
    let mut hasher = halite_cache::Hasher::new();
    for place in bound {
        if let Some(tensor) = values.get(*place).and_then(Value::as_tensor) {
            hasher.update(&(tensor.byte_len() as u64).to_le_bytes());
            hasher.update(&tensor.to_bytes()?);
        }
    }
    Ok(hasher.finish())
}

/// Binds the value of an input that decides sizes.
fn bind(
    function: &ModelFunction,
    input: &str,
    values: &[Value],
    bindings: &mut [Bindings],
    bound: &mut Vec<usize>,
) -> Result<()> {
    let place = function.inputs.iter().position(|signature| signature.name == input);
    let tensor = place.and_then(|place| values.get(place)).and_then(Value::as_tensor);
    let (Some(place), Some(tensor)) = (place, tensor) else { return Ok(()) };
    for bindings in bindings.iter_mut().filter(|bindings| !bindings.values.contains_key(input)) {
        let value = compile::bound_value(tensor).map_err(|e| e.while_doing(format!("binding input '{input}'")))?;
        bindings.shapes.remove(input);
        bindings.values.insert(input.to_owned(), value);
        if !bound.contains(&place) {
            bound.push(place);
        }
    }
    Ok(())
}
