//! What is told about a device beside its first facts: points for choosing it, and long lists for bug reports.

use halite_facts::{
    ComponentType, CooperativeMatrixProperties, DeviceFacts, Feature, MemoryTypeFacts, QueueFamily,
    VERSION_1_3,
};
use halite_hal::{InfoGroup, ScoreItem};

use crate::plan::DevicePlan;

/// Points for each GiB of the device's own memory, and the most that memory can give.
const POINTS_PER_GIB: u64 = 1;
const MEMORY_POINTS: u64 = 400;

/// Features that let kernels be fast or run at all: (feature, points, what it is good for).
const FEATURE_POINTS: &[(Feature, i64, &str)] = &[
    (Feature::CooperativeMatrix, 60, "matrix units"),
    (Feature::ShaderFloat16, 30, "half-precision arithmetic"),
    (Feature::StorageBuffer16BitAccess, 20, "16-bit storage"),
    (Feature::ShaderInt8, 20, "8-bit arithmetic"),
    (Feature::StorageBuffer8BitAccess, 20, "8-bit storage"),
    (Feature::ShaderInt64, 20, "64-bit integers"),
    (Feature::ShaderIntegerDotProduct, 10, "integer dot products"),
    (Feature::SubgroupSizeControl, 20, "kernels for other subgroup sizes"),
    (Feature::BufferDeviceAddress, 10, "kernels that take addresses"),
];

/// What speaks for a device and against it, beside its kind.
pub(crate) fn score(facts: &DeviceFacts, plan: Option<&DevicePlan>) -> Vec<ScoreItem> {
    let item = |points: i64, reason: String| ScoreItem { points, reason };
    let gib = facts.memory.heaps.iter().filter(|h| h.device_local).map(|h| h.size).max().unwrap_or(0) >> 30;
    let points = (gib * POINTS_PER_GIB).min(MEMORY_POINTS);
    let mut items = vec![item(points as i64, format!("{gib} GiB of device memory"))];
    if facts.api_version >= VERSION_1_3 {
        items.push(item(20, format!("Vulkan {}", facts.api_version_text())));
    }
    // A feature that a workaround takes away is worth nothing.
    let features = plan.map_or(facts.features.present(), |plan| plan.features);
    let present = FEATURE_POINTS.iter().filter(|(feature, _, _)| features.has(*feature));
    let reason = |feature: Feature, use_of: &str| format!("{}: {use_of}", feature.vulkan_name());
    items.extend(present.map(|(feature, points, use_of)| item(*points, reason(*feature, use_of))));
    let faults = plan.map_or(&[][..], |plan| &plan.workarounds);
    items.extend(faults.iter().map(|fault| item(-10, format!("workaround {}", fault.name))));
    items
}

/// Everything that planning looks at, by subject.
pub(crate) fn groups(facts: &DeviceFacts) -> Vec<InfoGroup> {
    vec![
        group("limits", limits(facts)),
        group("features", facts.features.iter().map(|(feature, has)| flag(feature, has)).collect()),
        group("memory", memory(facts)),
        group(
            "queues",
            facts.queue_families.iter().enumerate().map(|(i, q)| (i.to_string(), queue(q))).collect(),
        ),
        group("matrices", facts.cooperative_matrices.iter().map(|m| (shape(m), components(m))).collect()),
        group("extensions", facts.extensions.iter().map(|name| (name.clone(), String::new())).collect()),
    ]
}

fn group(title: &str, entries: Vec<(String, String)>) -> InfoGroup {
    InfoGroup { title: title.to_owned(), entries }
}

fn flag(feature: Feature, on: bool) -> (String, String) {
    (feature.vulkan_name().to_owned(), if on { "yes" } else { "no" }.to_owned())
}

/// The limits under the names of their fields, as the recorded capability files have them.
fn limits(facts: &DeviceFacts) -> Vec<(String, String)> {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(facts.limits) else {
        return Vec::new();
    };
    fields.into_iter().map(|(name, value)| (name, value.to_string())).collect()
}

fn memory(facts: &DeviceFacts) -> Vec<(String, String)> {
    let heaps = facts.memory.heaps.iter().enumerate().map(|(i, heap)| {
        let owner = if heap.device_local { "device-local" } else { "host" };
        (format!("heap {i}"), format!("{} bytes, {owner}", heap.size))
    });
    let types = facts
        .memory
        .types
        .iter()
        .enumerate()
        .map(|(i, kind)| (format!("type {i}"), format!("heap {}, {}", kind.heap, memory_flags(kind))));
    heaps.chain(types).collect()
}

fn memory_flags(kind: &MemoryTypeFacts) -> String {
    let known = [
        (kind.device_local(), "device-local"),
        (kind.host_visible(), "host-visible"),
        (kind.host_coherent(), "host-coherent"),
        (kind.host_cached(), "host-cached"),
    ];
    let mut names: Vec<String> = known.into_iter().filter(|(on, _)| *on).map(|(_, n)| n.to_owned()).collect();
    let others = kind.flags & !MemoryTypeFacts::ORDINARY;
    names.extend((others != 0).then(|| format!("{others:#x}")));
    if names.is_empty() { "no property".to_owned() } else { names.join(" ") }
}

/// `VkQueueFlagBits` by name.
const QUEUE_FLAGS: &[(u32, &str)] = &[
    (0x1, "graphics"),
    (0x2, "compute"),
    (0x4, "transfer"),
    (0x8, "sparse-binding"),
    (0x10, "protected"),
    (0x20, "video-decode"),
    (0x40, "video-encode"),
    (0x100, "optical-flow"),
];

fn queue(family: &QueueFamily) -> String {
    let flags: Vec<&str> =
        QUEUE_FLAGS.iter().filter(|(bit, _)| family.flags & bit != 0).map(|(_, name)| *name).collect();
    format!("{} queues, {}, {} timestamp bits", family.count, flags.join(" "), family.timestamp_valid_bits)
}

fn shape(m: &CooperativeMatrixProperties) -> String {
    format!("{}x{}x{}", m.m, m.n, m.k)
}

fn components(m: &CooperativeMatrixProperties) -> String {
    let [a, b, c, d] = [m.a_type, m.b_type, m.c_type, m.result_type].map(component);
    let saturating = if m.saturating { ", saturating" } else { "" };
    format!("{a} x {b} + {c} -> {d}, scope {}{saturating}", m.scope)
}

/// `VkComponentTypeKHR` by name.
fn component(number: u32) -> String {
    ComponentType::from_vulkan(number)
        .map_or_else(|| format!("type {number}"), |known| known.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{options::VulkanOptions, plan::tests::recorded, workarounds::Workarounds};

    fn total(name: &str) -> i64 {
        let facts = recorded(name);
        let plan = DevicePlan::new(&facts, &VulkanOptions::default(), &Workarounds::for_device(&facts)).ok();
        score(&facts, plan.as_ref()).iter().map(|item| item.points).sum()
    }

    #[test]
    fn what_kernels_need_gives_points() {
        assert!(total("nvidia_h200") > total("llvmpipe"));
        assert!(
            total("llvmpipe") > total("swiftshader"),
            "SwiftShader has no 8-bit, 16-bit and 64-bit types"
        );
    }

    #[test]
    fn faults_count_against_a_device_and_say_so() {
        let facts = recorded("swiftshader");
        let plan = DevicePlan::new(&facts, &VulkanOptions::default(), &Workarounds::for_device(&facts)).ok();
        let items = score(&facts, plan.as_ref());
        assert!(
            items.iter().any(|i| i.points < 0 && i.reason == "workaround swiftshader-no-bda"),
            "{items:?}"
        );
        assert!(!items.iter().any(|i| i.reason.starts_with("bufferDeviceAddress")), "taken away: {items:?}");
    }

    #[test]
    fn groups_hold_all_that_was_asked() {
        let facts = recorded("nvidia_h200");
        let groups = groups(&facts);
        let of = |title: &str| &groups.iter().find(|g| g.title == title).unwrap().entries;
        assert_eq!(of("features").len(), facts.features.iter().count());
        assert_eq!(of("extensions").len(), facts.extensions.len());
        assert_eq!(of("queues").len(), facts.queue_families.len());
        assert_eq!(of("memory").len(), facts.memory.heaps.len() + facts.memory.types.len());
        assert!(of("queues").iter().any(|(_, text)| text.contains("compute")));
        assert!(of("limits").iter().any(|(name, _)| name == "max_compute_shared_memory_size"));
        assert!(of("matrices").iter().any(|(shape, what)| shape == "16x16x16" && what.contains("f16 x f16")));
    }
}
