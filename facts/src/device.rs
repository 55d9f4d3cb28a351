//! What is known about a device before it is opened: plain data that can be written to a file, read back, and planned from on a
//! machine without that device.

use serde::{Deserialize, Serialize};

use crate::{ComponentType, FeatureFacts, Limits, MatrixShape, Memory, driver_id};

/// What kind of hardware Vulkan says a device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Something else, or not said.
    #[default]
    Other,
}

/// Subgroups, as the device reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubgroupFacts {
    /// Invocations in a subgroup when nothing else is asked for; 0 when the device does not say.
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
pub struct DotProductFacts {
    /// Both operands unsigned.
    pub packed_4x8_unsigned: bool,
    /// Both operands signed.
    pub packed_4x8_signed: bool,
    /// One of each.
    pub packed_4x8_mixed: bool,
}

/// One shape and type combination of cooperative matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CooperativeMatrixProperties {
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

impl CooperativeMatrixProperties {
    /// The shape, if a subgroup multiplies it with types that kernels use.
    pub fn shape(&self) -> Option<MatrixShape> {
        /// `VK_SCOPE_SUBGROUP_KHR`.
        const SUBGROUP: u32 = 3;
        let kind = ComponentType::from_vulkan;
        (self.scope == SUBGROUP).then_some(())?;
        Some(MatrixShape {
            m: self.m,
            n: self.n,
            k: self.k,
            a: kind(self.a_type)?,
            b: kind(self.b_type)?,
            c: kind(self.c_type)?,
            result: kind(self.result_type)?,
            saturating: self.saturating,
        })
    }
}

/// What a device does with buffers in memory of one kind that is shared with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalBuffers {
    /// `VkExternalMemoryHandleTypeFlagBits`.
    pub handle_type: u32,
    /// `VkExternalMemoryFeatureFlags`: 1 for dedicated allocations only, 2 for export, 4 for import.
    pub features: u32,
}

impl ExternalBuffers {
    /// Whether the memory must be allocated for one buffer alone.
    pub fn dedicated_only(&self) -> bool {
        self.features & 1 != 0
    }

    /// Whether memory can be made for others.
    pub fn exportable(&self) -> bool {
        self.features & 2 != 0
    }

    /// Whether memory of others can be used.
    pub fn importable(&self) -> bool {
        self.features & 4 != 0
    }
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

/// Everything that is known about a device: a driver makes one when it lists its devices, and all decisions are made from it.
/// Sizes in bytes. What is not known keeps its default.
///
/// As JSON it is the record that `list-devices --json` shows, that bug reports carry and that tests plan from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Name for people.
    pub name: String,
    /// PCI or Khronos vendor id.
    pub vendor_id: u32,
    /// Device id of that vendor.
    #[serde(default)]
    pub device_id: u32,
    /// Kind of hardware.
    pub device_type: DeviceType,
    /// Packed API version that may be used: the lower of the device's and the instance's; 0 when not said.
    pub api_version: u32,
    /// Driver version in the vendor's own packing.
    #[serde(default)]
    pub driver_version: u32,
    /// `VkDriverId`; 0 when the device does not say.
    #[serde(default)]
    pub driver_id: u32,
    /// Name of the Vulkan driver; empty when the device does not say.
    #[serde(default)]
    pub driver_name: String,
    /// What the Vulkan driver says about itself, often its version.
    #[serde(default)]
    pub driver_info: String,
    /// Device UUID, 32 hexadecimal digits.
    #[serde(default)]
    pub uuid: String,
    /// Driver UUID, 32 hexadecimal digits.
    #[serde(default)]
    pub driver_uuid: String,
    /// UUID of the pipeline cache format, 32 hexadecimal digits.
    #[serde(default)]
    pub pipeline_cache_uuid: String,
    /// Limits.
    pub limits: Limits,
    /// Subgroups.
    pub subgroup: SubgroupFacts,
    /// Features that the device has.
    pub features: FeatureFacts,
    /// Accelerated dot products; `None` when not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dot_product: Option<DotProductFacts>,
    /// Units that hold workgroups: multiprocessors, compute units, shader cores; `None` when the device does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_units: Option<u32>,
    /// Cooperative matrix shapes; empty without the feature.
    #[serde(default)]
    pub cooperative_matrices: Vec<CooperativeMatrixProperties>,
    /// Memory heaps and types.
    #[serde(default)]
    pub memory: Memory,
    /// Kinds of memory that is shared with others, in which buffers can be; those that the device knows nothing to do with are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_buffers: Vec<ExternalBuffers>,
    /// Queue families, by index.
    #[serde(default)]
    pub queue_families: Vec<QueueFamily>,
    /// Device extensions, sorted.
    #[serde(default)]
    pub extensions: Vec<String>,
    /// System of the device as triples have it, such as `linux` or `android30`; empty when not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os: String,
}

/// Why a record of a device cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("device capabilities cannot be read: {0}")]
pub struct FactsError(#[from] serde_json::Error);

impl DeviceFacts {
    /// Reads the JSON that [`DeviceFacts::to_json`] writes. Fields and features that are not known are ignored.
    ///
    /// # Errors
    /// It is no JSON, or not of a device: names what is missing or of another type.
    pub fn from_json(text: &str) -> Result<Self, FactsError> {
        Ok(serde_json::from_str(text)?)
    }

    /// The facts as indented JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("facts are strings, numbers and lists, which JSON can hold")
    }

    /// These facts with this system.
    #[must_use]
    pub fn on(mut self, os: impl ToString) -> Self {
        self.os = os.to_string();
        self
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feature;

    #[test]
    fn json_holds_everything() {
        let mut facts =
            DeviceFacts { name: "a".to_owned(), vendor_id: 7, ..DeviceFacts::default() }.on("linux");
        facts.features.set(Feature::ShaderInt8, true);
        facts.features.set(Feature::ShaderInt16, false);
        facts.dot_product = Some(DotProductFacts { packed_4x8_signed: true, ..DotProductFacts::default() });
        facts.limits = Limits::LEAST;
        assert_eq!(DeviceFacts::from_json(&facts.to_json()).unwrap(), facts);
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        for bad in ["", "{}", "[]", "{\"name\": 3}"] {
            let message = DeviceFacts::from_json(bad).unwrap_err().to_string();
            assert!(message.contains("device capabilities"), "{message}");
        }
    }
}
