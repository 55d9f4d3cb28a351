//! The checks that every caller of a device gets, once, above all drivers.
//!
//! # What is checked when
//! * A recording is checked command by command in [`Device::create_command_buffer`]. What depends on the binding
//!   table is folded into one need per slot there, so that an execution costs O(slots), plus one comparison for
//!   each copy that goes through a slot (only the table tells whether its ranges overlap).
//! * A queue operation is checked when it is submitted. Files are asked for their length then.
//! * Host access is checked by [`BufferSpan::read`](halite_hal::BufferSpan::read) and
//!   [`BufferSpan::write`](halite_hal::BufferSpan::write), because buffers are never wrapped.
//!
//! Zero-length ranges and zero workgroup counts are legal and do nothing. Recordings that ask for
//! [`CommandBufferMode::UNVALIDATED`] are checked all the same: the bit may come from an untrusted module.
//!
//! # Barriers
//! With the option [`hazards`], recordings are also checked for commands that need a barrier between them and have none,
//! each time they are executed. That costs far more than the other checks.
//!
//! # Objects
//! Buffers, semaphores and executables pass through untouched. A command buffer carries its checked needs in a
//! wrapper, which is taken off before the driver sees it. [`Device::as_any`] answers with the driver's device.

mod commands;
mod external;
mod lifetime;
mod queue;
mod range;
mod slots;

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use self::{lifetime::QueueAllocations, slots::SlotPlan};
use crate::{
    forward::{Layer, Layered},
    hazards::{self, HazardCheck},
};
use halite_hal::{
    Buffer, BufferParams, CommandBuffer, CommandBufferMode, CommandList, Device, Executable, ExecutableDesc,
    ExternalKind, ExternalMemory, Fence, QueueAffinity, QueueOp, Result, ResultExt, bail,
};

pub use self::commands::MAX_BINDING_CAPACITY;

/// A device whose operations are checked before the driver sees them.
///
/// A check that fails returns INVALID_ARGUMENT (never valid), OUT_OF_RANGE (an index or range),
/// PERMISSION_DENIED (usage or access bits), FAILED_PRECONDITION (valid in another state) or UNIMPLEMENTED, and
/// then nothing was enqueued and no fence was touched.
#[derive(Debug)]
pub struct ValidatedDevice {
    inner: Arc<dyn Device>,
    allocations: QueueAllocations,
    hazards: HazardCheck,
}

impl ValidatedDevice {
    /// Wraps a driver's device.
    pub fn wrap(device: Arc<dyn Device>) -> Arc<dyn Device> {
        Self::wrap_checking(device, HazardCheck::Off)
    }

    /// Wraps a driver's device; recordings are also checked for barriers that are missing.
    pub fn wrap_checking(device: Arc<dyn Device>, hazards: HazardCheck) -> Arc<dyn Device> {
        if device.is_validated() {
            return device;
        }
        Layered::new(ValidatedDevice { inner: device, allocations: QueueAllocations::default(), hazards })
    }

    fn submit_dealloca(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        buffer: Arc<dyn Buffer>,
    ) -> Result<()> {
        range::check_owner(self.inner.as_ref(), "buffer", buffer.device_id())?;
        if !self.allocations.give_back(&buffer)? {
            // Programs hand back whatever they own; ordering is all that is left to do for other buffers.
            return self.inner.queue_submit(affinity, wait, signal, QueueOp::Barrier);
        }
        let op = QueueOp::Dealloca { buffer: buffer.clone() };
        self.inner.queue_submit(affinity, wait, signal, op).inspect_err(|_| self.allocations.insert(&buffer))
    }

    fn submit_execute(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        op: QueueOp,
    ) -> Result<()> {
        let QueueOp::Execute { command_buffer, bindings } = op else {
            bail!(Internal, "expected an execute operation, got {}", op.name());
        };
        range::check_owner(self.inner.as_ref(), "command buffer", command_buffer.device_id())?;
        let Some(checked) = command_buffer.as_any().downcast_ref::<CheckedCommandBuffer>() else {
            bail!(
                InvalidArgument,
                "command buffer was made by the driver behind this device's back; record it through the same \
                 device that executes it"
            );
        };
        checked.plan.check_table(self.inner.as_ref(), &bindings)?;
        hazards::check(checked.inner.list(), &bindings, self.hazards)?;
        checked.claim(&checked.executed)?;
        let op = QueueOp::Execute { command_buffer: checked.inner.clone(), bindings };
        self.inner.queue_submit(affinity, wait, signal, op)
    }
}

impl Layer for ValidatedDevice {
    fn inner(&self) -> &Arc<dyn Device> {
        &self.inner
    }

    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        range::check_allocation_size(byte_length)?;
        self.inner.allocate_buffer(params, byte_length)
    }

    fn import_buffer(&self, params: &BufferParams, memory: ExternalMemory) -> Result<Arc<dyn Buffer>> {
        external::check_import(self.inner.info(), &memory).context(|| "import of memory")?;
        self.inner.import_buffer(params, memory)
    }

    fn allocate_exportable(
        &self,
        params: &BufferParams,
        byte_length: u64,
        kind: ExternalKind,
    ) -> Result<Arc<dyn Buffer>> {
        range::check_allocation_size(byte_length)
            .and_then(|()| external::check_kind(self.inner.info(), kind, false))
            .context(|| "allocation of memory for others")?;
        self.inner.allocate_exportable(params, byte_length, kind)
    }

    fn export_buffer(&self, buffer: &Arc<dyn Buffer>, kind: ExternalKind) -> Result<ExternalMemory> {
        range::check_owner(self.inner.as_ref(), "buffer", buffer.device_id())
            .and_then(|()| external::check_kind(self.inner.info(), kind, false))
            .context(|| "export of memory")?;
        self.inner.export_buffer(buffer, kind)
    }

    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>> {
        if desc.format.is_empty() {
            bail!(InvalidArgument, "executable '{}' has no format string", desc.label);
        }
        self.inner.create_executable(desc)
    }

    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        let plan = commands::check(self.inner.as_ref(), &list)?;
        let inner = self.inner.create_command_buffer(list)?;
        let (executed, promised) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Arc::new(CheckedCommandBuffer { inner, plan, executed, promised }))
    }

    fn queue_alloca(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>> {
        range::check_allocation_size(byte_length)
            .and_then(|()| queue::check_signal(self.inner.as_ref(), signal))
            .context(|| "queue alloca")?;
        let buffer = self.inner.queue_alloca(affinity, wait, signal, params, byte_length)?;
        self.allocations.insert(&buffer);
        Ok(buffer)
    }

    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        let name = op.name();
        queue::check_signal(self.inner.as_ref(), signal)
            .and_then(|()| match op {
                QueueOp::Dealloca { buffer } => self.submit_dealloca(affinity, wait, signal, buffer),
                QueueOp::Execute { .. } => self.submit_execute(affinity, wait, signal, op),
                op => {
                    queue::check_transfer(self.inner.as_ref(), &op)?;
                    self.inner.queue_submit(affinity, wait, signal, op)
                }
            })
            .context(|| format!("queue {name}"))
    }

    fn is_validated(&self) -> bool {
        true
    }
}

/// Checks an operation that will be submitted to a validated device later, when nobody can be told any more: the checks
/// of [`ValidatedDevice::queue_submit`], except those of fences.
pub(crate) fn check_ahead(device: &dyn Device, op: &QueueOp) -> Result<()> {
    queue::check_transfer(device, op)?;
    let QueueOp::Execute { command_buffer, bindings } = op else { return Ok(()) };
    range::check_owner(device, "command buffer", command_buffer.device_id())?;
    match command_buffer.as_any().downcast_ref::<CheckedCommandBuffer>() {
        Some(checked) => {
            checked.plan.check_table(device, bindings)?;
            checked.claim(&checked.promised)
        }
        None => Ok(()),
    }
}

/// A driver's command buffer and what its executions must bring.
#[derive(Debug)]
struct CheckedCommandBuffer {
    inner: Arc<dyn CommandBuffer>,
    plan: SlotPlan,
    executed: AtomicBool,
    /// Whether an execution was checked ahead.
    promised: AtomicBool,
}

impl CheckedCommandBuffer {
    /// Uses up the one execution of a one-shot command buffer, as `used` notes it; reusable ones always pass.
    fn claim(&self, used: &AtomicBool) -> Result<()> {
        let one_shot = self.inner.list().mode.contains(CommandBufferMode::ONE_SHOT);
        if one_shot && used.swap(true, Ordering::Relaxed) {
            bail!(
                FailedPrecondition,
                "one-shot command buffer was executed already; record a new one, or record it without ONE_SHOT"
            );
        }
        Ok(())
    }
}

impl CommandBuffer for CheckedCommandBuffer {
    fn device_id(&self) -> u64 {
        self.inner.device_id()
    }

    fn list(&self) -> &CommandList {
        self.inner.list()
    }

    fn prepare_as(&self, before: &dyn CommandBuffer) -> Result<()> {
        match before.as_any().downcast_ref::<Self>() {
            Some(before) => self.inner.prepare_as(&*before.inner),
            None => Ok(()),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
