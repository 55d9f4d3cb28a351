//! An open device: its handle, functions, queues and everything that was decided about it.

mod open;

use std::{
    ffi::CString,
    sync::{Arc, OnceLock},
};

use ash::vk;
use halite_facts::{DeviceFacts, DeviceType};
use halite_hal::{DeviceInfo, Opener, Result, Status};

use crate::{
    discovery::Found,
    error::vk_error,
    external::Handles,
    forks::{LoaderCall, SharesThreads},
    import::{Caller, QueueLock},
    instance::InstanceContext,
    options::VulkanOptions,
    pipeline_cache::PipelineCache,
    plan::DevicePlan,
    target::TargetRanks,
};

/// A queue of the device. Vulkan wants one thread at a time in a queue: its owner locks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueHandle {
    /// The queue.
    pub queue: vk::Queue,
    /// Its family.
    pub family: u32,
}

/// An open device. Everything made from it holds an `Arc` of it, so it is destroyed last.
///
/// `device` also reaches functions that the device only has under their extension names: a call that became
/// core in a later version is looked up with the suffixes `KHR` and `EXT` when its core name is unknown.
pub(crate) struct DeviceContext {
    /// Process-unique identity.
    pub id: u64,
    /// The process that opened it.
    opener: Opener,
    /// The instance it comes from.
    pub instance: Arc<InstanceContext>,
    /// The physical device that it was opened on.
    pub physical: vk::PhysicalDevice,
    /// The device and its functions.
    pub device: ash::Device,
    /// What the device can do.
    pub facts: DeviceFacts,
    /// What was decided about it.
    pub plan: DevicePlan,
    /// How well targets fit it.
    pub targets: TargetRanks,
    /// What was asked for.
    pub options: VulkanOptions,
    /// What enumeration says about it.
    pub info: DeviceInfo,
    /// Its queues, at least one, in the plan's order.
    pub queues: Vec<QueueHandle>,
    /// Push descriptor functions, when the plan uses them.
    pub push_descriptor: Option<ash::khr::push_descriptor::Device>,
    /// Naming functions, when names are wanted.
    pub debug_utils: Option<ash::ext::debug_utils::Device>,
    /// What a lost device is asked what went wrong, where it offers to tell.
    pub device_fault: Option<ash::ext::device_fault::Device>,
    /// Functions that make and take handles of memory.
    pub external: Handles,
    /// The pipeline cache.
    pub pipeline_cache: PipelineCache,
    /// Whose device it is, if the program opened it.
    pub(crate) caller: Option<Caller>,
    /// Where all devices of the driver share threads.
    shares_threads: Option<SharesThreads>,
    /// The first failure that said that the device is lost.
    loss: OnceLock<Status>,
}

impl std::fmt::Debug for DeviceContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceContext").field("id", &self.id).field("uri", &self.info.uri()).finish()
    }
}

impl DeviceContext {
    /// Opens a device. UNAVAILABLE names what it lacks, INVALID_ARGUMENT an option that it cannot meet.
    pub(crate) fn open(found: &Found, options: VulkanOptions) -> Result<Arc<Self>> {
        open::open(found, options).map(Arc::new)
    }

    /// Takes over a device that the program opened, with what it enabled there.
    pub(crate) fn adopt(
        found: Found,
        options: VulkanOptions,
        plan: DevicePlan,
        device: (vk::Device, &[(vk::Queue, u32)]),
        caller: Caller,
    ) -> Arc<Self> {
        Arc::new(open::adopt(found, options, plan, device, caller))
    }

    /// Whether dispatches may go in several, so that none outlasts a submission by much: where processors compute, one
    /// may take seconds. GPUs are never so slow.
    pub(crate) fn divides_dispatches(&self) -> bool {
        self.facts.device_type == DeviceType::Cpu && self.options.submission_limit.is_some()
    }

    /// Calls something that uses a Vulkan queue, with the program kept away from it.
    pub(crate) fn with_queue<T>(&self, index: usize, call: impl FnOnce() -> T) -> T {
        let Some(lock) = self.caller.as_ref().and_then(|caller| caller.lock.as_deref()) else {
            return call();
        };
        /// Unlocks also when the call panics.
        struct Locked<'a>(&'a dyn QueueLock, usize);
        impl Drop for Locked<'_> {
            fn drop(&mut self) {
                self.0.unlock(self.1);
            }
        }
        lock.lock(index);
        let _locked = Locked(lock, index);
        call()
    }

    /// Waits until the queues have nothing left to do.
    ///
    /// # Safety
    /// No thread uses the queues, except for the program's own, which have a lock for it.
    pub(crate) unsafe fn wait_idle(&self) {
        let result = if self.caller.is_none() {
            // SAFETY: as the caller vouches.
            unsafe { self.device.device_wait_idle() }
        } else {
            let wait = |(index, queue): (usize, &QueueHandle)| {
                // SAFETY: as the caller vouches.
                self.with_queue(index, || unsafe { self.device.queue_wait_idle(queue.queue) })
            };
            self.queues.iter().enumerate().map(wait).fold(Ok(()), Result::and)
        };
        if let Err(result) = result {
            log::debug!("waiting for an idle device gave {result:?}");
        }
    }

    /// The status for a failed call: what was called, on which object, on which device and driver.
    ///
    /// Remembers the first that says that the device is lost, so that the rest of the device hears of it.
    pub(crate) fn error(&self, call: &'static str, result: vk::Result, object: &str) -> Status {
        let status = vk_error(call, result, object, &device_text(&self.facts));
        if result == vk::Result::ERROR_DEVICE_LOST {
            return self.loss.get_or_init(|| status).clone();
        }
        status
    }

    /// Whether this is a fork of the process that opened the device: nothing of it may be used, nor given back.
    pub(crate) fn is_forked(&self) -> bool {
        self.opener.is_forked()
    }

    /// FAILED_PRECONDITION in such a fork.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.opener.check(&self.info)
    }

    /// What the first call that noticed a loss of the device reported.
    pub(crate) fn reported_loss(&self) -> Option<Status> {
        self.loss.get().cloned()
    }

    /// Names an object for debuggers and validation messages; does nothing when names are not wanted.
    pub(crate) fn set_name<H: vk::Handle>(&self, handle: H, name: &str) {
        let Some(functions) = &self.debug_utils else { return };
        let Ok(text) = CString::new(name.replace('\0', "?")) else { return };
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(handle).object_name(&text);
        // SAFETY: the handle is a live object of this device: callers pass what they have just created.
        if let Err(result) = unsafe { functions.set_debug_utils_object_name(&info) } {
            log::debug!("naming '{name}' failed with {result:?}");
        }
    }

    /// Writes compiled pipelines to the user's cache if there are new ones.
    pub(crate) fn flush_pipeline_cache(&self) {
        self.pipeline_cache.flush(&self.device);
    }
}

impl Drop for DeviceContext {
    fn drop(&mut self) {
        // SAFETY: every child object holds an Arc of self, so none is left, and no thread uses the device.
        // Waiting first covers work that was submitted and whose objects were given up because of an error.
        unsafe {
            self.wait_idle();
            self.pipeline_cache.destroy(&self.device);
            if self.caller.is_none() {
                // A fork without the lock's owner has opened nothing that could be closed.
                let _call = LoaderCall::begin();
                self.device.destroy_device(None);
            }
        }
    }
}

/// The device and its driver, as error messages name them.
fn device_text(facts: &DeviceFacts) -> String {
    format!("device '{}' ({}, Vulkan {})", facts.name, facts.driver_text(), facts.api_version_text())
}

#[cfg(test)]
mod tests;
