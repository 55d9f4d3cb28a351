//! The decoded form of Vulkan executables (`VKE1`).

use bytes::Bytes;
use halite_abi::descriptor::{COMPUTE_STAGE, STORAGE_BUFFER};

/// How a pipeline takes its bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DispatchAbi {
    /// Descriptor sets and push constants.
    Descriptors,
    /// Buffer device addresses in a table, version 1.
    BufferDeviceAddress,
}

/// Push-constant and binding-table layout of a BDA pipeline. Offsets and lengths in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BdaLayout {
    /// ABI version; 1.
    pub abi_version: u32,
    /// Where the 32-byte root struct is.
    pub root_offset: u32,
    /// Its length.
    pub root_length: u32,
    /// Where constants begin.
    pub constant_offset: u32,
    /// Number of u32 constants.
    pub constant_count: u32,
    /// Bindings: (minimum alignment, minimum length).
    pub bindings: Vec<(u32, u64)>,
}

/// One binding of a descriptor set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DescriptorBinding {
    /// Binding number.
    pub binding: u32,
    /// VkDescriptorType number: 6 uniform buffer, 7 storage buffer.
    pub descriptor_type: u32,
    /// Array size; 1.
    pub count: u32,
    /// VkShaderStageFlags.
    pub stage_flags: u32,
}

/// A push-constant range in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PushConstantRange {
    /// VkShaderStageFlags.
    pub stage_flags: u32,
    /// Offset.
    pub offset: u32,
    /// Size.
    pub size: u32,
}

/// A pipeline layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipelineLayout {
    /// Indices into [`VulkanExecutable::set_layouts`], set 0 first.
    pub set_layouts: Vec<u32>,
    /// Push constants.
    pub push_constants: Vec<PushConstantRange>,
}

/// One entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Name that modules look up.
    pub name: String,
    /// Entry point in the shader.
    pub entry_point: String,
    /// Index into [`VulkanExecutable::shader_modules`].
    pub shader_module: u32,
    /// Index into [`VulkanExecutable::pipeline_layouts`].
    pub layout: u32,
    /// Required subgroup size; 0 when unspecified.
    pub subgroup_size: u32,
    /// Binding ABI.
    pub abi: DispatchAbi,
    /// BDA layout when `abi` is BDA.
    pub bda: Option<BdaLayout>,
    /// Source file and line, if kept.
    pub location: Option<(String, u32)>,
}

/// A decoded `VKE1` executable, with all indices checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VulkanExecutable {
    /// Entry points; a dispatch's function id is an index into this.
    pub pipelines: Vec<Pipeline>,
    /// Descriptor set layouts.
    pub set_layouts: Vec<Vec<DescriptorBinding>>,
    /// Pipeline layouts.
    pub pipeline_layouts: Vec<PipelineLayout>,
    /// SPIR-V words as little-endian bytes, slices of the input.
    pub shader_modules: Vec<Bytes>,
    /// Embedded sources: (path, content).
    pub source_files: Vec<(String, Bytes)>,
}

impl VulkanExecutable {
    /// An executable of one kernel, whose module, `spirv` as little-endian bytes, has the entry point `name`. Its buffers are
    /// the bindings 0 to `bindings` of set 0; `push_bytes` and `subgroup_size` may be 0.
    pub fn of_kernel(name: &str, spirv: Bytes, bindings: u32, push_bytes: u32, subgroup_size: u32) -> Self {
        let buffer = |binding| DescriptorBinding {
            binding,
            descriptor_type: STORAGE_BUFFER,
            count: 1,
            stage_flags: COMPUTE_STAGE,
        };
        let push = PushConstantRange { stage_flags: COMPUTE_STAGE, offset: 0, size: push_bytes };
        VulkanExecutable {
            pipelines: vec![Pipeline {
                name: name.to_owned(),
                entry_point: name.to_owned(),
                shader_module: 0,
                layout: 0,
                subgroup_size,
                abi: DispatchAbi::Descriptors,
                bda: None,
                location: None,
            }],
            set_layouts: vec![(0..bindings).map(buffer).collect()],
            pipeline_layouts: vec![PipelineLayout {
                set_layouts: vec![0],
                push_constants: (push_bytes > 0).then_some(push).into_iter().collect(),
            }],
            shader_modules: vec![spirv],
            source_files: Vec::new(),
        }
    }
}
