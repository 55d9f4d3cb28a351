//! Plans for recorded devices: no GPU needed.

use super::*;
use halite_facts::driver_id;

use crate::options::{DispatchAbiChoice, MemoryChoice};

/// The facts that were recorded from, or written after, a device: `tests/caps/<name>.json`.
pub(crate) fn recorded(name: &str) -> DeviceFacts {
    let path = format!("{}/tests/caps/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    DeviceFacts::from_json(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The plan for a recorded device.
pub(crate) fn planned(name: &str, options: &VulkanOptions) -> Result<DevicePlan, PlanError> {
    let facts = recorded(name);
    DevicePlan::new(&facts, options, &Workarounds::for_device(&facts))
}

fn default_plan(name: &str) -> DevicePlan {
    planned(name, &VulkanOptions::default()).unwrap()
}

fn with_abi(dispatch_abi: DispatchAbiChoice) -> VulkanOptions {
    VulkanOptions { dispatch_abi, ..VulkanOptions::default() }
}

#[test]
fn llvmpipe_does_everything() {
    let plan = planned("llvmpipe", &with_abi(DispatchAbiChoice::All)).unwrap();
    assert_eq!(plan.abis, DispatchAbis { descriptors: true, buffer_device_address: true });
    assert!(plan.synchronization2 && plan.push_descriptors >= 16 && plan.workarounds.is_empty());
    assert_eq!(plan.memory.strategy, MemoryStrategy::Unified);
    assert!(plan.features.has(Feature::TimelineSemaphore));
}

#[test]
fn kernels_on_a_processor_take_device_addresses_only_when_asked() {
    let plan = default_plan("llvmpipe");
    assert_eq!(plan.abis.formats(), ["vulkan-spirv-fb"]);
    assert!(
        !plan.features.has(Feature::BufferDeviceAddress),
        "a kernel that forges addresses must not be built either"
    );
    let refused = plan.refused.expect("the device could run them");
    assert!(refused.formats.iter().any(|f| f == "vulkan-spirv-bda-v1") && !refused.default_allows);
    for choice in [DispatchAbiChoice::All, DispatchAbiChoice::BufferDeviceAddress] {
        let plan = planned("llvmpipe", &with_abi(choice)).unwrap();
        assert!(plan.abis.buffer_device_address && plan.refused.is_none());
    }
    // A GPU keeps addresses within its own memory; SwiftShader cannot run such kernels, whatever is asked.
    assert_eq!(default_plan("nvidia_h200").refused, None);
    assert_eq!(default_plan("swiftshader").refused, None);
}

#[test]
fn swiftshader_gets_no_device_addresses() {
    let plan = default_plan("swiftshader");
    assert!(plan.abis.descriptors && !plan.abis.buffer_device_address);
    assert!(!plan.features.has(Feature::BufferDeviceAddress));
    assert_eq!(
        plan.workarounds.iter().map(|w| w.name).collect::<Vec<_>>(),
        ["swiftshader-no-bda", "swiftshader-growing-cache", "swiftshader-forks"]
    );
    for choice in [DispatchAbiChoice::BufferDeviceAddress, DispatchAbiChoice::All] {
        let e = planned("swiftshader", &with_abi(choice)).unwrap_err().to_string();
        assert!(e.contains("dispatch_abi=") && e.contains("dispatch_abi=descriptors"), "{e}");
    }
}

#[test]
fn h200_is_staged_with_both_abis_on_a_compute_queue() {
    let facts = recorded("nvidia_h200");
    let plan = default_plan("nvidia_h200");
    assert!(plan.abis.descriptors && plan.abis.buffer_device_address && plan.split_unaligned_fills);
    assert_eq!(plan.memory.strategy, MemoryStrategy::Staged);
    assert!(plan.features.has(Feature::TimelineSemaphore) && plan.push_descriptors == 32);
    let family = &facts.queue_families[plan.queues[0].family as usize];
    assert!(!family.graphics(), "a dedicated compute family is there and preferred");
}

#[test]
fn the_abi_option_is_obeyed() {
    let plan = planned("llvmpipe", &with_abi(DispatchAbiChoice::Descriptors)).unwrap();
    assert!(!plan.abis.buffer_device_address && !plan.features.has(Feature::BufferDeviceAddress));
    let plan = planned("llvmpipe", &with_abi(DispatchAbiChoice::BufferDeviceAddress)).unwrap();
    assert!(!plan.abis.descriptors && plan.features.has(Feature::BufferDeviceAddress));
    let mut facts = recorded("llvmpipe");
    facts.features.set(Feature::ShaderInt64, false);
    let plan = DevicePlan::new(&facts, &VulkanOptions::default(), &Workarounds::default()).unwrap();
    assert!(!plan.abis.buffer_device_address, "addresses are 64-bit integers in such kernels");
}

#[test]
fn fences_stand_in_for_timeline_semaphores() {
    let with = |timeline| VulkanOptions { timeline, ..VulkanOptions::default() };
    let plan = default_plan("mali_g78_no_timeline");
    assert!(plan.timeline == TimelineKind::Emulated && !plan.features.has(Feature::TimelineSemaphore));
    let e = planned("mali_g78_no_timeline", &with(TimelineChoice::Native)).unwrap_err().to_string();
    assert!(e.contains("timeline=native") && e.contains("VK_KHR_timeline_semaphore"), "{e}");
    assert_eq!(default_plan("mali_g78").timeline, TimelineKind::Native);
    let plan = planned("mali_g78", &with(TimelineChoice::Emulated)).unwrap();
    assert!(plan.timeline == TimelineKind::Emulated && !plan.features.has(Feature::TimelineSemaphore));
    assert!(!plan.extensions.contains(&"VK_KHR_timeline_semaphore"), "{:?}", plan.extensions);
}

#[test]
fn vulkan_1_1_works_through_extensions() {
    let facts = recorded("mali_g78");
    assert!(facts.api_version < VERSION_1_2);
    let plan = default_plan("mali_g78");
    for name in ["VK_KHR_timeline_semaphore", "VK_KHR_8bit_storage", "VK_KHR_shader_float16_int8"] {
        assert!(plan.extensions.contains(&name), "{name} missing from {:?}", plan.extensions);
    }
    assert!(!plan.extensions.contains(&"VK_KHR_16bit_storage"), "core in 1.1");
    assert!(!plan.synchronization2 && !plan.abis.buffer_device_address);
    assert_eq!(plan.memory.strategy, MemoryStrategy::Unified);
    assert_eq!(plan.subgroup.required_sizes, None);
}

#[test]
fn every_plan_asks_only_for_what_the_device_has() {
    for name in RECORDED {
        let facts = recorded(name);
        for robust_buffer_access in [None, Some(false), Some(true)] {
            let options = VulkanOptions { robust_buffer_access, ..VulkanOptions::default() };
            let Ok(plan) = planned(name, &options) else { continue };
            for extension in &plan.extensions {
                assert!(facts.has_extension(extension), "{name}: {extension}");
            }
            for feature in plan.features.iter() {
                assert!(facts.features.has(feature), "{name}: {feature:?}");
            }
            assert!(plan.extensions.is_sorted() && !plan.queues.is_empty());
            assert!(plan.queues.iter().all(|q| facts.queue_families[q.family as usize].compute()));
        }
    }
}

const RECORDED: &[&str] = &[
    "llvmpipe",
    "swiftshader",
    "mali_g78",
    "mali_g78_no_timeline",
    "adreno_740",
    "intel_integrated",
    "discrete_rebar",
];

#[test]
fn recorded_files_survive_a_round_trip() {
    for name in RECORDED {
        let facts = recorded(name);
        assert_eq!(DeviceFacts::from_json(&facts.to_json()).unwrap(), facts, "{name}");
        assert!(facts.extensions.is_sorted(), "{name}");
    }
}

#[test]
fn adreno_has_subgroup_control_and_one_universal_family() {
    let plan = default_plan("adreno_740");
    assert_eq!(plan.subgroup.required_sizes, Some((64, 128)));
    assert!(
        plan.subgroup.can_require(64) && !plan.subgroup.can_require(32) && !plan.subgroup.can_require(96)
    );
    assert_eq!(plan.queues, [QueuePlan { family: 0, index: 0 }]);
    assert_eq!(plan.memory.strategy, MemoryStrategy::Unified);
}

#[test]
fn discrete_devices_stage_and_keep_a_window() {
    let plan = default_plan("discrete_rebar");
    assert_eq!(plan.memory.strategy, MemoryStrategy::Staged);
    assert!(plan.memory.upload_window > 1 << 32);
    let mut facts = recorded("discrete_rebar");
    let window = facts.memory.types.iter().position(|t| t.device_local() && t.host_visible()).unwrap();
    facts.memory.heaps.push(halite_facts::MemoryHeap { size: 256 << 20, device_local: true });
    facts.memory.types[window].heap = 2;
    let plan = DevicePlan::new(&facts, &VulkanOptions::default(), &Workarounds::default()).unwrap();
    assert_eq!(plan.memory.upload_window, 0, "the classic window is left to others");
}

#[test]
fn the_memory_option_is_obeyed() {
    let options = |memory| VulkanOptions { memory, ..VulkanOptions::default() };
    let plan = planned("llvmpipe", &options(MemoryChoice::Staged)).unwrap();
    assert_eq!(plan.memory.strategy, MemoryStrategy::Staged);
    let plan = planned("discrete_rebar", &options(MemoryChoice::Unified)).unwrap();
    assert_eq!(plan.memory.strategy, MemoryStrategy::Unified);
    let mut facts = recorded("discrete_rebar");
    facts.memory.types.retain(|t| !(t.device_local() && t.host_visible()));
    let e = DevicePlan::new(&facts, &options(MemoryChoice::Unified), &Workarounds::default()).unwrap_err();
    assert!(e.to_string().contains("memory=unified"), "{e}");
}

#[test]
fn queue_families() {
    let plan = default_plan("discrete_rebar");
    assert_eq!(plan.queues, [QueuePlan { family: 2, index: 0 }], "compute without graphics");
    let options = VulkanOptions { dedicated_compute_queue: false, queues: 8, ..VulkanOptions::default() };
    let plan = planned("discrete_rebar", &options).unwrap();
    assert_eq!((plan.queues[0].family, plan.queues.len()), (0, 8));
    let mut facts = recorded("discrete_rebar");
    facts.queue_families.iter_mut().for_each(|f| f.flags &= !2);
    let e = DevicePlan::new(&facts, &VulkanOptions::default(), &Workarounds::default()).unwrap_err();
    assert!(matches!(e, PlanError::NoComputeQueue { families: 3, .. }), "{e}");
}

#[test]
fn fallbacks_can_be_forced() {
    let options =
        VulkanOptions { push_descriptors: false, synchronization2: false, ..VulkanOptions::default() };
    let plan = planned("llvmpipe", &options).unwrap();
    assert_eq!((plan.push_descriptors, plan.synchronization2), (0, false));
    assert!(
        !plan.extensions.contains(&"VK_KHR_push_descriptor") && !plan.features.has(Feature::Synchronization2)
    );
}

#[test]
fn robustness_takes_the_strictest_there_is() {
    let options = VulkanOptions { robust_buffer_access: Some(true), ..VulkanOptions::default() };
    let plan = planned("llvmpipe", &options).unwrap();
    assert!(plan.features.has(Feature::RobustBufferAccess) && plan.robustness != Robustness::Off);
    let mut facts = recorded("llvmpipe");
    facts.features.set(Feature::RobustBufferAccess2, false);
    let plan = DevicePlan::new(&facts, &options, &Workarounds::default()).unwrap();
    assert_eq!(plan.robustness, Robustness::Basic);
    facts.features.set(Feature::RobustBufferAccess, false);
    let e = DevicePlan::new(&facts, &options, &Workarounds::default()).unwrap_err();
    assert!(e.to_string().contains("robust_buffer_access=on"), "{e}");
}

#[test]
fn kernels_on_the_processor_are_bounds_checked_unless_told_otherwise() {
    let robustness = |facts: &DeviceFacts, robust_buffer_access| {
        let options = VulkanOptions { robust_buffer_access, ..VulkanOptions::default() };
        DevicePlan::new(facts, &options, &Workarounds::default()).unwrap().robustness
    };
    let mut facts = recorded("swiftshader");
    assert_ne!(robustness(&facts, None), Robustness::Off);
    assert_eq!(robustness(&facts, Some(false)), Robustness::Off);
    facts.device_type = DeviceType::Discrete;
    assert_eq!(robustness(&facts, None), Robustness::Off);
    facts.device_type = DeviceType::Cpu;
    facts.features.set(Feature::RobustBufferAccess, false);
    assert_eq!(robustness(&facts, None), Robustness::Off, "a default never makes opening fail");
}

#[test]
fn old_devices_are_refused_by_version() {
    let mut facts = recorded("mali_g78");
    facts.api_version = halite_facts::api_version(1, 0, 61);
    let e = DevicePlan::new(&facts, &VulkanOptions::default(), &Workarounds::default()).unwrap_err();
    assert!(e.to_string().contains("Vulkan 1.0.61"), "{e}");
}

#[test]
fn versions_print_as_vendors_write_them() {
    let mut facts = recorded("llvmpipe");
    facts.driver_id = driver_id::NVIDIA_PROPRIETARY;
    facts.driver_version = (570 << 22) | (86 << 14) | (10 << 6);
    assert_eq!(facts.driver_version_text(), "570.86.10");
}
