//! How a session comes to be: what the caller chose, and the order in which it is brought up.

use std::{path::PathBuf, time::Duration};

use halite_runtime::{self as runtime, ParameterIndex};

use super::{Content, Session, module::ModuleProgram};
use crate::{
    Cache, CancelToken, Device, Drivers, Error, LoadMode, Progress, Result, RunOptions, Source,
    options::Limits, source::Loaded,
};

/// The device that a session runs on: what [`SessionBuilder::device`] takes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// By URI, such as `vulkan`, `vulkan://0`, `vulkan://llvmpipe?validation=core`; see [`Drivers::open`].
    Uri(String),
    /// One that is open, which several sessions may share.
    Open(Device),
}

impl From<&str> for DeviceChoice {
    fn from(uri: &str) -> Self {
        DeviceChoice::Uri(uri.to_owned())
    }
}

impl From<String> for DeviceChoice {
    fn from(uri: String) -> Self {
        DeviceChoice::Uri(uri)
    }
}

impl From<Device> for DeviceChoice {
    fn from(device: Device) -> Self {
        DeviceChoice::Open(device)
    }
}

impl From<&Device> for DeviceChoice {
    fn from(device: &Device) -> Self {
        DeviceChoice::Open(device.clone())
    }
}

/// Collects what a [`Session`] is made from. Nothing is read or opened before [`SessionBuilder::build`].
///
/// Only [`SessionBuilder::model`] is needed; all else has a default.
///
/// ```no_run
/// use std::time::Duration;
///
/// use halite::{Cache, Precision, Session};
///
/// let session = Session::builder()
///     .device("vulkan")
///     .model("encoder.onnx")
///     .bound("length", 1..=128)
///     .precision(Precision::F16)
///     .cache(Cache::at("compiled-models").limit(1 << 30))
///     .timeout(Duration::from_secs(60))
///     .progress(|progress| println!("{}: {} of {}", progress.detail, progress.done, progress.total))
///     .build()?;
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct SessionBuilder {
    pub(super) drivers: Option<Drivers>,
    pub(super) devices: Vec<DeviceChoice>,
    pub(super) imports: Vec<Source>,
    pub(crate) main: Option<Source>,
    pub(super) parameters: Vec<(String, PathBuf, Option<LoadMode>)>,
    pub(super) load_mode: Option<LoadMode>,
    pub(super) cache: Option<Cache>,
    pub(crate) options: RunOptions,
    pub(super) program_memory: Option<u64>,
    pub(super) device_memory: Option<u64>,
    pub(super) untrusted: bool,
    #[cfg(feature = "compiler")]
    pub(super) model: super::choices::ModelOptions,
}

impl SessionBuilder {
    /// The model or module that the session runs: a path, bytes, or a [`Source`]. Its content decides what it is: ONNX, an
    /// ExecuTorch program (`.pte`), or a module (`.vmfb`).
    #[must_use]
    pub fn model(mut self, source: impl Into<Source>) -> Self {
        self.main = Some(source.into());
        self
    }

    /// Adds a module that later ones, and the main one, may import from.
    #[must_use]
    pub fn import(mut self, module: impl Into<Source>) -> Self {
        self.imports.push(module.into());
        self
    }

    /// The device, by URI or open. Given several times, a module for several devices sees them in this order.
    ///
    /// Without any, the best device that can run the model or module is opened, a GPU before a processor. Machine code in a module
    /// does not run then; name `local-task` or `local-sync` to run it.
    #[must_use]
    pub fn device(mut self, device: impl Into<DeviceChoice>) -> Self {
        self.devices.push(device.into());
        self
    }

    /// The drivers that devices are looked for with; by default those linked into the program.
    #[must_use]
    pub fn drivers(mut self, drivers: &Drivers) -> Self {
        self.drivers = Some(drivers.clone());
        self
    }

    /// Adds a parameter archive (`.irpa`, `.safetensors`, `.gguf`) whose entries modules find under `scope`, which may be empty.
    /// Of entries with one name the first counts.
    #[must_use]
    pub fn parameters(mut self, scope: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        self.parameters.push((scope.into(), path.into(), None));
        self
    }

    /// As [`SessionBuilder::parameters`], with a mode of its own.
    #[must_use]
    pub fn parameters_with(
        mut self,
        scope: impl Into<String>,
        path: impl Into<PathBuf>,
        mode: LoadMode,
    ) -> Self {
        self.parameters.push((scope.into(), path.into(), Some(mode)));
        self
    }

    /// How files of models, modules and parameters come into memory; by default they are mapped.
    #[must_use]
    pub fn load_mode(mut self, mode: LoadMode) -> Self {
        self.load_mode = Some(mode);
        self
    }

    /// Where compiled models and pipelines are kept for the next process; by default among this user's caches. A device that is
    /// open already keeps its pipelines where it was told to.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Bounds and watches the building itself; replaces what `cancel`, `timeout` and `progress` said before. Calls have options of
    /// their own.
    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// Stops the building when the token is set.
    #[must_use]
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.options = self.options.cancel(token);
        self
    }

    /// Gives the building up after this long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options = self.options.timeout(timeout);
        self
    }

    /// Tells how far the building is.
    #[must_use]
    pub fn progress(mut self, told: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.options = self.options.progress(told);
        self
    }

    /// Most bytes of host memory that the host code of modules may hold for itself.
    #[must_use]
    pub fn program_memory(mut self, bytes: u64) -> Self {
        self.program_memory = Some(bytes);
        self
    }

    /// Reads the model or modules, opens devices, compiles what has no open sizes, loads weights, and begins to build pipelines. The
    /// first call waits for pipelines that are not built by then; [`Session::prewarm`] does so ahead.
    ///
    /// # Errors
    /// A file cannot be read, is damaged or not supported, no device can be used, or a limit is reached. The text names the
    /// stage.
    pub fn build(mut self) -> Result<Session> {
        let Some(main) = self.main.take() else {
            return Err(Error::invalid("a session needs a model: give it one with model(\"model.onnx\")"));
        };
        let time = self.time();
        let limits = self.options.begin_within(time);
        limits.check_begin("the work")?;
        let session = self.build_within(main, &limits)?;
        if let Some(time) = time {
            session.bound_calls(time);
        }
        Ok(session)
    }

    fn build_within(mut self, main: Source, limits: &Limits) -> Result<Session> {
        let mode = self.mode();
        let sources = std::mem::take(&mut self.imports).into_iter().chain([main]);
        let loaded = sources.map(|source| source.load(mode, limits)).collect::<Result<Vec<_>>>()?;
        #[cfg(feature = "compiler")]
        if let [only] = &loaded[..]
            && let Some(format) = super::model::detect(only)?
        {
            let only = loaded.into_iter().next().expect("there is exactly one");
            return super::model::build(self, only, format, limits);
        }
        #[cfg(feature = "compiler")]
        self.no_choices_of_models()?;
        for file in &loaded {
            refuse_model(file, loaded.len())?;
        }
        self.build_modules(loaded, limits)
    }

    /// Fails where something was chosen that only the compiler of a model could heed.
    #[cfg(feature = "compiler")]
    fn no_choices_of_models(&self) -> Result<()> {
        if self.model.precision != crate::Precision::default() {
            return Err(Error::invalid(
                "a module computes with the floats that it was compiled with; a precision is for models",
            ));
        }
        match self.model.states.named.first() {
            None => Ok(()),
            Some((input, output)) => Err(Error::invalid(format!(
                "'{input}={output}' names the state of a model; a module has the state that it was compiled with"
            ))),
        }
    }

    /// The drivers, which keep their pipelines where this session keeps what it compiles.
    pub(super) fn drivers_or_linked(&self) -> Drivers {
        let drivers = self.confined(self.drivers.clone().unwrap_or_default());
        match self.place().pipelines() {
            Some(place) => drivers.keeping_pipelines(&place),
            None => drivers,
        }
    }

    /// The devices that were chosen, open.
    pub(super) fn open_devices(&self) -> Result<Vec<Device>> {
        let drivers = self.drivers_or_linked();
        let open = |choice: &DeviceChoice| match choice {
            DeviceChoice::Uri(uri) => drivers.open(uri),
            DeviceChoice::Open(device) => Ok(device.clone()),
        };
        let devices = self.devices.iter().map(open).collect::<Result<Vec<_>>>()?;
        self.check_devices(&devices)?;
        Ok(devices)
    }

    fn build_modules(self, files: Vec<Loaded>, limits: &Limits) -> Result<Session> {
        let drivers = self.drivers_or_linked();
        let chosen = self.open_devices()?;
        let mut builder = runtime::Session::builder()
            .registry(drivers.registry().clone())
            .limits(self.program_limits())
            .init_options(limits.call_options());
        if let Some(sink) = limits.runtime_sink() {
            builder = builder.progress(sink);
        }
        if chosen.is_empty() {
            builder = builder.device_options(drivers.all_options());
        } else {
            builder = builder.devices(chosen.iter().map(|device| device.hal().clone()).collect());
        }
        let mut index = ParameterIndex::default();
        for (scope, path, mode) in &self.parameters {
            limits.check("reading parameters")?;
            let mode = mode.unwrap_or(self.mode());
            index.add_file(scope, path, mode.into()).map_err(Error::of_runtime)?;
        }
        for file in &files {
            builder = builder.named_module(file.name.clone(), file.bytes.clone());
        }
        let session = builder.parameter_index(index).build();
        // A file that was written to meanwhile may be damaged: that is the reason then.
        files.iter().try_for_each(Loaded::check_unchanged)?;
        let session = session.map_err(Error::of_runtime)?;
        let devices = match chosen.is_empty() {
            true => session.devices().iter().map(|device| Device::new(device.clone())).collect(),
            // A module that needs no device was given one all the same: tensors may live there.
            false => chosen,
        };
        let program = ModuleProgram::new(session);
        let (functions, default) = (program.infos(), program.default_place());
        Ok(Session::assemble(devices, functions, default, Content::Module(program)))
    }
}

/// A model where a module has to be: without the compiler, or among several.
fn refuse_model(file: &Loaded, count: usize) -> Result<()> {
    let is_module = |bytes: &[u8]| {
        bytes.starts_with(b"PK\x03\x04")
            || bytes.get(4..8) == Some(b"IREE")
            || bytes.get(8..12) == Some(b"IREE")
    };
    if is_module(&file.bytes) || count == 0 {
        return Ok(());
    }
    #[cfg(feature = "compiler")]
    if super::model::detect(file)?.is_some() {
        return Err(Error::invalid(format!(
            "'{}' is a model among {count} files; a session has one model, or several modules",
            file.name
        )));
    }
    #[cfg(feature = "compiler")]
    if !file.name.ends_with(".vmfb") {
        return Err(Error::new(
            crate::ErrorKind::InvalidModel,
            format!(
                "'{}' is neither a compiled module (.vmfb) nor a model of a format that is known ({})",
                file.name,
                super::model::known_formats()
            ),
        ));
    }
    #[cfg(not(feature = "compiler"))]
    if !file.name.ends_with(".vmfb") {
        return Err(Error::new(
            crate::ErrorKind::Unsupported,
            format!(
                "'{}' is no module, and this program was built without the feature `compiler`: if it is a model, compile it \
                 to a module first (`halite compile`)",
                file.name
            ),
        ));
    }
    // The reader of modules says what is wrong with it.
    Ok(())
}
