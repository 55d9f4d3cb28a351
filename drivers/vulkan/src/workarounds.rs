//! The known faults of drivers that the planner steers around: the types, which entries are in force on a device, and the text
//! that tools print.

mod table;

use halite_facts::{DeviceFacts, DeviceType, Feature, FeatureSet, driver_id};
use halite_hal::{InfoGroup, Result, status};
use serde::Serialize;

use table::{ON_REQUEST, TABLE};

/// What the planner must not do on a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Avoid {
    /// Run kernels that take buffer device addresses.
    BufferDeviceAddress,
    /// Push descriptors.
    PushDescriptors,
    /// Use a pipeline cache, also within a run.
    PipelineCache,
    /// Open a device in a process that was forked while another one of the driver was open.
    ForkedDevices,
    /// Fill 4096 bytes or more from a byte that is no multiple of 16.
    UnalignedFill,
    /// Require a subgroup size of pipelines.
    SubgroupSizeControl,
    /// Let kernels use cooperative matrices, or ask for their shapes.
    CooperativeMatrix,
    /// Let kernels use integer dot products.
    IntegerDotProduct,
    /// Let kernels compute with 16-bit floats.
    Float16,
    /// Run kernels in which 16-bit floats occur at all, be it in words.
    Halves,
    /// Let kernels store 16-bit values in buffers.
    Storage16,
    /// Let kernels store 8-bit values in buffers.
    Storage8,
    /// Enable `synchronization2`.
    Synchronization2,
    /// Have the device bounds-check buffer accesses.
    RobustBufferAccess,
}

impl Avoid {
    /// The features that stay off. Kernels that need one are refused by its name.
    fn features(self) -> &'static [Feature] {
        match self {
            Avoid::SubgroupSizeControl => &[Feature::SubgroupSizeControl, Feature::ComputeFullSubgroups],
            Avoid::CooperativeMatrix => &[
                Feature::CooperativeMatrix,
                Feature::CooperativeMatrixRobustBufferAccess,
                Feature::ShaderBFloat16CooperativeMatrix,
            ],
            Avoid::IntegerDotProduct => &[Feature::ShaderIntegerDotProduct],
            Avoid::Float16 => &[Feature::ShaderFloat16],
            Avoid::Storage16 => &[
                Feature::StorageBuffer16BitAccess,
                Feature::UniformAndStorageBuffer16BitAccess,
                Feature::StoragePushConstant16,
            ],
            Avoid::Storage8 => &[
                Feature::StorageBuffer8BitAccess,
                Feature::UniformAndStorageBuffer8BitAccess,
                Feature::StoragePushConstant8,
            ],
            Avoid::Synchronization2 => &[Feature::Synchronization2],
            Avoid::RobustBufferAccess => &[Feature::RobustBufferAccess, Feature::RobustBufferAccess2],
            Avoid::BufferDeviceAddress
            | Avoid::Halves
            | Avoid::PushDescriptors
            | Avoid::PipelineCache
            | Avoid::ForkedDevices
            | Avoid::UnalignedFill => &[],
        }
    }
}

/// One known fault.
#[derive(Clone, Debug, Serialize)]
pub struct Workaround {
    /// Short stable name for logs, bug reports and the option `workarounds`.
    pub name: &'static str,
    /// What is avoided.
    pub avoid: Avoid,
    /// What goes wrong otherwise.
    pub reason: &'static str,
    /// Where to read more; empty for entries that only an option puts in force.
    pub link: &'static str,
    #[serde(skip)]
    applies: Match,
}

/// Two entries are the same when their names are.
impl PartialEq for Workaround {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Workaround {}

impl Workaround {
    /// The devices it is for, in words.
    pub fn condition(&self) -> String {
        self.applies.text()
    }
}

/// A fact about a device that no other field says: its words, and the test.
type Fact = (&'static str, fn(&DeviceFacts) -> bool);

/// Which devices a workaround is for; every given part must fit.
#[derive(Clone, Debug)]
struct Match {
    /// `VkDriverId`.
    driver_id: Option<u32>,
    /// PCI or Khronos vendor.
    vendor_id: Option<u32>,
    device_type: Option<DeviceType>,
    /// First driver version that is affected.
    since: Option<u32>,
    /// First driver version that is fixed.
    fixed_in: Option<u32>,
    /// Something else that must be so.
    fact: Option<Fact>,
    /// Never by itself: only when the option names it.
    on_request: bool,
}

impl Match {
    /// Every device.
    const ANY: Match = Match {
        driver_id: None,
        vendor_id: None,
        device_type: None,
        since: None,
        fixed_in: None,
        fact: None,
        on_request: false,
    };

    /// Every version of a driver.
    const fn driver(id: u32) -> Match {
        Match { driver_id: Some(id), ..Match::ANY }
    }

    fn fits(&self, facts: &DeviceFacts) -> bool {
        !self.on_request
            && self.driver_id.is_none_or(|id| id == facts.driver_id)
            && self.vendor_id.is_none_or(|id| id == facts.vendor_id)
            && self.device_type.is_none_or(|kind| kind == facts.device_type)
            && self.since.is_none_or(|v| facts.driver_version >= v)
            && self.fixed_in.is_none_or(|v| facts.driver_version < v)
            && self.fact.is_none_or(|(_, holds)| holds(facts))
    }

    fn text(&self) -> String {
        if self.on_request {
            return "only on request".to_owned();
        }
        let version = |v: u32| format!("{}.{}.{}", v >> 22, (v >> 12) & 0x3FF, v & 0xFFF);
        let mut parts = Vec::new();
        parts.extend(self.driver_id.map(|id| format!("driver {}", driver_name(id))));
        parts.extend(self.since.map(|v| format!("from {}", version(v))));
        parts.extend(self.fixed_in.map(|v| format!("before {}", version(v))));
        parts.extend(self.vendor_id.map(|id| format!("vendor {id:#06x}")));
        parts.extend(self.device_type.map(|kind| format!("{kind:?} devices").to_lowercase()));
        parts.extend(self.fact.map(|(words, _)| words.to_owned()));
        parts.join(", ")
    }
}

fn driver_name(id: u32) -> String {
    match id {
        driver_id::AMD_PROPRIETARY => "AMD proprietary".to_owned(),
        driver_id::NVIDIA_PROPRIETARY => "NVIDIA proprietary".to_owned(),
        driver_id::INTEL_PROPRIETARY_WINDOWS => "Intel proprietary (Windows)".to_owned(),
        driver_id::INTEL_OPEN_SOURCE_MESA => "Mesa ANV".to_owned(),
        driver_id::GOOGLE_SWIFTSHADER => "SwiftShader".to_owned(),
        driver_id::MESA_LLVMPIPE => "Mesa llvmpipe".to_owned(),
        driver_id::MOLTENVK => "MoltenVK".to_owned(),
        other => format!("id {other}"),
    }
}

/// What the option `workarounds` says: entries put in force or taken out of it, whatever the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkaroundOverrides {
    added: Vec<&'static Workaround>,
    removed: Vec<&'static Workaround>,
}

impl WorkaroundOverrides {
    /// Parses `+name,-name`; a name alone means `+name`, `-all` takes out everything. INVALID_ARGUMENT lists the known
    /// names.
    pub fn parse(text: &str) -> Result<Self> {
        let mut overrides = WorkaroundOverrides::default();
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            if word == "-all" {
                overrides.removed.extend(TABLE);
                continue;
            }
            let (list, name) = match word.strip_prefix('-') {
                Some(name) => (&mut overrides.removed, name),
                None => (&mut overrides.added, word.strip_prefix('+').unwrap_or(word)),
            };
            let found = table().find(|w| w.name == name).ok_or_else(|| {
                let known: Vec<_> = table().map(|w| w.name).collect();
                status!(
                    InvalidArgument,
                    "Vulkan option workarounds='{text}': there is no workaround '{name}'; known are: {}",
                    known.join(", ")
                )
            })?;
            list.push(found);
        }
        Ok(overrides)
    }
}

/// Every entry: known faults first, then those that are only in force when the option names them.
pub fn table() -> impl Iterator<Item = &'static Workaround> {
    TABLE.iter().chain(ON_REQUEST)
}

/// The whole table for people: each entry with what it avoids, for which devices, why, and where to read more.
pub(crate) fn listing() -> InfoGroup {
    let meaning = |entry: &Workaround| {
        let see = if entry.link.is_empty() { String::new() } else { format!("\nsee: {}", entry.link) };
        format!("avoids: {:?}\nfor: {}\nbecause: {}{see}", entry.avoid, entry.condition(), entry.reason)
    };
    let entries = table().map(|entry| (entry.name.to_owned(), meaning(entry))).collect();
    InfoGroup { title: "workarounds".to_owned(), entries }
}

/// The workarounds that are in force on one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workarounds {
    applied: Vec<&'static Workaround>,
}

impl Workarounds {
    /// The table's entries that fit this device.
    pub fn for_device(facts: &DeviceFacts) -> Self {
        Workarounds { applied: TABLE.iter().filter(|w| w.applies.fits(facts)).collect() }
    }

    /// The entries that fit this device, as the user changed them. What is taken out stays out.
    pub fn chosen(facts: &DeviceFacts, overrides: &WorkaroundOverrides) -> Self {
        let mut applied = Self::for_device(facts).applied;
        applied.extend(overrides.added.iter().filter(|w| !w.applies.fits(facts)));
        applied.retain(|w| !overrides.removed.contains(w));
        Workarounds { applied }
    }

    /// The entry that forbids something, if there is one.
    pub fn find(&self, avoid: Avoid) -> Option<&'static Workaround> {
        self.applied.iter().copied().find(|w| w.avoid == avoid)
    }

    /// The entries in table order, those that the user added last.
    pub fn applied(&self) -> &[&'static Workaround] {
        &self.applied
    }

    /// Takes the features out that must stay off.
    pub(crate) fn restrict(&self, features: &mut FeatureSet) {
        for feature in self.applied.iter().flat_map(|w| w.avoid.features()) {
            features.set(*feature, false);
        }
    }
}

#[cfg(test)]
mod tests;
