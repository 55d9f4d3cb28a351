//! Owns executables and the choice of what reads their format. Does not own: any format (`library`, `vmvx`).

use std::{any::Any, sync::Arc};

use halite_hal::{Executable, ExecutableDesc, FunctionInfo};
use halite_status::{Result, ResultExt, bail};

use crate::{code::Code, cpu, library::NativeCode, vmvx};

/// Code of a module, ready to be dispatched. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LocalExecutable {
    device_id: u64,
    code: Arc<dyn Code>,
}

impl LocalExecutable {
    /// Reads code in one of the formats that the device takes. INCOMPATIBLE for another.
    pub fn new(device_id: u64, formats: &[&'static str], desc: &ExecutableDesc) -> Result<Self> {
        let Some(format) = formats.iter().find(|format| **format == desc.format) else {
            let why = if cpu::ELF_FORMATS.contains(&desc.format.as_str()) {
                "; it holds native code, which the device was told to refuse (native_code=off)"
            } else {
                ""
            };
            bail!(
                Incompatible,
                "executable '{}' has format '{}'{why}; the device takes {}",
                desc.label,
                desc.format,
                formats.join(", ")
            );
        };
        let code: Arc<dyn Code> = match *format {
            vmvx::FORMAT => Arc::new(vmvx::VmvxCode::load(desc).context(|| context(desc))?),
            _ => Arc::new(NativeCode::load(desc).context(|| context(desc))?),
        };
        Ok(LocalExecutable { device_id, code })
    }

    /// The code.
    pub fn code(&self) -> &dyn Code {
        self.code.as_ref()
    }

    /// Whether it was made by this device.
    pub fn is_of(&self, device_id: u64) -> bool {
        self.device_id == device_id
    }
}

fn context(desc: &ExecutableDesc) -> String {
    format!("loading executable '{}' of format '{}'", desc.label, desc.format)
}

impl Executable for LocalExecutable {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn functions(&self) -> &[FunctionInfo] {
        self.code.functions()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
