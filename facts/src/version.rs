//! Vulkan versions, packed as Vulkan packs them.

/// Packs a Vulkan version the way `VK_MAKE_API_VERSION(0, major, minor, patch)` does.
pub const fn api_version(major: u32, minor: u32, patch: u32) -> u32 {
    (major << 22) | (minor << 12) | patch
}

/// Vulkan 1.1: the lowest version that works.
pub const VERSION_1_1: u32 = api_version(1, 1, 0);
/// Vulkan 1.2.
pub const VERSION_1_2: u32 = api_version(1, 2, 0);
/// Vulkan 1.3.
pub const VERSION_1_3: u32 = api_version(1, 3, 0);
/// Vulkan 1.4: the highest version that is asked for.
pub const VERSION_1_4: u32 = api_version(1, 4, 0);
