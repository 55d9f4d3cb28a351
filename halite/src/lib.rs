//! Run models on any Vulkan device.
#![forbid(unsafe_code)]
