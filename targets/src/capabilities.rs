//! What kernels may use on a target: the table and a device's facts merged, with the least that Vulkan 1.1 promises where
//! neither knows.

use std::fmt::Write as _;

use halite_facts::{DeviceFacts, Feature, FeatureSet, MatrixShape, SubgroupOps};

use crate::{FactBlock, Target, reported::row_of};

/// Subgroups of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubgroupCapabilities {
    /// Sizes that a kernel can run with, ascending; empty when not known.
    pub sizes: Vec<u32>,
    /// The size that kernels should assume; `None` when not known.
    pub preferred: Option<u32>,
    /// Operations in compute kernels; empty when not known.
    pub operations: SubgroupOps,
}

/// Hints about the hardware, for tuning. They never decide whether a kernel can run. Sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardwareHints {
    /// Units that run workgroups.
    pub compute_units: Option<u32>,
    /// Invocations that a unit keeps in flight.
    pub max_invocations_per_unit: Option<u32>,
    /// Shared memory of a unit, for all its workgroups.
    pub local_memory_per_unit_bytes: Option<u32>,
    /// 32-bit registers of a unit, all lanes counted.
    pub registers_per_unit: Option<u32>,
    /// 32-bit registers that one invocation can have.
    pub max_registers_per_invocation: Option<u32>,
    /// 32-bit fused multiply-adds that a unit starts in a clock.
    pub fp32_fma_per_unit: Option<u32>,
    /// Level 1 data cache of a unit, with shared memory where the hardware keeps both in one.
    pub l1_bytes_per_unit: Option<u32>,
    /// Level 2 cache.
    pub l2_bytes: Option<u64>,
    /// Last cache before memory, where it is another than level 2.
    pub last_level_cache_bytes: Option<u64>,
    /// Bytes that caches move at once.
    pub cache_line_bytes: Option<u32>,
    /// Memory bandwidth in 10^9 bytes a second.
    pub memory_bandwidth_gbps: Option<u32>,
}

/// What kernels may use on a target. A `false` and a small number are safe: they also stand for "not known".
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The target.
    pub target: Target,
    /// Vulkan version (major, minor).
    pub api_version: (u32, u32),
    /// Subgroups.
    pub subgroup: SubgroupCapabilities,
    /// Most invocations in a workgroup.
    pub max_workgroup_invocations: u32,
    /// Largest workgroup in x, y, z.
    pub max_workgroup_size: [u32; 3],
    /// Most workgroups of a dispatch in x, y, z.
    pub max_workgroup_count: [u32; 3],
    /// Bytes of shared memory of a workgroup.
    pub shared_memory_bytes: u32,
    /// Bytes of push constants.
    pub max_push_constants_bytes: u32,
    /// Largest range of a storage buffer binding, in bytes.
    pub max_storage_buffer_bytes: u64,
    /// Storage buffers that a kernel can bind.
    pub max_storage_buffers: u32,
    /// Turns after which the loops of an invocation end, all of them together; `u32::MAX` where nothing ends them.
    pub max_loop_turns: u32,
    /// Features, of those that kernels choose by.
    pub features: FeatureSet,
    /// Whether signed dot products of packed 8-bit integers are fast.
    pub packed_dot_product: bool,
    /// Cooperative matrix shapes of a subgroup.
    pub cooperative_matrix: Vec<MatrixShape>,
    /// Whether host and device share their memory; `None` when not known.
    pub unified_memory: Option<bool>,
    /// For tuning.
    pub hints: HardwareHints,
    /// Where the facts come from.
    pub sources: Vec<String>,
    /// What a reader must know about them.
    pub notes: Vec<String>,
}

/// Storage buffers of a kernel that it never needs more of: what a target has beyond them does not tell it from others.
const MOST_STORAGE_BUFFERS: u32 = 16;

impl Capabilities {
    /// What the table says of a target.
    pub fn of(target: Target) -> Capabilities {
        Capabilities::resolved(target, target.table_facts())
    }

    /// What a device reports, and the table where it reports nothing. The size of subgroups that the table prefers
    /// is kept where the device has it: drivers report a default, not advice.
    pub fn of_device(target: Target, facts: &DeviceFacts) -> Capabilities {
        let table = target.table_facts();
        let advised = table.subgroup_preferred;
        let mut merged = row_of(facts).over(&table);
        if let (Some(size), Some(sizes)) = (advised, &merged.subgroup_sizes)
            && sizes.contains(&size)
        {
            merged.subgroup_preferred = Some(size);
        }
        Capabilities::resolved(target, merged)
    }

    /// Fills in what nobody knows with the required limits of Vulkan 1.1:
    /// <https://registry.khronos.org/vulkan/specs/latest/html/vkspec.html#limits-minmax>.
    fn resolved(target: Target, b: FactBlock) -> Capabilities {
        Capabilities {
            target,
            api_version: b.api_version.unwrap_or((1, 1)),
            hints: hints(&b),
            subgroup: SubgroupCapabilities {
                sizes: b.subgroup_sizes.unwrap_or_default(),
                preferred: b.subgroup_preferred,
                operations: b.subgroup_operations.unwrap_or_default(),
            },
            max_workgroup_invocations: b.max_workgroup_invocations.unwrap_or(128),
            max_workgroup_size: b.max_workgroup_size.unwrap_or([128, 128, 64]),
            max_workgroup_count: b.max_workgroup_count.unwrap_or([65535; 3]),
            shared_memory_bytes: b.shared_memory_bytes.unwrap_or(16384),
            max_push_constants_bytes: b.max_push_constants_bytes.unwrap_or(128),
            max_storage_buffer_bytes: b.max_storage_buffer_bytes.unwrap_or(1 << 27),
            max_storage_buffers: b.max_storage_buffers.unwrap_or(4),
            max_loop_turns: b.max_loop_turns.unwrap_or(u32::MAX),
            features: b.features.present(),
            packed_dot_product: b.packed_dot_product.unwrap_or(false),
            cooperative_matrix: b.cooperative_matrix.unwrap_or_default(),
            unified_memory: b.unified_memory,
            sources: b.sources,
            notes: b.notes,
        }
    }

    /// Whether kernels may use a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// What `wanted` may use and these capabilities lack, each as a phrase; empty when code for `wanted` can run
    /// here. The number of workgroups does not count: drivers split large dispatches.
    pub fn lacks(&self, wanted: &Capabilities) -> Vec<String> {
        let mut missing = self.lacking_features(wanted);
        let mut at_most = |what: &str, has: u64, wants: u64| {
            if wants > has {
                missing.push(format!("{what}: {wants}, here {has}"));
            }
        };
        at_most(
            "workgroup invocations",
            self.max_workgroup_invocations.into(),
            wanted.max_workgroup_invocations.into(),
        );
        for (axis, (has, wants)) in
            "xyz".chars().zip(self.max_workgroup_size.iter().zip(wanted.max_workgroup_size))
        {
            at_most(&format!("workgroup size {axis}"), (*has).into(), wants.into());
        }
        at_most("bytes of shared memory", self.shared_memory_bytes.into(), wanted.shared_memory_bytes.into());
        at_most(
            "bytes of push constants",
            self.max_push_constants_bytes.into(),
            wanted.max_push_constants_bytes.into(),
        );
        at_most(
            "storage buffers",
            self.max_storage_buffers.into(),
            wanted.max_storage_buffers.min(MOST_STORAGE_BUFFERS).into(),
        );
        if wanted.api_version > self.api_version {
            let ((wants, minor), (has, has_minor)) = (wanted.api_version, self.api_version);
            missing.push(format!("Vulkan {wants}.{minor}, here {has}.{has_minor}"));
        }
        if let Some(size) = wanted.subgroup.preferred
            && !self.subgroup.sizes.is_empty()
            && !self.subgroup.sizes.contains(&size)
        {
            missing.push(format!("subgroups of {size}, here {:?}", self.subgroup.sizes));
        }
        missing
    }

    fn lacking_features(&self, wanted: &Capabilities) -> Vec<String> {
        let lacking = wanted.features.without(self.features);
        let mut missing: Vec<String> = lacking.iter().map(|feature| feature.phrase().to_owned()).collect();
        let operations = wanted.subgroup.operations.without(self.subgroup.operations);
        if !operations.is_empty() {
            let names: Vec<&str> = operations.names().collect();
            missing.push(format!("subgroup operations {}", names.join(", ")));
        }
        let shapes = wanted.cooperative_matrix.iter().filter(|s| !self.cooperative_matrix.contains(s));
        let list = shapes.fold(String::new(), |mut list, shape| {
            let comma = if list.is_empty() { "" } else { ", " };
            let _infallible = write!(list, "{comma}{shape}");
            list
        });
        if !list.is_empty() {
            missing.push(format!("cooperative matrices {list}"));
        }
        missing
    }
}

fn hints(b: &FactBlock) -> HardwareHints {
    HardwareHints {
        compute_units: b.compute_units,
        max_invocations_per_unit: b.max_invocations_per_unit,
        local_memory_per_unit_bytes: b.local_memory_per_unit_bytes,
        registers_per_unit: b.registers_per_unit,
        max_registers_per_invocation: b.max_registers_per_invocation,
        fp32_fma_per_unit: b.fp32_fma_per_unit,
        l1_bytes_per_unit: b.l1_bytes_per_unit,
        l2_bytes: b.l2_bytes,
        last_level_cache_bytes: b.last_level_cache_bytes,
        cache_line_bytes: b.cache_line_bytes,
        memory_bandwidth_gbps: b.memory_bandwidth_gbps,
    }
}
