//! Run models on any Vulkan device.
