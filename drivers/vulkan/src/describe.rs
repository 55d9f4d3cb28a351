//! Owns what is told about a device beside its first facts: points for choosing it, and long lists for bug reports.
//! Does not own: the facts themselves (`caps`), or weighing devices (`halite_hal::choice`).

use halite_hal::{InfoGroup, ScoreItem};

use crate::{
    caps::{CooperativeMatrixShape, DeviceCaps, Features, MemoryTypeCaps, QueueFamily, VERSION_1_3},
    plan::DevicePlan,
};

/// Points for each GiB of the device's own memory, and the most that memory can give.
const POINTS_PER_GIB: u64 = 1;
const MEMORY_POINTS: u64 = 400;

/// Features that let kernels be fast or run at all: (Vulkan name, points, what it is good for).
const FEATURE_POINTS: &[(&str, i64, &str)] = &[
    ("cooperativeMatrix", 60, "matrix units"),
    ("shaderFloat16", 30, "half-precision arithmetic"),
    ("storageBuffer16BitAccess", 20, "16-bit storage"),
    ("shaderInt8", 20, "8-bit arithmetic"),
    ("storageBuffer8BitAccess", 20, "8-bit storage"),
    ("shaderInt64", 20, "64-bit integers"),
    ("shaderIntegerDotProduct", 10, "integer dot products"),
    ("subgroupSizeControl", 20, "kernels for other subgroup sizes"),
    ("bufferDeviceAddress", 10, "kernels that take addresses"),
];

/// What speaks for a device and against it, beside its kind.
pub(crate) fn score(caps: &DeviceCaps, plan: Option<&DevicePlan>) -> Vec<ScoreItem> {
    let item = |points: i64, reason: String| ScoreItem { points, reason };
    let gib = caps.memory.heaps.iter().filter(|h| h.device_local).map(|h| h.size).max().unwrap_or(0) >> 30;
    let points = (gib * POINTS_PER_GIB).min(MEMORY_POINTS);
    let mut items = vec![item(points as i64, format!("{gib} GiB of device memory"))];
    if caps.api_version >= VERSION_1_3 {
        items.push(item(20, format!("Vulkan {}", caps.api_version_text())));
    }
    // A feature that a workaround takes away is worth nothing.
    let features = plan.map_or(&caps.features, |plan| &plan.features);
    let present = FEATURE_POINTS.iter().filter(|(name, _, _)| features.get(name) == Some(true));
    items.extend(present.map(|(name, points, use_of)| item(*points, format!("{name}: {use_of}"))));
    let faults = plan.map_or(&[][..], |plan| &plan.workarounds);
    items.extend(faults.iter().map(|fault| item(-10, format!("workaround {}", fault.name))));
    items
}

/// Everything that planning looks at, by subject.
pub(crate) fn groups(caps: &DeviceCaps) -> Vec<InfoGroup> {
    vec![
        group("limits", limits(caps)),
        group("features", Features::NAMES.iter().map(|name| flag(name, caps.features.get(name))).collect()),
        group("memory", memory(caps)),
        group(
            "queues",
            caps.queue_families.iter().enumerate().map(|(i, q)| (i.to_string(), queue(q))).collect(),
        ),
        group("matrices", caps.cooperative_matrices.iter().map(|m| (shape(m), components(m))).collect()),
        group("extensions", caps.extensions.iter().map(|name| (name.clone(), String::new())).collect()),
    ]
}

fn group(title: &str, entries: Vec<(String, String)>) -> InfoGroup {
    InfoGroup { title: title.to_owned(), entries }
}

fn flag(name: &str, on: Option<bool>) -> (String, String) {
    (name.to_owned(), if on == Some(true) { "yes" } else { "no" }.to_owned())
}

/// The limits under the names of their fields, as the recorded capability files have them.
fn limits(caps: &DeviceCaps) -> Vec<(String, String)> {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(caps.limits) else {
        return Vec::new();
    };
    fields.into_iter().map(|(name, value)| (name, value.to_string())).collect()
}

fn memory(caps: &DeviceCaps) -> Vec<(String, String)> {
    let heaps = caps.memory.heaps.iter().enumerate().map(|(i, heap)| {
        let owner = if heap.device_local { "device-local" } else { "host" };
        (format!("heap {i}"), format!("{} bytes, {owner}", heap.size))
    });
    let types = caps
        .memory
        .types
        .iter()
        .enumerate()
        .map(|(i, kind)| (format!("type {i}"), format!("heap {}, {}", kind.heap, memory_flags(kind))));
    heaps.chain(types).collect()
}

fn memory_flags(kind: &MemoryTypeCaps) -> String {
    let known = [
        (kind.device_local(), "device-local"),
        (kind.host_visible(), "host-visible"),
        (kind.host_coherent(), "host-coherent"),
        (kind.host_cached(), "host-cached"),
    ];
    let mut names: Vec<String> = known.into_iter().filter(|(on, _)| *on).map(|(_, n)| n.to_owned()).collect();
    let others = kind.flags & !MemoryTypeCaps::ORDINARY;
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

fn shape(m: &CooperativeMatrixShape) -> String {
    format!("{}x{}x{}", m.m, m.n, m.k)
}

fn components(m: &CooperativeMatrixShape) -> String {
    let [a, b, c, d] = [m.a_type, m.b_type, m.c_type, m.result_type].map(component);
    let saturating = if m.saturating { ", saturating" } else { "" };
    format!("{a} x {b} + {c} -> {d}, scope {}{saturating}", m.scope)
}

/// `VkComponentTypeKHR` by name.
fn component(number: u32) -> String {
    const NAMES: [&str; 11] = ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];
    let name = usize::try_from(number).ok().and_then(|n| NAMES.get(n));
    name.map_or_else(|| format!("type {number}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{options::VulkanOptions, plan::tests::recorded, workarounds::Workarounds};

    fn total(name: &str) -> i64 {
        let caps = recorded(name);
        let plan = DevicePlan::new(&caps, &VulkanOptions::default(), &Workarounds::for_device(&caps)).ok();
        score(&caps, plan.as_ref()).iter().map(|item| item.points).sum()
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
        let caps = recorded("swiftshader");
        let plan = DevicePlan::new(&caps, &VulkanOptions::default(), &Workarounds::for_device(&caps)).ok();
        let items = score(&caps, plan.as_ref());
        assert!(
            items.iter().any(|i| i.points < 0 && i.reason == "workaround swiftshader-no-bda"),
            "{items:?}"
        );
        assert!(!items.iter().any(|i| i.reason.starts_with("bufferDeviceAddress")), "taken away: {items:?}");
    }

    #[test]
    fn groups_hold_all_that_was_asked() {
        let caps = recorded("nvidia_h200");
        let groups = groups(&caps);
        let of = |title: &str| &groups.iter().find(|g| g.title == title).unwrap().entries;
        assert_eq!(of("features").len(), Features::NAMES.len());
        assert_eq!(of("extensions").len(), caps.extensions.len());
        assert_eq!(of("queues").len(), caps.queue_families.len());
        assert_eq!(of("memory").len(), caps.memory.heaps.len() + caps.memory.types.len());
        assert!(of("queues").iter().any(|(_, text)| text.contains("compute")));
        assert!(of("limits").iter().any(|(name, _)| name == "max_compute_shared_memory_size"));
        assert!(of("matrices").iter().any(|(shape, what)| shape == "16x16x16" && what.contains("f16 x f16")));
    }
}
