//! Descriptor set layouts and pipeline layouts.

use std::sync::Arc;

use ash::vk;
use halite_formats::vmfb::{DescriptorBinding, PushConstantRange};
use halite_hal::Result;

use crate::{context::DeviceContext, descriptors::SetShape};

/// One binding of a dispatch, in the HAL's flat order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelBinding {
    /// Set.
    pub set: u32,
    /// Binding in the set.
    pub binding: u32,
    /// Storage or uniform buffer.
    pub kind: vk::DescriptorType,
}

/// How a kernel takes its arguments: owns the Vulkan layouts.
pub(crate) struct KernelLayout {
    ctx: Arc<DeviceContext>,
    handle: vk::PipelineLayout,
    /// Sets, set 0 first.
    pub sets: Vec<SetShape>,
    /// All bindings: by set, then by number. Empty for kernels that take addresses.
    pub bindings: Vec<KernelBinding>,
    /// Whether the only set is pushed instead of allocated.
    pub pushed: bool,
    /// Whether bindings come as a table of addresses.
    pub addresses: bool,
    /// Bindings that a dispatch gives.
    pub binding_count: u32,
    /// u32 constants that a dispatch gives.
    pub constant_count: u32,
    /// Bytes of push constants, from 0 on.
    pub push_bytes: u32,
}

/// What a layout is made from; checked against the device's limits.
pub(crate) struct LayoutDesc<'a> {
    /// Bindings of each set.
    pub sets: &'a [&'a [DescriptorBinding]],
    /// Push constants: at most one range, from 0.
    pub push_constants: &'a [PushConstantRange],
    /// Number of address bindings for kernels that take addresses.
    pub address_bindings: Option<u32>,
    /// u32 constants that a dispatch gives.
    pub constant_count: u32,
}

impl KernelLayout {
    /// Creates the layouts. The description has been checked.
    pub fn new(ctx: &Arc<DeviceContext>, desc: &LayoutDesc<'_>) -> Result<Self> {
        let mut bindings = Vec::new();
        for (set, list) in (0..).zip(desc.sets) {
            let mut list: Vec<_> = list
                .iter()
                .map(|b| KernelBinding { set, binding: b.binding, kind: kind_of(b.descriptor_type) })
                .collect();
            list.sort_by_key(|b| b.binding);
            bindings.extend(list);
        }
        let count = bindings.len() as u32;
        let pushed = ctx.push_descriptor.is_some()
            && desc.sets.len() == 1
            && count > 0
            && count <= ctx.plan.push_descriptors;
        let mut layout = KernelLayout {
            ctx: ctx.clone(),
            handle: vk::PipelineLayout::null(),
            sets: Vec::new(),
            bindings,
            pushed,
            addresses: desc.address_bindings.is_some(),
            binding_count: desc.address_bindings.unwrap_or(count),
            constant_count: desc.constant_count,
            push_bytes: end_of(desc.push_constants),
        };
        for set in 0..desc.sets.len() as u32 {
            let shape = layout.create_set(set)?;
            layout.sets.push(shape);
        }
        layout.handle = layout.create(layout.push_bytes)?;
        Ok(layout)
    }

    fn create_set(&self, set: u32) -> Result<SetShape> {
        let in_set = || self.bindings.iter().filter(|b| b.set == set);
        let bindings: Vec<_> = in_set()
            .map(|b| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(b.binding)
                    .descriptor_type(b.kind)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let mut info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        if self.pushed {
            info = info.flags(vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR);
        }
        // SAFETY: the info is complete; binding numbers are unique and types are buffers (checked before).
        let layout = unsafe { self.ctx.device.create_descriptor_set_layout(&info, None) }
            .map_err(|e| self.ctx.error("vkCreateDescriptorSetLayout", e, "kernel bindings"))?;
        let count = |kind| in_set().filter(|b| b.kind == kind).count() as u32;
        Ok(SetShape {
            layout,
            storage: count(vk::DescriptorType::STORAGE_BUFFER),
            uniform: count(vk::DescriptorType::UNIFORM_BUFFER),
        })
    }

    /// A pipeline layout of the same sets with so many bytes of push constants. The caller owns it, and has checked
    /// that the device allows it.
    pub fn create(&self, push_bytes: u32) -> Result<vk::PipelineLayout> {
        let layouts: Vec<_> = self.sets.iter().map(|s| s.layout).collect();
        let range = [vk::PushConstantRange {
            stage_flags: vk::ShaderStageFlags::COMPUTE,
            offset: 0,
            size: push_bytes,
        }];
        let mut info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        if push_bytes > 0 {
            info = info.push_constant_ranges(&range);
        }
        // SAFETY: the info is complete and within the device's limits (checked before).
        unsafe { self.ctx.device.create_pipeline_layout(&info, None) }
            .map_err(|e| self.ctx.error("vkCreatePipelineLayout", e, "kernel arguments"))
    }

    /// The pipeline layout.
    pub fn handle(&self) -> vk::PipelineLayout {
        self.handle
    }
}

fn end_of(push_constants: &[PushConstantRange]) -> u32 {
    push_constants.iter().map(|r| r.offset.saturating_add(r.size)).max().unwrap_or(0)
}

fn kind_of(descriptor_type: u32) -> vk::DescriptorType {
    vk::DescriptorType::from_raw(i32::try_from(descriptor_type).unwrap_or(-1))
}

impl Drop for KernelLayout {
    fn drop(&mut self) {
        if self.ctx.is_forked() {
            return;
        }
        // SAFETY: the kernel that owns the layout is being dropped, so no work uses it. Destroying null does nothing.
        unsafe {
            self.ctx.device.destroy_pipeline_layout(self.handle, None);
            for set in &self.sets {
                self.ctx.device.destroy_descriptor_set_layout(set.layout, None);
            }
        }
    }
}
