//! The back end for Vulkan: kernels of the library `halite-shaders`, and SPIR-V that models bring along.

mod choose;
mod executable;
mod foreign;

use halite_abi::format;
use halite_ops::Operation;
use halite_shaders::Tuning;
use halite_targets::Capabilities;

use super::{Backend, Choice, Code, Computation};
use crate::CompileError;

/// Whether an operation keeps its rules, and the library has kernels for its types.
///
/// # Errors
/// Says what is wrong, or which types there are.
pub fn check(operation: &Operation) -> Result<(), String> {
    halite_shaders::check(operation)
}

/// Whether a kernel for every Vulkan 1.1 device computes an operation.
pub fn runs_everywhere(operation: &Operation) -> bool {
    choose::runs_everywhere(operation)
}

/// Computes with Vulkan.
#[derive(Clone, Copy, Debug)]
pub struct Vulkan<'a> {
    tuning: &'a Tuning,
}

impl<'a> Vulkan<'a> {
    /// A back end that chooses kernels by what was measured.
    pub fn new(tuning: &'a Tuning) -> Self {
        Vulkan { tuning }
    }
}

impl Backend for Vulkan<'_> {
    fn executable_format(&self) -> &'static str {
        format::VULKAN_SPIRV
    }

    fn choose(&self, computation: &Computation, target: &Capabilities) -> Result<Choice, String> {
        match computation {
            Computation::Operation(operation) => choose::choose(operation, target, self.tuning),
            Computation::Foreign(kernel) => foreign::choose(kernel, target, computation.work()),
        }
    }

    fn executable(&self, code: &Code) -> Result<Vec<u8>, CompileError> {
        executable::executable(code)
    }
}
