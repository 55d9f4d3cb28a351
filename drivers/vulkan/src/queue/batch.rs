//! One submission: its command buffers, what it waits for and signals, and everything that has to live until the device is done
//! with it.

use std::{sync::Arc, time::Instant};

use ash::vk;
use halite_hal::{Fence, Result, SemaphorePoint, Status};
use smallvec::SmallVec;

use super::{
    pace::{self, Load, Shares},
    recorder::Recorder,
    timeline::Wait,
};
use crate::{
    allocator::Allocation, command_buffer::Lowered, context::DeviceContext, device::Core,
    lower::PreparedCommands, pipeline::Kernel, profile::Measured, semaphore::VulkanSemaphore,
};

/// Something that submitted work uses.
#[expect(dead_code, reason = "memory is held only for what dropping it does")]
pub(crate) enum Keeper {
    /// Device memory.
    Allocation(Arc<Allocation>),
    /// All device memory that a recording uses, for each of its parts.
    Allocations(Arc<[Arc<Allocation>]>),
    /// A pipeline and its layouts.
    Kernel(Arc<Kernel>),
    /// A recorded reusable command buffer.
    Lowered(Arc<Lowered>),
}

/// A submission under construction or in flight.
pub(crate) struct Batch {
    /// Value that the queue's timeline has when it is done.
    pub value: u64,
    /// Timelines of other queues and values that it waits for; those are submitted already.
    pub waits: SmallVec<[Wait; 2]>,
    /// Semaphore points that its completion reaches.
    pub signals: Vec<SemaphorePoint>,
    /// What it uses.
    pub keepers: Vec<Keeper>,
    /// What of it is measured.
    pub measured: Vec<Measured>,
    /// Operations in it.
    pub operations: u32,
    /// Dispatches in it.
    pub dispatches: u32,
    /// Whose end nobody may tell: an operation without a signal.
    pub unsignalled: bool,
    /// The signal of the recording that this is a part of, if its end is in a later batch.
    pub part_of: Option<Fence>,
    /// What is known about its time.
    pub shares: Shares,
    /// When it was given to the device.
    pub submitted: Option<Instant>,
    /// Whether the device had nothing else to do then.
    pub alone: bool,
    /// Why its commands were left out.
    pub left_out: Option<Status>,
    commands: SmallVec<[vk::CommandBuffer; 4]>,
    recorder: Option<Recorder>,
    recording: Option<vk::CommandBuffer>,
    /// Why it cannot be submitted: one of its command buffers is not complete.
    broken: Option<Status>,
}

impl Batch {
    /// An empty batch that will signal `value`.
    pub fn new(value: u64) -> Self {
        Batch {
            value,
            waits: SmallVec::new(),
            signals: Vec::new(),
            keepers: Vec::new(),
            measured: Vec::new(),
            operations: 0,
            dispatches: 0,
            unsignalled: false,
            part_of: None,
            shares: Shares::new(),
            submitted: None,
            alone: false,
            left_out: None,
            commands: SmallVec::new(),
            recorder: None,
            recording: None,
            broken: None,
        }
    }

    /// Whether it has anything to do or to wait for.
    pub fn has_work(&self) -> bool {
        self.operations > 0 || !self.waits.is_empty()
    }

    /// The command buffers in order. All recording must have ended.
    pub fn commands(&self) -> &[vk::CommandBuffer] {
        &self.commands
    }

    /// What it is taken for.
    pub fn load(&self) -> Load {
        pace::load(&self.shares)
    }

    /// Why nobody wants any of it, if that is so.
    pub fn abandoned(&self, ctx: &DeviceContext) -> Option<Status> {
        if self.unsignalled {
            return None;
        }
        let parts = self.part_of.iter().flat_map(Fence::points);
        let mut reason = None;
        for point in self.signals.iter().chain(parts) {
            let own = Some(point.semaphore.as_ref()).filter(|s| s.device_id() == ctx.id);
            let own = own.and_then(|s| s.as_any().downcast_ref::<VulkanSemaphore>());
            reason = Some(own?.abandoned()?.clone());
        }
        reason
    }

    /// Leaves its commands out: it only raises the timeline, after all that came before it.
    pub fn leave_out(&mut self, reason: Status) {
        if let Some(recording) = self.recording.take() {
            // It was begun and is not ended; it is reset with its pool, unused.
            self.commands.retain(|commands| *commands != recording);
        }
        self.commands.clear();
        self.measured.clear();
        self.shares.clear();
        self.left_out = Some(reason);
    }

    /// Appends a part of a recorded command buffer.
    pub fn append(&mut self, core: &Core, lowered: &Arc<Lowered>, part: usize) -> Result<()> {
        self.end_recording(&core.ctx)?;
        self.measured.extend(lowered.timer().map(|timer| core.profiler.begin(timer.clone())));
        self.commands.push(lowered.commands(part));
        self.dispatches += lowered.cut().dispatches(part);
        self.shares.push((lowered.cut().clone(), part));
        let lowered = lowered.clone();
        self.keepers.push(Keeper::Lowered(lowered));
        Ok(())
    }

    /// Records a program into the batch's own command buffer. Nothing is recorded when it fails.
    pub fn record(
        &mut self,
        core: &Core,
        source: &mut RecorderSource<'_>,
        mut program: PreparedCommands,
    ) -> Result<()> {
        let ctx = &core.ctx;
        if let Some(status) = &self.broken {
            return Err(status.clone());
        }
        if self.recorder.is_none() {
            self.recorder = Some(source.take(ctx)?);
        }
        let recorder = self.recorder.as_mut().expect("was set just now");
        let sets = program.prepare(ctx, &mut recorder.descriptors)?;
        let timer = program.timer(ctx)?;
        let target = match self.recording {
            Some(target) => target,
            None => {
                let target = recorder.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
                self.commands.push(target);
                self.recording = Some(target);
                target
            }
        };
        let cut = program.take_cut(&core.pace);
        program.record(ctx, target, &sets, cut.steps(0), timer.as_ref());
        self.shares.push((Arc::new(cut), 0));
        self.measured.extend(timer.map(|timer| core.profiler.begin(Arc::new(timer))));
        self.dispatches += program.dispatches();
        let (mut owned, bound) = program.into_keepers();
        self.keepers.append(&mut owned);
        self.keepers.extend(bound.into_iter().map(Keeper::Allocation));
        Ok(())
    }

    /// Ends the batch's own command buffer, so that others can follow or the batch can be submitted. When that fails,
    /// the whole batch has failed: what is in the buffer already cannot run.
    pub fn end_recording(&mut self, ctx: &DeviceContext) -> Result<()> {
        if let Some(status) = &self.broken {
            return Err(status.clone());
        }
        let Some(target) = self.recording.take() else { return Ok(()) };
        crate::lower::record_host_barrier(ctx, target);
        // SAFETY: the buffer is recording (it was in `recording`) and only this batch has it.
        unsafe { ctx.device.end_command_buffer(target) }.map_err(|e| {
            let status = ctx.error("vkEndCommandBuffer", e, &format!("batch {}", self.value));
            self.broken.insert(status).clone()
        })
    }

    /// Takes the recorder out for reuse, once the batch is done.
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.recorder.take()
    }
}

/// Where a batch gets its recorder from: idle ones first.
pub(crate) struct RecorderSource<'a> {
    /// Recorders of finished batches, with nothing in them.
    pub idle: &'a mut Vec<Recorder>,
    /// Queue family for new ones.
    pub family: u32,
}

impl RecorderSource<'_> {
    fn take(&mut self, ctx: &Arc<DeviceContext>) -> Result<Recorder> {
        self.idle.pop().map_or_else(|| Recorder::new(ctx, self.family), Ok)
    }
}
