//! Owns executables of format `vmvx-bytecode-fb`: a module whose functions run one workgroup each. Does not own: the
//! VM, or device memory.

use std::ops::Range;

use halite_hal::{ExecutableDesc, FunctionInfo};
use halite_status::{Result, bail};

use crate::code::{Call, Code, Needs, Worker};

/// Format string of modules.
pub(crate) const FORMAT: &str = "vmvx-bytecode-fb";

/// A loaded module.
#[derive(Debug)]
pub(crate) struct VmvxCode {
    functions: Vec<FunctionInfo>,
}

impl VmvxCode {
    /// Loads a module. UNIMPLEMENTED as yet.
    pub fn load(desc: &ExecutableDesc) -> Result<Self> {
        bail!(Unimplemented, "{} bytes of bytecode for the VM: VMVX is not supported yet", desc.data.len())
    }
}

impl Code for VmvxCode {
    fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// One workgroup after the other: views of bindings may overlap.
    fn needs(&self, _function: usize) -> Needs {
        Needs::default()
    }

    fn may_hang(&self) -> bool {
        true
    }

    fn run(&self, _call: &Call<'_>, _workgroups: Range<u64>, _worker: &mut Worker<'_>) -> Result<()> {
        bail!(Unimplemented, "VMVX is not supported yet")
    }
}
