//! Owns the VM objects that stand for HAL objects. Does not own: what functions do with them.

use std::sync::{Arc, OnceLock};

use halite_hal::{BufferSpan, CommandBuffer, CommandList, Device, Executable, Fence, File};
use halite_status::{Result, status};
use halite_vm::{Object, Ref};
use parking_lot::Mutex;

use crate::view::BufferView;

/// A device (`!hal.device`). Its allocator is made once, so that a program sees one identity.
#[derive(Debug)]
pub struct DeviceObject {
    /// The device.
    pub device: Arc<dyn Device>,
    allocator: Ref,
}

impl DeviceObject {
    pub(crate) fn new(device: Arc<dyn Device>) -> Self {
        let allocator = Ref::new(AllocatorObject { device: device.clone() });
        DeviceObject { device, allocator }
    }

    pub(super) fn allocator(&self) -> Ref {
        self.allocator.clone()
    }
}

/// The allocator of a device (`!hal.allocator`).
#[derive(Debug)]
pub struct AllocatorObject {
    /// The device.
    pub device: Arc<dyn Device>,
}

/// A byte range of a device buffer (`!hal.buffer`).
#[derive(Debug)]
pub struct BufferObject(pub BufferSpan);

/// A fence (`!hal.fence`).
#[derive(Debug)]
pub struct FenceObject(pub Fence);

/// A file (`!hal.file`).
#[derive(Debug)]
pub struct FileObject(pub File);

/// Device code (`!hal.executable`).
#[derive(Debug)]
pub struct ExecutableObject(pub Arc<dyn Executable>);

/// A command buffer (`!hal.command_buffer`): first a growing recording, then what the device made of it.
#[derive(Debug)]
pub struct CommandBufferObject {
    device: Arc<dyn Device>,
    recording: Mutex<Option<CommandList>>,
    finished: OnceLock<Arc<dyn CommandBuffer>>,
}

impl CommandBufferObject {
    pub(super) fn new(device: Arc<dyn Device>, list: CommandList) -> Self {
        CommandBufferObject { device, recording: Mutex::new(Some(list)), finished: OnceLock::new() }
    }

    /// Changes the recording. FAILED_PRECONDITION after [`CommandBufferObject::finalize`].
    pub(super) fn record(&self, change: impl FnOnce(&mut CommandList)) -> Result<()> {
        let mut recording = self.recording.lock();
        let list = recording.as_mut().ok_or_else(|| {
            status!(FailedPrecondition, "command buffer is finalized; it takes no more commands")
        })?;
        change(list);
        Ok(())
    }

    /// Ends the recording and hands it to the device.
    pub(super) fn finalize(&self) -> Result<()> {
        let list = self
            .recording
            .lock()
            .take()
            .ok_or_else(|| status!(FailedPrecondition, "command buffer is finalized already"))?;
        let finished = self.device.create_command_buffer(list)?;
        self.finished.set(finished).map_err(|_| status!(Internal, "command buffer was finalized twice at once"))
    }

    /// The finished command buffer. FAILED_PRECONDITION while it records.
    pub(super) fn finished(&self) -> Result<&Arc<dyn CommandBuffer>> {
        self.finished.get().ok_or_else(|| {
            status!(FailedPrecondition, "command buffer was submitted before command_buffer.finalize")
        })
    }
}

macro_rules! objects {
    ($($object:ty => $name:literal,)*) => {
        $(impl Object for $object {
            fn type_name(&self) -> &'static str {
                $name
            }
        })*
    };
}

objects! {
    DeviceObject => "hal.device",
    AllocatorObject => "hal.allocator",
    BufferObject => "hal.buffer",
    BufferView => "hal.buffer_view",
    FenceObject => "hal.fence",
    FileObject => "hal.file",
    ExecutableObject => "hal.executable",
    CommandBufferObject => "hal.command_buffer",
}
