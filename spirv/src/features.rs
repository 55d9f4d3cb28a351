//! The map from SPIR-V capabilities to the Vulkan features and properties that a device must have.

use serde::Serialize;

use crate::facts::ModuleFacts;

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $vulkan:literal;)*) => {
        /// A Vulkan feature, or property, that a kernel needs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[non_exhaustive]
        pub enum Feature { $($(#[$doc])* $name,)* }

        impl Feature {
            /// Name of the feature as Vulkan spells it; subgroup classes by their `VK_SUBGROUP_FEATURE_*` bit.
            pub fn vulkan_name(self) -> &'static str {
                match self { $(Feature::$name => $vulkan,)* }
            }
        }
    };
}

features! {
    /// 16-bit float arithmetic.
    ShaderFloat16 = "shaderFloat16";
    /// 64-bit float arithmetic.
    ShaderFloat64 = "shaderFloat64";
    /// 8-bit integer arithmetic.
    ShaderInt8 = "shaderInt8";
    /// 16-bit integer arithmetic.
    ShaderInt16 = "shaderInt16";
    /// 64-bit integer arithmetic.
    ShaderInt64 = "shaderInt64";
    /// 8-bit values in storage buffers.
    StorageBuffer8BitAccess = "storageBuffer8BitAccess";
    /// 8-bit values in uniform and storage buffers.
    UniformAndStorageBuffer8BitAccess = "uniformAndStorageBuffer8BitAccess";
    /// 8-bit push constants.
    StoragePushConstant8 = "storagePushConstant8";
    /// 16-bit values in storage buffers.
    StorageBuffer16BitAccess = "storageBuffer16BitAccess";
    /// 16-bit values in uniform and storage buffers.
    UniformAndStorageBuffer16BitAccess = "uniformAndStorageBuffer16BitAccess";
    /// 16-bit push constants.
    StoragePushConstant16 = "storagePushConstant16";
    /// Pointers to buffer memory.
    BufferDeviceAddress = "bufferDeviceAddress";
    /// Cooperative matrices (VK_KHR_cooperative_matrix).
    CooperativeMatrix = "cooperativeMatrix";
    /// The Vulkan memory model.
    VulkanMemoryModel = "vulkanMemoryModel";
    /// The Vulkan memory model with device scope.
    VulkanMemoryModelDeviceScope = "vulkanMemoryModelDeviceScope";
    /// Integer dot products.
    ShaderIntegerDotProduct = "shaderIntegerDotProduct";
    /// bfloat16 values (VK_KHR_shader_bfloat16).
    ShaderBFloat16Type = "shaderBFloat16Type";
    /// bfloat16 dot products.
    ShaderBFloat16DotProduct = "shaderBFloat16DotProduct";
    /// bfloat16 cooperative matrices.
    ShaderBFloat16CooperativeMatrix = "shaderBFloat16CooperativeMatrix";
    /// Pointers that are values, in storage buffers.
    VariablePointersStorageBuffer = "variablePointersStorageBuffer";
    /// Pointers that are values, in workgroup memory too.
    VariablePointers = "variablePointers";
    /// Tensors (VK_ARM_tensors).
    ShaderTensorAccess = "shaderTensorAccess";
    /// Atomic operations on 64-bit integers in buffers.
    ShaderBufferInt64Atomics = "shaderBufferInt64Atomics";
    /// Atomic additions of 32-bit floats in buffers.
    ShaderBufferFloat32AtomicAdd = "shaderBufferFloat32AtomicAdd";
    /// Explicit layout of workgroup memory.
    WorkgroupMemoryExplicitLayout = "workgroupMemoryExplicitLayout";
    /// Subgroup class: basic.
    SubgroupBasic = "VK_SUBGROUP_FEATURE_BASIC_BIT";
    /// Subgroup class: vote.
    SubgroupVote = "VK_SUBGROUP_FEATURE_VOTE_BIT";
    /// Subgroup class: arithmetic.
    SubgroupArithmetic = "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT";
    /// Subgroup class: ballot.
    SubgroupBallot = "VK_SUBGROUP_FEATURE_BALLOT_BIT";
    /// Subgroup class: shuffle.
    SubgroupShuffle = "VK_SUBGROUP_FEATURE_SHUFFLE_BIT";
    /// Subgroup class: relative shuffle.
    SubgroupShuffleRelative = "VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT";
    /// Subgroup class: clustered.
    SubgroupClustered = "VK_SUBGROUP_FEATURE_CLUSTERED_BIT";
    /// Subgroup class: quad.
    SubgroupQuad = "VK_SUBGROUP_FEATURE_QUAD_BIT";
    /// Subgroup class: rotate.
    SubgroupRotate = "VK_SUBGROUP_FEATURE_ROTATE_BIT";
    /// A capability that this crate has no Vulkan name for; the requirement's text has the SPIR-V name.
    Unknown = "(unknown)";
}

/// One feature and what asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Requirement {
    /// The feature.
    pub feature: Feature,
    /// What in the module needs it, e.g. `OpCapability Int64`.
    pub needed_by: String,
}

/// The Vulkan features a module needs, each once, in order of the capabilities' declaration.
pub fn required_features(facts: &ModuleFacts) -> Vec<Requirement> {
    let mut list: Vec<Requirement> = Vec::new();
    for capability in &facts.capabilities {
        if let Some(feature) = feature_of(capability) {
            let seen = list.iter().any(|r| r.feature == feature && feature != Feature::Unknown);
            if !seen {
                list.push(Requirement { feature, needed_by: format!("OpCapability {capability}") });
            }
        }
    }
    let model = Feature::VulkanMemoryModel;
    if facts.memory_model == "Vulkan" && !list.iter().any(|r| r.feature == model) {
        list.push(Requirement { feature: model, needed_by: "OpMemoryModel Vulkan".to_owned() });
    }
    list
}

/// The feature behind a capability; `None` for those that every Vulkan 1.1 device has.
fn feature_of(capability: &str) -> Option<Feature> {
    Some(match capability {
        "Shader" | "Matrix" | "StorageBufferStorageClass" | "SampledBuffer" | "Image1D" => return None,
        "Float16" => Feature::ShaderFloat16,
        "Float64" => Feature::ShaderFloat64,
        "Int8" => Feature::ShaderInt8,
        "Int16" => Feature::ShaderInt16,
        "Int64" => Feature::ShaderInt64,
        "StorageBuffer8BitAccess" => Feature::StorageBuffer8BitAccess,
        "UniformAndStorageBuffer8BitAccess" => Feature::UniformAndStorageBuffer8BitAccess,
        "StoragePushConstant8" => Feature::StoragePushConstant8,
        "StorageBuffer16BitAccess" => Feature::StorageBuffer16BitAccess,
        "UniformAndStorageBuffer16BitAccess" => Feature::UniformAndStorageBuffer16BitAccess,
        "StoragePushConstant16" => Feature::StoragePushConstant16,
        "PhysicalStorageBufferAddresses" => Feature::BufferDeviceAddress,
        "CooperativeMatrixKHR" => Feature::CooperativeMatrix,
        "VulkanMemoryModel" => Feature::VulkanMemoryModel,
        "VulkanMemoryModelDeviceScope" => Feature::VulkanMemoryModelDeviceScope,
        "DotProduct" | "DotProductInputAll" | "DotProductInput4x8Bit" | "DotProductInput4x8BitPacked" => {
            Feature::ShaderIntegerDotProduct
        }
        "BFloat16TypeKHR" => Feature::ShaderBFloat16Type,
        "BFloat16DotProductKHR" => Feature::ShaderBFloat16DotProduct,
        "BFloat16CooperativeMatrixKHR" => Feature::ShaderBFloat16CooperativeMatrix,
        "VariablePointersStorageBuffer" => Feature::VariablePointersStorageBuffer,
        "VariablePointers" => Feature::VariablePointers,
        "TensorsARM" => Feature::ShaderTensorAccess,
        "Int64Atomics" => Feature::ShaderBufferInt64Atomics,
        "AtomicFloat32AddEXT" => Feature::ShaderBufferFloat32AtomicAdd,
        "WorkgroupMemoryExplicitLayoutKHR" => Feature::WorkgroupMemoryExplicitLayout,
        "GroupNonUniform" => Feature::SubgroupBasic,
        "GroupNonUniformVote" | "SubgroupVoteKHR" => Feature::SubgroupVote,
        "GroupNonUniformArithmetic" => Feature::SubgroupArithmetic,
        "GroupNonUniformBallot" | "SubgroupBallotKHR" => Feature::SubgroupBallot,
        "GroupNonUniformShuffle" => Feature::SubgroupShuffle,
        "GroupNonUniformShuffleRelative" => Feature::SubgroupShuffleRelative,
        "GroupNonUniformClustered" => Feature::SubgroupClustered,
        "GroupNonUniformQuad" => Feature::SubgroupQuad,
        "GroupNonUniformRotateKHR" => Feature::SubgroupRotate,
        _ => Feature::Unknown,
    })
}
