//! Executables: device code with named functions. Drivers know the formats of code.

use std::{any::Any, fmt};

use bytes::Bytes;

use crate::{Deadline, Footprint, Result};

/// What an executable is made from.
#[derive(Clone, Debug)]
pub struct ExecutableDesc {
    /// Format string as modules carry it, such as `vulkan-spirv-fb`.
    pub format: String,
    /// The code. Held, not copied: it usually aliases the module's file mapping.
    pub data: Bytes,
    /// Specialization constants, in order.
    pub constants: Vec<u32>,
    /// Name for debuggers and error messages; may be empty.
    pub label: String,
    /// Subgroup sizes that the compiler was told the device has (from the module's target attributes); empty when
    /// the module does not say. Code may assume any of them without checking.
    pub subgroup_sizes: Vec<u32>,
}

/// Facts about one function of an executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Export name.
    pub name: String,
    /// Number of bindings a dispatch must give.
    pub binding_count: u32,
    /// Number of u32 constants a dispatch must give.
    pub constant_count: u32,
    /// Invocations per workgroup; zeros when the format leaves it open.
    pub workgroup_size: [u32; 3],
}

/// Device code, ready to be dispatched.
pub trait Executable: fmt::Debug + Send + Sync + 'static {
    /// Identity of the device that made it.
    fn device_id(&self) -> u64;

    /// Its functions; a dispatch names one by index.
    fn functions(&self) -> &[FunctionInfo];

    /// Index of the function with this name.
    fn lookup(&self, name: &str) -> Option<u32> {
        self.functions().iter().position(|f| f.name == name).map(|i| i as u32)
    }

    /// Waits until these functions can be dispatched at once, because what the driver makes of their code in the
    /// background is there or has failed; a failure is told by whatever uses the function. What is waited for is made
    /// before anything else. Returns how many of them are done when the wait ends; [`Deadline::Now`] only looks.
    /// DEADLINE_EXCEEDED when the driver has been at one of them for longer than its own limit, OUT_OF_RANGE for a function
    /// that does not exist. A driver whose code is ready once the executable exists leaves this as it is.
    fn wait_built(&self, functions: &[u32], deadline: Deadline) -> Result<usize> {
        let _ = deadline;
        Ok(functions.len())
    }

    /// What a dispatch of this function accesses, for the check of barriers (`halite_layers::hazards`): for each binding what is
    /// read and what is written, and no less than the code does. `None` for the workgroups where only the device knows
    /// them. The answer is `None` where the driver cannot look into the code. May take long: nobody asks unless the check
    /// is switched on.
    fn footprints(
        &self,
        function: u32,
        constants: &[u32],
        workgroups: Option<[u32; 3]>,
    ) -> Option<Vec<Footprint>> {
        let _ = (function, constants, workgroups);
        None
    }

    /// The driver's own type, for downcasts inside that driver.
    fn as_any(&self) -> &dyn Any;
}
