//! The native module `hal`: the functions that [`halite_abi::import::hal`] lists, one table of them per kind of object.
//! Drivers stand behind its devices, and the HAL's validation checks what a program asks of them.

mod allocator;
mod args;
mod buffer;
mod buffer_view;
mod built;
mod channel;
mod command_buffer;
mod device;
mod executable;
mod fence;
mod objects;
mod queue;
mod wait;

use std::{any::Any, fmt, sync::Arc};

use halite_abi::{
    Import, Result, ResultExt,
    import::hal::{NAME, VERSION},
    status,
};
use halite_hal::Device;
use halite_vm::{Arguments, NativeFunction, NativeModule, Ref, Results};

use self::built::Executables;
use crate::{
    hints::ModuleHints,
    progress::{PIPELINES, Progress, ProgressSink},
    view::BufferView,
};

pub(crate) use args::{
    QueueArgs, buffer as read_buffer, buffer_params as read_buffer_params, fence as read_fence,
};
pub use objects::{BufferObject, CommandBufferObject, DeviceObject, FenceObject, FileObject};
pub(crate) use wait::wait_for_fence;

/// Where `hal.buffer_view.trace` goes: the key of the trace and its tensors. Called on the thread of the call.
pub type TraceSink = Arc<dyn Fn(&str, &[BufferView]) + Send + Sync>;

type Handler = fn(&HalModule, &mut Arguments, &mut Results) -> Result<()>;

/// One function of the module.
struct Entry {
    import: Import,
    handler: Handler,
}

const fn entry(import: Import, handler: Handler) -> Entry {
    Entry { import, handler }
}

const TABLES: [&[Entry]; 9] = [
    allocator::FUNCTIONS,
    buffer::FUNCTIONS,
    buffer_view::FUNCTIONS,
    channel::FUNCTIONS,
    command_buffer::FUNCTIONS,
    device::FUNCTIONS,
    executable::FUNCTIONS,
    fence::FUNCTIONS,
    queue::FUNCTIONS,
];

/// The native module `hal` over an ordered list of devices. Immutable after creation; any thread may call it.
pub struct HalModule {
    devices: Vec<Ref>,
    hints: Vec<ModuleHints>,
    trace: TraceSink,
    functions: Vec<&'static Entry>,
    executables: Executables,
}

impl HalModule {
    /// The module over these devices; `hints` says what the modules of the context reveal about their executables.
    pub fn new(devices: &[Arc<dyn Device>], hints: Vec<ModuleHints>, trace: TraceSink) -> Self {
        let devices = devices.iter().map(|device| Ref::new(DeviceObject::new(device.clone()))).collect();
        HalModule {
            devices,
            hints,
            trace,
            functions: TABLES.into_iter().flatten().collect(),
            executables: Executables::new(Progress::default()),
        }
    }

    /// The same module, which tells how many pipelines are built.
    #[must_use]
    pub fn with_progress(mut self, sink: Option<ProgressSink>) -> Self {
        self.executables = Executables::new(Progress::new(sink, PIPELINES));
        self
    }
}

impl HalModule {
    /// The device of the session with this identity.
    fn device(&self, id: u64) -> Option<&dyn Device> {
        let devices = self.devices.iter().filter_map(Ref::downcast_ref::<DeviceObject>);
        devices.map(|d| d.device.as_ref()).find(|d| d.id() == id)
    }
}

impl fmt::Debug for HalModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HalModule").field("devices", &self.devices).finish_non_exhaustive()
    }
}

impl NativeModule for HalModule {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn lookup(&self, name: &str) -> Option<NativeFunction> {
        let ordinal = self.functions.iter().position(|f| f.import.name == name)?;
        Some(NativeFunction { ordinal: ordinal as u32, signature: self.functions[ordinal].import.signature })
    }

    fn call(
        &self,
        _state: &mut (dyn Any + Send),
        ordinal: u32,
        args: &mut Arguments,
        results: &mut Results,
    ) -> Result<()> {
        let function = self
            .functions
            .get(ordinal as usize)
            .ok_or_else(|| status!(Internal, "module 'hal' has no function {ordinal}"))?;
        (function.handler)(self, args, results)
            .context(|| format!("while invoking native function {}", function.import.full_name))
    }
}

#[cfg(test)]
mod tests;
