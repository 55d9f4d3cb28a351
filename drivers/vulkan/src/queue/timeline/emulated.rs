//! A timeline without timeline semaphores, for devices of Vulkan 1.1 that have none.
//!
//! Each submission signals a fence of its own, and fences of one queue are signalled in order: the timeline is at the value of
//! the last one that was. A submission that waits for another queue first puts an empty submission there, which signals a
//! semaphore when all that was submitted before it has finished, and waits for that semaphore. So it may wait for more than it
//! has to, and never for something that was not submitted: nothing can wait in a circle.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use ash::vk;
use halite_hal::sync::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::context::DeviceContext;

use super::{Failed, Timeline, Wait, Work, create_semaphore, in_time, nanoseconds};

type Result<T> = std::result::Result<T, Failed>;
type Semaphores = SmallVec<[vk::Semaphore; 2]>;

/// The fences of one queue, and the semaphores that its submissions waited for.
#[derive(Default)]
pub(super) struct Fences {
    state: Mutex<State>,
    submitted: Condvar,
}

#[derive(Default)]
struct State {
    /// Value of the last submission that was seen to have finished.
    reached: u64,
    in_flight: VecDeque<Submitted>,
    /// Fences of submissions that have finished. One that a thread still waits for has a second holder, and is left alone.
    used: Vec<Arc<vk::Fence>>,
    /// Semaphores that nothing signals.
    idle: Vec<vk::Semaphore>,
    /// Semaphores that are signalled, or will be, for submissions that failed: the next one waits for them too, after which
    /// they can be used again.
    owed: Semaphores,
}

struct Submitted {
    value: u64,
    fence: Arc<vk::Fence>,
    waited_for: Semaphores,
}

impl Fences {
    /// See [`Timeline::submit`].
    pub fn submit(
        &self,
        own: &Timeline,
        commands: &[vk::CommandBuffer],
        waits: &[Wait],
        value: u64,
    ) -> Result<()> {
        let mut semaphores = std::mem::take(&mut self.state.lock().owed);
        let outcome = self.gather(own, waits, &mut semaphores).and_then(|()| {
            let fence = self.fence(&own.ctx.device)?;
            let work = Work { commands, waits: &semaphores, signals: &[], fence: *fence };
            let submitted = own.hand_over(&work, None);
            if submitted.is_err() {
                self.state.lock().used.push(fence.clone());
            }
            submitted.map(|()| fence)
        });
        let mut state = self.state.lock();
        match outcome {
            Ok(fence) => {
                state.in_flight.push_back(Submitted { value, fence, waited_for: semaphores });
                drop(state);
                self.submitted.notify_all();
                Ok(())
            }
            Err(failed) => {
                state.owed.extend(semaphores);
                Err(failed)
            }
        }
    }

    /// Adds a semaphore for each of the others that is not there yet.
    fn gather(&self, own: &Timeline, waits: &[Wait], semaphores: &mut Semaphores) -> Result<()> {
        for (index, (other, _)) in waits.iter().enumerate() {
            let same = |wait: &&Wait| Arc::ptr_eq(&wait.0, other);
            let furthest = waits.iter().filter(same).map(|(_, value)| *value).max().unwrap_or(0);
            let seen = waits[..index].iter().any(|wait| same(&wait));
            if seen || other.look()? >= furthest {
                continue;
            }
            let semaphore = self.semaphore(own)?;
            let work = Work { commands: &[], waits: &[], signals: &[semaphore], fence: vk::Fence::null() };
            if let Err(failed) = other.hand_over(&work, None) {
                self.state.lock().idle.push(semaphore);
                return Err(failed);
            }
            semaphores.push(semaphore);
        }
        Ok(())
    }

    /// A semaphore that nothing signals.
    fn semaphore(&self, own: &Timeline) -> Result<vk::Semaphore> {
        if let Some(idle) = self.state.lock().idle.pop() {
            return Ok(idle);
        }
        create_semaphore(&own.ctx, vk::SemaphoreType::BINARY).map_err(|e| ("vkCreateSemaphore", e))
    }

    /// A fence that is not signalled.
    fn fence(&self, device: &ash::Device) -> Result<Arc<vk::Fence>> {
        let free = {
            let mut state = self.state.lock();
            let free = state.used.iter().position(|fence| Arc::strong_count(fence) == 1);
            free.map(|index| state.used.swap_remove(index))
        };
        match free {
            None => {
                // SAFETY: the device is alive and the info complete.
                let made = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) };
                made.map(Arc::new).map_err(|e| ("vkCreateFence", e))
            }
            Some(fence) => {
                // SAFETY: its submission has finished or failed, and no thread waits for it: this is its only holder.
                let reset = unsafe { device.reset_fences(&[*fence]) };
                reset.map(|()| fence.clone()).map_err(|e| {
                    self.state.lock().used.push(fence);
                    ("vkResetFences", e)
                })
            }
        }
    }

    /// See [`Timeline::value`].
    pub fn look(&self, device: &ash::Device) -> Result<u64> {
        let mut state = self.state.lock();
        while let Some(first) = state.in_flight.front() {
            // SAFETY: the fence is live, and was given to a submission.
            let finished = unsafe { device.get_fence_status(*first.fence) };
            if !finished.map_err(|e| ("vkGetFenceStatus", e))? {
                break;
            }
            if let Some(Submitted { value, fence, waited_for }) = state.in_flight.pop_front() {
                state.reached = value;
                state.used.push(fence);
                state.idle.extend(waited_for);
            }
        }
        Ok(state.reached)
    }

    /// See [`Timeline::wait`]. What is not submitted yet is waited for too.
    pub fn wait(&self, device: &ash::Device, value: u64, limit: Duration) -> Result<bool> {
        // The limits of the driver's waits are slices of less than a second.
        let end = Instant::now() + limit;
        let fence = {
            let mut state = self.state.lock();
            loop {
                if state.reached >= value {
                    return Ok(true);
                }
                if let Some(found) = state.in_flight.iter().find(|s| s.value >= value) {
                    break found.fence.clone();
                }
                if self.submitted.wait_until(&mut state, end).timed_out() {
                    return Ok(false);
                }
            }
        };
        let left = nanoseconds(end.saturating_duration_since(Instant::now()));
        // SAFETY: the fence is live, and is not reset as long as it has this holder.
        in_time(unsafe { device.wait_for_fences(&[*fence], true, left) }).map_err(|e| ("vkWaitForFences", e))
    }

    /// Destroys everything. The queue must be idle, and no thread may use it.
    pub fn destroy(&mut self, ctx: &DeviceContext) {
        let device = &ctx.device;
        let State { in_flight, used, idle, owed, .. } = std::mem::take(self.state.get_mut());
        if !owed.is_empty() {
            // The empty submissions that signal these have no fence.
            // SAFETY: nobody uses the queues of this device any more.
            unsafe { ctx.wait_idle() };
        }
        let (fences, waited): (Vec<_>, Vec<_>) =
            in_flight.into_iter().map(|s| (s.fence, s.waited_for)).unzip();
        for semaphore in waited.into_iter().flatten().chain(idle).chain(owed) {
            // SAFETY: its signals and waits have ended, as the caller vouches.
            unsafe { device.destroy_semaphore(semaphore, None) };
        }
        for fence in used.into_iter().chain(fences) {
            // SAFETY: as above.
            unsafe { device.destroy_fence(*fence, None) };
        }
    }
}
