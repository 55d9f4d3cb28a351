//! Owns what a real device reports, as plain data, and reading it from the Vulkan driver's recorded capabilities.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ComponentType, FactBlock, MatrixShape, Os, SubgroupOps};

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
    /// Invocations in a subgroup when nothing else is asked for; 0 when not said.
    pub size: u32,
    /// Smallest size that can be required.
    pub min_size: u32,
    /// Largest size that can be required.
    pub max_size: u32,
    /// `VkSubgroupFeatureFlags`.
    pub operations: u32,
}

/// Limits of compute kernels. Sizes in bytes; 0 means not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitFacts {
    /// Most invocations in a workgroup.
    pub max_compute_workgroup_invocations: u32,
    /// Largest workgroup in x, y, z.
    pub max_compute_workgroup_size: [u32; 3],
    /// Most workgroups of a dispatch in x, y, z.
    pub max_compute_workgroup_count: [u32; 3],
    /// Shared memory of a workgroup.
    pub max_compute_shared_memory_size: u32,
    /// Push constants.
    pub max_push_constants_size: u32,
    /// Largest range of a storage buffer binding.
    pub max_storage_buffer_range: u64,
    /// Storage buffers of a stage.
    pub max_per_stage_descriptor_storage_buffers: u32,
    /// Storage buffers of all sets.
    pub max_descriptor_set_storage_buffers: u32,
    /// Resources of a stage.
    pub max_per_stage_resources: u32,
}

impl LimitFacts {
    /// Storage buffers that a kernel can bind: as many as all limits on them allow.
    fn storage_buffers(&self) -> Option<u32> {
        let limits = [
            self.max_per_stage_descriptor_storage_buffers,
            self.max_descriptor_set_storage_buffers,
            self.max_per_stage_resources,
        ];
        (limits[0] != 0).then(|| limits.into_iter().filter(|limit| *limit != 0).fold(u32::MAX, u32::min))
    }
}

/// A memory heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heap {
    /// Bytes.
    pub size: u64,
    /// Whether the device calls it its own.
    pub device_local: bool,
}

/// What a device reports about itself. Everything that is not known keeps its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// PCI or Khronos vendor id.
    pub vendor_id: u32,
    /// Device id of that vendor.
    pub device_id: u32,
    /// `VkDriverId`; 0 when not said.
    pub driver_id: u32,
    /// Name of the driver.
    pub driver_name: String,
    /// What the driver says about itself, often its version.
    pub driver_info: String,
    /// Driver version in the vendor's own packing.
    pub driver_version: u32,
    /// Name of the device.
    pub name: String,
    /// Kind of hardware.
    pub device_type: DeviceType,
    /// Packed Vulkan version; 0 when not said.
    pub api_version: u32,
    /// Subgroups.
    pub subgroup: SubgroupFacts,
    /// Limits.
    pub limits: LimitFacts,
    /// Features by their Vulkan names; one that is missing was not asked for.
    pub features: BTreeMap<String, bool>,
    /// Whether signed dot products of packed 8-bit integers are accelerated.
    pub packed_dot_product: Option<bool>,
    /// Cooperative matrix shapes of subgroups.
    pub cooperative_matrices: Vec<MatrixShape>,
    /// Memory heaps.
    pub heaps: Vec<Heap>,
    /// System of the device, as [`Os`] writes it; empty when not said.
    pub os: String,
}

/// Why a record of capabilities cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("device capabilities cannot be read: {0}")]
pub struct FactsError(#[from] serde_json::Error);

impl Facts {
    /// Reads the JSON that the Vulkan driver records and that `list-devices` shows: `DeviceCaps` of
    /// `drivers/vulkan/src/caps.rs`. The record does not tell the system: set `os` where it is known.
    pub fn from_device_caps_json(text: &str) -> Result<Facts, FactsError> {
        let record: Record = serde_json::from_str(text)?;
        Ok(record.into())
    }

    /// These facts with this system.
    #[must_use]
    pub fn on(mut self, os: Os) -> Facts {
        self.os = os.to_string();
        self
    }

    /// The system; unknown when not said or not known.
    pub fn os(&self) -> Os {
        Os::parse(&self.os).unwrap_or(Os::UNKNOWN)
    }

    /// Whether the device has a feature, by its Vulkan name; `None` when it was not asked for.
    pub fn feature(&self, name: &str) -> Option<bool> {
        self.features.get(name).copied()
    }

    /// The facts that kernels care about, in the form of the table.
    pub fn to_block(&self) -> FactBlock {
        let l = &self.limits;
        let said = |value: u32| (value != 0).then_some(value);
        let said3 = |value: [u32; 3]| (value != [0; 3]).then_some(value);
        let (subgroup_sizes, subgroup_preferred) = self.subgroup_sizes();
        FactBlock {
            sources: vec![format!("reported by the device '{}'", self.name)],
            api_version: said(self.api_version).map(|v| ((v >> 22) & 0x7F, (v >> 12) & 0x3FF)),
            subgroup_sizes,
            subgroup_preferred,
            subgroup_operations: said(self.subgroup.operations).map(SubgroupOps::from_vulkan),
            subgroup_size_control: self.feature("subgroupSizeControl"),
            max_workgroup_invocations: said(l.max_compute_workgroup_invocations),
            max_workgroup_size: said3(l.max_compute_workgroup_size),
            max_workgroup_count: said3(l.max_compute_workgroup_count),
            shared_memory_bytes: said(l.max_compute_shared_memory_size),
            max_push_constants_bytes: said(l.max_push_constants_size),
            max_storage_buffer_bytes: (l.max_storage_buffer_range != 0).then_some(l.max_storage_buffer_range),
            max_storage_buffers: l.storage_buffers(),
            storage_8bit: self.feature("storageBuffer8BitAccess"),
            storage_16bit: self.feature("storageBuffer16BitAccess"),
            int8: self.feature("shaderInt8"),
            int16: self.feature("shaderInt16"),
            int64: self.feature("shaderInt64"),
            float16: self.feature("shaderFloat16"),
            float64: self.feature("shaderFloat64"),
            bfloat16: self.feature("shaderBFloat16Type"),
            integer_dot_product: self.feature("shaderIntegerDotProduct"),
            packed_dot_product: self.packed_dot_product,
            buffer_device_address: self.feature("bufferDeviceAddress"),
            vulkan_memory_model: self.feature("vulkanMemoryModel"),
            cooperative_matrix: self.matrix_shapes(),
            unified_memory: self.unified_memory(),
            ..FactBlock::default()
        }
    }

    /// Sizes that kernels can run with, and the one they get when they ask for nothing.
    fn subgroup_sizes(&self) -> (Option<Vec<u32>>, Option<u32>) {
        let s = &self.subgroup;
        if s.size == 0 {
            return (None, None);
        }
        if self.feature("subgroupSizeControl") != Some(true) || s.min_size == 0 {
            return (Some(vec![s.size]), Some(s.size));
        }
        let powers = (0..31).map(|bit| 1_u32 << bit);
        let sizes: Vec<u32> = powers.filter(|size| (s.min_size..=s.max_size).contains(size)).collect();
        (Some(if sizes.is_empty() { vec![s.size] } else { sizes }), Some(s.size))
    }

    fn matrix_shapes(&self) -> Option<Vec<MatrixShape>> {
        match self.feature("cooperativeMatrix")? {
            true => Some(self.cooperative_matrices.clone()),
            false => Some(Vec::new()),
        }
    }

    fn unified_memory(&self) -> Option<bool> {
        match self.device_type {
            DeviceType::Integrated | DeviceType::Cpu => Some(true),
            DeviceType::Discrete => Some(false),
            // Only the device's own memory is left when nothing is the host's alone.
            _ if self.heaps.is_empty() => None,
            _ => Some(self.heaps.iter().all(|h| h.device_local)),
        }
    }
}

/// The parts of the Vulkan driver's `DeviceCaps` that are used here.
#[derive(Deserialize)]
struct Record {
    name: String,
    vendor_id: u32,
    device_id: u32,
    device_type: DeviceType,
    api_version: u32,
    driver_version: u32,
    driver_id: u32,
    driver_name: String,
    driver_info: String,
    limits: LimitFacts,
    subgroup: SubgroupFacts,
    features: BTreeMap<String, bool>,
    #[serde(default)]
    dot_product: RecordDot,
    #[serde(default)]
    cooperative_matrices: Vec<RecordShape>,
    memory: RecordMemory,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordDot {
    packed_4x8_signed: bool,
}

#[derive(Deserialize)]
struct RecordShape {
    m: u32,
    n: u32,
    k: u32,
    a_type: u32,
    b_type: u32,
    c_type: u32,
    result_type: u32,
    saturating: bool,
    scope: u32,
}

#[derive(Deserialize)]
struct RecordMemory {
    heaps: Vec<Heap>,
}

impl RecordShape {
    /// The shape, if a subgroup multiplies it with types that kernels use.
    fn shape(&self) -> Option<MatrixShape> {
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

impl From<Record> for Facts {
    fn from(r: Record) -> Facts {
        Facts {
            vendor_id: r.vendor_id,
            device_id: r.device_id,
            driver_id: r.driver_id,
            driver_name: r.driver_name,
            driver_info: r.driver_info,
            driver_version: r.driver_version,
            name: r.name,
            device_type: r.device_type,
            api_version: r.api_version,
            subgroup: r.subgroup,
            limits: r.limits,
            features: r.features,
            packed_dot_product: Some(r.dot_product.packed_4x8_signed),
            cooperative_matrices: r.cooperative_matrices.iter().filter_map(RecordShape::shape).collect(),
            heaps: r.memory.heaps,
            os: String::new(),
        }
    }
}
