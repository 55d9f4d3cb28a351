//! The executables of kernels.
//!
//! Runtimes find a kernel by the name of its entry point. The library calls all of them `main`; here each gets the name of
//! its code, which profilers and messages show.

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
        shader_modules: vec![named(&code.module.to_bytes(), &code.name).into()],
        source_files: Vec::new(),
    };
    write_vulkan_executable(&executable).map_err(|e| CompileError::Write(format!("{}: {e}", code.name)))
}

/// SPIR-V with another name for its entry point.
fn named(spirv: &[u8], name: &str) -> Vec<u8> {
    /// `OpEntryPoint`: model, function, name, interface.
    const ENTRY_POINT: u32 = 15;
    /// Words before the first instruction.
    const HEADER: usize = 5;
    let words: Vec<u32> = spirv.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let mut made = words[..HEADER.min(words.len())].to_vec();
    let mut at = HEADER;
    while at < words.len() {
        let end = (at + (words[at] >> 16).max(1) as usize).min(words.len());
        let instruction = &words[at..end];
        at = end;
        if instruction[0] & 0xFFFF != ENTRY_POINT || instruction.len() < 4 {
            made.extend_from_slice(instruction);
            continue;
        }
        let old = instruction[3..].iter().position(|word| word.to_le_bytes().contains(&0));
        let interface = &instruction[3 + old.map_or(0, |last| last + 1)..];
        let mut text = name.as_bytes().to_vec();
        text.resize(text.len() / 4 * 4 + 4, 0);
        let text = text.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let text: Vec<u32> = text.collect();
        made.push(((3 + text.len() + interface.len()) as u32) << 16 | ENTRY_POINT);
        made.extend_from_slice(&instruction[1..3]);
        made.extend(text);
        made.extend_from_slice(interface);
    }
    made.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_get_names_and_keep_their_interface() {
        // A header, a capability, and an entry point `main` with two variables.
        let words =
            [0x0723_0203, 0x1_0000, 0, 9, 0, 2 << 16 | 17, 1, 7 << 16 | 15, 5, 4, 0x6E69_616D, 0, 6, 8];
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let made = named(&bytes, "softmax");
        let made: Vec<u32> = made.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert_eq!(made[..7], words[..7]);
        assert_eq!(made[7..], [7 << 16 | 15, 5, 4, 0x7466_6F73, 0x0078_616D, 6, 8]);
        assert_eq!(named(&bytes, "main"), bytes);
    }
}
