//! The executables of kernels.
//!
//! Runtimes find a kernel by the name of its entry point. The library calls all of them `main`; here each gets the name of
//! its code, which profilers and messages show.

use std::fmt::Display;

use halite_formats::vmfb::{
    DescriptorBinding, DispatchAbi, Pipeline, PipelineLayout, PushConstantRange, VulkanExecutable,
    write_vulkan_executable,
};
use halite_spirv::{rename_entry, words_from_bytes, words_to_bytes};

use crate::{CompileError, plan::choose::Code};

/// `VK_DESCRIPTOR_TYPE_STORAGE_BUFFER`.
const STORAGE_BUFFER: u32 = 7;
/// `VK_SHADER_STAGE_COMPUTE_BIT`.
const COMPUTE: u32 = 0x20;

/// An executable with the one kernel that has this code.
pub fn executable(code: &Code) -> Result<Vec<u8>, CompileError> {
    let failed = |e: &dyn Display| CompileError::Write(format!("{}: {e}", code.name));
    let spirv = words_from_bytes(&code.module.to_bytes()).and_then(|words| rename_entry(&words, &code.name));
    let spirv = words_to_bytes(&spirv.map_err(|e| failed(&e))?);
    let binding = |binding| DescriptorBinding {
        binding,
        descriptor_type: STORAGE_BUFFER,
        count: 1,
        stage_flags: COMPUTE,
    };
    let push_constants = match code.push_words {
        0 => Vec::new(),
        words => vec![PushConstantRange { stage_flags: COMPUTE, offset: 0, size: words * 4 }],
    };
    let executable = VulkanExecutable {
        pipelines: vec![Pipeline {
            name: code.name.clone(),
            entry_point: code.name.clone(),
            shader_module: 0,
            layout: 0,
            subgroup_size: code.subgroup_size,
            abi: DispatchAbi::Descriptors,
            bda: None,
            location: None,
        }],
        set_layouts: vec![(0..code.bindings).map(binding).collect()],
        pipeline_layouts: vec![PipelineLayout { set_layouts: vec![0], push_constants }],
        shader_modules: vec![spirv.into()],
        source_files: Vec::new(),
    };
    write_vulkan_executable(&executable).map_err(|e| failed(&e))
}
