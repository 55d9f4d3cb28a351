//! The Vulkan driver as a library that programs load.

halite_plugin::export_driver!(|| std::sync::Arc::new(halite_vulkan::VulkanDriver));
