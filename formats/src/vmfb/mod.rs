//! IREE module files: container, bytecode module, Vulkan executables. Source of the layout: docs/formats/vmfb.md.

mod executable;
mod module;

pub use executable::{
    BdaLayout, DescriptorBinding, DispatchAbi, Pipeline, PipelineLayout, PushConstantRange, VulkanExecutable,
};
pub use module::{
    Attr, BYTECODE_VERSION, DebugDatabase, Dependency, Export, Function, FunctionDebug, FunctionSignature, Import,
    Location, ModuleDef, requirement,
};
