//! Owns the answers to a module's `hal.device.query.i64`. The keys are part of compiled modules.

use halite_abi::{descriptor::COMPUTE_STAGE, query};
use halite_hal::matches_pattern;

use crate::{
    caps::{DeviceCaps, Features},
    context::DeviceContext,
    executable::supports_format,
};

/// Name that `hal.device.id` patterns are matched against.
const DEVICE_ID: &str = "vulkan";

/// The answer, or `None` for a key that is not known.
pub(super) fn query_i64(ctx: &DeviceContext, category: &str, key: &str) -> Option<i64> {
    match (category, key) {
        (query::DEVICE_ID, pattern) => Some(matches_pattern(pattern, DEVICE_ID).into()),
        (query::EXECUTABLE_FORMAT, format) => Some(supports_format(ctx, format).into()),
        (query::DEVICE, query::CONCURRENCY) => i64::try_from(ctx.queues.len()).ok(),
        (query::DISPATCH, query::CONCURRENCY) => Some(1),
        (query::TARGET, triple) => Some(ctx.targets.rank(&ctx.caps, &ctx.plan, triple)),
        ("vulkan.device", key) => device_fact(&ctx.caps, key).map(i64::from),
        ("vulkan.feature", key) => feature(&ctx.plan.features, key).map(i64::from),
        ("vulkan.cooperative_matrix", key) => cooperative_matrix(ctx, key),
        _ => None,
    }
}

fn device_fact(caps: &DeviceCaps, key: &str) -> Option<u32> {
    let limits = &caps.limits;
    Some(match key {
        "api_version" => caps.api_version,
        "subgroup_size" => caps.subgroup.size,
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

fn feature(enabled: &Features, key: &str) -> Option<bool> {
    Some(match key {
        "buffer_device_address" | "physical_storage_buffer64" => enabled.buffer_device_address,
        "subgroup_size_control" => enabled.subgroup_size_control,
        "cooperative_matrix_khr" => enabled.cooperative_matrix,
        "storage_buffer_8bit_access" => enabled.storage_buffer_8bit_access,
        "storage_buffer_16bit_access" => enabled.storage_buffer_16bit_access,
        "shader_float16" => enabled.shader_float16,
        "shader_float64" => enabled.shader_float64,
        "shader_bfloat16_type" => enabled.shader_bfloat16_type,
        "shader_bfloat16_dot_product" => enabled.shader_bfloat16_dot_product,
        "shader_bfloat16_cooperative_matrix" => enabled.shader_bfloat16_cooperative_matrix,
        "shader_int8" => enabled.shader_int8,
        "shader_int16" => enabled.shader_int16,
        "shader_int64" => enabled.shader_int64,
        "shader_integer_dot_product" => enabled.shader_integer_dot_product,
        "vulkan_memory_model" => enabled.vulkan_memory_model,
        "vulkan_memory_model_device_scope" => enabled.vulkan_memory_model_device_scope,
        _ => return None,
    })
}

fn cooperative_matrix(ctx: &DeviceContext, key: &str) -> Option<i64> {
    let supported = ctx.plan.features.cooperative_matrix;
    match key {
        "supported" => Some(supported.into()),
        "property_count" if supported => i64::try_from(ctx.caps.cooperative_matrices.len()).ok(),
        "supported_stages" if supported => Some(COMPUTE_STAGE.into()),
        "property_count" | "supported_stages" => Some(0),
        _ => None,
    }
}
