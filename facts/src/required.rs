//! What the capabilities that a SPIR-V module declares ask of a device.

use crate::{Feature, SubgroupOp};

/// What a kernel needs of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// A feature.
    Feature(Feature),
    /// Subgroup operations in compute kernels.
    Subgroup(SubgroupOp),
    /// A capability that the table has no row for; the requirement's text has its SPIR-V name.
    Unknown,
}

impl Need {
    /// Name of the feature as Vulkan spells it; subgroup operations by their bit.
    pub fn vulkan_name(self) -> &'static str {
        match self {
            Need::Feature(feature) => feature.vulkan_name(),
            Need::Subgroup(operation) => operation.vulkan_name(),
            Need::Unknown => "(unknown)",
        }
    }
}

/// One need and what asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The need.
    pub need: Need,
    /// What in the module asks for it, e.g. `OpCapability Int64`.
    pub needed_by: String,
}

/// What a module needs that declares these capabilities and this memory model, both by their SPIR-V names: each need once, in
/// the order of the declarations. What every Vulkan 1.1 device has is left out.
pub fn required_features<'a>(
    capabilities: impl IntoIterator<Item = &'a str>,
    memory_model: &str,
) -> Vec<Requirement> {
    let mut list: Vec<Requirement> = Vec::new();
    for capability in capabilities {
        let Some(need) = need_of(capability) else { continue };
        if need == Need::Unknown || !list.iter().any(|r| r.need == need) {
            list.push(Requirement { need, needed_by: format!("OpCapability {capability}") });
        }
    }
    let model = Need::Feature(Feature::VulkanMemoryModel);
    if memory_model == "Vulkan" && !list.iter().any(|r| r.need == model) {
        list.push(Requirement { need: model, needed_by: "OpMemoryModel Vulkan".to_owned() });
    }
    list
}

/// Capabilities that every Vulkan 1.1 device has.
const BASELINE: [&str; 5] = ["Shader", "Matrix", "StorageBufferStorageClass", "SampledBuffer", "Image1D"];

fn need_of(capability: &str) -> Option<Need> {
    if BASELINE.contains(&capability) {
        return None;
    }
    let feature = Feature::ALL.iter().copied().find(|f| f.spirv_capabilities().contains(&capability));
    let need = feature.map(Need::Feature);
    Some(need.or_else(|| SubgroupOp::of_capability(capability).map(Need::Subgroup)).unwrap_or(Need::Unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_ask_for_features_and_operations() {
        let declared =
            ["Shader", "Float16", "DotProduct", "DotProductInput4x8Bit", "GroupNonUniformVote", "Geometry"];
        let list = required_features(declared, "Vulkan");
        let names: Vec<&str> = list.iter().map(|r| r.need.vulkan_name()).collect();
        let wanted = [
            "shaderFloat16",
            "shaderIntegerDotProduct",
            "VK_SUBGROUP_FEATURE_VOTE_BIT",
            "(unknown)",
            "vulkanMemoryModel",
        ];
        assert_eq!(names, wanted);
        assert_eq!(list[3].needed_by, "OpCapability Geometry");
        assert_eq!(list[4].needed_by, "OpMemoryModel Vulkan");
    }

    #[test]
    fn a_need_is_listed_once() {
        let list = required_features(["VulkanMemoryModel", "Int8", "Int8"], "Vulkan");
        assert_eq!(list.len(), 2, "{list:?}");
    }
}
