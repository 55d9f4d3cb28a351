//! Every decision about how a device is opened, as pure functions from facts and options to plain data.

mod memory;
mod queues;

use halite_abi::{descriptor::COMPUTE_STAGE, format};
use halite_facts::{DeviceFacts, DeviceType, Feature, FeatureSet, VERSION_1_1, VERSION_1_2, VERSION_1_3};
use halite_hal::UnconfinedCode;
use thiserror::Error;

use crate::{
    external,
    options::{DispatchAbiChoice, TimelineChoice, VulkanOptions},
    probe::features::required_extensions,
    workarounds::{Avoid, Workaround, Workarounds},
};

pub use crate::external::ExternalPlan;
pub use memory::{MemoryPlan, MemoryStrategy};
pub use queues::QueuePlan;

/// Why a device cannot be opened with the given options.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The device's Vulkan version is too low.
    #[error(
        "device '{device}' has Vulkan {version}, and 1.1 is the lowest that works; a newer driver may help"
    )]
    OldVersion {
        /// The device's name.
        device: String,
        /// Its version.
        version: String,
    },
    /// No queue family can dispatch.
    #[error("device '{device}' has no queue family with compute among {families}; choose another device")]
    NoComputeQueue {
        /// The device's name.
        device: String,
        /// Number of its queue families.
        families: usize,
    },
    /// An option asks for what the device cannot do.
    #[error("option {option} cannot be met on device '{device}': {reason}")]
    Option {
        /// The device's name.
        device: String,
        /// The option as `name=value`.
        option: &'static str,
        /// Why not, and what else can be chosen.
        reason: String,
    },
}

/// The dispatch ABIs that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchAbis {
    /// Buffers come through descriptor sets.
    pub descriptors: bool,
    /// Buffers come as device addresses.
    pub buffer_device_address: bool,
}

impl DispatchAbis {
    /// Formats of executables that run through these ABIs, best first.
    pub fn formats(self) -> Vec<&'static str> {
        let both = self.descriptors && self.buffer_device_address;
        let mut formats = Vec::new();
        let [with_descriptors, versioned, raw] = ADDRESS_FORMATS;
        formats.extend(self.descriptors.then_some(format::VULKAN_SPIRV));
        formats.extend(both.then_some(with_descriptors));
        formats.extend(self.buffer_device_address.then_some(versioned));
        formats.extend(self.buffer_device_address.then_some(raw));
        formats
    }
}

/// Formats whose kernels may take device addresses.
const ADDRESS_FORMATS: [&str; 3] =
    [format::VULKAN_SPIRV_PTR, format::VULKAN_SPIRV_BDA, format::VULKAN_SPIRV_BDA_RAW];

/// Kernels that take device addresses, on devices where nothing keeps those within the program's buffers: there the
/// device's memory is the process's own, and no hardware stands between a kernel and the rest of it. `None` where an
/// option cannot allow them, or where they are confined by the device.
pub fn unconfined_code(facts: &DeviceFacts, workarounds: &Workarounds) -> Option<UnconfinedCode> {
    let unconfined = facts.device_type == DeviceType::Cpu && no_addresses(facts, workarounds).is_none();
    unconfined.then(|| UnconfinedCode {
        formats: ADDRESS_FORMATS.map(str::to_owned).to_vec(),
        reason: "its kernels take device addresses, and on a processor nothing keeps those from reading and writing \
                 all memory of the program"
            .to_owned(),
        option: "dispatch_abi".to_owned(),
        allow: "all".to_owned(),
        refuse: "descriptors".to_owned(),
        default_allows: false,
    })
}

/// What may be asked of subgroups in compute pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubgroupPlan {
    /// Size when nothing is asked for.
    pub default_size: u32,
    /// Smallest and largest size that a pipeline may require; `None` when it may not require any.
    pub required_sizes: Option<(u32, u32)>,
    /// Whether a pipeline may require full subgroups.
    pub full_subgroups: bool,
}

impl SubgroupPlan {
    /// Whether a pipeline may require exactly this size.
    pub fn can_require(&self, size: u32) -> bool {
        size.is_power_of_two()
            && self.required_sizes.is_some_and(|(least, most)| (least..=most).contains(&size))
    }
}

/// How queues count what has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineKind {
    /// With timeline semaphores.
    Native,
    /// With a fence for each submission, and semaphores between queues.
    Emulated,
}

/// How out-of-range accesses of kernels are kept harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Robustness {
    /// Not by the device.
    Off,
    /// By `robustBufferAccess`: they stay inside the buffer's memory.
    Basic,
    /// By `robustBufferAccess2`: reads give zero, writes vanish.
    Strict,
}

/// How a device is opened and used.
#[derive(Clone, Debug, PartialEq)]
pub struct DevicePlan {
    /// Features to enable.
    pub features: FeatureSet,
    /// Extensions to enable, sorted.
    pub extensions: Vec<&'static str>,
    /// Queues to open, at least one; index n is the HAL's queue n.
    pub queues: Vec<QueuePlan>,
    /// Dispatch ABIs that may be used.
    pub abis: DispatchAbis,
    /// Code that the device could run and does not, because nobody asked for it.
    pub refused: Option<UnconfinedCode>,
    /// Descriptors that may be pushed at once; 0 when descriptors must come from pools.
    pub push_descriptors: u32,
    /// Whether `vkCmdPipelineBarrier2` and `vkQueueSubmit2` may be used.
    pub synchronization2: bool,
    /// How queues count what has finished.
    pub timeline: TimelineKind,
    /// How host and device exchange data.
    pub memory: MemoryPlan,
    /// Kinds of memory that are shared with others.
    pub external: Vec<ExternalPlan>,
    /// What may be asked of subgroups.
    pub subgroup: SubgroupPlan,
    /// Bounds checks of buffer accesses.
    pub robustness: Robustness,
    /// Whether fills that begin at no multiple of 16 bytes are done in two steps.
    pub split_unaligned_fills: bool,
    /// Whether a persistent pipeline cache may be used.
    pub pipeline_cache: bool,
    /// Why kernels in which 16-bit floats occur are refused, where they are.
    pub no_halves: Option<&'static str>,
    /// Driver faults that were steered around.
    pub workarounds: Vec<&'static Workaround>,
}

impl DevicePlan {
    /// Decides how to open a device. Pure: the same inputs give the same plan.
    pub fn new(
        facts: &DeviceFacts,
        options: &VulkanOptions,
        workarounds: &Workarounds,
    ) -> Result<DevicePlan, PlanError> {
        if facts.api_version < VERSION_1_1 {
            return Err(PlanError::OldVersion {
                device: facts.name.clone(),
                version: facts.api_version_text(),
            });
        }
        let timeline = choose_timeline(facts, options)?;
        let queues = queues::choose(facts, options)?;
        let memory = memory::choose(facts, options)?;
        let abis = choose_abis(facts, options, workarounds)?;
        let (robustness, features) = choose_features(facts, options, abis, workarounds)?;
        let features = features.with(Feature::TimelineSemaphore, timeline == TimelineKind::Native);
        let push_descriptors = push_descriptors(facts, options, workarounds);
        let external = external::plan(facts);
        Ok(DevicePlan {
            extensions: extensions(facts, features, push_descriptors > 0, &external),
            external,
            queues,
            refused: unconfined_code(facts, workarounds).filter(|_| !abis.buffer_device_address),
            abis,
            push_descriptors,
            synchronization2: features.has(Feature::Synchronization2),
            timeline,
            memory,
            subgroup: subgroup(facts, features),
            robustness,
            split_unaligned_fills: workarounds.find(Avoid::UnalignedFill).is_some(),
            pipeline_cache: workarounds.find(Avoid::PipelineCache).is_none(),
            no_halves: workarounds.find(Avoid::Halves).map(|fault| fault.reason),
            workarounds: workarounds.applied().to_vec(),
            features,
        })
    }

    /// The decisions for people and bug reports, in display order.
    pub fn facts(&self) -> Vec<(String, String)> {
        let mut abis = Vec::new();
        abis.extend(self.abis.descriptors.then_some("descriptors"));
        abis.extend(self.abis.buffer_device_address.then_some("bda"));
        let faults: Vec<&str> = self.workarounds.iter().map(|w| w.name).collect();
        let family = self.queues.first().map_or(0, |q| q.family);
        let pairs = [
            ("dispatch_abis", abis.join(" ")),
            ("queue_family", family.to_string()),
            ("memory", format!("{:?}", self.memory.strategy).to_lowercase()),
            ("push_descriptors", self.push_descriptors.to_string()),
            ("synchronization2", self.synchronization2.to_string()),
            ("timeline", format!("{:?}", self.timeline).to_lowercase()),
            ("extensions", self.extensions.join(" ")),
            ("workarounds", if faults.is_empty() { "none".to_owned() } else { faults.join(" ") }),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn choose_timeline(facts: &DeviceFacts, options: &VulkanOptions) -> Result<TimelineKind, PlanError> {
    let native = facts.features.has(Feature::TimelineSemaphore);
    match options.timeline {
        TimelineChoice::Native if !native => Err(PlanError::Option {
            device: facts.name.clone(),
            option: "timeline=native",
            reason: "the device has no timelineSemaphore, which comes with Vulkan 1.2 or VK_KHR_timeline_semaphore; leave the \
                     option out, and fences stand in for it"
                .to_owned(),
        }),
        TimelineChoice::Auto | TimelineChoice::Native if native => Ok(TimelineKind::Native),
        _ => Ok(TimelineKind::Emulated),
    }
}

fn choose_abis(
    facts: &DeviceFacts,
    options: &VulkanOptions,
    workarounds: &Workarounds,
) -> Result<DispatchAbis, PlanError> {
    let missing = no_addresses(facts, workarounds);
    let refused = |option: &'static str, reason: String| PlanError::Option {
        device: facts.name.clone(),
        option,
        reason: format!("{reason}; use dispatch_abi=descriptors"),
    };
    let both = DispatchAbis { descriptors: true, buffer_device_address: missing.is_none() };
    match (options.dispatch_abi, missing) {
        (DispatchAbiChoice::Descriptors, _) => Ok(DispatchAbis { buffer_device_address: false, ..both }),
        (DispatchAbiChoice::BufferDeviceAddress, Some(reason)) => Err(refused("dispatch_abi=bda", reason)),
        (DispatchAbiChoice::All, Some(reason)) => Err(refused("dispatch_abi=all", reason)),
        (DispatchAbiChoice::BufferDeviceAddress, None) => Ok(DispatchAbis { descriptors: false, ..both }),
        (DispatchAbiChoice::Auto, _) if unconfined_code(facts, workarounds).is_some() => {
            Ok(DispatchAbis { buffer_device_address: false, ..both })
        }
        (DispatchAbiChoice::Auto | DispatchAbiChoice::All, _) => Ok(both),
    }
}

/// Why kernels cannot take device addresses; `None` when they can.
fn no_addresses(facts: &DeviceFacts, workarounds: &Workarounds) -> Option<String> {
    if !facts.features.has(Feature::BufferDeviceAddress) {
        Some("the device has no bufferDeviceAddress".to_owned())
    } else if !facts.features.has(Feature::ShaderInt64) {
        Some("the device has no shaderInt64".to_owned())
    } else {
        workarounds.find(Avoid::BufferDeviceAddress).map(|w| format!("workaround {}: {}", w.name, w.reason))
    }
}

/// Everything that kernels may use is enabled where the device has it; what costs time or is only for
/// debugging stays off unless it is asked for, but for bounds checks on CPU devices.
fn choose_features(
    facts: &DeviceFacts,
    options: &VulkanOptions,
    abis: DispatchAbis,
    workarounds: &Workarounds,
) -> Result<(Robustness, FeatureSet), PlanError> {
    let mut usable = facts.features.present();
    workarounds.restrict(&mut usable);
    let has = |feature| usable.has(feature);
    let on_cpu = facts.device_type == DeviceType::Cpu && has(Feature::RobustBufferAccess);
    let robustness = match options.robust_buffer_access.unwrap_or(on_cpu) {
        false => Robustness::Off,
        true if has(Feature::RobustBufferAccess) && has(Feature::RobustBufferAccess2) => Robustness::Strict,
        true if has(Feature::RobustBufferAccess) => Robustness::Basic,
        true => {
            return Err(PlanError::Option {
                device: facts.name.clone(),
                option: "robust_buffer_access=on",
                reason: "the device has no robustBufferAccess that may be used; leave the option out"
                    .to_owned(),
            });
        }
    };
    let robust = robustness != Robustness::Off;
    let features = usable
        .with(Feature::RobustBufferAccess, robust)
        .with(Feature::RobustBufferAccess2, robustness == Robustness::Strict)
        .with(
            Feature::CooperativeMatrixRobustBufferAccess,
            robust && has(Feature::CooperativeMatrixRobustBufferAccess),
        )
        .with(Feature::PipelineRobustness, false)
        .with(Feature::NullDescriptor, false)
        .with(Feature::PipelineExecutableInfo, false)
        .with(Feature::BufferDeviceAddress, abis.buffer_device_address)
        .with(Feature::Synchronization2, has(Feature::Synchronization2) && options.synchronization2)
        // Before 1.3 the extension drags in others that compute has no use for.
        .with(Feature::Maintenance5, has(Feature::Maintenance5) && facts.api_version >= VERSION_1_3);
    Ok((robustness, features))
}

fn push_descriptors(facts: &DeviceFacts, options: &VulkanOptions, workarounds: &Workarounds) -> u32 {
    // GPU-assisted validation (seen with layer 1.3.239) reports pushed descriptors as uninitialized and then skips
    // the accesses through them: results are wrong.
    let usable = options.push_descriptors
        && !options.validation.gpu_assisted
        && facts.has_extension(PUSH_DESCRIPTOR)
        && workarounds.find(Avoid::PushDescriptors).is_none();
    if usable { facts.limits.max_push_descriptors } else { 0 }
}

fn subgroup(facts: &DeviceFacts, features: FeatureSet) -> SubgroupPlan {
    let s = &facts.subgroup;
    let sizes = features.has(Feature::SubgroupSizeControl) && s.required_size_stages & COMPUTE_STAGE != 0;
    SubgroupPlan {
        default_size: s.size,
        required_sizes: sizes.then_some((s.min_size, s.max_size)),
        full_subgroups: features.has(Feature::ComputeFullSubgroups),
    }
}

const PUSH_DESCRIPTOR: &str = "VK_KHR_push_descriptor";

/// The specification demands that it is enabled on devices that have it.
const PORTABILITY_SUBSET: &str = "VK_KHR_portability_subset";

/// Extensions that newer versions of Vulkan contain and SPIR-V may name on older ones: (core since, name).
const UNTIL_CORE: &[(u32, &str)] = &[
    (VERSION_1_2, "VK_KHR_spirv_1_4"),
    (VERSION_1_2, "VK_KHR_shader_float_controls"),
    (VERSION_1_3, "VK_KHR_shader_non_semantic_info"),
];

fn extensions(
    facts: &DeviceFacts,
    features: FeatureSet,
    push: bool,
    external: &[ExternalPlan],
) -> Vec<&'static str> {
    let mut names = required_extensions(facts.api_version, features);
    names.extend(external::extensions(facts, external));
    names.extend(push.then_some(PUSH_DESCRIPTOR));
    names.extend(facts.has_extension(PORTABILITY_SUBSET).then_some(PORTABILITY_SUBSET));
    let older =
        UNTIL_CORE.iter().filter(|(core, name)| facts.api_version < *core && facts.has_extension(name));
    names.extend(older.map(|(_, name)| *name));
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
pub(crate) mod tests;
