//! The table of device features: each once, with everything that Halite knows of it apart from how a binding spells it.
//!
//! To add a feature, add a row here and a line in the driver that asks for it (docs/how-to/add-a-device-feature.md).

/// A row of the table.
struct Row {
    vulkan: &'static str,
    /// Key and phrase; empty for features that kernels do not choose by.
    kernels: &'static [(&'static str, &'static str)],
    spirv: &'static [&'static str],
}

/// `Name = "vulkanName", kernels: "key" "phrase for people", spirv: ["Capability", …];`
///
/// The Vulkan name is the key in records of devices. The key under `kernels` is what rows of the table of GPUs and the needs
/// of kernels write. `spirv` lists the capabilities of SPIR-V that the feature allows. The last two may be left out.
macro_rules! feature_table {
    ($($(#[$doc:meta])* $name:ident = $vulkan:literal
        $(, kernels: $key:literal $phrase:literal)?
        $(, spirv: [$($capability:literal),+])?;)*) => {
        /// A feature of a device, as Vulkan has them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Feature { $($(#[$doc])* #[doc = concat!("(`", $vulkan, "`)")] $name,)* }

        impl Feature {
            /// All features, in the order of the table.
            pub const ALL: &'static [Feature] = &[$(Feature::$name,)*];
        }

        const ROWS: &[Row] = &[$(Row {
            vulkan: $vulkan,
            kernels: &[$(($key, $phrase))?],
            spirv: &[$($($capability,)+)?],
        },)*];
    };
}

feature_table! {
    /// Out-of-range accesses to buffers stay inside their memory.
    RobustBufferAccess = "robustBufferAccess";
    /// 16-bit integer arithmetic.
    ShaderInt16 = "shaderInt16", kernels: "int16" "16-bit integers", spirv: ["Int16"];
    /// 64-bit integer arithmetic and storage.
    ShaderInt64 = "shaderInt64", kernels: "int64" "64-bit integers", spirv: ["Int64"];
    /// 64-bit float arithmetic and storage.
    ShaderFloat64 = "shaderFloat64", kernels: "float64" "64-bit floats", spirv: ["Float64"];
    /// 16-bit values in storage buffers.
    StorageBuffer16BitAccess = "storageBuffer16BitAccess", kernels: "storage_16bit" "16-bit storage",
        spirv: ["StorageBuffer16BitAccess"];
    /// 16-bit values in uniform and storage buffers.
    UniformAndStorageBuffer16BitAccess = "uniformAndStorageBuffer16BitAccess",
        spirv: ["UniformAndStorageBuffer16BitAccess"];
    /// 16-bit push constants.
    StoragePushConstant16 = "storagePushConstant16", spirv: ["StoragePushConstant16"];
    /// Pointers that are values, in storage buffers.
    VariablePointersStorageBuffer = "variablePointersStorageBuffer", spirv: ["VariablePointersStorageBuffer"];
    /// Pointers that are values, in workgroup memory too.
    VariablePointers = "variablePointers", spirv: ["VariablePointers"];
    /// 8-bit values in storage buffers.
    StorageBuffer8BitAccess = "storageBuffer8BitAccess", kernels: "storage_8bit" "8-bit storage",
        spirv: ["StorageBuffer8BitAccess"];
    /// 8-bit values in uniform and storage buffers.
    UniformAndStorageBuffer8BitAccess = "uniformAndStorageBuffer8BitAccess",
        spirv: ["UniformAndStorageBuffer8BitAccess"];
    /// 8-bit push constants.
    StoragePushConstant8 = "storagePushConstant8", spirv: ["StoragePushConstant8"];
    /// 16-bit float arithmetic.
    ShaderFloat16 = "shaderFloat16", kernels: "float16" "16-bit floats", spirv: ["Float16"];
    /// 8-bit integer arithmetic.
    ShaderInt8 = "shaderInt8", kernels: "int8" "8-bit integers", spirv: ["Int8"];
    /// Atomic operations on 64-bit integers in buffers.
    ShaderBufferInt64Atomics = "shaderBufferInt64Atomics", spirv: ["Int64Atomics"];
    /// Atomic operations on 64-bit integers in workgroup memory.
    ShaderSharedInt64Atomics = "shaderSharedInt64Atomics";
    /// Layouts aligned as scalars are.
    ScalarBlockLayout = "scalarBlockLayout";
    /// The layout of storage buffers in uniform buffers.
    UniformBufferStandardLayout = "uniformBufferStandardLayout";
    /// Subgroup operations on 8-, 16- and 64-bit types.
    ShaderSubgroupExtendedTypes = "shaderSubgroupExtendedTypes";
    /// Queries that the host resets.
    HostQueryReset = "hostQueryReset";
    /// Semaphores that count.
    TimelineSemaphore = "timelineSemaphore";
    /// Pointers to buffers.
    BufferDeviceAddress = "bufferDeviceAddress", kernels: "buffer_device_address" "buffer addresses",
        spirv: ["PhysicalStorageBufferAddresses"];
    /// The Vulkan memory model.
    VulkanMemoryModel = "vulkanMemoryModel", kernels: "vulkan_memory_model" "the Vulkan memory model",
        spirv: ["VulkanMemoryModel"];
    /// The Vulkan memory model with device scope.
    VulkanMemoryModelDeviceScope = "vulkanMemoryModelDeviceScope", spirv: ["VulkanMemoryModelDeviceScope"];
    /// Pipelines that require a subgroup size.
    SubgroupSizeControl = "subgroupSizeControl", kernels: "subgroup_size_control" "required subgroup sizes";
    /// Pipelines whose subgroups are full.
    ComputeFullSubgroups = "computeFullSubgroups";
    /// Barriers and submissions in the form of Vulkan 1.3.
    Synchronization2 = "synchronization2";
    /// Workgroup memory that begins as zeros.
    ShaderZeroInitializeWorkgroupMemory = "shaderZeroInitializeWorkgroupMemory";
    /// Integer dot products, fast or not.
    ShaderIntegerDotProduct = "shaderIntegerDotProduct", kernels: "integer_dot_product" "integer dot products",
        spirv: ["DotProduct", "DotProductInputAll", "DotProductInput4x8Bit", "DotProductInput4x8BitPacked"];
    /// Smaller additions of Vulkan 1.3.
    Maintenance4 = "maintenance4";
    /// Smaller additions of Vulkan 1.4.
    Maintenance5 = "maintenance5";
    /// Out-of-range reads give zero, and such writes vanish.
    RobustBufferAccess2 = "robustBufferAccess2";
    /// Bindings without a buffer.
    NullDescriptor = "nullDescriptor";
    /// Robust access that each pipeline chooses.
    PipelineRobustness = "pipelineRobustness";
    /// Explicit layout of workgroup memory.
    WorkgroupMemoryExplicitLayout = "workgroupMemoryExplicitLayout", spirv: ["WorkgroupMemoryExplicitLayoutKHR"];
    /// Explicit layout of workgroup memory, aligned as scalars are.
    WorkgroupMemoryExplicitLayoutScalarBlockLayout = "workgroupMemoryExplicitLayoutScalarBlockLayout";
    /// Explicit layout of workgroup memory with 8-bit values.
    WorkgroupMemoryExplicitLayout8BitAccess = "workgroupMemoryExplicitLayout8BitAccess";
    /// Explicit layout of workgroup memory with 16-bit values.
    WorkgroupMemoryExplicitLayout16BitAccess = "workgroupMemoryExplicitLayout16BitAccess";
    /// Cooperative matrices; which shapes, a device lists.
    CooperativeMatrix = "cooperativeMatrix", spirv: ["CooperativeMatrixKHR"];
    /// Robust access of cooperative matrices.
    CooperativeMatrixRobustBufferAccess = "cooperativeMatrixRobustBufferAccess";
    /// bf16 values.
    ShaderBFloat16Type = "shaderBFloat16Type", kernels: "bfloat16" "bf16", spirv: ["BFloat16TypeKHR"];
    /// bf16 dot products.
    ShaderBFloat16DotProduct = "shaderBFloat16DotProduct", spirv: ["BFloat16DotProductKHR"];
    /// bf16 cooperative matrices.
    ShaderBFloat16CooperativeMatrix = "shaderBFloat16CooperativeMatrix", spirv: ["BFloat16CooperativeMatrixKHR"];
    /// Control flow that is uniform in a subgroup comes together again.
    ShaderSubgroupUniformControlFlow = "shaderSubgroupUniformControlFlow";
    /// Control flow comes together as the source says.
    ShaderMaximalReconvergence = "shaderMaximalReconvergence";
    /// Rotations in a subgroup.
    ShaderSubgroupRotate = "shaderSubgroupRotate";
    /// Statistics of compiled pipelines.
    PipelineExecutableInfo = "pipelineExecutableInfo";
    /// A lost device says what went wrong.
    DeviceFault = "deviceFault";
    /// Tensors (`VK_ARM_tensors`). No driver asks for it; kernels that need it are refused by its name.
    ShaderTensorAccess = "shaderTensorAccess", spirv: ["TensorsARM"];
    /// Atomic additions of 32-bit floats in buffers. No driver asks for it; kernels that need it are refused by its name.
    ShaderBufferFloat32AtomicAdd = "shaderBufferFloat32AtomicAdd", spirv: ["AtomicFloat32AddEXT"];
}

// Sets of features are 128 bits.
const _: () = assert!(ROWS.len() <= 128, "FeatureSet has a bit for each row");

impl Feature {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its name in Vulkan, and its key in records of devices: `shaderFloat16`.
    pub fn vulkan_name(self) -> &'static str {
        self.row().vulkan
    }

    /// The feature with this Vulkan name.
    pub fn from_vulkan_name(name: &str) -> Option<Feature> {
        Feature::ALL.iter().copied().find(|feature| feature.vulkan_name() == name)
    }

    /// Its key in the table of GPUs and in the needs of kernels: `float16`; `None` for a feature that kernels do not choose by.
    pub fn kernel_key(self) -> Option<&'static str> {
        self.row().kernels.first().map(|(key, _)| *key)
    }

    /// The feature with this key.
    pub fn from_kernel_key(key: &str) -> Option<Feature> {
        Feature::ALL.iter().copied().find(|feature| feature.kernel_key() == Some(key))
    }

    /// What it is, for people: `16-bit floats`. The Vulkan name where kernels do not choose by it.
    pub fn phrase(self) -> &'static str {
        self.row().kernels.first().map_or(self.row().vulkan, |(_, phrase)| *phrase)
    }

    /// The capabilities of SPIR-V that a module may declare only where a device has the feature.
    pub fn spirv_capabilities(self) -> &'static [&'static str] {
        self.row().spirv
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_keys_and_capabilities_are_unique() {
        let (mut names, mut keys, mut capabilities) = (HashSet::new(), HashSet::new(), HashSet::new());
        for feature in Feature::ALL.iter().copied() {
            assert!(names.insert(feature.vulkan_name()));
            assert_eq!(Feature::from_vulkan_name(feature.vulkan_name()), Some(feature));
            if let Some(key) = feature.kernel_key() {
                assert!(keys.insert(key));
                assert_eq!(Feature::from_kernel_key(key), Some(feature));
            }
            assert!(feature.spirv_capabilities().iter().all(|name| capabilities.insert(*name)));
        }
        assert_eq!(Feature::from_vulkan_name("geometryShader"), None);
    }
}
