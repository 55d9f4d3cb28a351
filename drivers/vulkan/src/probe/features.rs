//! Owns the mapping between our feature set and Vulkan's feature structures, in both directions: asking a
//! device, and enabling features when one is opened.
//!
//! Each structure is used in its own form, never through the collected `PhysicalDeviceVulkan1xFeatures`: the
//! own forms work on a Vulkan 1.1 device with extensions just as on a newer one.

use std::ffi::c_void;

use ash::vk;

use crate::caps::{DeviceCaps, Features, VERSION_1_1, VERSION_1_2, VERSION_1_3};

/// `VkPhysicalDeviceShaderBfloat16FeaturesKHR`, which the bindings are too old to know.
#[repr(C)]
struct ShaderBfloat16Features {
    s_type: vk::StructureType,
    p_next: *mut c_void,
    shader_b_float16_type: vk::Bool32,
    shader_b_float16_dot_product: vk::Bool32,
    shader_b_float16_cooperative_matrix: vk::Bool32,
}

impl Default for ShaderBfloat16Features {
    fn default() -> Self {
        ShaderBfloat16Features {
            s_type: vk::StructureType::from_raw(1_000_141_000),
            p_next: std::ptr::null_mut(),
            shader_b_float16_type: vk::FALSE,
            shader_b_float16_dot_product: vk::FALSE,
            shader_b_float16_cooperative_matrix: vk::FALSE,
        }
    }
}

/// Version that no device has: the structure exists only through its extension.
const NEVER_CORE: u32 = u32::MAX;

macro_rules! feature_structs {
    ($($slot:ident: $ty:ty, $core:expr, $ext:literal { $($ours:ident = $theirs:ident),* $(,)? })*) => {
        /// The feature structures that one device knows. Heap-allocated, so that the chain survives moves.
        #[derive(Default)]
        pub(crate) struct FeatureChain {
            $($slot: Option<Box<$ty>>,)*
        }

        impl FeatureChain {
            /// The structures that the device's version and extensions define.
            pub(crate) fn new(caps: &DeviceCaps) -> Self {
                FeatureChain {
                    $($slot: caps.core_or_extension($core, $ext).then(Box::default),)*
                }
            }

            /// Links the structures; the result is the head for a `pNext`, valid as long as self is.
            fn link(&mut self) -> *mut c_void {
                let mut head = std::ptr::null_mut();
                $(if let Some(s) = &mut self.$slot {
                    s.p_next = head;
                    head = std::ptr::from_mut(s.as_mut()).cast();
                })*
                head
            }

            fn read(&self, features: &mut Features) {
                $(if let Some(s) = &self.$slot {
                    $(features.$ours = s.$theirs != vk::FALSE;)*
                })*
            }

            /// Asks for exactly these features; structures without any are left out.
            pub(crate) fn enabling(caps: &DeviceCaps, features: &Features) -> Self {
                let mut chain = FeatureChain::new(caps);
                $(if let Some(s) = &mut chain.$slot {
                    $(s.$theirs = features.$ours.into();)*
                    if !($(features.$ours)||*) { chain.$slot = None; }
                })*
                chain
            }
        }

        /// The extensions that a device must enable for these features, where its version does not contain
        /// them.
        pub(crate) fn required_extensions(api_version: u32, features: &Features) -> Vec<&'static str> {
            let mut names = Vec::new();
            $(if api_version < $core && ($(features.$ours)||*) { names.push($ext); })*
            names
        }
    };
}

feature_structs! {
    storage16: vk::PhysicalDevice16BitStorageFeatures<'static>, VERSION_1_1, "VK_KHR_16bit_storage" {
        storage_buffer_16bit_access = storage_buffer16_bit_access,
        uniform_and_storage_buffer_16bit_access = uniform_and_storage_buffer16_bit_access,
        storage_push_constant16 = storage_push_constant16,
    }
    variable_pointers: vk::PhysicalDeviceVariablePointersFeatures<'static>, VERSION_1_1, "VK_KHR_variable_pointers" {
        variable_pointers_storage_buffer = variable_pointers_storage_buffer,
        variable_pointers = variable_pointers,
    }
    storage8: vk::PhysicalDevice8BitStorageFeatures<'static>, VERSION_1_2, "VK_KHR_8bit_storage" {
        storage_buffer_8bit_access = storage_buffer8_bit_access,
        uniform_and_storage_buffer_8bit_access = uniform_and_storage_buffer8_bit_access,
        storage_push_constant8 = storage_push_constant8,
    }
    float16_int8: vk::PhysicalDeviceShaderFloat16Int8Features<'static>, VERSION_1_2, "VK_KHR_shader_float16_int8" {
        shader_float16 = shader_float16,
        shader_int8 = shader_int8,
    }
    atomic_int64: vk::PhysicalDeviceShaderAtomicInt64Features<'static>, VERSION_1_2, "VK_KHR_shader_atomic_int64" {
        shader_buffer_int64_atomics = shader_buffer_int64_atomics,
        shader_shared_int64_atomics = shader_shared_int64_atomics,
    }
    scalar_block_layout: vk::PhysicalDeviceScalarBlockLayoutFeatures<'static>, VERSION_1_2, "VK_EXT_scalar_block_layout" {
        scalar_block_layout = scalar_block_layout,
    }
    uniform_layout: vk::PhysicalDeviceUniformBufferStandardLayoutFeatures<'static>, VERSION_1_2,
        "VK_KHR_uniform_buffer_standard_layout" {
        uniform_buffer_standard_layout = uniform_buffer_standard_layout,
    }
    extended_types: vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures<'static>, VERSION_1_2,
        "VK_KHR_shader_subgroup_extended_types" {
        shader_subgroup_extended_types = shader_subgroup_extended_types,
    }
    host_query_reset: vk::PhysicalDeviceHostQueryResetFeatures<'static>, VERSION_1_2, "VK_EXT_host_query_reset" {
        host_query_reset = host_query_reset,
    }
    timeline: vk::PhysicalDeviceTimelineSemaphoreFeatures<'static>, VERSION_1_2, "VK_KHR_timeline_semaphore" {
        timeline_semaphore = timeline_semaphore,
    }
    buffer_address: vk::PhysicalDeviceBufferDeviceAddressFeatures<'static>, VERSION_1_2,
        "VK_KHR_buffer_device_address" {
        buffer_device_address = buffer_device_address,
    }
    memory_model: vk::PhysicalDeviceVulkanMemoryModelFeatures<'static>, VERSION_1_2, "VK_KHR_vulkan_memory_model" {
        vulkan_memory_model = vulkan_memory_model,
        vulkan_memory_model_device_scope = vulkan_memory_model_device_scope,
    }
    subgroup_size: vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>, VERSION_1_3,
        "VK_EXT_subgroup_size_control" {
        subgroup_size_control = subgroup_size_control,
        compute_full_subgroups = compute_full_subgroups,
    }
    synchronization2: vk::PhysicalDeviceSynchronization2Features<'static>, VERSION_1_3, "VK_KHR_synchronization2" {
        synchronization2 = synchronization2,
    }
    zero_initialize: vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures<'static>, VERSION_1_3,
        "VK_KHR_zero_initialize_workgroup_memory" {
        shader_zero_initialize_workgroup_memory = shader_zero_initialize_workgroup_memory,
    }
    dot_product: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>, VERSION_1_3,
        "VK_KHR_shader_integer_dot_product" {
        shader_integer_dot_product = shader_integer_dot_product,
    }
    maintenance4: vk::PhysicalDeviceMaintenance4Features<'static>, VERSION_1_3, "VK_KHR_maintenance4" {
        maintenance4 = maintenance4,
    }
    maintenance5: vk::PhysicalDeviceMaintenance5FeaturesKHR<'static>, NEVER_CORE, "VK_KHR_maintenance5" {
        maintenance5 = maintenance5,
    }
    robustness2: vk::PhysicalDeviceRobustness2FeaturesEXT<'static>, NEVER_CORE, "VK_EXT_robustness2" {
        robust_buffer_access2 = robust_buffer_access2,
        null_descriptor = null_descriptor,
    }
    pipeline_robustness: vk::PhysicalDevicePipelineRobustnessFeaturesEXT<'static>, NEVER_CORE,
        "VK_EXT_pipeline_robustness" {
        pipeline_robustness = pipeline_robustness,
    }
    workgroup_layout: vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_workgroup_memory_explicit_layout" {
        workgroup_memory_explicit_layout = workgroup_memory_explicit_layout,
        workgroup_memory_explicit_layout_scalar = workgroup_memory_explicit_layout_scalar_block_layout,
        workgroup_memory_explicit_layout_8bit = workgroup_memory_explicit_layout8_bit_access,
        workgroup_memory_explicit_layout_16bit = workgroup_memory_explicit_layout16_bit_access,
    }
    cooperative_matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_cooperative_matrix" {
        cooperative_matrix = cooperative_matrix,
        cooperative_matrix_robust_buffer_access = cooperative_matrix_robust_buffer_access,
    }
    bfloat16: ShaderBfloat16Features, NEVER_CORE, "VK_KHR_shader_bfloat16" {
        shader_bfloat16_type = shader_b_float16_type,
        shader_bfloat16_dot_product = shader_b_float16_dot_product,
        shader_bfloat16_cooperative_matrix = shader_b_float16_cooperative_matrix,
    }
    uniform_flow: vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_shader_subgroup_uniform_control_flow" {
        shader_subgroup_uniform_control_flow = shader_subgroup_uniform_control_flow,
    }
    reconvergence: vk::PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_shader_maximal_reconvergence" {
        shader_maximal_reconvergence = shader_maximal_reconvergence,
    }
    rotate: vk::PhysicalDeviceShaderSubgroupRotateFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_shader_subgroup_rotate" {
        shader_subgroup_rotate = shader_subgroup_rotate,
    }
    executable_info: vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_pipeline_executable_properties" {
        pipeline_executable_info = pipeline_executable_info,
    }
    device_fault: vk::PhysicalDeviceFaultFeaturesEXT<'static>, NEVER_CORE, "VK_EXT_device_fault" {
        device_fault = device_fault,
    }
}

impl FeatureChain {
    /// Asks the device what it has.
    ///
    /// # Safety
    /// The physical device must belong to the instance, both alive, and have Vulkan 1.1; the chain must have
    /// been made from its caps.
    pub(crate) unsafe fn query(
        &mut self,
        instance: &ash::Instance,
        physical: vk::PhysicalDevice,
    ) -> Features {
        let mut root = vk::PhysicalDeviceFeatures2 { p_next: self.link(), ..Default::default() };
        // SAFETY: as the caller vouches; the chain is made of live structures with their own type tags.
        unsafe { instance.get_physical_device_features2(physical, &mut root) };
        let core = root.features;
        let mut features = Features {
            robust_buffer_access: core.robust_buffer_access != vk::FALSE,
            shader_int16: core.shader_int16 != vk::FALSE,
            shader_int64: core.shader_int64 != vk::FALSE,
            shader_float64: core.shader_float64 != vk::FALSE,
            ..Features::default()
        };
        self.read(&mut features);
        features
    }

    /// The root structure that enables `features` through this chain; valid as long as self is.
    pub(crate) fn root(&mut self, features: &Features) -> vk::PhysicalDeviceFeatures2<'static> {
        let core = vk::PhysicalDeviceFeatures {
            robust_buffer_access: features.robust_buffer_access.into(),
            shader_int16: features.shader_int16.into(),
            shader_int64: features.shader_int64.into(),
            shader_float64: features.shader_float64.into(),
            ..Default::default()
        };
        vk::PhysicalDeviceFeatures2 { p_next: self.link(), features: core, ..Default::default() }
    }
}
