//! Owns the answers to a module's `hal.device.query.i64`. The keys are part of compiled modules.

use halite_facts::{DeviceFacts, Feature, FeatureSet};

use crate::{context::DeviceContext, executable::supports_format};

/// Name that `hal.device.id` patterns are matched against.
const DEVICE_ID: &str = "vulkan";

/// The answer, or `None` for a key that is not known.
pub(super) fn query_i64(ctx: &DeviceContext, category: &str, key: &str) -> Option<i64> {
    match (category, key) {
        ("hal.device.id", pattern) => Some(matches_pattern(pattern, DEVICE_ID).into()),
        ("hal.executable.format", format) => Some(supports_format(ctx, format).into()),
        ("hal.device", "concurrency") => i64::try_from(ctx.queues.len()).ok(),
        ("hal.dispatch", "concurrency") => Some(1),
        ("halite.target", triple) => Some(ctx.targets.rank(&ctx.facts, &ctx.plan, triple)),
        ("vulkan.device", key) => device_fact(&ctx.facts, key).map(i64::from),
        ("vulkan.feature", key) => feature(ctx.plan.features, key).map(i64::from),
        ("vulkan.cooperative_matrix", key) => cooperative_matrix(ctx, key),
        _ => None,
    }
}

fn device_fact(facts: &DeviceFacts, key: &str) -> Option<u32> {
    let limits = &facts.limits;
    Some(match key {
        "api_version" => facts.api_version,
        "subgroup_size" => facts.subgroup.size,
        "max_compute_workgroup_invocations" => limits.max_compute_workgroup_invocations,
        "max_compute_workgroup_size_x" => limits.max_compute_workgroup_size[0],
        "max_compute_workgroup_size_y" => limits.max_compute_workgroup_size[1],
        "max_compute_workgroup_size_z" => limits.max_compute_workgroup_size[2],
        "max_compute_workgroup_count_x" => limits.max_compute_workgroup_count[0],
        "max_compute_workgroup_count_y" => limits.max_compute_workgroup_count[1],
        "max_compute_workgroup_count_z" => limits.max_compute_workgroup_count[2],
        _ => return None,
    })
}

/// Keys of IREE's modules.
const FEATURE_KEYS: [(&str, Feature); 17] = [
    ("buffer_device_address", Feature::BufferDeviceAddress),
    ("physical_storage_buffer64", Feature::BufferDeviceAddress),
    ("subgroup_size_control", Feature::SubgroupSizeControl),
    ("cooperative_matrix_khr", Feature::CooperativeMatrix),
    ("storage_buffer_8bit_access", Feature::StorageBuffer8BitAccess),
    ("storage_buffer_16bit_access", Feature::StorageBuffer16BitAccess),
    ("shader_float16", Feature::ShaderFloat16),
    ("shader_float64", Feature::ShaderFloat64),
    ("shader_bfloat16_type", Feature::ShaderBFloat16Type),
    ("shader_bfloat16_dot_product", Feature::ShaderBFloat16DotProduct),
    ("shader_bfloat16_cooperative_matrix", Feature::ShaderBFloat16CooperativeMatrix),
    ("shader_int8", Feature::ShaderInt8),
    ("shader_int16", Feature::ShaderInt16),
    ("shader_int64", Feature::ShaderInt64),
    ("shader_integer_dot_product", Feature::ShaderIntegerDotProduct),
    ("vulkan_memory_model", Feature::VulkanMemoryModel),
    ("vulkan_memory_model_device_scope", Feature::VulkanMemoryModelDeviceScope),
];

fn feature(enabled: FeatureSet, key: &str) -> Option<bool> {
    FEATURE_KEYS.iter().find(|(name, _)| *name == key).map(|(_, feature)| enabled.has(*feature))
}

fn cooperative_matrix(ctx: &DeviceContext, key: &str) -> Option<i64> {
    /// `VK_SHADER_STAGE_COMPUTE_BIT`: the only stage that the driver uses.
    const COMPUTE: i64 = 0x20;
    let supported = ctx.plan.features.has(Feature::CooperativeMatrix);
    match key {
        "supported" => Some(supported.into()),
        "property_count" if supported => i64::try_from(ctx.facts.cooperative_matrices.len()).ok(),
        "supported_stages" if supported => Some(COMPUTE),
        "property_count" | "supported_stages" => Some(0),
        _ => None,
    }
}

/// Whether `text` matches a pattern with `*` for any run and `?` for any one character. Linear in the text for each
/// `*`, without recursion: patterns come from modules.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((after_star, from)) => {
                    retry = Some((after_star, from + 1));
                    p = after_star;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p.min(pattern.len())..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for yes in ["vulkan", "*", "vul*", "*kan", "v*k?n", "??????", "**vulkan**"] {
            assert!(matches_pattern(yes, "vulkan"), "{yes}");
        }
        for no in ["", "local*", "vulka", "vulkan?", "VULKAN", "*x*"] {
            assert!(!matches_pattern(no, "vulkan"), "{no}");
        }
        assert!(matches_pattern("", ""));
    }
}
