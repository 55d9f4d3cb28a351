//! A queue's timeline: a counter that each submission raises to its batch's value when the device is done with it. A Vulkan
//! timeline semaphore where the device has those, else fences and semaphores of the first kind (`emulated`). Also the place
//! where work is handed to the Vulkan queue, because what a submission signals is what differs.

mod emulated;

use std::{sync::Arc, time::Duration};

use ash::vk;
use halite_hal::Result;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::{context::DeviceContext, plan::TimelineKind};
use emulated::Fences;

/// A Vulkan call that failed, by its name.
pub(super) type Failed = (&'static str, vk::Result);

/// A point of a timeline that a submission of another queue waits for. It has been submitted.
pub(crate) type Wait = (Arc<Timeline>, u64);

/// The timeline of one queue.
pub(crate) struct Timeline {
    ctx: Arc<DeviceContext>,
    name: String,
    index: usize,
    queue: Mutex<Handle>,
    kind: Kind,
}

enum Kind {
    Native(vk::Semaphore),
    Emulated(Fences),
}

/// The Vulkan queue, which takes one call at a time. No other lock is taken while this one is held.
struct Handle {
    queue: vk::Queue,
    /// Whether it accepts nothing any more.
    closed: bool,
}

impl Timeline {
    /// The timeline of the queue with this index, at 0.
    pub fn create(ctx: &Arc<DeviceContext>, queue: vk::Queue, index: usize) -> Result<Arc<Self>> {
        let name = format!("timeline of queue {index}");
        let kind = match ctx.plan.timeline {
            TimelineKind::Native => {
                let made = create_semaphore(ctx, vk::SemaphoreType::TIMELINE);
                let semaphore = made.map_err(|e| ctx.error("vkCreateSemaphore", e, &name))?;
                ctx.set_name(semaphore, &name);
                Kind::Native(semaphore)
            }
            TimelineKind::Emulated => Kind::Emulated(Fences::default()),
        };
        let queue = Mutex::new(Handle { queue, closed: false });
        Ok(Arc::new(Timeline { ctx: ctx.clone(), name, index, queue, kind }))
    }

    /// Submits command buffers. They run after `waits`; when they have finished, the timeline is at `value`. Values grow from
    /// call to call, and the caller keeps calls apart.
    pub fn submit(
        &self,
        commands: &[vk::CommandBuffer],
        waits: &[Wait],
        value: u64,
    ) -> std::result::Result<(), Failed> {
        match &self.kind {
            Kind::Emulated(fences) => fences.submit(self, commands, waits, value),
            Kind::Native(own) => {
                let semaphores: SmallVec<[_; 2]> = waits.iter().filter_map(|(t, _)| t.native()).collect();
                let values: SmallVec<[_; 2]> = waits.iter().map(|(_, v)| *v).collect();
                let (signals, signal_values) = ([*own], [value]);
                let mut timelines = vk::TimelineSemaphoreSubmitInfo::default()
                    .wait_semaphore_values(&values)
                    .signal_semaphore_values(&signal_values);
                let work = Work { commands, waits: &semaphores, signals: &signals, fence: vk::Fence::null() };
                self.hand_over(&work, Some(&mut timelines))
            }
        }
    }

    /// Where it was seen just now. Never waits.
    pub fn value(&self) -> Result<u64> {
        self.look().map_err(|(call, e)| self.ctx.error(call, e, &self.name))
    }

    fn look(&self) -> std::result::Result<u64, Failed> {
        match &self.kind {
            // SAFETY: the semaphore is a live timeline semaphore of this device: this owns it.
            Kind::Native(own) => unsafe { self.ctx.device.get_semaphore_counter_value(*own) }
                .map_err(|e| ("vkGetSemaphoreCounterValue", e)),
            Kind::Emulated(fences) => fences.look(&self.ctx.device),
        }
    }

    /// Waits until it is at `value` or above; false when it is not within `limit`.
    pub fn wait(&self, value: u64, limit: Duration) -> Result<bool> {
        let waited = match &self.kind {
            Kind::Native(own) => {
                let (semaphores, values) = ([*own], [value]);
                let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
                // SAFETY: as in `look`; `info` and what it points to live until the call returns.
                in_time(unsafe { self.ctx.device.wait_semaphores(&info, nanoseconds(limit)) })
                    .map_err(|e| ("vkWaitSemaphores", e))
            }
            Kind::Emulated(fences) => fences.wait(&self.ctx.device, value, limit),
        };
        waited.map_err(|(call, e)| self.ctx.error(call, e, &self.name))
    }

    /// Lets nothing more reach the Vulkan queue, from other queues' submissions either.
    pub fn close(&self) {
        self.queue.lock().closed = true;
    }

    /// Waits until the Vulkan queue has nothing left to do. It must be closed.
    pub fn wait_idle(&self) {
        let queue = self.queue.lock().queue;
        // SAFETY: the queue is closed, so nobody else uses it.
        _ = self.ctx.with_queue(self.index, || unsafe { self.ctx.device.queue_wait_idle(queue) });
    }

    fn native(&self) -> Option<vk::Semaphore> {
        if let Kind::Native(own) = &self.kind { Some(*own) } else { None }
    }

    /// One `vkQueueSubmit`.
    fn hand_over(
        &self,
        work: &Work<'_>,
        timelines: Option<&mut vk::TimelineSemaphoreSubmitInfo<'_>>,
    ) -> std::result::Result<(), Failed> {
        let stages: SmallVec<[_; 2]> =
            work.waits.iter().map(|_| vk::PipelineStageFlags::ALL_COMMANDS).collect();
        let mut info = vk::SubmitInfo::default()
            .wait_semaphores(work.waits)
            .wait_dst_stage_mask(&stages)
            .command_buffers(work.commands)
            .signal_semaphores(work.signals);
        if let Some(timelines) = timelines {
            info = info.push_next(timelines);
        }
        let handle = self.queue.lock();
        if handle.closed {
            return Err(("vkQueueSubmit", vk::Result::ERROR_DEVICE_LOST));
        }
        // SAFETY: the queue is locked; all arrays live until the call returns; recording of the command buffers has ended, and
        // their batch keeps what they use until the timeline passes its value; semaphores and fence are live and free.
        let submit = || unsafe { self.ctx.device.queue_submit(handle.queue, &[info], work.fence) };
        self.ctx.with_queue(self.index, submit).map_err(|e| ("vkQueueSubmit", e))
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        match &mut self.kind {
            // SAFETY: the core is being dropped, so no thread uses the queue; `Core::close` has waited for its work, or leaked
            // the core where that failed.
            Kind::Native(own) => unsafe { self.ctx.device.destroy_semaphore(*own, None) },
            Kind::Emulated(fences) => fences.destroy(&self.ctx),
        }
    }
}

/// What one `vkQueueSubmit` does.
struct Work<'a> {
    commands: &'a [vk::CommandBuffer],
    waits: &'a [vk::Semaphore],
    signals: &'a [vk::Semaphore],
    fence: vk::Fence,
}

/// A new semaphore; a timeline is at 0.
fn create_semaphore(
    ctx: &DeviceContext,
    semaphore_type: vk::SemaphoreType,
) -> ash::prelude::VkResult<vk::Semaphore> {
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(semaphore_type);
    let mut info = vk::SemaphoreCreateInfo::default();
    if semaphore_type == vk::SemaphoreType::TIMELINE {
        info = info.push_next(&mut kind);
    }
    // SAFETY: the plan made sure that a device for timelines was opened with timelineSemaphore; the info is complete.
    unsafe { ctx.device.create_semaphore(&info, None) }
}

fn nanoseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)
}

/// The result of a wait: whether it ended in time.
fn in_time(result: ash::prelude::VkResult<()>) -> ash::prelude::VkResult<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(vk::Result::TIMEOUT) => Ok(false),
        Err(e) => Err(e),
    }
}
