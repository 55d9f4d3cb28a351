//! The driver trait and what it tells about devices before one is opened.

use std::{collections::BTreeMap, fmt, sync::Arc};

use halite_facts::{DeviceFacts, DeviceType};
use serde::{Deserialize, Serialize};

use crate::{Device, ExternalSupport, Result};

/// Named options of a driver or device, from a URI's `?k=v&k=v` or from tool flags. Unknown names are errors that
/// list the known ones.
pub type Options = BTreeMap<String, String>;

/// The option `untrusted=on` of every driver that can keep the code of strangers within its bounds: the device takes no code that
/// it cannot confine, and answers 1 to the query [`UNTRUSTED`](halite_abi::query::UNTRUSTED). Options that contradict it are
/// refused. A driver that does not know it opens no device for such code.
pub const UNTRUSTED: &str = "untrusted";
/// The option `memory_limit=BYTES` of every driver whose devices can bound the memory that buffers take.
pub const MEMORY_LIMIT: &str = "memory_limit";

/// What kind of hardware a device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A GPU with its own memory.
    DiscreteGpu,
    /// A GPU that shares the host's memory.
    IntegratedGpu,
    /// A GPU seen through virtualization.
    VirtualGpu,
    /// The host's processor, also behind a GPU API.
    Cpu,
    /// Something else.
    #[default]
    Other,
}

impl From<DeviceType> for DeviceKind {
    fn from(kind: DeviceType) -> DeviceKind {
        match kind {
            DeviceType::Discrete => DeviceKind::DiscreteGpu,
            DeviceType::Integrated => DeviceKind::IntegratedGpu,
            DeviceType::Virtual => DeviceKind::VirtualGpu,
            DeviceType::Cpu => DeviceKind::Cpu,
            DeviceType::Other => DeviceKind::Other,
        }
    }
}

/// Points for or against a device, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScoreItem {
    /// Points; negative ones speak against the device.
    pub points: i64,
    /// The fact that gives them, for people.
    pub reason: String,
}

/// Facts of one subject, such as limits or extensions, in display order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoGroup {
    /// The subject: one lower-case word.
    pub title: String,
    /// (name, value); the value is empty where the name says it all.
    pub entries: Vec<(String, String)>,
}

/// Formats of executables whose code nothing keeps within its bounds on a device: whoever runs it trusts its maker as
/// much as the program itself. A device that nobody named never takes them ([`crate::choice::confine`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnconfinedCode {
    /// The formats.
    pub formats: Vec<String>,
    /// What such code can do, as a clause: `it is machine code, which …`.
    pub reason: String,
    /// Name of the device option that decides.
    pub option: String,
    /// Its value that allows the code.
    pub allow: String,
    /// Its value that refuses the code.
    pub refuse: String,
    /// Whether the device takes the code where the option is not given.
    pub default_allows: bool,
}

/// A device as enumeration sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Name of the driver.
    pub driver: String,
    /// The stable path of the device within its driver, such as `GPU-<uuid>`; empty for the only device.
    pub path: String,
    /// Name for people, such as the GPU's marketing name.
    pub name: String,
    /// Kind of hardware.
    pub kind: DeviceKind,
    /// Why the device cannot be opened with default options; `None` when it can.
    pub unusable: Option<String>,
    /// Target triple that describes it best, such as `cpu-llvmpipe-linux`; `None` when nothing fits.
    #[serde(default)]
    pub target: Option<String>,
    /// Formats of executables that it takes with default options, best first.
    #[serde(default)]
    pub executable_formats: Vec<String>,
    /// Formats whose code can do more than compute on the buffers it is given, taken or not.
    #[serde(default)]
    pub unconfined: Vec<UnconfinedCode>,
    /// What speaks for it and against it beside its kind. Devices are chosen by the sum.
    #[serde(default)]
    pub score: Vec<ScoreItem>,
    /// The facts that people ask for first, in display order.
    pub properties: Vec<(String, String)>,
    /// Everything else for bug reports: limits, features, extensions, memory, queues.
    #[serde(default)]
    pub groups: Vec<InfoGroup>,
    /// Which memory it shares with others, by kind; empty where none.
    #[serde(default)]
    pub external_memory: Vec<ExternalSupport>,
    /// Everything that the driver knows of the device: complete enough to plan for it without having it, and what models are
    /// compiled by. `None` where the driver does not say, such as for devices that are no GPU.
    #[serde(default)]
    pub facts: Option<Arc<DeviceFacts>>,
}

impl DeviceInfo {
    /// The URI that opens exactly this device.
    pub fn uri(&self) -> String {
        format!("{}://{}", self.driver, self.path)
    }

    /// The line for people who named no device and get a processor; `None` for other devices. Whoever chooses for them
    /// logs it as a warning.
    pub fn processor_warning(&self) -> Option<String> {
        (self.kind == DeviceKind::Cpu).then(|| {
            format!("no GPU can be used; running on the processor with '{}' ({})", self.name, self.uri())
        })
    }
}

/// A driver: finds devices and opens them. Object-safe; any thread may call it.
pub trait Driver: fmt::Debug + Send + Sync + 'static {
    /// Short name that URIs begin with, such as `vulkan`.
    fn name(&self) -> &str;

    /// One line for people.
    fn description(&self) -> &str;

    /// Options that [`Driver::open`] understands: (name, meaning).
    fn options(&self) -> &[(&'static str, &'static str)];

    /// The devices that exist now, best first by the driver's own order, stable between calls. UNAVAILABLE when the
    /// system has no support for the driver at all (the message says what was looked for).
    fn enumerate(&self, options: &Options) -> Result<Vec<DeviceInfo>>;

    /// The path of a device that [`Driver::enumerate`] leaves out with these options, but that a user named by its path
    /// or a part of its name; `None` when there is none. Called only for names that fit no listed device.
    fn find_unlisted(&self, _name: &str, _options: &Options) -> Result<Option<String>> {
        Ok(None)
    }

    /// What the driver tells about itself beside its devices, for listings: the group `workarounds` has the faults of
    /// underlying drivers that it steers around, each with condition, reason and link.
    fn tables(&self) -> Vec<InfoGroup> {
        Vec::new()
    }

    /// Opens the device with this path, or the best usable one when the path is empty.
    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>>;
}
