//! Owns the executables of kernels. Does not own: their code.

use halite_formats::vmfb::{
    DescriptorBinding, DispatchAbi, Pipeline, PipelineLayout, PushConstantRange, VulkanExecutable,
    write_vulkan_executable,
};

use crate::{CompileError, plan::choose::Code};

/// `VK_DESCRIPTOR_TYPE_STORAGE_BUFFER`.
const STORAGE_BUFFER: u32 = 7;
/// `VK_SHADER_STAGE_COMPUTE_BIT`.
const COMPUTE: u32 = 0x20;

/// An executable with the one kernel that has this code.
pub fn executable(code: &Code) -> Result<Vec<u8>, CompileError> {
    let binding =
        |binding| DescriptorBinding { binding, descriptor_type: STORAGE_BUFFER, count: 1, stage_flags: COMPUTE };
    let push_constants = match code.push_words {
        0 => Vec::new(),
        words => vec![PushConstantRange { stage_flags: COMPUTE, offset: 0, size: words * 4 }],
    };
    let executable = VulkanExecutable {
        pipelines: vec![Pipeline {
            name: code.name.clone(),
            entry_point: "main".to_owned(),
            shader_module: 0,
            layout: 0,
            subgroup_size: code.subgroup_size,
            abi: DispatchAbi::Descriptors,
            bda: None,
            location: None,
        }],
        set_layouts: vec![(0..code.bindings).map(binding).collect()],
        pipeline_layouts: vec![PipelineLayout { set_layouts: vec![0], push_constants }],
        shader_modules: vec![code.module.to_bytes().into()],
        source_files: Vec::new(),
    };
    write_vulkan_executable(&executable).map_err(|e| CompileError::Write(format!("{}: {e}", code.name)))
}
