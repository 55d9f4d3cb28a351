//! The mapping from Vulkan's property structures to the facts of a device.

use std::ffi::c_void;

use ash::vk;

use crate::{
    instance::InstanceContext,
    probe::features,
    workarounds::{Avoid, Workarounds},
};
use halite_facts::{
    CooperativeMatrixProperties, DeviceFacts, DeviceType, DotProductFacts, Feature, Limits, Memory,
    SubgroupFacts, VERSION_1_2, VERSION_1_3,
};

/// Facts with everything that Vulkan 1.0 tells.
pub(super) fn basic(p: &vk::PhysicalDeviceProperties) -> DeviceFacts {
    DeviceFacts {
        name: p.device_name_as_c_str().map_or_else(|_| String::new(), |n| n.to_string_lossy().into_owned()),
        vendor_id: p.vendor_id,
        device_id: p.device_id,
        device_type: match p.device_type {
            vk::PhysicalDeviceType::DISCRETE_GPU => DeviceType::Discrete,
            vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceType::Integrated,
            vk::PhysicalDeviceType::VIRTUAL_GPU => DeviceType::Virtual,
            vk::PhysicalDeviceType::CPU => DeviceType::Cpu,
            _ => DeviceType::Other,
        },
        api_version: p.api_version,
        driver_version: p.driver_version,
        driver_id: 0,
        driver_name: String::new(),
        driver_info: String::new(),
        // Replaced by the device's own where Vulkan 1.1 tells it.
        uuid: hex(&p.pipeline_cache_uuid),
        driver_uuid: String::new(),
        pipeline_cache_uuid: hex(&p.pipeline_cache_uuid),
        limits: limits(&p.limits),
        subgroup: SubgroupFacts::default(),
        features: features::nothing(),
        dot_product: Some(DotProductFacts::default()),
        compute_units: None,
        cooperative_matrices: Vec::new(),
        memory: Memory::default(),
        external_buffers: Vec::new(),
        queue_families: Vec::new(),
        extensions: Vec::new(),
        os: std::env::consts::OS.to_owned(),
    }
}

fn limits(l: &vk::PhysicalDeviceLimits) -> Limits {
    Limits {
        max_compute_workgroup_count: l.max_compute_work_group_count,
        max_compute_workgroup_size: l.max_compute_work_group_size,
        max_compute_workgroup_invocations: l.max_compute_work_group_invocations,
        max_compute_shared_memory_size: l.max_compute_shared_memory_size,
        max_push_constants_size: l.max_push_constants_size,
        max_storage_buffer_range: l.max_storage_buffer_range,
        max_uniform_buffer_range: l.max_uniform_buffer_range,
        min_storage_buffer_offset_alignment: l.min_storage_buffer_offset_alignment,
        min_uniform_buffer_offset_alignment: l.min_uniform_buffer_offset_alignment,
        max_bound_descriptor_sets: l.max_bound_descriptor_sets,
        max_per_stage_descriptor_storage_buffers: l.max_per_stage_descriptor_storage_buffers,
        max_descriptor_set_storage_buffers: l.max_descriptor_set_storage_buffers,
        max_per_stage_resources: l.max_per_stage_resources,
        max_memory_allocation_count: l.max_memory_allocation_count,
        non_coherent_atom_size: l.non_coherent_atom_size,
        buffer_image_granularity: l.buffer_image_granularity,
        min_memory_map_alignment: l.min_memory_map_alignment as u64,
        timestamp_period: l.timestamp_period,
        ..Limits::LEAST
    }
}

/// Lower-case hexadecimal digits of a UUID.
fn hex(bytes: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*bytes))
}

/// The property structures that the driver reads; those that a device does not define stay out of its chain.
#[derive(Default)]
struct Properties {
    id: vk::PhysicalDeviceIDProperties<'static>,
    subgroup: vk::PhysicalDeviceSubgroupProperties<'static>,
    maintenance3: vk::PhysicalDeviceMaintenance3Properties<'static>,
    driver: vk::PhysicalDeviceDriverProperties<'static>,
    timeline: vk::PhysicalDeviceTimelineSemaphoreProperties<'static>,
    size_control: vk::PhysicalDeviceSubgroupSizeControlProperties<'static>,
    dot_product: vk::PhysicalDeviceShaderIntegerDotProductProperties<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Properties<'static>,
    push_descriptor: vk::PhysicalDevicePushDescriptorPropertiesKHR<'static>,
    host_memory: vk::PhysicalDeviceExternalMemoryHostPropertiesEXT<'static>,
    units_nv: vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV<'static>,
    units_amd: vk::PhysicalDeviceShaderCoreProperties2AMD<'static>,
    units_arm: vk::PhysicalDeviceShaderCoreBuiltinsPropertiesARM<'static>,
}

/// Adds what Vulkan 1.1 and later versions and extensions tell.
///
/// # Safety
/// The physical device must belong to the context's instance and have Vulkan 1.1; the facts' version and
/// extensions must be its own.
pub(super) unsafe fn extended(
    context: &InstanceContext,
    physical: vk::PhysicalDevice,
    facts: &mut DeviceFacts,
) {
    let mut p = Box::<Properties>::default();
    let mut head: *mut c_void = std::ptr::null_mut();
    macro_rules! chain {
        ($($slot:ident if $known:expr;)*) => {
            $(if $known {
                p.$slot.p_next = head;
                head = std::ptr::from_mut(&mut p.$slot).cast();
            })*
        };
    }
    chain! {
        id if true;
        subgroup if true;
        maintenance3 if true;
        driver if facts.core_or_extension(VERSION_1_2, "VK_KHR_driver_properties");
        timeline if facts.core_or_extension(VERSION_1_2, "VK_KHR_timeline_semaphore");
        size_control if facts.core_or_extension(VERSION_1_3, "VK_EXT_subgroup_size_control");
        dot_product if facts.core_or_extension(VERSION_1_3, "VK_KHR_shader_integer_dot_product");
        maintenance4 if facts.core_or_extension(VERSION_1_3, "VK_KHR_maintenance4");
        push_descriptor if facts.has_extension("VK_KHR_push_descriptor");
        host_memory if facts.has_extension("VK_EXT_external_memory_host");
        units_nv if facts.has_extension("VK_NV_shader_sm_builtins");
        units_amd if facts.has_extension("VK_AMD_shader_core_properties2");
        units_arm if facts.has_extension("VK_ARM_shader_core_builtins");
    }
    let mut root = vk::PhysicalDeviceProperties2 { p_next: head, ..Default::default() };
    // SAFETY: as the caller vouches; the chain is made of live structures that the device defines.
    unsafe { context.instance.get_physical_device_properties2(physical, &mut root) };
    apply(&p, facts);
    // Some drivers end the process when they are asked, so no option can have it done all the same.
    let fault = Workarounds::for_device(facts).find(Avoid::CooperativeMatrix);
    if facts.features.has(Feature::CooperativeMatrix) && fault.is_none() {
        // SAFETY: as the caller vouches; the feature comes with the extension.
        facts.cooperative_matrices = unsafe { cooperative_matrices(context, physical) };
    }
}

fn apply(p: &Properties, facts: &mut DeviceFacts) {
    facts.uuid = hex(&p.id.device_uuid);
    facts.driver_uuid = hex(&p.id.driver_uuid);
    let text = |chars: Result<&std::ffi::CStr, _>| {
        chars.map_or_else(
            |_: std::ffi::FromBytesUntilNulError| String::new(),
            |c| c.to_string_lossy().into_owned(),
        )
    };
    facts.driver_id = u32::try_from(p.driver.driver_id.as_raw()).unwrap_or(0);
    facts.driver_name = text(p.driver.driver_name_as_c_str());
    facts.driver_info = text(p.driver.driver_info_as_c_str());
    apply_limits(p, &mut facts.limits);
    let size = p.subgroup.subgroup_size;
    let known = p.size_control.max_subgroup_size != 0;
    facts.subgroup = SubgroupFacts {
        size,
        min_size: if known { p.size_control.min_subgroup_size } else { size },
        max_size: if known { p.size_control.max_subgroup_size } else { size },
        max_workgroup_subgroups: p.size_control.max_compute_workgroup_subgroups,
        stages: p.subgroup.supported_stages.as_raw(),
        operations: p.subgroup.supported_operations.as_raw(),
        required_size_stages: p.size_control.required_subgroup_size_stages.as_raw(),
    };
    // A device has one vendor: structures that were not chained read zero.
    let units =
        [p.units_nv.shader_sm_count, p.units_amd.active_compute_unit_count, p.units_arm.shader_core_count];
    facts.compute_units = units.into_iter().find(|units| *units != 0);
    let d = &p.dot_product;
    facts.dot_product = Some(DotProductFacts {
        packed_4x8_unsigned: d.integer_dot_product4x8_bit_packed_unsigned_accelerated != vk::FALSE,
        packed_4x8_signed: d.integer_dot_product4x8_bit_packed_signed_accelerated != vk::FALSE,
        packed_4x8_mixed: d.integer_dot_product4x8_bit_packed_mixed_signedness_accelerated != vk::FALSE,
    });
}

fn apply_limits(p: &Properties, limits: &mut Limits) {
    // A structure that was not chained, or that a driver left alone, reads zero: the default then stands.
    let or = |value: u64, default: u64| if value == 0 { default } else { value };
    limits.max_memory_allocation_size =
        or(p.maintenance3.max_memory_allocation_size, limits.max_memory_allocation_size);
    limits.max_buffer_size = or(p.maintenance4.max_buffer_size, limits.max_buffer_size);
    limits.max_push_descriptors = p.push_descriptor.max_push_descriptors;
    limits.min_imported_host_pointer_alignment = p.host_memory.min_imported_host_pointer_alignment;
    limits.max_timeline_semaphore_value_difference = or(
        p.timeline.max_timeline_semaphore_value_difference,
        limits.max_timeline_semaphore_value_difference,
    );
}

/// # Safety
/// As [`extended`]; the device must offer `VK_KHR_cooperative_matrix`.
unsafe fn cooperative_matrices(
    context: &InstanceContext,
    physical: vk::PhysicalDevice,
) -> Vec<CooperativeMatrixProperties> {
    let functions = ash::khr::cooperative_matrix::Instance::new(&context.library.entry, &context.instance);
    // SAFETY: as the caller vouches.
    let found = unsafe { functions.get_physical_device_cooperative_matrix_properties(physical) };
    let found = found.unwrap_or_else(|result| {
        log::debug!("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR failed with {result:?}");
        Vec::new()
    });
    let raw = |t: vk::ComponentTypeKHR| u32::try_from(t.as_raw()).unwrap_or(u32::MAX);
    let shape = |s: &vk::CooperativeMatrixPropertiesKHR<'_>| CooperativeMatrixProperties {
        m: s.m_size,
        n: s.n_size,
        k: s.k_size,
        a_type: raw(s.a_type),
        b_type: raw(s.b_type),
        c_type: raw(s.c_type),
        result_type: raw(s.result_type),
        saturating: s.saturating_accumulation != vk::FALSE,
        scope: u32::try_from(s.scope.as_raw()).unwrap_or(u32::MAX),
    };
    found.iter().map(shape).collect()
}
