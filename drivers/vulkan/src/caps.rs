//! Owns what the driver knows about a device before it opens it: plain data that can be written to a file,
//! read back, and planned from on a machine without that device. Does not own: asking the device (`probe`).

mod features;
mod limits;
mod memory;

use serde::{Deserialize, Serialize};

pub use features::Features;
pub use limits::Limits;
pub use memory::{MemoryCaps, MemoryHeap, MemoryTypeCaps};

/// Packs a Vulkan version the way `VK_MAKE_API_VERSION(0, major, minor, patch)` does.
pub const fn api_version(major: u32, minor: u32, patch: u32) -> u32 {
    (major << 22) | (minor << 12) | patch
}

/// Vulkan 1.1: the lowest version that the driver accepts.
pub const VERSION_1_1: u32 = api_version(1, 1, 0);
/// Vulkan 1.2.
pub const VERSION_1_2: u32 = api_version(1, 2, 0);
/// Vulkan 1.3.
pub const VERSION_1_3: u32 = api_version(1, 3, 0);
/// Vulkan 1.4: the highest version that the driver asks for.
pub const VERSION_1_4: u32 = api_version(1, 4, 0);

/// PCI vendor ids that decisions depend on.
pub mod vendor {
    /// NVIDIA.
    pub const NVIDIA: u32 = 0x10DE;
    /// AMD.
    pub const AMD: u32 = 0x1002;
    /// Intel.
    pub const INTEL: u32 = 0x8086;
    /// Arm.
    pub const ARM: u32 = 0x13B5;
    /// Qualcomm.
    pub const QUALCOMM: u32 = 0x5143;
    /// Google (SwiftShader).
    pub const GOOGLE: u32 = 0x1AE0;
    /// Mesa's software drivers.
    pub const MESA: u32 = 0x1_0005;
}

/// `VkDriverId` numbers that decisions depend on.
pub mod driver_id {
    /// AMD's own driver.
    pub const AMD_PROPRIETARY: u32 = 1;
    /// NVIDIA's own driver.
    pub const NVIDIA_PROPRIETARY: u32 = 4;
    /// Intel's own driver for Windows.
    pub const INTEL_PROPRIETARY_WINDOWS: u32 = 5;
    /// Mesa's driver for Intel.
    pub const INTEL_OPEN_SOURCE_MESA: u32 = 6;
    /// Qualcomm's own driver.
    pub const QUALCOMM_PROPRIETARY: u32 = 8;
    /// Arm's own driver.
    pub const ARM_PROPRIETARY: u32 = 9;
    /// SwiftShader.
    pub const GOOGLE_SWIFTSHADER: u32 = 10;
    /// Mesa's llvmpipe.
    pub const MESA_LLVMPIPE: u32 = 13;
    /// MoltenVK.
    pub const MOLTENVK: u32 = 14;
}

/// What kind of hardware Vulkan says a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceType {
    /// A GPU with its own memory.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU behind virtualization.
    Virtual,
    /// The host's processor.
    Cpu,
    /// Something else.
    Other,
}

/// Subgroup abilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubgroupCaps {
    /// Invocations in a subgroup when nothing else is asked for.
    pub size: u32,
    /// Smallest size that can be required; equals `size` without subgroup size control.
    pub min_size: u32,
    /// Largest size that can be required; equals `size` without subgroup size control.
    pub max_size: u32,
    /// Most subgroups in one workgroup; 0 when the device does not say.
    pub max_workgroup_subgroups: u32,
    /// `VkShaderStageFlags` that have subgroup operations.
    pub stages: u32,
    /// `VkSubgroupFeatureFlags` of the operations.
    pub operations: u32,
    /// `VkShaderStageFlags` whose pipelines may require a size.
    pub required_size_stages: u32,
}

/// Which 4x8-bit packed dot products are faster than spelling them out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DotProductCaps {
    /// Both operands unsigned.
    pub packed_4x8_unsigned: bool,
    /// Both operands signed.
    pub packed_4x8_signed: bool,
    /// One of each.
    pub packed_4x8_mixed: bool,
}

/// One shape and type combination of cooperative matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CooperativeMatrixShape {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
    /// `VkComponentTypeKHR` of A.
    pub a_type: u32,
    /// `VkComponentTypeKHR` of B.
    pub b_type: u32,
    /// `VkComponentTypeKHR` of C.
    pub c_type: u32,
    /// `VkComponentTypeKHR` of the result.
    pub result_type: u32,
    /// Whether integer accumulation saturates.
    pub saturating: bool,
    /// `VkScopeKHR` that cooperates: 3 is the subgroup.
    pub scope: u32,
}

/// One queue family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueFamily {
    /// `VkQueueFlags`.
    pub flags: u32,
    /// Queues in it.
    pub count: u32,
    /// Meaningful bits of a timestamp; 0 means no timestamps.
    pub timestamp_valid_bits: u32,
}

impl QueueFamily {
    /// Whether it can draw.
    pub fn graphics(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether it can dispatch.
    pub fn compute(&self) -> bool {
        self.flags & 2 != 0
    }
}

/// Everything the driver knows about a device. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceCaps {
    /// Name for people.
    pub name: String,
    /// PCI or Khronos vendor id.
    pub vendor_id: u32,
    /// Device id of that vendor.
    pub device_id: u32,
    /// Kind of hardware.
    pub device_type: DeviceType,
    /// Packed API version that may be used: the lower of the device's and the instance's.
    pub api_version: u32,
    /// Driver version in the vendor's own packing.
    pub driver_version: u32,
    /// `VkDriverId`; 0 when the device does not say.
    pub driver_id: u32,
    /// Name of the Vulkan driver; empty when the device does not say.
    pub driver_name: String,
    /// What the Vulkan driver says about itself, often its version.
    pub driver_info: String,
    /// Device UUID, 32 hexadecimal digits.
    pub uuid: String,
    /// Driver UUID, 32 hexadecimal digits.
    pub driver_uuid: String,
    /// UUID of the pipeline cache format, 32 hexadecimal digits.
    pub pipeline_cache_uuid: String,
    /// Limits.
    pub limits: Limits,
    /// Subgroup abilities.
    pub subgroup: SubgroupCaps,
    /// Features that the device has.
    pub features: Features,
    /// Accelerated dot products.
    #[serde(default)]
    pub dot_product: DotProductCaps,
    /// Cooperative matrix shapes; empty without the feature.
    #[serde(default)]
    pub cooperative_matrices: Vec<CooperativeMatrixShape>,
    /// Memory heaps and types.
    pub memory: MemoryCaps,
    /// Queue families, by index.
    pub queue_families: Vec<QueueFamily>,
    /// Device extensions, sorted.
    pub extensions: Vec<String>,
}

impl DeviceCaps {
    /// Reads caps from the JSON that [`DeviceCaps::to_json`] writes.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The caps as indented JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("caps are strings, numbers and lists, which JSON can hold")
    }

    /// Whether the device offers an extension.
    pub fn has_extension(&self, name: &str) -> bool {
        self.extensions.binary_search_by(|e| e.as_str().cmp(name)).is_ok()
    }

    /// Whether a function or structure can be used: core since `core_version`, or offered as `extension`.
    pub fn core_or_extension(&self, core_version: u32, extension: &str) -> bool {
        self.api_version >= core_version || self.has_extension(extension)
    }

    /// `1.3.230`.
    pub fn api_version_text(&self) -> String {
        let v = self.api_version;
        format!("{}.{}.{}", (v >> 22) & 0x7F, (v >> 12) & 0x3FF, v & 0xFFF)
    }

    /// The driver version as its vendor writes it.
    pub fn driver_version_text(&self) -> String {
        let v = self.driver_version;
        if self.driver_id == driver_id::NVIDIA_PROPRIETARY {
            let (major, minor) = (v >> 22, (v >> 14) & 0xFF);
            return format!("{major}.{minor}.{:02}", (v >> 6) & 0xFF);
        }
        format!("{}.{}.{}", v >> 22, (v >> 12) & 0x3FF, v & 0xFFF)
    }

    /// The driver for people: name, then what it says about itself or its version number.
    pub fn driver_text(&self) -> String {
        let name = if self.driver_name.is_empty() { "unnamed driver" } else { &self.driver_name };
        if self.driver_info.is_empty() {
            format!("{name} {}", self.driver_version_text())
        } else {
            format!("{name} {}", self.driver_info)
        }
    }
}
