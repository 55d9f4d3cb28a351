//! The device object and what it answers.

use std::{any::Any, sync::Arc};

use halite_abi::{Result, query};
use halite_hal::{
    Buffer, BufferParams, CommandBuffer, CommandList, Deadline, Device, DeviceInfo, Executable,
    ExecutableDesc, ExternalHandle, ExternalMemory, Fence, MemoryStats, QueueAffinity, QueueOp, Semaphore,
    SoftSemaphore, external, matches_pattern, next_device_id,
};

use crate::{
    buffer::{Memory, NullBuffer},
    command_buffer::NullCommandBuffer,
    executable::{EXECUTABLE_FORMAT, NullExecutable},
    queue::Queue,
};

/// Name of the driver, and identifier that modules may ask a device for.
pub(crate) const NAME: &str = "null";

/// A device without hardware.
#[derive(Debug)]
pub(crate) struct NullDevice {
    id: u64,
    info: DeviceInfo,
    memory: Arc<Memory>,
    queue: Arc<Queue>,
}

impl NullDevice {
    /// A device with this memory.
    pub(crate) fn new(info: DeviceInfo, memory: Arc<Memory>) -> Self {
        NullDevice { id: next_device_id(), info, memory, queue: Arc::default() }
    }
}

impl Device for NullDevice {
    fn id(&self) -> u64 {
        self.id
    }

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn query_i64(&self, category: &str, key: &str) -> Option<i64> {
        match category {
            query::DEVICE_ID => Some(matches_pattern(key, NAME).into()),
            query::EXECUTABLE_FORMAT => Some((key == EXECUTABLE_FORMAT).into()),
            query::DEVICE if key == query::UNTRUSTED => Some(1),
            _ => None,
        }
    }

    fn memory_stats(&self) -> MemoryStats {
        self.memory.stats()
    }

    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(NullBuffer::new(self.id, &self.memory, params, byte_length)?))
    }

    /// Only memory of the process: nothing here could write to it.
    fn import_buffer(&self, params: &BufferParams, memory: ExternalMemory) -> Result<Arc<dyn Buffer>> {
        match memory.handle {
            ExternalHandle::Host(bytes) => {
                Ok(Arc::new(NullBuffer::lent(self.id, &self.memory, params, bytes)))
            }
            other => Err(external::unsupported(&self.info, other.kind(), true)),
        }
    }

    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn Semaphore>> {
        Ok(Arc::new(SoftSemaphore::new(self.id, initial)))
    }

    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(NullExecutable::new(self.id, &desc)?))
    }

    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        Ok(Arc::new(NullCommandBuffer::new(self.id, list)))
    }

    /// Memory is taken at once, not when the wait fence is reached: memory that a pending `Dealloca` will give back
    /// does not count as free.
    fn queue_alloca(
        &self,
        _affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>> {
        let buffer = self.allocate_buffer(params, byte_length)?;
        self.queue.submit(wait, signal, QueueOp::Barrier);
        Ok(buffer)
    }

    fn queue_submit(
        &self,
        _affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        op: QueueOp,
    ) -> Result<()> {
        self.queue.submit(wait, signal, op);
        Ok(())
    }

    fn queue_flush(&self, _affinity: QueueAffinity) -> Result<()> {
        Ok(())
    }

    fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        self.queue.wait_idle(deadline)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
