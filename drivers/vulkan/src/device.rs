//! The HAL device: it hands each call to the part that does it.

mod core;
mod loss;
mod operations;
mod query;

use std::{any::Any, fmt, sync::Arc};

use halite_hal::{
    Buffer, BufferParams, CommandBuffer, CommandList, Deadline, Device, DeviceInfo, DeviceProfile,
    Executable, ExecutableDesc, ExternalKind, ExternalMemory, Fence, MemoryStats, QueueAffinity, QueueOp,
    RecordingStats, Result, Semaphore,
};

pub(crate) use self::core::Core;

use crate::{
    buffer::VulkanBuffer,
    command_buffer::VulkanCommandBuffer,
    context::DeviceContext,
    executable::VulkanExecutable,
    queue::{Deferred, Work},
    semaphore::VulkanSemaphore,
};

/// An open Vulkan device. Dropping it waits for its work (for a bounded time); buffers and other objects that are
/// still held stay valid.
pub(crate) struct VulkanDevice {
    core: Arc<Core>,
}

impl VulkanDevice {
    /// The HAL device over an open context.
    pub fn new(ctx: Arc<DeviceContext>) -> Result<Self> {
        Ok(VulkanDevice { core: Core::new(ctx)? })
    }

    fn queue(&self, affinity: QueueAffinity) -> usize {
        affinity.pick(self.queue_count()) as usize
    }
}

impl Drop for VulkanDevice {
    fn drop(&mut self) {
        self.core.close();
    }
}

impl fmt::Debug for VulkanDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanDevice").field("uri", &self.info().uri()).field("id", &self.id()).finish()
    }
}

impl Device for VulkanDevice {
    fn id(&self) -> u64 {
        self.core.ctx.id
    }

    fn info(&self) -> &DeviceInfo {
        &self.core.ctx.info
    }

    fn queue_count(&self) -> u32 {
        self.core.queues.len() as u32
    }

    fn query_i64(&self, category: &str, key: &str) -> Option<i64> {
        query::query_i64(&self.core.ctx, category, key)
    }

    fn memory_stats(&self) -> MemoryStats {
        self.core.allocator.stats()
    }

    fn recording_stats(&self) -> RecordingStats {
        self.core.recordings.stats()
    }

    fn trim(&self) {
        if self.core.ctx.is_forked() {
            return;
        }
        self.core.kernels.trim();
        self.core.recordings.trim();
        self.core.queues.iter().for_each(|queue| queue.trim(&self.core));
        self.core.allocator.trim();
    }

    fn check_process(&self) -> Result<()> {
        self.core.ctx.check_process()
    }

    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        self.core.check_lost()?;
        let (storage, _) = self.core.allocator.allocate(params, byte_length, None)?;
        Ok(Arc::new(VulkanBuffer::new(self.core.clone(), params, byte_length, storage)))
    }

    fn import_buffer(&self, params: &BufferParams, memory: ExternalMemory) -> Result<Arc<dyn Buffer>> {
        self.core.check_lost()?;
        let constant = memory.handle.kind() == ExternalKind::Host;
        let (storage, length) = self.core.allocator.import(params, memory)?;
        Ok(Arc::new(VulkanBuffer::imported(self.core.clone(), params, length, storage, constant)))
    }

    fn allocate_exportable(
        &self,
        params: &BufferParams,
        byte_length: u64,
        kind: ExternalKind,
    ) -> Result<Arc<dyn Buffer>> {
        self.core.check_lost()?;
        let storage = self.core.allocator.allocate_exportable(params, byte_length, kind)?;
        Ok(Arc::new(VulkanBuffer::new(self.core.clone(), params, byte_length, storage)))
    }

    fn export_buffer(&self, buffer: &Arc<dyn Buffer>, kind: ExternalKind) -> Result<ExternalMemory> {
        self.core.ctx.check_process()?;
        let own = operations::own_buffer(buffer.as_ref())?;
        let memory = own.kept()?;
        self.core.allocator.export(&memory, kind)
    }

    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn Semaphore>> {
        self.core.check_lost()?;
        Ok(VulkanSemaphore::new(self.core.clone(), initial))
    }

    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>> {
        self.core.check_lost()?;
        Ok(Arc::new(VulkanExecutable::create(&self.core, &desc)?))
    }

    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        Ok(Arc::new(VulkanCommandBuffer::new(self.core.clone(), list)))
    }

    fn queue_alloca(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>> {
        let queue = self.queue(affinity);
        let reserved = self.core.allocator.allocate(params, byte_length, Some(queue));
        let (storage, after) = reserved.inspect_err(|status| signal.fail(status))?;
        let work = Work::Alloca(after);
        self.core.submit(Deferred { queue, wait: wait.clone(), signal: signal.clone(), work })?;
        Ok(Arc::new(VulkanBuffer::new(self.core.clone(), params, byte_length, storage)))
    }

    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        let (queue, work) = (self.queue(affinity), Work::Operation(op));
        self.core.submit(Deferred { queue, wait: wait.clone(), signal: signal.clone(), work })
    }

    fn queue_flush(&self, affinity: QueueAffinity) -> Result<()> {
        self.core.check_lost()?;
        if affinity == QueueAffinity::ANY {
            self.core.queues.iter().for_each(|q| q.flush(&self.core));
        } else {
            self.core.queues[self.queue(affinity)].flush(&self.core);
        }
        Ok(())
    }

    fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        self.core.wait_idle(deadline)
    }

    fn start_profiling(&self) -> Result<()> {
        self.core.check_lost()?;
        self.core.profiler.start()
    }

    fn stop_profiling(&self, deadline: Deadline) -> Result<DeviceProfile> {
        if self.core.profiler.is_on() {
            self.core.wait_idle(deadline)?;
        }
        self.core.profiler.stop(deadline)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
