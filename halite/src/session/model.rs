//! Sessions of models: what is compiled when, for which sizes, and loading what came out.

use std::sync::{Arc, OnceLock};

use halite_abi::format;
use halite_cache::{Digest, Hasher, Store};
use halite_compiler::{
    self as compiler, Capacities, ModelFormat,
    signature::{Arity, Bindings},
};
use halite_runtime::{self as runtime, ParameterIndex, SharedParameters};
use halite_targets::Capabilities;
use parking_lot::Mutex;

use super::{
    Content, Session, SessionBuilder,
    ahead::Ahead,
    batches,
    choices::ModelOptions,
    functions::{self, ModelFunction},
    lists,
    open::OpenVersions,
    ports::Ports,
    states::GivenSizes,
    versions::{Fixed, ShapeKey, Version, Versions, describe, values_digest},
};
use crate::{
    Device, Error, ErrorKind, FunctionInfo, Precision, Result, StatePair, Value,
    compile::{self, Files},
    kept::{Kept, Lookup, Request},
    options::Limits,
    source::Loaded,
};

/// Scope of the weights of a model.
const SCOPE: &str = "model";

/// The format, if it is a model.
pub(crate) fn detect(file: &Loaded) -> Result<Option<ModelFormat>> {
    Ok(ModelFormat::detect(&file.bytes[..file.bytes.len().min(16)], file.name.as_ref()))
}

/// The formats of models, for messages.
pub(crate) fn known_formats() -> String {
    ModelFormat::all().map(ModelFormat::name).collect::<Vec<_>>().join(", ")
}

/// A model on a device.
pub(crate) struct ModelProgram {
    /// The model and its files; gone when all that can be made of them is loaded.
    pub(super) model: Mutex<Option<Arc<OpenModel>>>,
    pub(super) name: String,
    pub(super) device: Device,
    capabilities: Capabilities,
    tuning: halite_shaders::TuningFile,
    pub(super) options: ModelOptions,
    pub(super) store: Option<Store>,
    pub(super) functions: Vec<ModelFunction>,
    pub(super) versions: Versions,
    pub(super) open: OpenVersions,
    pub(super) ahead: Ahead,
    program_limits: runtime::Limits,
    /// Weights, which all versions have on the device together.
    weights: Arc<SharedParameters>,
}

pub(super) struct OpenModel {
    pub(super) model: compiler::Model,
    format: ModelFormat,
    pub(super) files: Files,
}

/// Reads a model and brings it onto its device.
pub(super) fn build(
    mut builder: SessionBuilder,
    file: Loaded,
    format: ModelFormat,
    limits: &Limits,
) -> Result<Session> {
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
    let (mut model, files) = read(&builder, file, format, &capabilities, limits)?;
    if builder.model.batches {
        builder.model.batches = batches::fit(&mut builder.model.sizes, &model, &capabilities)?;
    }
    if builder.model.batches {
        model.decode_batches(model.chooses_tokens()).map_err(compile::error)?;
    }
    if builder.model.verifies {
        model.verify_drafts().map_err(compile::error)?;
    }
    let (infos, functions) = described(&model, &builder.model)?;
    builder.model.sizes.check_names(functions.iter().map(|function| &function.inputs[..]))?;
    // Of those that stay loaded a few are for sizes that have versions of their own.
    let own = builder.model.most_versions.div_ceil(4);
    let open = OpenVersions::new(builder.model.most_versions - own);
    let program = ModelProgram {
        model: Mutex::new(Some(Arc::new(OpenModel { model, format, files }))),
        name,
        device: device.clone(),
        capabilities,
        tuning,
        store: builder.place().open(),
        program_limits: builder.program_limits(),
        weights: Arc::default(),
        ahead: Ahead::new(builder.compiles_ahead()),
        options: builder.model,
        functions: functions::aligned(functions, device.hal().info()),
        versions: Versions::new(own),
        open,
    };
    make_first(&program, limits)?;
    Ok(Session::assemble(vec![device], infos, Some(0), Content::Model(Box::new(program))))
}

/// Makes the function ready that runs when none is named; others are when they are called.
fn make_first(program: &ModelProgram, limits: &Limits) -> Result<()> {
    let Some(function) = program.functions.first() else { return Err(no_functions(&program.name)) };
    let Some(fixed) = &function.fixed else { return Ok(()) };
    let made = program.fixed_version(0, fixed, limits);
    made.map(drop).or_else(|error| if fixed.is_by_values() { Ok(()) } else { Err(error) })
}

/// The model, with the caches that the caller wants, and functions that choose tokens where the device does.
fn read(
    builder: &SessionBuilder,
    file: Loaded,
    format: ModelFormat,
    capabilities: &Capabilities,
    limits: &Limits,
) -> Result<(compiler::Model, Files)> {
    let (mut model, files) = compile::read(file, format, builder.mode(), limits)?;
    model.hold_caches(builder.model.caches).map_err(compile::error)?;
    if let Some((choice, on_processors)) = &builder.model.choice
        && (*on_processors || !capabilities.target.is_processor())
        && model.functions().contains(&choice.function)
    {
        model.choose_tokens(choice.clone()).map_err(compile::error)?;
    }
    Ok((model, files))
}

fn no_functions(model: &str) -> Error {
    Error::new(ErrorKind::InvalidModel, format!("the model '{model}' has no functions"))
}

/// What the functions of a model take and give, and what is known of them before any is compiled.
fn described(
    model: &compiler::Model,
    options: &ModelOptions,
) -> Result<(Vec<FunctionInfo>, Vec<ModelFunction>)> {
    let names = model.functions();
    let all: Vec<_> = names.iter().map(|name| Ports::called(model, name)).collect::<Result<_>>()?;
    let visible: Vec<_> = all.iter().map(Ports::visible).collect();
    let states = options.states.pairs(&visible)?;
    let (mut infos, mut functions) = (Vec::new(), Vec::new());
    for ((name, ports), mut states) in names.into_iter().zip(all).zip(states) {
        states.extend(ports.kept.iter().map(|kept| (kept.input.clone(), kept.output.clone())));
        let pairs =
            states.iter().map(|(input, output)| StatePair { input: input.clone(), output: output.clone() });
        infos.push(FunctionInfo { states: pairs.collect(), ..ports.info(&name) });
        let (caches, totals) = (ports.caches(&states), ports.totals(&states));
        let (inputs, outputs) = (ports.inputs, ports.outputs);
        let mut fixed = options.sizes.for_function(&inputs)?;
        for bindings in fixed.iter_mut().flatten() {
            bindings.states.clone_from(&states);
        }
        let fixed =
            fixed.map(|bindings| Fixed { bindings, version: OnceLock::new(), by_values: OnceLock::new() });
        functions.push(ModelFunction {
            name,
            inputs,
            outputs,
            states,
            caches,
            totals,
            fixed,
            bound: None,
            switch: None,
            growing: None,
            row_step: 0,
            row_alignment: 0,
        });
    }
    if !options.sizes.has_values() {
        functions::add_switches(&mut functions, &|function| model.switches(function));
        if options.choice.is_none() && !options.batches && !options.verifies {
            functions::add_growing(&mut functions);
        }
    }
    Ok((infos, functions))
}

fn open_device(builder: &SessionBuilder, file: &Loaded) -> Result<Device> {
    let what = format!("the model '{}'", file.name);
    let devices = builder.open_devices()?;
    let device = match &devices[..] {
        [] => builder.drivers_or_linked().open_best(&[format::VULKAN_SPIRV], &what)?,
        [only] => only.clone(),
        _ => return Err(Error::invalid(format!("{what} runs on one device; {} were named", devices.len()))),
    };
    let info = device.hal().info();
    if !info.executable_formats.iter().any(|known| known == format::VULKAN_SPIRV) {
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

impl ModelProgram {
    pub fn loaded_versions(&self) -> usize {
        let fixed = |f: &ModelFunction| f.fixed.as_ref().and_then(|fixed| fixed.version.get().cloned());
        let mut modules: Vec<_> =
            self.functions.iter().filter_map(fixed).map(|own| own.session.clone()).collect();
        modules.dedup_by(|one, other| Arc::ptr_eq(one, other));
        self.versions.count() + self.open.count() + modules.len()
    }

    /// Sizes of named dimensions, and shapes of inputs, that are the same in all calls because the caller gave one of each.
    pub fn given_sizes(&self, place: usize) -> Result<GivenSizes> {
        let all = self.options.sizes.combinations()?;
        let Some((first, others)) = all.split_first() else { return Ok(GivenSizes::default()) };
        let size = |size: &u64| usize::try_from(*size).unwrap_or(usize::MAX);
        let same_shape = |name: &str| others.iter().all(|other| other.shape(name) == first.shape(name));
        let inputs = self.functions[place].inputs.iter().filter(|input| same_shape(&input.name));
        let shapes = inputs.filter_map(|input| Some((&input.name, first.shape(&input.name)?)));
        let shapes = shapes.map(|(name, shape)| (name.clone(), shape.iter().map(size).collect()));
        let same = |(name, own): &(&String, &u64)| others.iter().all(|o| o.dims.get(*name) == Some(*own));
        let named = first.dims.iter().filter(same).map(|(name, own)| (name.clone(), size(own)));
        Ok(GivenSizes { named: named.collect(), shapes: shapes.collect() })
    }

    /// The place of the function for these inputs: some have one for each value of an input.
    pub(super) fn switched(&self, place: usize, values: &[Value]) -> Result<usize> {
        match &self.functions[place].switch {
            Some(switch) => Ok(switch.place(values)?.unwrap_or(place)),
            None => Ok(place),
        }
    }

    /// The version of a function for these inputs, compiled and loaded.
    pub fn version(&self, place: usize, values: &[Value], limits: &Limits) -> Result<Arc<Version>> {
        let place = self.switched(place, values)?;
        let fixed = self.functions[place].fixed.as_ref().filter(|fixed| !fixed.is_by_values());
        match fixed.map(|fixed| (fixed, self.fixed_version(place, fixed, limits))) {
            Some((_, Ok(version))) => Ok(version),
            Some((fixed, Err(error))) if !fixed.is_by_values() => Err(error),
            _ => self.version_for(place, values, limits),
        }
    }

    /// The version for the sizes of these inputs.
    fn version_for(&self, place: usize, values: &[Value], limits: &Limits) -> Result<Arc<Version>> {
        let function = &self.functions[place];
        if let Some(version) = self.open_version_for(place, values, limits)? {
            return Ok(version);
        }
        let key = ShapeKey(format!("{place} {}", describe(values)));
        self.versions.get(&key, limits, &|bound| values_digest(values, bound), || {
            let mut bindings = self.bindings_of(function, values.iter().map(lists::shape_of))?;
            lists::add_shapes(&function.inputs, values, &mut bindings.shapes);
            self.make(function, "sizes of the inputs", vec![bindings], values, limits)
        })
    }

    /// The sizes of inputs of these shapes, with what the caller fixed.
    pub(super) fn bindings_of(
        &self,
        function: &ModelFunction,
        shapes: impl Iterator<Item = Option<Vec<u64>>>,
    ) -> Result<Bindings> {
        let mut bindings = self.options.sizes.single(&function.inputs)?;
        bindings.states.clone_from(&function.states);
        (bindings.row_step, bindings.row_alignment) = (function.row_step, function.row_alignment);
        bindings.values.extend(function.bound.and_then(|bound| bound.value(&function.inputs)));
        for (signature, shape) in function.inputs.iter().zip(shapes) {
            if let (Arity::Tensor, Some(shape)) = (signature.arity, shape)
                && !bindings.values.contains_key(&signature.name)
            {
                bindings.shapes.insert(signature.name.clone(), shape);
            }
        }
        Ok(bindings)
    }

    pub(super) fn compile_options(&self) -> compiler::CompileOptions {
        compiler::CompileOptions {
            targets: vec![self.capabilities.clone()],
            baseline: false,
            at_hand: true,
            tuning: self.tuning.tuning(),
            module_name: "module".to_owned(),
            parameters: compiler::ParameterStorage::External { scope: SCOPE.to_owned() },
            shares_results: true,
        }
    }

    /// Floats inside: what was asked for, and on devices that run on the processor 32 bits for 16.
    pub(super) fn precision(&self) -> Precision {
        let processor = self.capabilities.target.is_processor();
        match self.options.precision {
            Precision::Model if processor => Precision::F32,
            precision => precision,
        }
    }

    /// All that decides what a function is compiled to, but for the model's files and the values of inputs.
    pub(super) fn request_digest(
        &self,
        open: &OpenModel,
        function: &ModelFunction,
        kind: &str,
        bindings: &[Bindings],
    ) -> Result<Digest> {
        let tuning = serde_json::to_string(&self.tuning.rows);
        let tuning = tuning.map_err(|e| Error::new(ErrorKind::Other, format!("reading the tuning: {e}")))?;
        let mut hasher = Hasher::new();
        hasher.field(open.format.name().as_bytes()).field(function.name.as_bytes()).field(kind.as_bytes());
        hasher.field(compile::digest_sizes(bindings).as_bytes());
        hasher.field(&[self.precision() as u8]).field(format!("{:?}", self.options.caches).as_bytes());
        if let Some((choice, _)) = self.options.choice.as_ref().filter(|_| open.model.chooses_tokens()) {
            hasher.field(format!("{choice:?}").as_bytes());
        }
        // Sizes of the functions that come with it into its module; those that choose tokens have its own.
        for other in self.beside(function, &[]).filter(|_| self.options.batches || self.options.verifies) {
            let fixed = other.fixed.iter().flat_map(|fixed| &fixed.bindings).cloned().collect::<Vec<_>>();
            hasher.field(other.name.as_bytes()).field(compile::digest_sizes(&fixed).as_bytes());
        }
        hasher.field(format!("{:?}", self.capabilities).as_bytes()).field(tuning.as_bytes());
        Ok(hasher.finish())
    }

    /// Finds the module or compiles it, and loads it. Gives the places of inputs whose values it is for, too.
    pub(super) fn make(
        &self,
        function: &ModelFunction,
        kind: &str,
        bindings: Vec<Bindings>,
        values: &[Value],
        limits: &Limits,
    ) -> Result<(Vec<usize>, Arc<Version>)> {
        limits.check("looking for the compiled model")?;
        let open = self.model.lock().clone();
        let open = open.ok_or_else(|| Error::new(ErrorKind::Other, "the model was let go of too early"))?;
        let digest = self.request_digest(&open, function, kind, &bindings)?;
        let request = Request { label: &self.name, files: &open.files, digest };
        let values_of = |bound: &[usize]| values_digest(values, bound);
        let lookup =
            self.store.as_ref().map(|store| Lookup { store, request: &request, values: &values_of, limits });
        let kept = match lookup.as_ref().and_then(Lookup::find) {
            Some(kept) => {
                log::info!("'{}' was compiled before", self.name);
                kept
            }
            None => {
                limits.check("looking for the compiled model")?;
                let kept = self.compiled(&open, function, bindings, values, limits)?;
                if let Some(lookup) = &lookup {
                    lookup.keep(&kept);
                }
                // The device reads what it needs of them again, and not all at once.
                open.files.release_pages();
                kept
            }
        };
        let version = match self.load(function, &kept, limits) {
            Err(error) if error.kind() == ErrorKind::OutOfMemory && self.versions.count() > 0 => {
                log::info!("no memory for another version of '{}'; the others are let go of", self.name);
                self.versions.clear();
                self.load(function, &kept, limits)?
            }
            other => other?,
        };
        open.files.check_unchanged(&self.name)?;
        Ok((kept.bound, Arc::new(version)))
    }

    /// Compiles a function, and says how long that took. What a changed file leads to is told as that.
    fn compiled(
        &self,
        open: &OpenModel,
        function: &ModelFunction,
        bindings: Vec<Bindings>,
        values: &[Value],
        limits: &Limits,
    ) -> Result<Kept> {
        let start = std::time::Instant::now();
        let kept = self.compile(&open.model, function, bindings, values, limits);
        let kept = kept.map_err(|error| open.files.check_unchanged(&self.name).err().unwrap_or(error))?;
        let (target, took) = (&self.capabilities.target, start.elapsed());
        log::info!("compiled '{}' of '{}' for {target} in {took:.0?}", function.name, self.name);
        Ok(kept)
    }

    /// Compiles a function; the values of inputs that decide sizes are bound as they are found to be needed.
    fn compile(
        &self,
        model: &compiler::Model,
        function: &ModelFunction,
        mut bindings: Vec<Bindings>,
        values: &[Value],
        limits: &Limits,
    ) -> Result<Kept> {
        let control = compile::control(limits);
        let (precision, options) = (self.precision().into(), self.compile_options());
        let mut bound = Vec::new();
        let built = loop {
            match model.open_function(&function.name, &bindings, precision, &options, &control) {
                Ok((built, _)) => break built,
                Err(compiler::CompileError::NeedsValues { inputs, location, what, unsupported }) => {
                    let before = bound.len();
                    for input in &inputs {
                        bind(function, input, values, &mut bindings, &mut bound)?;
                    }
                    if bound.len() == before {
                        if let (Some(fixed), [_], []) = (&function.fixed, &bindings[..], values) {
                            fixed.by_values.get_or_init(|| ());
                        }
                        let again =
                            compiler::CompileError::NeedsValues { inputs, location, what, unsupported };
                        return Err(compile::error(again));
                    }
                }
                Err(error) => {
                    return Err(compile::error(error).while_doing(format!("compiling '{}'", self.name)));
                }
            }
        };
        let capacities = built.versions.first().map(Capacities::of).unwrap_or_default();
        let mut functions = vec![built];
        for other in self.beside(function, values) {
            let fixed =
                other.fixed.iter().flat_map(|fixed| fixed.bindings.iter().cloned()).collect::<Vec<_>>();
            let built = model.open_function(&other.name, &fixed, precision, &options, &control);
            functions.push(built.map_err(compile::error)?.0);
        }
        let program = compiler::Program { functions, model: None };
        let compiled = compiler::compile(&program, &options, &control).map_err(compile::error)?;
        let parameters = compiled.parameters.map(|archive| archive.entries).unwrap_or_default();
        Ok(Kept { module: compiled.module.to_vec().into(), parameters, bound, coverage: None, capacities })
    }

    pub(super) fn load(&self, function: &ModelFunction, kept: &Kept, limits: &Limits) -> Result<Version> {
        let mut index = ParameterIndex::default();
        index.add_entries(SCOPE, kept.parameters.iter().cloned());
        let mut builder = runtime::Session::builder()
            .devices(vec![self.device.hal().clone()])
            .limits(self.program_limits)
            .init_options(limits.call_options())
            .parameter_index(index)
            .shared_parameters(self.weights.clone())
            .named_module(self.name.clone(), kept.module.clone());
        if let Some(sink) = limits.runtime_sink() {
            builder = builder.progress(sink);
        }
        let session = builder.build().map_err(Error::of_runtime)?;
        let version = Version::of(&function.name, &function.outputs, Arc::new(session))?;
        let (capacities, coverage) = (kept.capacities.clone(), kept.coverage.clone());
        Ok(Version { capacities, coverage, ..version })
    }
}

/// Binds the value of an input that decides sizes.
fn bind(
    function: &ModelFunction,
    input: &str,
    values: &[Value],
    bindings: &mut [Bindings],
    bound: &mut Vec<usize>,
) -> Result<()> {
    let Some((place, tensor)) = lists::find(&function.inputs, values, input) else { return Ok(()) };
    for bindings in bindings.iter_mut().filter(|bindings| !bindings.values.contains_key(input)) {
        let value =
            compile::bound_value(tensor).map_err(|e| e.while_doing(format!("binding input '{input}'")))?;
        bindings.shapes.remove(input);
        bindings.values.insert(input.to_owned(), value);
        if !bound.contains(&place) {
            bound.push(place);
        }
    }
    Ok(())
}
