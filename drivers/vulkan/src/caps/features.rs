//! Owns the list of device features that the driver looks at, under their Vulkan names.

use serde::{Deserialize, Serialize};

macro_rules! features {
    ($($field:ident $name:literal)*) => {
        /// A set of Vulkan features: what a device has, or what a plan enables.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Features {
            $(#[doc = concat!("`", $name, "`.")] #[serde(rename = $name)] pub $field: bool,)*
        }

        impl Features {
            /// Vulkan names of all features, in declaration order.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// Whether the feature with this Vulkan name is in the set; `None` for a name that is not listed.
            pub fn get(&self, name: &str) -> Option<bool> {
                match name { $($name => Some(self.$field),)* _ => None }
            }

            /// Takes the feature with this Vulkan name out of the set; a name that is not listed changes nothing.
            pub(crate) fn remove(&mut self, name: &str) {
                match name { $($name => self.$field = false,)* _ => {} }
            }

            /// Vulkan names of the features in the set.
            pub fn enabled(&self) -> impl Iterator<Item = &'static str> + use<> {
                [$((self.$field, $name),)*].into_iter().filter_map(|(on, name)| on.then_some(name))
            }
        }
    };
}

features! {
    robust_buffer_access "robustBufferAccess"
    shader_int16 "shaderInt16"
    shader_int64 "shaderInt64"
    shader_float64 "shaderFloat64"
    storage_buffer_16bit_access "storageBuffer16BitAccess"
    uniform_and_storage_buffer_16bit_access "uniformAndStorageBuffer16BitAccess"
    storage_push_constant16 "storagePushConstant16"
    variable_pointers_storage_buffer "variablePointersStorageBuffer"
    variable_pointers "variablePointers"
    storage_buffer_8bit_access "storageBuffer8BitAccess"
    uniform_and_storage_buffer_8bit_access "uniformAndStorageBuffer8BitAccess"
    storage_push_constant8 "storagePushConstant8"
    shader_float16 "shaderFloat16"
    shader_int8 "shaderInt8"
    shader_buffer_int64_atomics "shaderBufferInt64Atomics"
    shader_shared_int64_atomics "shaderSharedInt64Atomics"
    scalar_block_layout "scalarBlockLayout"
    uniform_buffer_standard_layout "uniformBufferStandardLayout"
    shader_subgroup_extended_types "shaderSubgroupExtendedTypes"
    host_query_reset "hostQueryReset"
    timeline_semaphore "timelineSemaphore"
    buffer_device_address "bufferDeviceAddress"
    vulkan_memory_model "vulkanMemoryModel"
    vulkan_memory_model_device_scope "vulkanMemoryModelDeviceScope"
    subgroup_size_control "subgroupSizeControl"
    compute_full_subgroups "computeFullSubgroups"
    synchronization2 "synchronization2"
    shader_zero_initialize_workgroup_memory "shaderZeroInitializeWorkgroupMemory"
    shader_integer_dot_product "shaderIntegerDotProduct"
    maintenance4 "maintenance4"
    maintenance5 "maintenance5"
    robust_buffer_access2 "robustBufferAccess2"
    null_descriptor "nullDescriptor"
    pipeline_robustness "pipelineRobustness"
    workgroup_memory_explicit_layout "workgroupMemoryExplicitLayout"
    workgroup_memory_explicit_layout_scalar "workgroupMemoryExplicitLayoutScalarBlockLayout"
    workgroup_memory_explicit_layout_8bit "workgroupMemoryExplicitLayout8BitAccess"
    workgroup_memory_explicit_layout_16bit "workgroupMemoryExplicitLayout16BitAccess"
    cooperative_matrix "cooperativeMatrix"
    cooperative_matrix_robust_buffer_access "cooperativeMatrixRobustBufferAccess"
    shader_bfloat16_type "shaderBFloat16Type"
    shader_bfloat16_dot_product "shaderBFloat16DotProduct"
    shader_bfloat16_cooperative_matrix "shaderBFloat16CooperativeMatrix"
    shader_subgroup_uniform_control_flow "shaderSubgroupUniformControlFlow"
    shader_maximal_reconvergence "shaderMaximalReconvergence"
    shader_subgroup_rotate "shaderSubgroupRotate"
    pipeline_executable_info "pipelineExecutableInfo"
    device_fault "deviceFault"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_field() {
        let f = Features { shader_int64: true, cooperative_matrix: true, ..Features::default() };
        assert_eq!(f.get("shaderInt64"), Some(true));
        assert_eq!(f.get("shaderInt8"), Some(false));
        assert_eq!(f.get("geometryShader"), None);
        assert_eq!(f.enabled().collect::<Vec<_>>(), ["shaderInt64", "cooperativeMatrix"]);
        let json = serde_json::to_string(&f).unwrap();
        assert_eq!(serde_json::from_str::<Features>(&json).unwrap(), f);
    }
}
