//! The list of devices: order, paths, and the facts that tools print.

use std::{collections::HashMap, sync::Arc};

use halite_facts::DeviceFacts;
use halite_hal::{DeviceInfo, choice};
use halite_targets::Target;

use crate::{
    describe,
    options::VulkanOptions,
    plan::{DevicePlan, unconfined_code},
    workarounds::Workarounds,
};

/// The index and the facts of each device, in the order in which they are chosen.
pub(crate) fn ordered(devices: &[&DeviceFacts]) -> Vec<(usize, DeviceInfo)> {
    let mut infos: Vec<_> = devices.iter().map(|facts| device_info(facts)).collect();
    let ranking = choice::rank(&infos, &|_| false);
    let mut seen = HashMap::new();
    let place = |ranked: choice::Ranked| {
        let mut info = std::mem::take(&mut infos[ranked.index]);
        info.path = unique(info.path, &mut seen);
        (ranked.index, info)
    };
    ranking.into_iter().map(place).collect()
}

/// Two drivers of one device may give it the same UUID: the second and later ones get `-2`, `-3`, ….
fn unique(path: String, seen: &mut HashMap<String, u32>) -> String {
    let count = seen.entry(path.clone()).or_insert(0);
    *count += 1;
    if *count == 1 { path } else { format!("{path}-{count}") }
}

/// What enumeration says about a device with these facts. The path is `GPU-` and the UUID, as IREE writes it.
fn device_info(facts: &DeviceFacts) -> DeviceInfo {
    let workarounds = Workarounds::for_device(facts);
    let plan = DevicePlan::new(facts, &VulkanOptions::default(), &workarounds);
    let mut properties = first_facts(facts);
    if let Ok(plan) = &plan {
        properties.extend(plan.facts());
    }
    let found = Target::detect(facts);
    let found_by = format!("{}: {}", found.how, found.reasons.join("; "));
    properties.push(("target_found_by".to_owned(), found_by));
    let formats = plan.as_ref().map(|plan| plan.abis.formats()).unwrap_or_default();
    DeviceInfo {
        driver: "vulkan".to_owned(),
        path: format!("GPU-{}", facts.uuid),
        name: facts.name.clone(),
        kind: facts.device_type.into(),
        unusable: plan.as_ref().err().map(ToString::to_string),
        target: Some(found.target.to_string()),
        executable_formats: formats.into_iter().map(str::to_owned).collect(),
        unconfined: unconfined_code(facts, &workarounds).into_iter().collect(),
        score: describe::score(facts, plan.as_ref().ok()),
        external_memory: plan.iter().flat_map(|plan| &plan.external).map(|plan| plan.support).collect(),
        properties,
        groups: describe::groups(facts),
        facts: Some(Arc::new(facts.clone())),
    }
}

fn first_facts(facts: &DeviceFacts) -> Vec<(String, String)> {
    let (l, s) = (&facts.limits, &facts.subgroup);
    let heap = |h: &halite_facts::MemoryHeap| {
        format!("{} MiB{}", h.size >> 20, if h.device_local { " device-local" } else { "" })
    };
    let heaps: Vec<String> = facts.memory.heaps.iter().map(heap).collect();
    let [x, y, z] = l.max_compute_workgroup_size;
    let pairs = [
        ("api_version", facts.api_version_text()),
        ("driver", facts.driver_text()),
        ("driver_version", facts.driver_version_text()),
        ("vendor_id", format!("{:#06x}", facts.vendor_id)),
        ("device_id", format!("{:#06x}", facts.device_id)),
        ("device_uuid", facts.uuid.clone()),
        ("driver_uuid", facts.driver_uuid.clone()),
        ("subgroup", format!("{} ({}..{})", s.size, s.min_size, s.max_size)),
        ("workgroup", format!("{} invocations, {x}x{y}x{z}", l.max_compute_workgroup_invocations)),
        ("shared_memory", format!("{} bytes", l.max_compute_shared_memory_size)),
        ("memory_heaps", heaps.join(", ")),
        ("largest_buffer", size_text(l.max_buffer_size)),
        ("cooperative_matrix_shapes", facts.cooperative_matrices.len().to_string()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn size_text(bytes: u64) -> String {
    if bytes == u64::MAX { "not stated".to_owned() } else { format!("{} MiB", bytes >> 20) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::recorded;

    fn paths(devices: &[&DeviceFacts]) -> Vec<String> {
        ordered(devices).into_iter().map(|(_, info)| info.path).collect()
    }

    #[test]
    fn paths_are_unique() {
        let facts = recorded("llvmpipe");
        let first = format!("GPU-{}", facts.uuid);
        assert_eq!(
            paths(&[&facts, &facts, &facts]),
            [first.clone(), format!("{first}-2"), format!("{first}-3")]
        );
    }

    #[test]
    fn real_gpus_come_first_and_broken_ones_last() {
        let [cpu, gpu, broken] = ["llvmpipe", "intel_integrated", "mali_g78_no_timeline"].map(recorded);
        let broken = DeviceFacts { queue_families: Vec::new(), ..broken };
        let order: Vec<_> = ordered(&[&broken, &cpu, &gpu]).into_iter().map(|(index, _)| index).collect();
        assert_eq!(order, [2, 1, 0]);
    }

    #[test]
    fn a_device_says_why_it_cannot_be_used() {
        let old = recorded("mali_g78_no_timeline");
        assert_eq!(device_info(&old).unusable, None, "fences stand in for timeline semaphores");
        let info = device_info(&DeviceFacts { queue_families: Vec::new(), ..old });
        assert!(info.unusable.is_some_and(|u| u.contains("no queue family with compute")));
        let info = device_info(&recorded("swiftshader"));
        assert_eq!(info.unusable, None);
        let get = |key: &str| info.properties.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        assert_eq!(get("dispatch_abis"), Some("descriptors"));
        assert!(info.target.is_some_and(|t| t.starts_with("cpu-swiftshader-")));
        assert!(get("target_found_by").is_some_and(|t| t.starts_with("exact device id: ")));
        assert_eq!(
            get("workarounds"),
            Some("swiftshader-no-bda swiftshader-growing-cache swiftshader-forks")
        );
    }
}
