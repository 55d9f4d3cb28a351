//! The VM objects that stand for HAL objects.

use std::sync::{Arc, OnceLock};

use halite_abi::{Result, bail, object, status};
use halite_hal::{BufferSpan, Command, CommandBuffer, CommandList, Device, Fence, File};
use halite_vm::{Invocation, Object, Ref};
use parking_lot::Mutex;

use super::built::{ExecutableObject, Executables, Unbuilt};
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

/// Most commands of one recording. Real programs have some ten thousand.
const MAX_COMMANDS: usize = 1 << 20;
/// Most bytes that the updates of one recording may capture.
const MAX_CAPTURED: u64 = 256 << 20;

/// A command buffer (`!hal.command_buffer`): first a growing recording, then what the device made of it.
#[derive(Debug)]
pub struct CommandBufferObject {
    device: Arc<dyn Device>,
    recording: Mutex<Option<Recording>>,
    finished: OnceLock<Arc<dyn CommandBuffer>>,
    unbuilt: Unbuilt,
}

#[derive(Debug)]
struct Recording {
    list: CommandList,
    captured: u64,
}

impl CommandBufferObject {
    pub(super) fn new(device: Arc<dyn Device>, list: CommandList) -> Self {
        let recording = Mutex::new(Some(Recording { list, captured: 0 }));
        CommandBufferObject { device, recording, finished: OnceLock::new(), unbuilt: Unbuilt::default() }
    }

    /// Appends a command. FAILED_PRECONDITION after [`CommandBufferObject::finalize`]; RESOURCE_EXHAUSTED when a
    /// program records without end.
    pub(super) fn push(&self, command: Command) -> Result<()> {
        let mut recording = self.recording.lock();
        let recording = recording.as_mut().ok_or_else(|| {
            status!(FailedPrecondition, "command buffer is finalized; it takes no more commands")
        })?;
        if let Command::Update { source, .. } = &command {
            recording.captured = recording.captured.saturating_add(source.len() as u64);
        }
        if recording.list.commands.len() >= MAX_COMMANDS || recording.captured > MAX_CAPTURED {
            bail!(
                ResourceExhausted,
                "a command buffer may hold {MAX_COMMANDS} commands and {MAX_CAPTURED} bytes of updates"
            );
        }
        recording.list.commands.push(command);
        Ok(())
    }

    /// Notes a function that the recording dispatches.
    pub(super) fn note_dispatch(&self, executable: &Arc<ExecutableObject>, function: u32) {
        if !executable.is_built(function) {
            self.unbuilt.add(executable, function);
        }
    }

    /// Waits until the code that it dispatches is ready.
    pub(super) fn wait_built(&self, executables: &Executables, invocation: &Invocation) -> Result<()> {
        self.unbuilt.wait(executables, invocation)
    }

    /// Ends the recording and hands it to the device.
    pub(super) fn finalize(&self) -> Result<()> {
        let recording = self.recording.lock().take();
        let recording =
            recording.ok_or_else(|| status!(FailedPrecondition, "command buffer is finalized already"))?;
        log::trace!("recorded commands:\n{}", halite_layers::dump(&recording.list));
        let finished = self.device.create_command_buffer(recording.list)?;
        self.finished
            .set(finished)
            .map_err(|_| status!(Internal, "command buffer was finalized twice at once"))
    }

    /// The finished command buffer. FAILED_PRECONDITION while it records.
    pub(crate) fn finished(&self) -> Result<&Arc<dyn CommandBuffer>> {
        self.finished.get().ok_or_else(|| {
            status!(FailedPrecondition, "command buffer was submitted before command_buffer.finalize")
        })
    }
}

macro_rules! objects {
    ($($object:ty => $name:expr,)*) => {
        $(impl Object for $object {
            fn type_name(&self) -> &'static str {
                $name
            }
        })*
    };
}

objects! {
    DeviceObject => object::DEVICE,
    AllocatorObject => object::ALLOCATOR,
    BufferObject => object::BUFFER,
    BufferView => object::BUFFER_VIEW,
    FenceObject => object::FENCE,
    FileObject => object::FILE,
    ExecutableObject => object::EXECUTABLE,
    CommandBufferObject => object::COMMAND_BUFFER,
}
