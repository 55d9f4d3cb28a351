//! The executables of kernels.
//!
//! Runtimes find a kernel by the name of its entry point. The library calls all of them `main`; here each gets the name of
//! its code, which profilers and messages show.

use std::fmt::Display;

use halite_formats::vmfb::{VulkanExecutable, write_vulkan_executable};
use halite_spirv::{rename_entry, words_from_bytes, words_to_bytes};

use crate::{CompileError, backend::Code};

/// An executable with the one kernel that has this code.
pub fn executable(code: &Code) -> Result<Vec<u8>, CompileError> {
    let failed = |e: &dyn Display| CompileError::Write(format!("{}: {e}", code.name));
    let spirv = words_from_bytes(&code.binary.to_bytes()).and_then(|words| rename_entry(&words, &code.name));
    let spirv = words_to_bytes(&spirv.map_err(|e| failed(&e))?);
    let push_bytes = code.push_words * 4;
    let executable =
        VulkanExecutable::of_kernel(&code.name, spirv.into(), code.bindings, push_bytes, code.subgroup_size);
    write_vulkan_executable(&executable).map_err(|e| failed(&e))
}
