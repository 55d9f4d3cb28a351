//! IREE module files: container, bytecode module, Vulkan executables; reading and writing. Source of the layout:
//! docs/formats/vmfb.md.

mod about;
mod container;
mod error;
mod executable;
mod module;
mod notes;
mod read;
mod read_debug;
mod read_executable;
mod read_module;
mod schema;
mod write_executable;
mod write_module;
mod zip;

pub use container::Container;
pub use error::VmfbError;
pub use executable::{
    BdaLayout, DescriptorBinding, DispatchAbi, Pipeline, PipelineLayout, PushConstantRange, VulkanExecutable,
};
pub use module::{
    Attr, BYTECODE_VERSION, DebugDatabase, Dependency, Export, Function, FunctionDebug, FunctionSignature,
    Import, Location, ModuleDef, requirement,
};
pub use notes::{OperationNote, RecordingNotes, VersionNote, group_name};
pub use read_executable::read_vulkan_executable;
pub use read_module::read_module;
pub use write_executable::write_vulkan_executable;
pub use write_module::{LargeData, WriteOptions, write_module, write_module_in_pieces, write_module_while};
