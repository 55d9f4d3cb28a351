//! The mapping between our feature set and Vulkan's feature structures, in both directions: asking a device, and enabling
//! features when one is opened.
//!
//! Each structure is used in its own form, never through the collected `PhysicalDeviceVulkan1xFeatures`: the
//! own forms work on a Vulkan 1.1 device with extensions just as on a newer one.

use std::ffi::c_void;

use ash::vk;

use halite_facts::{DeviceFacts, Feature, FeatureFacts, FeatureSet, VERSION_1_1, VERSION_1_2, VERSION_1_3};

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
            pub(crate) fn new(facts: &DeviceFacts) -> Self {
                FeatureChain {
                    $($slot: facts.core_or_extension($core, $ext).then(Box::default),)*
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

            fn read(&self, features: &mut FeatureFacts) {
                $(if let Some(s) = &self.$slot {
                    $(features.set(Feature::$ours, s.$theirs != vk::FALSE);)*
                })*
            }

            /// Asks for exactly these features; structures without any are left out.
            pub(crate) fn enabling(facts: &DeviceFacts, features: FeatureSet) -> Self {
                let mut chain = FeatureChain::new(facts);
                $(if let Some(s) = &mut chain.$slot {
                    $(s.$theirs = features.has(Feature::$ours).into();)*
                    if !($(features.has(Feature::$ours))||*) { chain.$slot = None; }
                })*
                chain
            }
        }

        /// The extensions that a device must enable for these features, where its version does not contain
        /// them.
        pub(crate) fn required_extensions(api_version: u32, features: FeatureSet) -> Vec<&'static str> {
            let mut names = Vec::new();
            $(if api_version < $core && ($(features.has(Feature::$ours))||*) { names.push($ext); })*
            names
        }

        /// What is asked for through structures of their own.
        const CHAINED: &[Feature] = &[$($(Feature::$ours,)*)*];
    };
}

feature_structs! {
    storage16: vk::PhysicalDevice16BitStorageFeatures<'static>, VERSION_1_1, "VK_KHR_16bit_storage" {
        StorageBuffer16BitAccess = storage_buffer16_bit_access,
        UniformAndStorageBuffer16BitAccess = uniform_and_storage_buffer16_bit_access,
        StoragePushConstant16 = storage_push_constant16,
    }
    variable_pointers: vk::PhysicalDeviceVariablePointersFeatures<'static>, VERSION_1_1, "VK_KHR_variable_pointers" {
        VariablePointersStorageBuffer = variable_pointers_storage_buffer,
        VariablePointers = variable_pointers,
    }
    storage8: vk::PhysicalDevice8BitStorageFeatures<'static>, VERSION_1_2, "VK_KHR_8bit_storage" {
        StorageBuffer8BitAccess = storage_buffer8_bit_access,
        UniformAndStorageBuffer8BitAccess = uniform_and_storage_buffer8_bit_access,
        StoragePushConstant8 = storage_push_constant8,
    }
    float16_int8: vk::PhysicalDeviceShaderFloat16Int8Features<'static>, VERSION_1_2, "VK_KHR_shader_float16_int8" {
        ShaderFloat16 = shader_float16,
        ShaderInt8 = shader_int8,
    }
    atomic_int64: vk::PhysicalDeviceShaderAtomicInt64Features<'static>, VERSION_1_2, "VK_KHR_shader_atomic_int64" {
        ShaderBufferInt64Atomics = shader_buffer_int64_atomics,
        ShaderSharedInt64Atomics = shader_shared_int64_atomics,
    }
    scalar_block_layout: vk::PhysicalDeviceScalarBlockLayoutFeatures<'static>, VERSION_1_2, "VK_EXT_scalar_block_layout" {
        ScalarBlockLayout = scalar_block_layout,
    }
    uniform_layout: vk::PhysicalDeviceUniformBufferStandardLayoutFeatures<'static>, VERSION_1_2,
        "VK_KHR_uniform_buffer_standard_layout" {
        UniformBufferStandardLayout = uniform_buffer_standard_layout,
    }
    extended_types: vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures<'static>, VERSION_1_2,
        "VK_KHR_shader_subgroup_extended_types" {
        ShaderSubgroupExtendedTypes = shader_subgroup_extended_types,
    }
    host_query_reset: vk::PhysicalDeviceHostQueryResetFeatures<'static>, VERSION_1_2, "VK_EXT_host_query_reset" {
        HostQueryReset = host_query_reset,
    }
    timeline: vk::PhysicalDeviceTimelineSemaphoreFeatures<'static>, VERSION_1_2, "VK_KHR_timeline_semaphore" {
        TimelineSemaphore = timeline_semaphore,
    }
    buffer_address: vk::PhysicalDeviceBufferDeviceAddressFeatures<'static>, VERSION_1_2,
        "VK_KHR_buffer_device_address" {
        BufferDeviceAddress = buffer_device_address,
    }
    memory_model: vk::PhysicalDeviceVulkanMemoryModelFeatures<'static>, VERSION_1_2, "VK_KHR_vulkan_memory_model" {
        VulkanMemoryModel = vulkan_memory_model,
        VulkanMemoryModelDeviceScope = vulkan_memory_model_device_scope,
    }
    subgroup_size: vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>, VERSION_1_3,
        "VK_EXT_subgroup_size_control" {
        SubgroupSizeControl = subgroup_size_control,
        ComputeFullSubgroups = compute_full_subgroups,
    }
    synchronization2: vk::PhysicalDeviceSynchronization2Features<'static>, VERSION_1_3, "VK_KHR_synchronization2" {
        Synchronization2 = synchronization2,
    }
    zero_initialize: vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures<'static>, VERSION_1_3,
        "VK_KHR_zero_initialize_workgroup_memory" {
        ShaderZeroInitializeWorkgroupMemory = shader_zero_initialize_workgroup_memory,
    }
    dot_product: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>, VERSION_1_3,
        "VK_KHR_shader_integer_dot_product" {
        ShaderIntegerDotProduct = shader_integer_dot_product,
    }
    maintenance4: vk::PhysicalDeviceMaintenance4Features<'static>, VERSION_1_3, "VK_KHR_maintenance4" {
        Maintenance4 = maintenance4,
    }
    maintenance5: vk::PhysicalDeviceMaintenance5FeaturesKHR<'static>, NEVER_CORE, "VK_KHR_maintenance5" {
        Maintenance5 = maintenance5,
    }
    robustness2: vk::PhysicalDeviceRobustness2FeaturesEXT<'static>, NEVER_CORE, "VK_EXT_robustness2" {
        RobustBufferAccess2 = robust_buffer_access2,
        NullDescriptor = null_descriptor,
    }
    pipeline_robustness: vk::PhysicalDevicePipelineRobustnessFeaturesEXT<'static>, NEVER_CORE,
        "VK_EXT_pipeline_robustness" {
        PipelineRobustness = pipeline_robustness,
    }
    workgroup_layout: vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_workgroup_memory_explicit_layout" {
        WorkgroupMemoryExplicitLayout = workgroup_memory_explicit_layout,
        WorkgroupMemoryExplicitLayoutScalarBlockLayout = workgroup_memory_explicit_layout_scalar_block_layout,
        WorkgroupMemoryExplicitLayout8BitAccess = workgroup_memory_explicit_layout8_bit_access,
        WorkgroupMemoryExplicitLayout16BitAccess = workgroup_memory_explicit_layout16_bit_access,
    }
    cooperative_matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_cooperative_matrix" {
        CooperativeMatrix = cooperative_matrix,
        CooperativeMatrixRobustBufferAccess = cooperative_matrix_robust_buffer_access,
    }
    bfloat16: ShaderBfloat16Features, NEVER_CORE, "VK_KHR_shader_bfloat16" {
        ShaderBFloat16Type = shader_b_float16_type,
        ShaderBFloat16DotProduct = shader_b_float16_dot_product,
        ShaderBFloat16CooperativeMatrix = shader_b_float16_cooperative_matrix,
    }
    uniform_flow: vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_shader_subgroup_uniform_control_flow" {
        ShaderSubgroupUniformControlFlow = shader_subgroup_uniform_control_flow,
    }
    reconvergence: vk::PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_shader_maximal_reconvergence" {
        ShaderMaximalReconvergence = shader_maximal_reconvergence,
    }
    rotate: vk::PhysicalDeviceShaderSubgroupRotateFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_shader_subgroup_rotate" {
        ShaderSubgroupRotate = shader_subgroup_rotate,
    }
    executable_info: vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR<'static>, NEVER_CORE,
        "VK_KHR_pipeline_executable_properties" {
        PipelineExecutableInfo = pipeline_executable_info,
    }
    device_fault: vk::PhysicalDeviceFaultFeaturesEXT<'static>, NEVER_CORE, "VK_EXT_device_fault" {
        DeviceFault = device_fault,
    }
}

macro_rules! core_features {
    ($($ours:ident = $theirs:ident,)*) => {
        fn read_core(core: &vk::PhysicalDeviceFeatures, features: &mut FeatureFacts) {
            $(features.set(Feature::$ours, core.$theirs != vk::FALSE);)*
        }

        fn enable_core(features: FeatureSet) -> vk::PhysicalDeviceFeatures {
            vk::PhysicalDeviceFeatures {
                $($theirs: features.has(Feature::$ours).into(),)*
                ..Default::default()
            }
        }

        /// What is asked for through the features of Vulkan 1.0.
        const CORE: &[Feature] = &[$(Feature::$ours,)*];
    };
}

core_features! {
    RobustBufferAccess = robust_buffer_access,
    ShaderInt16 = shader_int16,
    ShaderInt64 = shader_int64,
    ShaderFloat64 = shader_float64,
}

/// A device without any of the features that the driver asks for.
pub(crate) fn nothing() -> FeatureFacts {
    FeatureFacts::new(CORE.iter().chain(CHAINED).copied().collect(), FeatureSet::EMPTY)
}

impl FeatureChain {
    /// Asks the device what it has.
    ///
    /// # Safety
    /// The physical device must belong to the instance, both alive, and have Vulkan 1.1; the chain must have
    /// been made from its facts.
    pub(crate) unsafe fn query(
        &mut self,
        instance: &ash::Instance,
        physical: vk::PhysicalDevice,
    ) -> FeatureFacts {
        let mut root = vk::PhysicalDeviceFeatures2 { p_next: self.link(), ..Default::default() };
        // SAFETY: as the caller vouches; the chain is made of live structures with their own type tags.
        unsafe { instance.get_physical_device_features2(physical, &mut root) };
        let mut features = nothing();
        read_core(&root.features, &mut features);
        self.read(&mut features);
        features
    }

    /// The root structure that enables `features` through this chain; valid as long as self is.
    pub(crate) fn root(&mut self, features: FeatureSet) -> vk::PhysicalDeviceFeatures2<'static> {
        let core = enable_core(features);
        vk::PhysicalDeviceFeatures2 { p_next: self.link(), features: core, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A feature that is in the table only would look as if no device had it.
    #[test]
    fn every_feature_of_the_table_is_asked_for() {
        let named_only = [Feature::ShaderTensorAccess, Feature::ShaderBufferFloat32AtomicAdd];
        let asked = nothing().known();
        let left: Vec<Feature> = Feature::ALL.iter().copied().filter(|f| !asked.has(*f)).collect();
        assert_eq!(left, named_only);
        assert_eq!(CORE.len() + CHAINED.len() + left.len(), Feature::ALL.len(), "one is asked for twice");
    }
}
