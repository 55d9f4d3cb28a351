//! Descriptor pools and the bulk update of descriptor sets.

use std::sync::Arc;

use ash::vk;
use halite_hal::Result;

use crate::context::DeviceContext;

/// Sets in the first pool of a list; each further pool has twice as many.
const FIRST_POOL_SETS: u32 = 64;
/// Pools of a list that stay when it is reset: what one long recording needed is not kept for the short ones behind it.
const KEPT_POOLS: usize = 3;
/// Sets in the largest pool.
const LARGEST_POOL_SETS: u32 = 4096;
/// Storage descriptors per set that a pool provides on average.
const STORAGE_PER_SET: u32 = 6;

/// A list of descriptor pools that grows as needed and is reset as a whole.
pub(crate) struct DescriptorPools {
    ctx: Arc<DeviceContext>,
    pools: Vec<vk::DescriptorPool>,
    current: usize,
}

impl DescriptorPools {
    /// No pools yet: they are made on first use.
    pub fn new(ctx: Arc<DeviceContext>) -> Self {
        DescriptorPools { ctx, pools: Vec::new(), current: 0 }
    }

    /// One set per layout, in order.
    pub fn allocate(&mut self, layouts: &[SetShape]) -> Result<Vec<vk::DescriptorSet>> {
        let mut sets = Vec::with_capacity(layouts.len());
        let mut rest = layouts;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rest.len().min(FIRST_POOL_SETS as usize / 2));
            sets.extend(self.allocate_chunk(chunk)?);
            rest = after;
        }
        Ok(sets)
    }

    fn allocate_chunk(&mut self, shapes: &[SetShape]) -> Result<Vec<vk::DescriptorSet>> {
        let layouts: Vec<_> = shapes.iter().map(|s| s.layout).collect();
        let mut fresh = false;
        loop {
            if self.current == self.pools.len() {
                let pool = self.create_pool(shapes)?;
                self.pools.push(pool);
                fresh = true;
            }
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(self.pools[self.current])
                .set_layouts(&layouts);
            // SAFETY: the pool is ours, `&mut self` keeps other threads away; the layouts live in kernels that the
            // caller holds.
            match unsafe { self.ctx.device.allocate_descriptor_sets(&info) } {
                Ok(sets) => return Ok(sets),
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL) if !fresh => {
                    self.current += 1;
                }
                Err(e) => return Err(self.ctx.error("vkAllocateDescriptorSets", e, "dispatch bindings")),
            }
        }
    }

    fn create_pool(&self, shapes: &[SetShape]) -> Result<vk::DescriptorPool> {
        let sets = (FIRST_POOL_SETS << self.pools.len().min(8)).min(LARGEST_POOL_SETS);
        let needed = |f: fn(&SetShape) -> u32| shapes.iter().map(f).sum::<u32>();
        let sizes = [
            vk::DescriptorPoolSize {
                ty: vk::DescriptorType::STORAGE_BUFFER,
                descriptor_count: needed(|s| s.storage).max(sets * STORAGE_PER_SET),
            },
            vk::DescriptorPoolSize {
                ty: vk::DescriptorType::UNIFORM_BUFFER,
                descriptor_count: needed(|s| s.uniform).max(sets),
            },
        ];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes);
        // SAFETY: the info is complete and lives until the call returns.
        unsafe { self.ctx.device.create_descriptor_pool(&info, None) }
            .map_err(|e| self.ctx.error("vkCreateDescriptorPool", e, "dispatch bindings"))
    }

    /// Gives all sets back, and all but the first pools. The caller makes sure that no set is in use any more.
    pub fn reset(&mut self) -> Result<()> {
        for pool in self.pools.drain(KEPT_POOLS.min(self.pools.len())..) {
            // SAFETY: the caller's promise; `&mut self` keeps other threads away from the pools.
            unsafe { self.ctx.device.destroy_descriptor_pool(pool, None) };
        }
        for pool in &self.pools[..self.pools.len().min(self.current + 1)] {
            // SAFETY: the caller's promise; `&mut self` keeps other threads away from the pools.
            unsafe { self.ctx.device.reset_descriptor_pool(*pool, vk::DescriptorPoolResetFlags::empty()) }
                .map_err(|e| self.ctx.error("vkResetDescriptorPool", e, "dispatch bindings"))?;
        }
        self.current = 0;
        Ok(())
    }
}

impl Drop for DescriptorPools {
    fn drop(&mut self) {
        if self.ctx.is_forked() {
            return;
        }
        for pool in &self.pools {
            // SAFETY: owners drop the pools only when no submitted work uses their sets.
            unsafe { self.ctx.device.destroy_descriptor_pool(*pool, None) };
        }
    }
}

/// A set layout and what a set of it takes from a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetShape {
    /// The layout.
    pub layout: vk::DescriptorSetLayout,
    /// Storage buffers in it.
    pub storage: u32,
    /// Uniform buffers in it.
    pub uniform: u32,
}

/// One buffer descriptor to be written.
#[derive(Clone, Copy)]
pub(crate) struct DescriptorWrite {
    /// Set, by index in the list of sets that the update is for.
    pub set: usize,
    /// Binding number.
    pub binding: u32,
    /// Storage or uniform buffer.
    pub kind: vk::DescriptorType,
    /// The range.
    pub range: vk::DescriptorBufferInfo,
}

/// The writes in Vulkan's form. `sets` is empty for push descriptors, which name no set.
pub(crate) fn vk_writes<'a>(
    writes: &'a [DescriptorWrite],
    sets: &[vk::DescriptorSet],
) -> Vec<vk::WriteDescriptorSet<'a>> {
    let write = |w: &'a DescriptorWrite| {
        vk::WriteDescriptorSet::default()
            .dst_set(sets.get(w.set).copied().unwrap_or_default())
            .dst_binding(w.binding)
            .descriptor_type(w.kind)
            .buffer_info(std::slice::from_ref(&w.range))
    };
    writes.iter().map(write).collect()
}
