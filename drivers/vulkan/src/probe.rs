//! Asking a physical device for its facts, safely on every version since 1.1: a structure is chained only when the device's
//! version or an extension defines it.

pub(crate) mod features;
mod properties;

use std::ffi::CStr;

use ash::vk;
use halite_facts::{
    DeviceFacts, ExternalBuffers, Memory, MemoryHeap, MemoryTypeFacts, QueueFamily, VERSION_1_1,
};
use halite_hal::Result;

use crate::{error::vk_error, external, forks::LoaderCall, instance::InstanceContext};

/// The facts of a device.
pub(crate) fn probe(context: &InstanceContext, physical: vk::PhysicalDevice) -> Result<DeviceFacts> {
    let instance = &context.instance;
    // SAFETY: the physical device belongs to this instance, which is alive.
    let basic = unsafe { instance.get_physical_device_properties(physical) };
    let mut facts = properties::basic(&basic);
    // Patch numbers say nothing about what may be used: only a newer minor version is out of reach.
    if facts.api_version >> 12 > context.api_version >> 12 {
        facts.api_version = context.api_version;
    }
    facts.extensions = extensions(instance, physical)?;
    facts.memory = memory(instance, physical);
    facts.queue_families = queue_families(instance, physical);
    if facts.api_version >= VERSION_1_1 {
        let mut chain = features::FeatureChain::new(&facts);
        // SAFETY: as above; the device has Vulkan 1.1, and the chain holds only structures that it knows.
        facts.features = unsafe { chain.query(instance, physical) };
        // SAFETY: as above.
        unsafe { properties::extended(context, physical, &mut facts) };
        facts.external_buffers = external_buffers(instance, physical, &facts);
    }
    Ok(facts)
}

fn extensions(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Result<Vec<String>> {
    let _call = LoaderCall::begin()?;
    // SAFETY: the physical device belongs to this instance, which is alive.
    let found = unsafe { instance.enumerate_device_extension_properties(physical) }
        .map_err(|r| vk_error("vkEnumerateDeviceExtensionProperties", r, "", ""))?;
    let mut names: Vec<String> = found
        .iter()
        .filter_map(|e| e.extension_name_as_c_str().ok())
        .map(|name: &CStr| name.to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn memory(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Memory {
    // SAFETY: the physical device belongs to this instance, which is alive.
    let found = unsafe { instance.get_physical_device_memory_properties(physical) };
    let heap = |h: &vk::MemoryHeap| MemoryHeap {
        size: h.size,
        device_local: h.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL),
    };
    let kind = |t: &vk::MemoryType| MemoryTypeFacts { heap: t.heap_index, flags: t.property_flags.as_raw() };
    Memory {
        heaps: found.memory_heaps_as_slice().iter().map(heap).collect(),
        types: found.memory_types_as_slice().iter().map(kind).collect(),
    }
}

/// Which kinds of shared memory buffers can be in. Only kinds whose extension the device has are asked for: others mean nothing to it.
fn external_buffers(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    facts: &DeviceFacts,
) -> Vec<ExternalBuffers> {
    let asked = external::KINDS.iter().filter(|way| facts.has_extension(way.extension));
    let told = asked.map(|way| {
        let info = vk::PhysicalDeviceExternalBufferInfo::default()
            .usage(vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST)
            .handle_type(way.handle_type);
        let mut properties = vk::ExternalBufferProperties::default();
        // SAFETY: the physical device belongs to this instance, which is alive, and has Vulkan 1.1 and the extension of the handle type.
        unsafe { instance.get_physical_device_external_buffer_properties(physical, &info, &mut properties) };
        let features = properties.external_memory_properties.external_memory_features;
        ExternalBuffers { handle_type: way.handle_type.as_raw(), features: features.as_raw() }
    });
    told.filter(|told| told.features & 6 != 0).collect()
}

fn queue_families(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Vec<QueueFamily> {
    // SAFETY: the physical device belongs to this instance, which is alive.
    let found = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let family = |f: &vk::QueueFamilyProperties| QueueFamily {
        flags: f.queue_flags.as_raw(),
        count: f.queue_count,
        timestamp_valid_bits: f.timestamp_valid_bits,
    };
    found.iter().map(family).collect()
}
