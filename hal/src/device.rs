//! The device trait and the queue operations. What a caller can foresee is checked above drivers, in the layers.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;

use crate::{
    BindingTable, Buffer, BufferParams, BufferSpan, CommandBuffer, CommandList, Deadline, DeviceInfo,
    DeviceProfile, Executable, ExecutableDesc, ExternalKind, ExternalMemory, Fence, File, QueueAffinity,
    Result, Semaphore, external, status,
};

/// One operation on a queue. It starts when its wait fence is reached and ends by signalling its signal fence;
/// nothing else orders it.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "the large variant is the frequent one; boxing its table would cost an allocation per execution"
)]
pub enum QueueOp {
    /// Only waits and signals.
    Barrier,
    /// Takes a buffer of memory that is shared with others back from them: what they wrote is seen by what comes after. They must have
    /// finished. Does nothing for other buffers.
    Acquire {
        /// The buffer.
        buffer: Arc<dyn Buffer>,
    },
    /// Gives a buffer of memory that is shared with others to them: what was written is seen by them once the signal fence is reached.
    /// Until it is acquired again, a driver may refuse work with it. Does nothing for other buffers.
    Release {
        /// The buffer.
        buffer: Arc<dyn Buffer>,
    },
    /// Gives the memory of a buffer from [`Device::queue_alloca`] back to the queue-ordered pool. The handle stays
    /// valid, its contents do not.
    Dealloca {
        /// The buffer.
        buffer: Arc<dyn Buffer>,
    },
    /// Repeats a pattern of 1, 2, 4 or 8 bytes.
    Fill {
        /// What is filled.
        target: BufferSpan,
        /// The pattern in its low bytes.
        pattern: u64,
        /// Bytes of the pattern.
        pattern_length: u32,
    },
    /// Writes host bytes.
    Update {
        /// The bytes.
        source: Bytes,
        /// Where they go; same length.
        target: BufferSpan,
    },
    /// Copies between buffers.
    Copy {
        /// From.
        source: BufferSpan,
        /// To; same length.
        target: BufferSpan,
    },
    /// Reads a file into a buffer.
    Read {
        /// From.
        source: File,
        /// Byte offset in the file.
        source_offset: u64,
        /// To.
        target: BufferSpan,
    },
    /// Writes a buffer to a file.
    Write {
        /// From.
        source: BufferSpan,
        /// To.
        target: File,
        /// Byte offset in the file.
        target_offset: u64,
    },
    /// Executes a command buffer with these slots.
    Execute {
        /// The commands.
        command_buffer: Arc<dyn CommandBuffer>,
        /// Its slots.
        bindings: BindingTable,
    },
}

impl QueueOp {
    /// Name as error messages use it.
    pub fn name(&self) -> &'static str {
        match self {
            QueueOp::Barrier => "barrier",
            QueueOp::Acquire { .. } => "acquire",
            QueueOp::Release { .. } => "release",
            QueueOp::Dealloca { .. } => "dealloca",
            QueueOp::Fill { .. } => "fill",
            QueueOp::Update { .. } => "update",
            QueueOp::Copy { .. } => "copy",
            QueueOp::Read { .. } => "read",
            QueueOp::Write { .. } => "write",
            QueueOp::Execute { .. } => "execute",
        }
    }
}

/// Memory that a device holds for its buffers, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Taken from the system now.
    pub reserved: u64,
    /// In live buffers now.
    pub used: u64,
    /// Largest `reserved` so far.
    pub peak_reserved: u64,
    /// Largest `used` so far.
    pub peak_used: u64,
    /// Number of allocations made from the system so far.
    pub allocation_count: u64,
}

/// How often a device's driver brought recordings into its own form, so far. Recordings that are executed once are not among them, and
/// neither are those of profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingStats {
    /// Executions.
    pub executed: u64,
    /// Executions that had to bring the recording into the driver's form first, for the buffers that it was bound to.
    pub written: u64,
    /// How often that was done ahead ([`CommandBuffer::prepare_as`]).
    pub written_ahead: u64,
    /// Executions that were the first to run what was written ahead.
    pub found_ahead: u64,
}

/// An open device. Object-safe; any thread may call any method. Queue operations of one thread on one queue whose
/// fences do not order them may run in any order.
pub trait Device: fmt::Debug + Send + Sync + 'static {
    /// Process-unique identity, from [`next_device_id`].
    fn id(&self) -> u64;

    /// What enumeration said about it.
    fn info(&self) -> &DeviceInfo;

    /// Number of queues; affinity bits beyond it fall back to queue 0.
    fn queue_count(&self) -> u32 {
        1
    }

    /// Answer to a module's `hal.device.query.i64`; `None` when the key is not known. `hal.device.id` and
    /// `hal.executable.format` must be answered by every driver. `halite.target` asks how well the target triple
    /// in the key fits: 0 for not at all, higher for better, as `docs/reference/targets.md` defines it.
    fn query_i64(&self, category: &str, key: &str) -> Option<i64>;

    /// Memory held for buffers.
    fn memory_stats(&self) -> MemoryStats;

    /// How often recordings were brought into the driver's form; nothing where it has none of its own.
    fn recording_stats(&self) -> RecordingStats {
        RecordingStats::default()
    }

    /// Gives unused pooled memory back to the system.
    fn trim(&self) {}

    /// FAILED_PRECONDITION in a fork of the process that opened it, unless it has neither threads nor anything of the system's. Callers that
    /// take locks of their own ask first: a thread of the parent may have had them.
    fn check_process(&self) -> Result<()> {
        Ok(())
    }

    /// Allocates a buffer that exists at once. Contents are undefined. RESOURCE_EXHAUSTED names size and heap.
    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>>;

    /// A buffer over memory from elsewhere, over all of its bytes but for a last part that is smaller than
    /// [`halite_abi::BUFFER_PADDING`]. It keeps the memory; what it holds is seen from the next [`QueueOp::Acquire`] on. UNIMPLEMENTED for
    /// kinds that [`DeviceInfo::external_memory`] does not have.
    fn import_buffer(&self, params: &BufferParams, memory: ExternalMemory) -> Result<Arc<dyn Buffer>> {
        let _ = params;
        Err(external::unsupported(self.info(), memory.handle.kind(), true))
    }

    /// Allocates a buffer whose memory can be given away as this kind, by [`Device::export_buffer`]. Contents are undefined.
    fn allocate_exportable(
        &self,
        params: &BufferParams,
        byte_length: u64,
        kind: ExternalKind,
    ) -> Result<Arc<dyn Buffer>> {
        let _ = (params, byte_length);
        Err(external::unsupported(self.info(), kind, false))
    }

    /// The memory of a buffer from [`Device::allocate_exportable`], for others. It lives as long as the buffer or anything made from the
    /// handle does. FAILED_PRECONDITION for other buffers.
    fn export_buffer(&self, buffer: &Arc<dyn Buffer>, kind: ExternalKind) -> Result<ExternalMemory> {
        let _ = buffer;
        Err(external::unsupported(self.info(), kind, false))
    }

    /// A timeline semaphore with this initial payload.
    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn Semaphore>>;

    /// Compiles device code. A feature that the code requires and the device lacks is named in the error.
    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>>;

    /// Accepts a finished recording.
    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>>;

    /// Reserves memory in queue order. The returned handle may be named in later operations at once; its storage
    /// exists from `signal` on. Memory that an earlier `Dealloca` on the queue gave back is reused.
    fn queue_alloca(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>>;

    /// Enqueues an operation. Errors found later fail the signal fence.
    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()>;

    /// Starts everything enqueued so far. Drivers may batch until this, until somebody waits, or until a batch is
    /// large; waiting always flushes.
    fn queue_flush(&self, affinity: QueueAffinity) -> Result<()>;

    /// Waits until all queues are idle. Used at teardown and in tests. DEADLINE_EXCEEDED when work goes on for longer.
    fn wait_idle(&self, deadline: Deadline) -> Result<()>;

    /// Begins a profile: from now on the device measures when the commands that it is given begin and end, until
    /// [`Device::stop_profiling`]. Commands run as they would otherwise; each takes a little longer for its two timestamps.
    /// UNIMPLEMENTED where the device has no clock that tells, FAILED_PRECONDITION while another profile is taken.
    fn start_profiling(&self) -> Result<()> {
        Err(status!(
            Unimplemented,
            "device '{}' cannot be profiled: its driver '{}' does not measure commands",
            self.info().uri(),
            self.info().driver
        ))
    }

    /// Ends the profile and gives it, once the work that was accepted during it has finished. FAILED_PRECONDITION where
    /// none was begun; DEADLINE_EXCEEDED when the work goes on for longer, and the profile goes on.
    fn stop_profiling(&self, deadline: Deadline) -> Result<DeviceProfile> {
        let _ = deadline;
        Err(status!(FailedPrecondition, "device '{}' is not being profiled", self.info().uri()))
    }

    /// Whether what callers can foresee is checked before the driver sees it: true behind the layers (crate
    /// `halite-layers`), false for drivers.
    fn is_validated(&self) -> bool {
        false
    }

    /// The driver's own type, for downcasts inside that driver.
    fn as_any(&self) -> &dyn Any;
}

/// Who counts device identities, where it is not this copy of the crate.
static COUNTER: OnceLock<fn() -> u64> = OnceLock::new();

/// A new process-unique device identity. In a driver library it comes from the program that loaded it.
pub fn next_device_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    COUNTER.get().map_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed), |count| count())
}

/// Lets somebody else count device identities: a library with a copy of this crate asks the program that loaded it. Only
/// the first call counts.
pub fn count_devices_with(counter: fn() -> u64) {
    _ = COUNTER.set(counter);
}

/// The error for an object that another device made.
pub fn foreign_object(what: &str, device: &dyn Device) -> crate::Status {
    status!(InvalidArgument, "{what} was made by another device than '{}'", device.info().uri())
}
