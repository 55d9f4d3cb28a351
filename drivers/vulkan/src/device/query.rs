//! The answers to a module's `hal.device.query.i64`. The keys are part of compiled modules.

use halite_abi::{descriptor::COMPUTE_STAGE, query};
use halite_facts::{DeviceFacts, Feature, FeatureSet};
use halite_hal::matches_pattern;

use crate::{context::DeviceContext, executable::supports_format};

/// Name that `hal.device.id` patterns are matched against.
const DEVICE_ID: &str = "vulkan";

/// The answer, or `None` for a key that is not known.
pub(super) fn query_i64(ctx: &DeviceContext, category: &str, key: &str) -> Option<i64> {
    match (category, key) {
        (query::DEVICE_ID, pattern) => Some(matches_pattern(pattern, DEVICE_ID).into()),
        (query::EXECUTABLE_FORMAT, format) => Some(supports_format(ctx, format).into()),
        (query::DEVICE, query::CONCURRENCY) => i64::try_from(ctx.queues.len()).ok(),
        (query::DEVICE, query::UNTRUSTED) => Some(ctx.options.untrusted.into()),
        (query::DISPATCH, query::CONCURRENCY) => Some(1),
        (query::TARGET, triple) => Some(ctx.targets.rank(&ctx.facts, &ctx.plan, triple)),
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
    let supported = ctx.plan.features.has(Feature::CooperativeMatrix);
    match key {
        "supported" => Some(supported.into()),
        "property_count" if supported => i64::try_from(ctx.facts.cooperative_matrices.len()).ok(),
        "supported_stages" if supported => Some(COMPUTE_STAGE.into()),
        "property_count" | "supported_stages" => Some(0),
        _ => None,
    }
}
