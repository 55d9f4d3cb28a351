//! Sessions of strangers' programs: what such a session may use, and what bounds it where the caller did not say.

use std::time::Duration;

use halite_abi::query;
use halite_hal::{MEMORY_LIMIT, UNTRUSTED};

use super::{DeviceChoice, SessionBuilder};
use crate::{Cache, Device, Drivers, Error, ErrorKind, LoadMode, Result};

/// How long the building, and each call, of a stranger's program may take, unless the caller says otherwise.
const TIME: Duration = Duration::from_secs(60);
/// Bytes of host memory that a stranger's program may hold.
const HOST_MEMORY: u64 = 1 << 30;
/// Bytes of device memory that its buffers may take.
const DEVICE_MEMORY: u64 = 4 << 30;

impl SessionBuilder {
    /// The model or module comes from a stranger: the session confines what it can do, and bounds what it can use.
    ///
    /// * Devices are opened with `untrusted=on`: no machine code, no kernels with device addresses, accesses to buffers are bounded.
    ///   One that is open already has to be opened so.
    /// * Only drivers that are linked in, or plug-ins that were named one by one.
    /// * No files but the model's own: the one that is given, for ONNX also those of its folder that it names, and the parameters
    ///   that are given. They are read at once, not mapped, files of weights only where the model uses most of them, and nothing is kept
    ///   in this user's caches.
    /// * Building, and each call, end after 60 s. The host code of modules holds 1 GiB at most, buffers on the device 4 GiB.
    ///
    /// [`load_mode`](Self::load_mode), [`cache`](Self::cache), [`timeout`](Self::timeout), [`program_memory`](Self::program_memory),
    /// [`device_memory`](Self::device_memory) and the options of a call say otherwise for themselves, before or after this.
    /// SECURITY.md has a table of what holds for which files and devices.
    ///
    /// ```no_run
    /// use halite::Session;
    ///
    /// let session = Session::builder().untrusted().device("vulkan").model("stranger.vmfb").build()?;
    /// # Ok::<(), halite::Error>(())
    /// ```
    #[must_use]
    pub fn untrusted(mut self) -> Self {
        self.untrusted = true;
        self
    }

    /// Most bytes of memory that buffers take on each device that the session opens: weights, tensors, what a program allocates.
    #[must_use]
    pub fn device_memory(mut self, bytes: u64) -> Self {
        self.device_memory = Some(bytes);
        self
    }

    /// How files come into memory.
    pub(crate) fn mode(&self) -> LoadMode {
        let otherwise = if self.untrusted { LoadMode::Preload } else { LoadMode::default() };
        self.load_mode.unwrap_or(otherwise)
    }

    /// Where compiled models and pipelines are kept.
    pub(super) fn place(&self) -> Cache {
        let otherwise = || if self.untrusted { Cache::off() } else { Cache::default() };
        self.cache.clone().unwrap_or_else(otherwise)
    }

    /// Whether a thread compiles what calls may need, if that was said: for no stranger, who gets no time besides that of calls.
    #[cfg(feature = "compiler")]
    pub(super) fn compiles_ahead(&self) -> Option<bool> {
        if self.untrusted { Some(false) } else { self.model.ahead }
    }

    /// What bounds the host code of modules.
    pub(super) fn program_limits(&self) -> halite_runtime::Limits {
        let mut limits = halite_runtime::Limits::default();
        let otherwise = if self.untrusted { HOST_MEMORY } else { limits.memory_bytes };
        limits.memory_bytes = self.program_memory.unwrap_or(otherwise);
        limits
    }

    /// How long building, or a call, may take where nothing else is said.
    pub(super) fn time(&self) -> Option<Duration> {
        self.untrusted.then_some(TIME)
    }

    /// Drivers that open devices as this session needs them.
    pub(super) fn confined(&self, drivers: Drivers) -> Drivers {
        let memory = self.device_memory.or_else(|| self.untrusted.then_some(DEVICE_MEMORY));
        let drivers = match memory {
            Some(bytes) => {
                drivers.with_option(MEMORY_LIMIT, &bytes.to_string(), self.device_memory.is_some())
            }
            None => drivers,
        };
        match self.untrusted {
            true => drivers.without_found().with_option(UNTRUSTED, "on", true),
            false => drivers,
        }
    }

    /// Fails for devices that were not opened as this session needs them.
    pub(super) fn check_devices(&self, devices: &[Device]) -> Result<()> {
        let is_open = |choice: &DeviceChoice| matches!(choice, DeviceChoice::Open(_));
        if self.device_memory.is_some() && self.devices.iter().any(is_open) {
            return Err(Error::invalid(format!(
                "device_memory bounds devices that the session opens; open the device with the option {MEMORY_LIMIT} instead"
            )));
        }
        if !self.untrusted {
            return Ok(());
        }
        let trusting = |device: &&Device| device.hal().query_i64(query::DEVICE, query::UNTRUSTED) != Some(1);
        let Some(device) = devices.iter().find(trusting) else { return Ok(()) };
        Err(Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "the session is for a stranger's program, and device '{}' was not opened for one; name it by its URI, or open it \
                 with the option {UNTRUSTED}=on",
                device.uri()
            ),
        ))
    }
}
