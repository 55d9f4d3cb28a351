//! Owns the list of devices: order, paths, and the facts that tools print.

use std::collections::HashMap;

use halite_hal::{DeviceInfo, DeviceKind, choice};

use crate::{
    caps::{DeviceCaps, DeviceType},
    describe,
    options::VulkanOptions,
    plan::{DevicePlan, unconfined_code},
    target,
    workarounds::Workarounds,
};

/// The index and the facts of each device, in the order in which they are chosen.
pub(crate) fn ordered(devices: &[&DeviceCaps]) -> Vec<(usize, DeviceInfo)> {
    let mut infos: Vec<_> = devices.iter().map(|caps| device_info(caps)).collect();
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

/// What enumeration says about a device with these caps. The path is `GPU-` and the UUID, as IREE writes it.
fn device_info(caps: &DeviceCaps) -> DeviceInfo {
    let workarounds = Workarounds::for_device(caps);
    let plan = DevicePlan::new(caps, &VulkanOptions::default(), &workarounds);
    let mut properties = facts(caps);
    if let Ok(plan) = &plan {
        properties.extend(plan.facts());
    }
    let detected = target::detect(caps).inspect_err(|e| log::warn!("device '{}': {e}", caps.name)).ok();
    if let Some(found) = &detected {
        let found_by = format!("{}: {}", found.how, found.reasons.join("; "));
        properties.push(("target_found_by".to_owned(), found_by));
    }
    let formats = plan.as_ref().map(|plan| plan.abis.formats()).unwrap_or_default();
    DeviceInfo {
        driver: "vulkan".to_owned(),
        path: format!("GPU-{}", caps.uuid),
        name: caps.name.clone(),
        kind: match caps.device_type {
            DeviceType::Discrete => DeviceKind::DiscreteGpu,
            DeviceType::Integrated => DeviceKind::IntegratedGpu,
            DeviceType::Virtual => DeviceKind::VirtualGpu,
            DeviceType::Cpu => DeviceKind::Cpu,
            DeviceType::Other => DeviceKind::Other,
        },
        unusable: plan.as_ref().err().map(ToString::to_string),
        target: detected.map(|found| found.target.to_string()),
        executable_formats: formats.into_iter().map(str::to_owned).collect(),
        unconfined: unconfined_code(caps, &workarounds).into_iter().collect(),
        score: describe::score(caps, plan.as_ref().ok()),
        properties,
        groups: describe::groups(caps),
        capabilities: Some(caps.to_json()),
    }
}

fn facts(caps: &DeviceCaps) -> Vec<(String, String)> {
    let (l, s) = (&caps.limits, &caps.subgroup);
    let heap = |h: &crate::caps::MemoryHeap| {
        format!("{} MiB{}", h.size >> 20, if h.device_local { " device-local" } else { "" })
    };
    let heaps: Vec<String> = caps.memory.heaps.iter().map(heap).collect();
    let [x, y, z] = l.max_compute_workgroup_size;
    let pairs = [
        ("api_version", caps.api_version_text()),
        ("driver", caps.driver_text()),
        ("driver_version", caps.driver_version_text()),
        ("vendor_id", format!("{:#06x}", caps.vendor_id)),
        ("device_id", format!("{:#06x}", caps.device_id)),
        ("device_uuid", caps.uuid.clone()),
        ("driver_uuid", caps.driver_uuid.clone()),
        ("subgroup", format!("{} ({}..{})", s.size, s.min_size, s.max_size)),
        ("workgroup", format!("{} invocations, {x}x{y}x{z}", l.max_compute_workgroup_invocations)),
        ("shared_memory", format!("{} bytes", l.max_compute_shared_memory_size)),
        ("memory_heaps", heaps.join(", ")),
        ("largest_buffer", size_text(l.max_buffer_size)),
        ("cooperative_matrix_shapes", caps.cooperative_matrices.len().to_string()),
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

    fn paths(devices: &[&DeviceCaps]) -> Vec<String> {
        ordered(devices).into_iter().map(|(_, info)| info.path).collect()
    }

    #[test]
    fn paths_are_unique() {
        let caps = recorded("llvmpipe");
        let first = format!("GPU-{}", caps.uuid);
        assert_eq!(
            paths(&[&caps, &caps, &caps]),
            [first.clone(), format!("{first}-2"), format!("{first}-3")]
        );
    }

    #[test]
    fn real_gpus_come_first_and_broken_ones_last() {
        let [cpu, gpu, broken] = ["llvmpipe", "intel_integrated", "mali_g78_no_timeline"].map(recorded);
        let order: Vec<_> = ordered(&[&broken, &cpu, &gpu]).into_iter().map(|(index, _)| index).collect();
        assert_eq!(order, [2, 1, 0]);
    }

    #[test]
    fn a_device_says_why_it_cannot_be_used() {
        let info = device_info(&recorded("mali_g78_no_timeline"));
        assert!(info.unusable.is_some_and(|u| u.contains("timelineSemaphore")));
        let info = device_info(&recorded("swiftshader"));
        assert_eq!(info.unusable, None);
        let get = |key: &str| info.properties.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        assert_eq!(get("dispatch_abis"), Some("descriptors"));
        assert!(info.target.is_some_and(|t| t.starts_with("cpu-swiftshader-")));
        assert!(get("target_found_by").is_some_and(|t| t.starts_with("exact device id: ")));
        assert_eq!(get("workarounds"), Some("swiftshader-no-bda swiftshader-growing-cache"));
    }
}
