//! Recorded commands: a command buffer is data until a driver lowers it.

use std::{any::Any, fmt, sync::Arc};

use bytes::Bytes;
use smallvec::SmallVec;

use crate::{
    Buffer, BufferSpan, CommandBufferMode, CommandCategory, DispatchFlags, Executable, QueueAffinity, Result,
};

/// Where a command finds its buffer.
#[derive(Clone, Debug)]
pub enum CommandTarget {
    /// A buffer known when the command was recorded.
    Direct(Arc<dyn Buffer>),
    /// A slot of the binding table given at execution.
    Slot(u32),
}

/// A byte range that a command touches. With a slot, `offset` counts from the table entry's offset and the range
/// must lie within the entry; [`crate::WHOLE_BUFFER`] reaches to the entry's end.
#[derive(Clone, Debug)]
pub struct BufferRef {
    /// The buffer or slot.
    pub target: CommandTarget,
    /// First byte.
    pub offset: u64,
    /// Bytes; [`crate::WHOLE_BUFFER`] means to the end.
    pub length: u64,
}

impl From<BufferSpan> for BufferRef {
    fn from(span: BufferSpan) -> Self {
        BufferRef { target: CommandTarget::Direct(span.buffer), offset: span.offset, length: span.length }
    }
}

/// One binding of a dispatch, in binding order.
pub type Binding = BufferRef;

/// Workgroup counts of a dispatch.
#[derive(Clone, Debug)]
pub enum DispatchCounts {
    /// Known when recorded. A zero in any dimension makes the dispatch a no-op.
    Direct([u32; 3]),
    /// Three u32 in a buffer (12 bytes, 4-aligned, usage DISPATCH_INDIRECT_PARAMETERS), read at execution.
    Indirect(BufferRef),
}

/// One recorded command.
#[derive(Clone, Debug)]
pub enum Command {
    /// Repeats a pattern of `pattern_length` (1, 2, 4 or 8) bytes, low bytes of `pattern`.
    Fill {
        /// What is filled.
        target: BufferRef,
        /// The pattern in its low bytes.
        pattern: u64,
        /// Bytes of the pattern.
        pattern_length: u32,
    },
    /// Writes bytes captured at record time.
    Update {
        /// The bytes.
        source: Bytes,
        /// Where they go; its length is that of `source`.
        target: BufferRef,
    },
    /// Copies bytes; both ranges have the same length and do not overlap.
    Copy {
        /// From.
        source: BufferRef,
        /// To.
        target: BufferRef,
    },
    /// Runs a function of an executable.
    Dispatch {
        /// The executable.
        executable: Arc<dyn Executable>,
        /// Index of the function in [`Executable::functions`].
        function: u32,
        /// Workgroup counts.
        counts: DispatchCounts,
        /// Constants in HAL order.
        constants: SmallVec<[u32; 8]>,
        /// Bindings in binding order.
        bindings: SmallVec<[Binding; 4]>,
        /// Flags.
        flags: DispatchFlags,
    },
    /// Full execution and memory barrier: all before it happens before all after it.
    Barrier,
    /// Opens a named group for debuggers and profiles.
    BeginDebugGroup(String),
    /// Closes the innermost group.
    EndDebugGroup,
}

impl Command {
    /// Name as dumps and error messages use it.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Fill { .. } => "fill",
            Command::Update { .. } => "update",
            Command::Copy { .. } => "copy",
            Command::Dispatch { .. } => "dispatch",
            Command::Barrier => "barrier",
            Command::BeginDebugGroup(_) => "begin debug group",
            Command::EndDebugGroup => "end debug group",
        }
    }
}

/// A recording: plain data, complete when handed to [`crate::Device::create_command_buffer`].
#[derive(Clone, Debug)]
pub struct CommandList {
    /// How it will be used.
    pub mode: CommandBufferMode,
    /// What it may contain.
    pub categories: CommandCategory,
    /// Queues it may run on.
    pub affinity: QueueAffinity,
    /// Number of slots that its commands may name.
    pub binding_capacity: u32,
    /// The commands in order.
    pub commands: Vec<Command>,
}

/// A recording that a driver has accepted.
pub trait CommandBuffer: fmt::Debug + Send + Sync + 'static {
    /// Identity of the device that made it.
    fn device_id(&self) -> u64;

    /// The recording, for dumps, validation and replay.
    fn list(&self) -> &CommandList;

    /// Gets ready for executions with the buffers that `before` was executed with, another command buffer of the device: what comes in its
    /// place, such as the same commands for other sizes. A hint, for while the device works: executions with other buffers are as right.
    fn prepare_as(&self, _before: &dyn CommandBuffer) -> Result<()> {
        Ok(())
    }

    /// The driver's own type, for downcasts inside that driver.
    fn as_any(&self) -> &dyn Any;
}

/// The buffers that an execution puts in a command buffer's slots.
#[derive(Clone, Debug, Default)]
pub struct BindingTable {
    /// Slot n is entry n; `None` is an empty slot that no command may touch with bytes.
    pub entries: SmallVec<[Option<BufferSpan>; 8]>,
}
