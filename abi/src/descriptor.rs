//! What the layouts in Vulkan executables say of bindings: Vulkan's numbers.

/// `VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER`.
pub const UNIFORM_BUFFER: u32 = 6;
/// `VK_DESCRIPTOR_TYPE_STORAGE_BUFFER`.
pub const STORAGE_BUFFER: u32 = 7;
/// `VK_SHADER_STAGE_COMPUTE_BIT`.
pub const COMPUTE_STAGE: u32 = 0x20;
