//! The command pool and descriptor pools that a batch records into, and their reuse.

use std::sync::Arc;

use ash::vk;
use halite_hal::Result;

use crate::{context::DeviceContext, descriptors::DescriptorPools};

/// Memory for the commands and descriptor sets of one batch, recycled when the batch has finished.
pub(crate) struct Recorder {
    ctx: Arc<DeviceContext>,
    family: u32,
    pool: vk::CommandPool,
    buffers: Vec<vk::CommandBuffer>,
    used: usize,
    /// Descriptor sets of the batch.
    pub descriptors: DescriptorPools,
}

impl Recorder {
    /// Pools for a queue family. With `reusable`, the command buffers may be submitted while they are in flight.
    pub fn new(ctx: &Arc<DeviceContext>, family: u32) -> Result<Self> {
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::TRANSIENT)
            .queue_family_index(family);
        // SAFETY: the family is one that the device was opened with.
        let pool = unsafe { ctx.device.create_command_pool(&info, None) }
            .map_err(|e| ctx.error("vkCreateCommandPool", e, "batch"))?;
        ctx.set_name(pool, "batch");
        let descriptors = DescriptorPools::new(ctx.clone());
        Ok(Recorder { ctx: ctx.clone(), family, pool, buffers: Vec::new(), used: 0, descriptors })
    }

    /// The queue family that its command buffers are for.
    pub fn family(&self) -> u32 {
        self.family
    }

    /// Begins a command buffer.
    pub fn begin(&mut self, flags: vk::CommandBufferUsageFlags) -> Result<vk::CommandBuffer> {
        if self.used == self.buffers.len() {
            let info = vk::CommandBufferAllocateInfo::default()
                .command_pool(self.pool)
                .level(vk::CommandBufferLevel::PRIMARY)
                .command_buffer_count(1);
            // SAFETY: the pool is ours, and `&mut self` keeps other threads away from it.
            let made = unsafe { self.ctx.device.allocate_command_buffers(&info) };
            self.buffers.extend(made.map_err(|e| self.ctx.error("vkAllocateCommandBuffers", e, "batch"))?);
        }
        let buffer = self.buffers[self.used];
        let info = vk::CommandBufferBeginInfo::default().flags(flags);
        // SAFETY: the buffer is in the initial state: fresh, or reset with its pool.
        unsafe { self.ctx.device.begin_command_buffer(buffer, &info) }
            .map_err(|e| self.ctx.error("vkBeginCommandBuffer", e, "batch"))?;
        self.used += 1;
        Ok(buffer)
    }

    /// Forgets everything recorded, to begin again. The caller makes sure that nothing of it is still executing.
    pub fn reset(&mut self) -> Result<()> {
        self.used = 0;
        // SAFETY: the caller's promise; `&mut self` keeps other threads away from the pool.
        unsafe { self.ctx.device.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty()) }
            .map_err(|e| self.ctx.error("vkResetCommandPool", e, "batch"))?;
        self.descriptors.reset()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.ctx.is_forked() {
            return;
        }
        // SAFETY: owners drop a recorder only when its batch was never submitted or has finished.
        unsafe { self.ctx.device.destroy_command_pool(self.pool, None) };
    }
}
