//! The limits of a device.

use serde::{Deserialize, Serialize};

/// Limits of a device. Sizes in bytes. 0 means that the device does not say, as in the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Most workgroups of a dispatch in x, y, z.
    pub max_compute_workgroup_count: [u32; 3],
    /// Largest workgroup in x, y, z.
    pub max_compute_workgroup_size: [u32; 3],
    /// Most invocations in a workgroup.
    pub max_compute_workgroup_invocations: u32,
    /// Shared memory of a workgroup.
    pub max_compute_shared_memory_size: u32,
    /// Bytes of push constants.
    pub max_push_constants_size: u32,
    /// Largest range of a storage buffer binding.
    pub max_storage_buffer_range: u32,
    /// Largest range of a uniform buffer binding.
    pub max_uniform_buffer_range: u32,
    /// Alignment of a storage buffer binding's offset.
    pub min_storage_buffer_offset_alignment: u64,
    /// Alignment of a uniform buffer binding's offset.
    pub min_uniform_buffer_offset_alignment: u64,
    /// Descriptor sets bound at once.
    pub max_bound_descriptor_sets: u32,
    /// Storage buffers that the compute stage sees.
    pub max_per_stage_descriptor_storage_buffers: u32,
    /// Storage buffers in all sets of a pipeline layout.
    pub max_descriptor_set_storage_buffers: u32,
    /// Resources that the compute stage sees.
    pub max_per_stage_resources: u32,
    /// Descriptors that can be pushed; 0 without `VK_KHR_push_descriptor`.
    pub max_push_descriptors: u32,
    /// Live `VkDeviceMemory` objects.
    pub max_memory_allocation_count: u32,
    /// Largest `VkDeviceMemory`.
    pub max_memory_allocation_size: u64,
    /// Largest `VkBuffer`.
    pub max_buffer_size: u64,
    /// Granularity of flush and invalidate ranges.
    pub non_coherent_atom_size: u64,
    /// Distance that linear and optimal resources keep.
    pub buffer_image_granularity: u64,
    /// Alignment of mapped pointers.
    pub min_memory_map_alignment: u64,
    /// Alignment of imported host pointers; 0 without `VK_EXT_external_memory_host`.
    pub min_imported_host_pointer_alignment: u64,
    /// Furthest that a timeline semaphore may be ahead of its payload.
    pub max_timeline_semaphore_value_difference: u64,
    /// Nanoseconds in a timestamp tick.
    pub timestamp_period: f32,
}

impl Limits {
    /// What every Vulkan device must at least offer:
    /// <https://registry.khronos.org/vulkan/specs/latest/html/vkspec.html#limits-minmax>.
    pub const LEAST: Limits = Limits {
        max_compute_workgroup_count: [65535; 3],
        max_compute_workgroup_size: [128, 128, 64],
        max_compute_workgroup_invocations: 128,
        max_compute_shared_memory_size: 16384,
        max_push_constants_size: 128,
        max_storage_buffer_range: 1 << 27,
        max_uniform_buffer_range: 16384,
        min_storage_buffer_offset_alignment: 256,
        min_uniform_buffer_offset_alignment: 256,
        max_bound_descriptor_sets: 4,
        max_per_stage_descriptor_storage_buffers: 4,
        max_descriptor_set_storage_buffers: 24,
        max_per_stage_resources: 128,
        max_push_descriptors: 0,
        max_memory_allocation_count: 4096,
        max_memory_allocation_size: u64::MAX,
        max_buffer_size: u64::MAX,
        non_coherent_atom_size: 256,
        buffer_image_granularity: 131_072,
        min_memory_map_alignment: 64,
        min_imported_host_pointer_alignment: 0,
        max_timeline_semaphore_value_difference: (1 << 31) - 1,
        timestamp_period: 1.0,
    };

    /// Storage buffers that a kernel can bind: as many as all limits on them allow; `None` when the device does not say.
    pub fn storage_buffers(&self) -> Option<u32> {
        let limits = [
            self.max_per_stage_descriptor_storage_buffers,
            self.max_descriptor_set_storage_buffers,
            self.max_per_stage_resources,
        ];
        (limits[0] != 0).then(|| limits.into_iter().filter(|limit| *limit != 0).fold(u32::MAX, u32::min))
    }
}
