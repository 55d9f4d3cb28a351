//! What devices are made to look like: without timeline semaphores, as those of older phones, or with a second queue, which
//! software drivers do not have.

use std::{
    collections::HashMap,
    ffi::{CStr, c_void},
    sync::{Mutex, MutexGuard, PoisonError},
};

use ash::vk::{self, Handle};

use crate::{instance::real_as, rules};

/// The extension that is hidden.
pub(crate) const TIMELINE: &CStr = c"VK_KHR_timeline_semaphore";

/// Whether a function belongs to what is hidden.
pub(crate) fn hides(name: &CStr) -> bool {
    let of_timelines = |text: &str| {
        let text = text.trim_end_matches("KHR");
        ["vkWaitSemaphores", "vkGetSemaphoreCounterValue", "vkSignalSemaphore"].contains(&text)
    };
    name.to_str().is_ok_and(of_timelines) && rules::lock().no_timelines
}

/// The field for timeline semaphores of a structure of features.
///
/// # Safety
/// `structure` must be a Vulkan structure.
unsafe fn timeline_field(structure: *mut vk::BaseOutStructure<'_>) -> Option<*mut vk::Bool32> {
    // SAFETY: as the caller vouches; the type is what the structure says that it is.
    unsafe {
        match (*structure).s_type {
            vk::StructureType::PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES => {
                let features = structure.cast::<vk::PhysicalDeviceTimelineSemaphoreFeatures<'_>>();
                Some(&raw mut (*features).timeline_semaphore)
            }
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES => {
                let features = structure.cast::<vk::PhysicalDeviceVulkan12Features<'_>>();
                Some(&raw mut (*features).timeline_semaphore)
            }
            _ => None,
        }
    }
}

/// The fields for timeline semaphores in a chain of structures.
///
/// # Safety
/// `head` must be a chain of Vulkan structures.
unsafe fn timeline_fields(head: *const c_void) -> Vec<*mut vk::Bool32> {
    let mut found = Vec::new();
    let mut next: *mut vk::BaseOutStructure<'_> = head.cast_mut().cast();
    while !next.is_null() {
        // SAFETY: as the caller vouches.
        unsafe {
            found.extend(timeline_field(next));
            next = (*next).p_next;
        }
    }
    found
}

/// Takes timeline semaphores out of what a device has.
///
/// # Safety
/// `head` must be a chain of Vulkan structures that may be written.
pub(crate) unsafe fn clear_timelines(head: *const c_void) {
    // SAFETY: as the caller vouches.
    unsafe { timeline_fields(head) }.into_iter().for_each(|field| unsafe { *field = vk::FALSE });
}

/// Whether a device is asked for timeline semaphores.
///
/// # Safety
/// `info` must be complete.
pub(crate) unsafe fn wants_timelines(
    info: &vk::DeviceCreateInfo<'_>,
    names: &[*const std::ffi::c_char],
) -> bool {
    // SAFETY: as the caller vouches.
    unsafe {
        names.iter().any(|name| CStr::from_ptr(*name) == TIMELINE)
            || timeline_fields(info.p_next).into_iter().any(|field| *field == vk::TRUE)
    }
}

/// Real queues of the second queues that were given out. They live as long as the process: a few bytes each.
static TWINS: Mutex<Option<HashMap<u64, u64>>> = Mutex::new(None);
/// Two threads may use the two queues at once, and the real one only one at a time.
static TURN: Mutex<()> = Mutex::new(());

/// A queue of the same device, which is this one under another name.
pub(crate) fn twin(real: vk::Queue) -> vk::Queue {
    let mut twins = TWINS.lock().unwrap_or_else(PoisonError::into_inner);
    let twins = twins.get_or_insert_default();
    if let Some((twin, _)) = twins.iter().find(|(_, known)| **known == real.as_raw()) {
        return vk::Queue::from_raw(*twin);
    }
    let address = std::ptr::from_mut(Box::leak(Box::new(0_u64))) as u64;
    twins.insert(address, real.as_raw());
    vk::Queue::from_raw(address)
}

/// The real queue, and the turn to use it.
pub(crate) fn real_queue(queue: vk::Queue) -> (vk::Queue, MutexGuard<'static, ()>) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let twins = TWINS.lock().unwrap_or_else(PoisonError::into_inner);
    let real = twins.as_ref().and_then(|twins| twins.get(&queue.as_raw()).copied());
    (real.map_or(queue, vk::Queue::from_raw), turn)
}

/// Two queues where a family has one.
pub(crate) unsafe extern "system" fn queue_families(
    physical: vk::PhysicalDevice,
    count: *mut u32,
    families: *mut vk::QueueFamilyProperties,
) {
    let name = c"vkGetPhysicalDeviceQueueFamilyProperties";
    // SAFETY: arguments are the caller's; the array has `count` entries when it is one.
    unsafe {
        real_as::<vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties>(name)(physical, count, families);
        if families.is_null() || !rules::lock().twin_queues {
            return;
        }
        for family in std::slice::from_raw_parts_mut(families, *count as usize) {
            family.queue_count = family.queue_count.max(2);
        }
    }
}

/// What to ask the real device for instead of the second queues.
///
/// # Safety
/// `info` must be complete.
pub(crate) unsafe fn real_queues<'a>(info: &vk::DeviceCreateInfo<'a>) -> Vec<vk::DeviceQueueCreateInfo<'a>> {
    // SAFETY: as the caller vouches.
    let queues = unsafe {
        std::slice::from_raw_parts(info.p_queue_create_infos, info.queue_create_info_count as usize)
    };
    let twins = rules::lock().twin_queues;
    let clamped = |queue: &vk::DeviceQueueCreateInfo<'a>| {
        let mut queue = *queue;
        queue.queue_count = if twins { 1 } else { queue.queue_count };
        queue
    };
    queues.iter().map(clamped).collect()
}
