//! The second pass: recording a prepared program, and the barriers between its steps.

use std::ops::Range;

use ash::vk;

use super::{Arguments, Counts, PreparedCommands, Step, divide::pieces};
use crate::{context::DeviceContext, descriptors::vk_writes, profile::Timer};

const TRANSFER: vk::PipelineStageFlags = vk::PipelineStageFlags::TRANSFER;
const COMPUTE: vk::PipelineStageFlags = vk::PipelineStageFlags::COMPUTE_SHADER;
const INDIRECT: vk::PipelineStageFlags = vk::PipelineStageFlags::DRAW_INDIRECT;

fn all_stages() -> vk::PipelineStageFlags {
    TRANSFER | COMPUTE | INDIRECT
}

/// What a barrier has to order: stages with work since the last one.
struct Order {
    /// Stages that the program uses. Barriers name no others: waiting for the command processor costs more than
    /// waiting for kernels.
    stages: vk::PipelineStageFlags,
    pending: vk::PipelineStageFlags,
    wanted: bool,
}

impl Order {
    /// Everything earlier on the queue comes first, whatever its stages.
    fn after_earlier_work(steps: &[Step]) -> Self {
        let stages = steps.iter().map(stages_of).fold(vk::PipelineStageFlags::empty(), |all, s| all | s);
        Order { stages, pending: all_stages(), wanted: true }
    }

    /// Puts a barrier in front of a step if one is due. Two barriers in a row, or one with nothing behind it, thus
    /// cost nothing.
    fn before(&mut self, ctx: &DeviceContext, target: vk::CommandBuffer, stages: vk::PipelineStageFlags) {
        if self.wanted && !self.pending.is_empty() {
            // Each barrier waits for what the one before it let go on: together they order all of the program.
            record_barrier(ctx, target, self.pending | self.stages, self.stages);
            self.pending = vk::PipelineStageFlags::empty();
        }
        self.wanted = false;
        self.pending |= stages;
    }
}

/// Stages that a step works in.
fn stages_of(step: &Step) -> vk::PipelineStageFlags {
    match step {
        Step::Fill { .. } | Step::Copy { .. } | Step::Update { .. } => TRANSFER,
        Step::Dispatch { counts: Counts::Indirect(..), .. } => COMPUTE | INDIRECT,
        Step::Dispatch { .. } => COMPUTE,
        Step::Barrier | Step::HandOver { .. } | Step::BeginGroup(_) | Step::EndGroup => {
            vk::PipelineStageFlags::empty()
        }
    }
}

/// All work of the stages `after` happens before everything that follows in the stages `before`.
fn record_barrier(
    ctx: &DeviceContext,
    target: vk::CommandBuffer,
    after: vk::PipelineStageFlags,
    before: vk::PipelineStageFlags,
) {
    let mut wrote = vk::AccessFlags::empty();
    let mut uses = vk::AccessFlags::empty();
    if after.contains(COMPUTE) {
        wrote |= vk::AccessFlags::SHADER_WRITE;
    }
    if after.contains(TRANSFER) {
        wrote |= vk::AccessFlags::TRANSFER_WRITE;
    }
    if before.contains(COMPUTE) {
        uses |= vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::UNIFORM_READ;
    }
    if before.contains(TRANSFER) {
        uses |= vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE;
    }
    if before.contains(INDIRECT) {
        uses |= vk::AccessFlags::INDIRECT_COMMAND_READ;
    }
    let barrier = [vk::MemoryBarrier::default().src_access_mask(wrote).dst_access_mask(uses)];
    // SAFETY: the command buffer is recording and only the caller has it.
    unsafe {
        ctx.device.cmd_pipeline_barrier(
            target,
            after,
            before,
            vk::DependencyFlags::empty(),
            &barrier,
            &[],
            &[],
        );
    }
}

/// A buffer goes from one queue family to another, one of which is none of this device's: after all work of the program that came
/// before, and before all that follows.
fn record_hand_over(
    ctx: &DeviceContext,
    target: vk::CommandBuffer,
    buffer: vk::Buffer,
    (from, to): (u32, u32),
) {
    let written = vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE;
    let used = written
        | vk::AccessFlags::SHADER_READ
        | vk::AccessFlags::UNIFORM_READ
        | vk::AccessFlags::TRANSFER_READ
        | vk::AccessFlags::INDIRECT_COMMAND_READ;
    let away = matches!(to, vk::QUEUE_FAMILY_EXTERNAL | vk::QUEUE_FAMILY_FOREIGN_EXT);
    // What is on the other side is ordered by whoever hands over there.
    let (wrote, uses) =
        if away { (written, vk::AccessFlags::empty()) } else { (vk::AccessFlags::empty(), used) };
    let barrier = [vk::BufferMemoryBarrier::default()
        .src_access_mask(wrote)
        .dst_access_mask(uses)
        .src_queue_family_index(from)
        .dst_queue_family_index(to)
        .buffer(buffer)
        .size(vk::WHOLE_SIZE)];
    // SAFETY: the command buffer is recording and only the caller has it; the program keeps the buffer.
    unsafe {
        ctx.device.cmd_pipeline_barrier(
            target,
            all_stages(),
            all_stages(),
            vk::DependencyFlags::empty(),
            &[],
            &barrier,
            &[],
        );
    }
}

/// Makes everything recorded so far visible to the host once the submission has finished.
pub(crate) fn record_host_barrier(ctx: &DeviceContext, target: vk::CommandBuffer) {
    let barrier = [vk::MemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE)
        .dst_access_mask(vk::AccessFlags::HOST_READ)];
    // SAFETY: the command buffer is recording and only the caller has it.
    unsafe {
        ctx.device.cmd_pipeline_barrier(
            target,
            TRANSFER | COMPUTE,
            vk::PipelineStageFlags::HOST,
            vk::DependencyFlags::empty(),
            &barrier,
            &[],
            &[],
        );
    }
}

impl PreparedCommands {
    /// Records some of the steps, ordered after everything earlier on the queue. `sets` come from `prepare`, `timer` from
    /// `timer`.
    pub fn record(
        &self,
        ctx: &DeviceContext,
        target: vk::CommandBuffer,
        sets: &[vk::DescriptorSet],
        steps: Range<usize>,
        timer: Option<&Timer>,
    ) {
        let mut order = Order::after_earlier_work(&self.steps[steps.clone()]);
        let mut bound = vk::Pipeline::null();
        if let Some(timer) = timer {
            timer.record_reset(target);
        }
        for (index, step) in self.steps.iter().enumerate().take(steps.end).skip(steps.start) {
            if let Some(timer) = timer
                && timer.begins(index)
            {
                // The wait for earlier work is not a part of the command.
                order.before(ctx, target, stages_of(step));
                timer.record_start(target, index);
            }
            match step {
                Step::Barrier => order.wanted = true,
                Step::Fill { .. } | Step::Copy { .. } | Step::Update { .. } => {
                    order.before(ctx, target, stages_of(step));
                    record_transfer(ctx, target, step);
                }
                Step::Dispatch { .. } => {
                    order.before(ctx, target, stages_of(step));
                    self.record_dispatch(ctx, target, sets, step, &mut bound);
                }
                Step::HandOver { buffer, from, to } => record_hand_over(ctx, target, *buffer, (*from, *to)),
                Step::BeginGroup(_) | Step::EndGroup => record_group(ctx, target, step),
            }
            if let Some(timer) = timer {
                timer.record_end(target, index, stages_of(step));
            }
        }
    }

    fn record_dispatch(
        &self,
        ctx: &DeviceContext,
        target: vk::CommandBuffer,
        sets: &[vk::DescriptorSet],
        step: &Step,
        bound: &mut vk::Pipeline,
    ) {
        let Step::Dispatch { pipeline, layout, arguments, constants, counts, .. } = step else { return };
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the command buffer is recording and only the caller has it. Pipeline, layout, sets and buffers
        // fit each other and are kept by the program; ranges were checked when it was built.
        unsafe {
            if bound != pipeline {
                ctx.device.cmd_bind_pipeline(target, point, *pipeline);
                *bound = *pipeline;
            }
            match arguments {
                Arguments::Sets(range) if range.is_empty() => {}
                Arguments::Sets(range) => {
                    ctx.device.cmd_bind_descriptor_sets(target, point, *layout, 0, &sets[range.clone()], &[]);
                }
                Arguments::Pushed(range) => {
                    if let Some(fns) = &ctx.push_descriptor {
                        let writes = vk_writes(&self.pushes[range.clone()], &[]);
                        fns.cmd_push_descriptor_set(target, point, *layout, 0, &writes);
                    }
                }
            }
            if !constants.is_empty() {
                let bytes: smallvec::SmallVec<[u8; 128]> =
                    self.constants[constants.clone()].iter().flat_map(|c| c.to_ne_bytes()).collect();
                ctx.device.cmd_push_constants(target, *layout, vk::ShaderStageFlags::COMPUTE, 0, &bytes);
            }
            match counts {
                Counts::Direct([x, y, z]) => ctx.device.cmd_dispatch(target, *x, *y, *z),
                Counts::Piece { first: [x, y, z], groups } => {
                    ctx.device.cmd_dispatch_base(target, *x, *y, *z, groups[0], groups[1], groups[2]);
                }
                Counts::Parts { .. } => record_parts(ctx, target, *layout, counts),
                Counts::Indirect(buffer, offset) => {
                    ctx.device.cmd_dispatch_indirect(target, *buffer, *offset);
                }
            }
        }
    }
}

/// Records one dispatch as several, each with its first workgroup and the total as push constants. No barriers: the
/// parts are no more ordered than the workgroups of one dispatch are.
fn record_parts(ctx: &DeviceContext, target: vk::CommandBuffer, layout: vk::PipelineLayout, counts: &Counts) {
    let Counts::Parts { first: begin, groups, total, most, offset } = *counts else { return };
    for (first, [x, y, z]) in pieces(groups, most) {
        let first: [u32; 3] = std::array::from_fn(|axis| begin[axis] + first[axis]);
        let mut bytes = [0; halite_spirv::REBASE_BYTES as usize];
        for (place, value) in bytes.as_chunks_mut().0.iter_mut().zip(first.into_iter().chain(total)) {
            *place = value.to_ne_bytes();
        }
        // SAFETY: the command buffer is recording, only the caller has it, and pipeline and bindings are in place; the
        // layout has the push constants, and each part is within the device's limits.
        unsafe {
            ctx.device.cmd_push_constants(target, layout, vk::ShaderStageFlags::COMPUTE, offset, &bytes);
            ctx.device.cmd_dispatch(target, x, y, z);
        }
    }
}

/// Begins or ends a group of commands that debuggers show.
fn record_group(ctx: &DeviceContext, target: vk::CommandBuffer, step: &Step) {
    let Some(fns) = &ctx.debug_utils else { return };
    // SAFETY: the command buffer is recording; the label lives until the call returns, and groups are balanced within a list.
    unsafe {
        match step {
            Step::BeginGroup(name) => {
                let label = vk::DebugUtilsLabelEXT::default().label_name(name);
                fns.cmd_begin_debug_utils_label(target, &label);
            }
            _ => fns.cmd_end_debug_utils_label(target),
        }
    }
}

fn record_transfer(ctx: &DeviceContext, target: vk::CommandBuffer, step: &Step) {
    // SAFETY: the command buffer is recording and only the caller has it; ranges were checked when the program was
    // built, and it keeps the buffers.
    unsafe {
        match step {
            Step::Fill { buffer, offset, length, word } => {
                ctx.device.cmd_fill_buffer(target, *buffer, *offset, *length, *word);
            }
            Step::Copy { source, target: to, regions } => {
                ctx.device.cmd_copy_buffer(target, *source, *to, regions);
            }
            Step::Update { buffer, offset, bytes } => {
                ctx.device.cmd_update_buffer(target, *buffer, *offset, bytes);
            }
            _ => {}
        }
    }
}
