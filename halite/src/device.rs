//! Drivers and open devices as programs see them.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

#[cfg(feature = "compiler")]
use halite_hal::choice;
use halite_hal::{self as hal, DriverRegistry};
use halite_plugin::discovery::Discovery;

pub use hal::Options;

#[cfg(feature = "compiler")]
use crate::ErrorKind;
use crate::{Error, Result};

/// What kind of hardware a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A GPU with memory of its own.
    DiscreteGpu,
    /// A GPU that shares the host's memory.
    IntegratedGpu,
    /// A GPU seen through virtualization.
    VirtualGpu,
    /// The host's processor, also behind a GPU's interface.
    Cpu,
    /// Something else.
    Other,
}

impl From<hal::DeviceKind> for DeviceKind {
    fn from(kind: hal::DeviceKind) -> Self {
        match kind {
            hal::DeviceKind::DiscreteGpu => DeviceKind::DiscreteGpu,
            hal::DeviceKind::IntegratedGpu => DeviceKind::IntegratedGpu,
            hal::DeviceKind::VirtualGpu => DeviceKind::VirtualGpu,
            hal::DeviceKind::Cpu => DeviceKind::Cpu,
            hal::DeviceKind::Other => DeviceKind::Other,
        }
    }
}

/// Memory that a device holds for tensors, weights and programs, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Taken from the system now.
    pub reserved: u64,
    /// In use now.
    pub used: u64,
    /// Largest `reserved` so far.
    pub peak_reserved: u64,
    /// Largest `used` so far.
    pub peak_used: u64,
    /// Number of allocations made from the system so far.
    pub allocations: u64,
}

/// How often a device's driver wrote recordings of work in its own form. It does so once for given sizes and buffers, and for calls that
/// grow step by step while the device works for the call before. Work that is recorded for one execution is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingUse {
    /// Executions.
    pub executed: u64,
    /// Executions that waited for the recording to be written.
    pub written: u64,
    /// Recordings that were written ahead.
    pub written_ahead: u64,
    /// Recordings among these that were executed.
    pub found_ahead: u64,
}

/// The drivers that a program uses: those linked in (features `vulkan`, `cpu`, `null`), and plug-ins if it asks for them.
///
/// ```no_run
/// use halite::{Drivers, Options};
///
/// let options = Options::from([("validation".to_owned(), "core".to_owned())]);
/// let drivers = Drivers::with_plugins().options(options);
/// for info in drivers.devices() {
///     println!("{} {}", info.uri(), info.name());
/// }
/// let device = drivers.open("vulkan")?;
/// # Ok::<(), halite::Error>(())
/// ```
///
/// Cheap to clone; clones share what is loaded. Any thread may use it.
#[derive(Clone, Debug)]
pub struct Drivers {
    registry: DriverRegistry,
    options: Options,
    /// Options for those drivers that know them.
    defaults: Options,
}

/// The option of drivers that keep compiled pipelines.
const PIPELINE_CACHE: &str = "pipeline_cache";

/// The options that a driver knows.
fn known(driver: &dyn hal::Driver, options: &Options) -> Options {
    let names = driver.options();
    let known = |name: &String| names.iter().any(|(own, _)| own == name);
    options.iter().filter(|(name, _)| known(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
}

impl Default for Drivers {
    fn default() -> Self {
        Drivers::linked()
    }
}

impl Drivers {
    /// The drivers linked into this program. Plug-ins are native code, so none is loaded unasked.
    pub fn linked() -> Self {
        Drivers::from_registry(DriverRegistry::with_static_drivers())
    }

    /// The linked drivers and the plug-ins that are found in `HALITE_DRIVER_PATH` and beside the executable. Reads manifests;
    /// a library is loaded when its driver is asked for.
    pub fn with_plugins() -> Self {
        Drivers::from_registry(halite_plugin::discover(&Discovery::standard()))
    }

    /// Drivers that the layer [`hal`](crate::hal) put together.
    pub fn from_registry(registry: DriverRegistry) -> Self {
        Drivers { registry, options: Options::new(), defaults: Options::new() }
    }

    /// Options for the devices that are opened; an option in a URI wins over them. A driver refuses options that it does not know,
    /// so use these where a program opens devices of one driver.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The options that devices are opened with.
    pub fn device_options(&self) -> &Options {
        &self.options
    }

    /// The options for a device of whichever driver has the best.
    pub(crate) fn all_options(&self) -> Options {
        self.options.clone()
    }

    /// The drivers as the layer [`hal`](crate::hal) knows them.
    pub fn registry(&self) -> &DriverRegistry {
        &self.registry
    }

    /// The devices of all drivers. A driver that finds no support on this system, or cannot be loaded, is logged and left out.
    pub fn devices(&self) -> Vec<DeviceInfo> {
        self.enumerate().0.into_iter().map(DeviceInfo).collect()
    }

    /// The drivers that have no devices, with the reason: this system has no support for them, or they cannot be loaded.
    pub fn unavailable(&self) -> Vec<(String, Error)> {
        self.enumerate().1
    }

    /// The devices, and why drivers have none.
    fn enumerate(&self) -> (Vec<hal::DeviceInfo>, Vec<(String, Error)>) {
        let (mut found, mut failures) = (Vec::new(), Vec::new());
        for entry in self.registry.entries() {
            match entry.driver().and_then(|driver| driver.enumerate(&known(driver.as_ref(), &self.options))) {
                Ok(devices) => found.extend(devices),
                Err(error) => {
                    log::info!("driver '{}' has no devices: {error}", entry.name());
                    failures.push((entry.name().to_owned(), error.into()));
                }
            }
        }
        (found, failures)
    }

    /// Opens a device by URI: a driver (`vulkan`), or one of its devices by path, index or part of the name
    /// (`vulkan://GPU-…`, `vulkan://0`, `vulkan://llvmpipe`), with options (`?validation=core`).
    ///
    /// # Errors
    /// There is no such device, an option is not known, or the device cannot be used.
    pub fn open(&self, uri: &str) -> Result<Device> {
        let mut options = self.options.clone();
        if !self.defaults.is_empty() {
            let driver = self.registry.driver(&hal::uri::DeviceUri::parse(uri)?.driver)?;
            for (name, value) in known(driver.as_ref(), &self.defaults) {
                options.entry(name).or_insert(value);
            }
        }
        Ok(Device::new(halite_layers::open(&self.registry, uri, &options)?))
    }

    /// What Halite would enable on a physical device of the program's, for programs that then create the device and hand it to
    /// [`Drivers::import_vulkan`].
    ///
    /// # Errors
    /// The device cannot be used, or an option is not known.
    #[cfg(feature = "vulkan")]
    pub fn wanted_vulkan(&self, instance: &crate::vulkan::CallersInstance) -> Result<crate::vulkan::Wanted> {
        Ok(halite_vulkan::import::wanted(instance, &self.options)?)
    }

    /// A device on the program's own Vulkan device and queues. It shares them with the program; tensors are Halite's.
    ///
    /// # Errors
    /// An option is not possible for such a device, something is said to be enabled that it does not have, or it lacks what
    /// Halite needs.
    #[cfg(feature = "vulkan")]
    pub fn import_vulkan(&self, device: crate::vulkan::CallersDevice) -> Result<Device> {
        Ok(Device::from_hal(device.open(&self.options)?))
    }

    /// The same drivers without plug-ins that were only found: nobody named them one by one.
    pub(crate) fn without_found(mut self) -> Drivers {
        self.registry = self.registry.without_found();
        self
    }

    /// The same drivers, whose devices are opened with an option; where it is not `ours` to say, what was said before stays.
    pub(crate) fn with_option(mut self, name: &str, value: &str, ours: bool) -> Drivers {
        if ours || !self.options.contains_key(name) {
            self.options.insert(name.to_owned(), value.to_owned());
        }
        self
    }

    /// The same drivers, whose devices keep compiled pipelines in this place unless somebody said otherwise: a folder, or `off`.
    pub(crate) fn keeping_pipelines(&self, place: &str) -> Drivers {
        let mut drivers = self.clone();
        drivers.defaults.insert(PIPELINE_CACHE.to_owned(), place.to_owned());
        drivers
    }

    /// Opens the best device that runs kernels of `formats`: a GPU before a processor.
    ///
    /// # Errors
    /// None can be used; the text says what was seen.
    #[cfg(feature = "compiler")]
    pub(crate) fn open_best(&self, formats: &[&str], what: &str) -> Result<Device> {
        let (devices, failures) = self.enumerate();
        let mut seen: Vec<_> =
            failures.iter().map(|(name, error)| format!("driver '{name}': {error}")).collect();
        let ranked = choice::rank(&devices, &|format| formats.contains(&format));
        let serves = |info: &hal::DeviceInfo| info.executable_formats.iter().any(|f| formats.contains(&&**f));
        let usable = |r: &&choice::Ranked| r.ruled_out.is_none() && serves(&devices[r.index]);
        let Some(best) = ranked.iter().find(usable) else {
            seen.extend(ranked.iter().map(|r| {
                let info = &devices[r.index];
                format!(
                    "{} ({}): {}",
                    info.uri(),
                    info.name,
                    r.ruled_out.as_deref().unwrap_or("not for models")
                )
            }));
            let seen = if seen.is_empty() { "no driver is there".to_owned() } else { seen.join("; ") };
            let text = format!(
                "{what} runs on a Vulkan device, and none can be used ({seen}); where there is no GPU, a Vulkan driver for the \
                 processor will do: llvmpipe (package mesa-vulkan-drivers) or SwiftShader"
            );
            return Err(Error::new(ErrorKind::NoDevice, text));
        };
        let info = &devices[best.index];
        log::info!("device {} chosen with {} points", info.uri(), best.score.total);
        if let Some(line) = info.processor_warning() {
            warn_once(line);
        }
        self.open(&info.uri())
    }
}

/// Warns of what is the same for all sessions of a process.
#[cfg(feature = "compiler")]
fn warn_once(line: String) {
    use std::collections::BTreeSet;
    static TOLD: parking_lot::Mutex<BTreeSet<String>> = parking_lot::Mutex::new(BTreeSet::new());
    if TOLD.lock().insert(line.clone()) {
        log::warn!("{line}");
    }
}

/// The devices of the linked drivers. [`Drivers::devices`] also lists those of plug-ins.
///
/// ```
/// for info in halite::devices() {
///     println!("{} {} {:?}", info.uri(), info.name(), info.kind());
/// }
/// ```
pub fn devices() -> Vec<DeviceInfo> {
    Drivers::linked().devices()
}

/// What is known of a device before it is opened.
#[derive(Clone, Debug)]
pub struct DeviceInfo(hal::DeviceInfo);

impl DeviceInfo {
    /// The URI that opens exactly this device.
    pub fn uri(&self) -> String {
        self.0.uri()
    }

    /// Its name for people.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Name of its driver.
    pub fn driver(&self) -> &str {
        &self.0.driver
    }

    /// What kind of hardware it is.
    pub fn kind(&self) -> DeviceKind {
        self.0.kind.into()
    }

    /// The target triple that kernels are chosen by, such as `cpu-llvmpipe-linux`.
    pub fn target(&self) -> Option<&str> {
        self.0.target.as_deref()
    }

    /// Why it cannot be used; `None` when it can.
    pub fn unusable(&self) -> Option<&str> {
        self.0.unusable.as_deref()
    }

    /// Facts for people: name and value.
    pub fn properties(&self) -> &[(String, String)] {
        &self.0.properties
    }

    /// Memory that it shares with others, by kind; see [`SharedMemory`](crate::SharedMemory).
    pub fn external_memory(&self) -> &[hal::ExternalSupport] {
        &self.0.external_memory
    }

    /// Vulkan's UUIDs of the device and of its driver (`deviceUUID`, `driverUUID`). Opaque handles of memory only have a meaning between
    /// parts that have both in common; CUDA tells the first one as `cuDeviceGetUuid`.
    pub fn uuids(&self) -> Option<([u8; 16], [u8; 16])> {
        let facts = self.0.facts.as_ref()?;
        let bytes = |text: &str| u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes);
        Some((bytes(&facts.uuid)?, bytes(&facts.driver_uuid)?))
    }

    /// All that the layer [`hal`](crate::hal) knows.
    pub fn hal(&self) -> &hal::DeviceInfo {
        &self.0
    }
}

/// An open device, for programs that share one among sessions or put tensors on it.
///
/// ```no_run
/// use halite::{Device, Session};
///
/// let device = Device::open("vulkan")?;
/// let first = Session::builder().device(&device).model("a.onnx").build()?;
/// let second = Session::builder().device(&device).model("b.onnx").build()?;
/// println!("{} bytes in use on {}", device.memory().used, device.info().name());
/// # Ok::<(), halite::Error>(())
/// ```
///
/// Cheap to clone; clones are the same device. It closes when the last of them is gone, and the sessions and tensors on it. Any
/// thread may use it.
#[derive(Clone)]
pub struct Device {
    hal: Arc<dyn hal::Device>,
    counters: Arc<Counters>,
}

/// Bytes and number of transfers between host and device that went through [`Tensor`](crate::Tensor)s of one opened device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferStats {
    /// Tensors that were copied to the device.
    pub uploads: u64,
    /// Their bytes.
    pub uploaded_bytes: u64,
    /// Tensors that were copied to the host.
    pub downloads: u64,
    /// Their bytes.
    pub downloaded_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    uploads: AtomicU64,
    uploaded_bytes: AtomicU64,
    downloads: AtomicU64,
    downloaded_bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn count_upload(&self, bytes: u64) {
        self.uploads.fetch_add(1, Ordering::Relaxed);
        self.uploaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_download(&self, bytes: u64) {
        self.downloads.fetch_add(1, Ordering::Relaxed);
        self.downloaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Device {
    pub(crate) fn new(hal: Arc<dyn hal::Device>) -> Self {
        Device { hal, counters: Arc::default() }
    }

    /// Opens a device of the linked drivers by URI, such as `vulkan` or `vulkan://0`; see [`Drivers::open`].
    ///
    /// # Errors
    /// As [`Drivers::open`].
    pub fn open(uri: &str) -> Result<Device> {
        Drivers::linked().open(uri)
    }

    /// A device that the layer [`hal`](crate::hal) opened.
    pub fn from_hal(device: Arc<dyn hal::Device>) -> Device {
        Device::new(halite_layers::validation::ValidatedDevice::wrap(device))
    }

    /// What is known of it.
    pub fn info(&self) -> DeviceInfo {
        DeviceInfo(self.hal.info().clone())
    }

    /// The URI that opens it again.
    pub fn uri(&self) -> String {
        self.hal.info().uri()
    }

    /// Memory that it holds.
    pub fn memory(&self) -> MemoryUse {
        let stats = self.hal.memory_stats();
        MemoryUse {
            reserved: stats.reserved,
            used: stats.used,
            peak_reserved: stats.peak_reserved,
            peak_used: stats.peak_used,
            allocations: stats.allocation_count,
        }
    }

    /// Transfers of tensors since it was opened. What models move inside of themselves, such as their weights, does not count.
    pub fn transfers(&self) -> TransferStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TransferStats {
            uploads: get(&self.counters.uploads),
            uploaded_bytes: get(&self.counters.uploaded_bytes),
            downloads: get(&self.counters.downloads),
            downloaded_bytes: get(&self.counters.downloaded_bytes),
        }
    }

    /// How often its driver wrote recordings of work in its own form, since it was opened.
    pub fn recordings(&self) -> RecordingUse {
        let stats = self.hal.recording_stats();
        RecordingUse {
            executed: stats.executed,
            written: stats.written,
            written_ahead: stats.written_ahead,
            found_ahead: stats.found_ahead,
        }
    }

    /// Gives memory that nobody uses back to the system.
    pub fn trim(&self) {
        self.hal.trim();
    }

    /// Whether both are the same open device.
    pub fn is_same(&self, other: &Device) -> bool {
        self.hal.id() == other.hal.id()
    }

    /// The device as the layer [`hal`](crate::hal) knows it.
    pub fn hal(&self) -> &Arc<dyn hal::Device> {
        &self.hal
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.uri())
    }
}
