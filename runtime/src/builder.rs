//! How a session comes to be: sources of modules, devices and parameters, and the order they are brought up in.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use bytes::Bytes;
use halite_abi::{attribute, export, import};
use halite_formats::vmfb::{self, ModuleDef};
use halite_hal::{Device, DriverRegistry, Options, ResultExt};
use halite_layers::{peer, validation::ValidatedDevice};
use halite_vm::{Context, ContextOptions, Limits, Module, NativeModule};

use crate::{
    Error, Result,
    call::CallOptions,
    choose,
    hal_module::{HalModule, TraceSink},
    hints::ModuleHints,
    info::FunctionInfo,
    mapping::{LoadMode, load_file},
    parameters::{ParameterIndex, ParameterModule, SharedParameters},
    progress::ProgressSink,
    session::{ModuleInfo, Session},
    shared::{Files, Shared},
    tensor::HostTensor,
    view::BufferView,
};

/// Elements of a traced tensor that are printed at most.
const TRACE_ELEMENTS: u64 = 1024;

enum ModuleSource {
    File(PathBuf),
    Bytes { name: String, bytes: Bytes },
}

enum DeviceSource {
    Uri(String),
    Open(Arc<dyn Device>),
}

/// Collects what a [`Session`] is made from; nothing is opened before [`SessionBuilder::build`].
#[derive(Default)]
pub struct SessionBuilder {
    registry: Option<DriverRegistry>,
    device_options: Options,
    devices: Vec<DeviceSource>,
    modules: Vec<ModuleSource>,
    native_modules: Vec<Arc<dyn NativeModule>>,
    parameters: Vec<(String, PathBuf)>,
    parameter_index: Option<ParameterIndex>,
    shared_parameters: Option<Arc<SharedParameters>>,
    load_mode: LoadMode,
    trace: Option<TraceSink>,
    progress: Option<ProgressSink>,
    init: CallOptions,
    limits: Limits,
}

impl std::fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionBuilder")
            .field("modules", &self.modules.len())
            .field("devices", &self.devices.len())
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Begins a session.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }
}

impl SessionBuilder {
    /// Adds a device by URI, such as `vulkan`, `vulkan://1`, `vulkan://GPU-…?option=value`. Programs see devices in
    /// the order they are added. A program for several may use tensors of one on another: they are copied through the
    /// host as needed. Without any, the best usable one is opened if a module needs one.
    #[must_use]
    pub fn device(mut self, uri: impl Into<String>) -> Self {
        self.devices.push(DeviceSource::Uri(uri.into()));
        self
    }

    /// Adds open devices.
    #[must_use]
    pub fn devices(mut self, devices: Vec<Arc<dyn Device>>) -> Self {
        self.devices.extend(devices.into_iter().map(DeviceSource::Open));
        self
    }

    /// Drivers to choose from, instead of those linked into the program.
    #[must_use]
    pub fn registry(mut self, registry: DriverRegistry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Options for devices that this session opens; a URI may override them.
    #[must_use]
    pub fn device_options(mut self, options: Options) -> Self {
        self.device_options = options;
        self
    }

    /// Adds a module file. Modules that import from others come after them; functions are looked up in the last.
    #[must_use]
    pub fn module_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.modules.push(ModuleSource::File(path.into()));
        self
    }

    /// Adds a module from bytes, which stay alive as long as anything of the module does.
    #[must_use]
    pub fn module_bytes(self, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        self.named_module(format!("<{} bytes>", bytes.len()), bytes)
    }

    /// Adds a module from bytes, with a name for messages.
    #[must_use]
    pub fn named_module(mut self, name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        self.modules.push(ModuleSource::Bytes { name: name.into(), bytes: bytes.into() });
        self
    }

    /// Adds a module written in Rust that others may import from.
    #[must_use]
    pub fn native_module(mut self, module: Arc<dyn NativeModule>) -> Self {
        self.native_modules.push(module);
        self
    }

    /// Adds a parameter archive (`.irpa`, `.safetensors`, `.gguf`) whose entries programs find under `scope`, which
    /// may be empty. Several archives may share a scope; of entries with one name the first counts.
    #[must_use]
    pub fn parameters(mut self, scope: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        self.parameters.push((scope.into(), path.into()));
        self
    }

    /// Gives an index of parameters made by the caller; archives from [`SessionBuilder::parameters`] are added to it.
    #[must_use]
    pub fn parameter_index(mut self, index: ParameterIndex) -> Self {
        self.parameter_index = Some(index);
        self
    }

    /// Has parameters that lie in memory on the device together with other sessions on it that are given the same
    /// [`SharedParameters`]. For modules that write to none of them.
    #[must_use]
    pub fn shared_parameters(mut self, shared: Arc<SharedParameters>) -> Self {
        self.shared_parameters = Some(shared);
        self
    }

    /// How module and parameter files are brought into memory.
    #[must_use]
    pub fn load_mode(mut self, mode: LoadMode) -> Self {
        self.load_mode = mode;
        self
    }

    /// Where tensors go that the program traces; by default to standard error.
    #[must_use]
    pub fn trace_sink(mut self, sink: TraceSink) -> Self {
        self.trace = Some(sink);
        self
    }

    /// Who is told how far loading is: pipelines that are built, parameters that are read. Calls that build pipelines tell too.
    #[must_use]
    pub fn progress(mut self, sink: ProgressSink) -> Self {
        self.progress = Some(sink);
        self
    }

    /// Limits in time for [`SessionBuilder::build`]'s run of the modules' initializers.
    #[must_use]
    pub fn init_options(mut self, options: CallOptions) -> Self {
        self.init = options;
        self
    }

    /// What the programs may use of the host: call depth, memory, globals.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads the files, opens devices if a module needs one, links the modules, and runs their initializers, which
    /// usually puts constants and parameters on the device.
    pub fn build(mut self) -> Result<Session> {
        let (defs, mut files) = self.read_modules()?;
        let needs_device = defs.iter().any(needs_device);
        let hints: Vec<_> = defs.iter().map(ModuleHints::of).collect();
        let devices = if needs_device { self.open_devices(&hints)? } else { Vec::new() };
        let index = self.open_parameters()?;
        let mut natives = std::mem::take(&mut self.native_modules);
        if needs_device {
            let trace = self.trace.take().unwrap_or_else(|| Arc::new(print_trace));
            let hal = HalModule::new(&devices, hints.clone(), trace);
            natives.push(Arc::new(hal.with_progress(self.progress.clone())));
            let parameters = ParameterModule::new(index).with_progress(self.progress.take());
            let parameters = Arc::new(parameters.with_shared(self.shared_parameters.take()));
            files.parameters = Some(parameters.clone());
            natives.push(parameters);
        }
        let modules = defs.iter().map(module_info).collect::<Result<Vec<_>>>()?;
        let loaded = defs.into_iter().map(Module::load).collect::<Result<Vec<_>, _>>()?;
        let options = ContextOptions { limits: self.limits, init: self.init.invocation() };
        let context = Context::with_options(&natives, &loaded, &options)
            .map_err(|failure| choose::explain(failure, &devices, &hints))
            .context(|| "creating the session")?;
        files.check()?;
        Ok(Session::new(Shared::new(context, devices, loaded, files), modules))
    }

    fn read_modules(&mut self) -> Result<(Vec<ModuleDef>, Files)> {
        let (mut defs, mut files) = (Vec::new(), Files::default());
        for source in std::mem::take(&mut self.modules) {
            let (name, bytes) = read_file(source, self.load_mode)?;
            files.modules.push((name.clone(), bytes.clone()));
            defs.push(vmfb::read_module(bytes).map_err(|e| match files.check() {
                Ok(()) => Error::Format { what: "module", name, reason: e.to_string() },
                Err(cut) => cut.into(),
            })?);
        }
        Ok((defs, files))
    }

    fn open_devices(&mut self, hints: &[ModuleHints]) -> Result<Vec<Arc<dyn Device>>> {
        let registry = self.registry.take().unwrap_or_else(DriverRegistry::with_static_drivers);
        if self.devices.is_empty() {
            return Ok(vec![choose::open_default(&registry, &self.device_options, hints)?]);
        }
        let open = |source: &DeviceSource| match source {
            DeviceSource::Uri(uri) => Ok(halite_layers::open(&registry, uri, &self.device_options)?),
            DeviceSource::Open(device) => Ok(ValidatedDevice::wrap(device.clone())),
        };
        let devices = self.devices.iter().map(open).collect::<Result<Vec<_>>>()?;
        Ok(peer::connect(devices))
    }

    fn open_parameters(&mut self) -> Result<ParameterIndex> {
        let mut index = self.parameter_index.take().unwrap_or_default();
        for (scope, path) in &self.parameters {
            index.add_file(scope, path, self.load_mode)?;
        }
        Ok(index)
    }
}

fn read_file(source: ModuleSource, mode: LoadMode) -> Result<(String, Bytes)> {
    Ok(match source {
        ModuleSource::File(path) => {
            let name = path.display().to_string();
            (name, load_file(&path, mode).map_err(|source| Error::Read { path, source })?)
        }
        ModuleSource::Bytes { name, bytes } => (name, bytes),
    })
}

/// Whether a module reaches for devices, directly or through parameters, or takes tensors, which live on one.
fn needs_device(def: &ModuleDef) -> bool {
    let native = |name: &str| name == import::hal::NAME || name == import::io_parameters::NAME;
    let takes_tensors = |f: &vmfb::Function| {
        f.signature.attr(attribute::DECLARATION).is_some_and(|text| text.contains("tensor<"))
    };
    def.dependencies.iter().any(|d| native(&d.name))
        || def.imports.iter().any(|i| i.full_name.split_once('.').is_some_and(|(module, _)| native(module)))
        || def.functions.iter().any(takes_tensors)
}

fn module_info(def: &ModuleDef) -> Result<ModuleInfo> {
    let exports = || def.exports.iter().rev().map(|e| (e.local_name.as_str(), e.ordinal as usize));
    // Of exports with one name the first counts, as in the VM.
    let ordinals: HashMap<&str, usize> = exports().collect();
    let sibling = |name: &str| {
        let (name, ordinal) = ordinals.get_key_value(format!("{name}{}", export::ASYNC_SUFFIX).as_str())?;
        Some((*name, &def.functions.get(*ordinal)?.signature))
    };
    let functions = def
        .exports
        .iter()
        .filter(|export| export::is_for_users(&export.local_name))
        .filter_map(|export| Some((export, def.functions.get(export.ordinal as usize)?)))
        .map(|(export, function)| {
            let (name, sibling) = (&export.local_name, sibling(&export.local_name));
            let records = ordinals.contains_key(format!("{name}{}", export::RECORD_SUFFIX).as_str());
            let info = FunctionInfo::new(&def.name, name, &function.signature, sibling)?;
            Ok::<_, Error>(Arc::new(info.recorded(records)))
        })
        .collect::<Result<_, _>>()?;
    Ok(ModuleInfo { name: def.name.clone(), version: def.version, functions })
}

/// Prints as IREE's tools do, so that outputs can be compared. A tensor that cannot be read is named, not fatal.
fn print_trace(key: &str, views: &[BufferView]) {
    eprintln!("=== {key} ===");
    for view in views {
        match view.to_host() {
            Ok(tensor) => eprintln!("{}", HostTensor::display(&tensor, TRACE_ELEMENTS)),
            Err(e) => eprintln!("(cannot read the tensor: {e})"),
        }
    }
    eprintln!();
}
