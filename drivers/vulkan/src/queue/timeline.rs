//! The calls on a queue's timeline semaphore. The device context makes them reach `VK_KHR_timeline_semaphore` where they are
//! not core.

use std::time::Duration;

use ash::{prelude::VkResult, vk};
use halite_hal::Result;

use crate::context::DeviceContext;

/// A new timeline semaphore with payload 0.
pub(super) fn create(ctx: &DeviceContext, name: &str) -> Result<vk::Semaphore> {
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    // SAFETY: the plan made sure that the device was opened with timelineSemaphore; the info is complete.
    let made = unsafe { ctx.device.create_semaphore(&info, None) };
    let semaphore = made.map_err(|e| ctx.error("vkCreateSemaphore", e, name))?;
    ctx.set_name(semaphore, name);
    Ok(semaphore)
}

/// The payload of a timeline semaphore of this device.
pub(super) fn value(ctx: &DeviceContext, semaphore: vk::Semaphore) -> VkResult<u64> {
    // SAFETY: the semaphore is a live timeline semaphore: its queue owns it and calls this.
    unsafe { ctx.device.get_semaphore_counter_value(semaphore) }
}

/// Waits until the payload is at least `value`; `TIMEOUT` when it is not within `limit`.
pub(super) fn wait(
    ctx: &DeviceContext,
    semaphore: vk::Semaphore,
    value: u64,
    limit: Duration,
) -> VkResult<()> {
    let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let (semaphores, values) = ([semaphore], [value]);
    let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
    // SAFETY: as in `value`; `info` and what it points to live until the call returns.
    unsafe { ctx.device.wait_semaphores(&info, nanos) }
}
