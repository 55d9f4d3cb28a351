//! Devices on the program's own Vulkan instance.

use std::{
    ffi::{CString, c_char, c_void},
    ptr,
};

use halite::vulkan::{CallersDevice, CallersInstance, QueueLock};

use crate::{
    device::halite_device,
    drivers::{self, halite_drivers},
    error::{call, halite_error},
    failure::{Result, quiet},
    raw::{self, Grows, Out},
    source::{Release, halite_release_fn},
};

/// A queue of a Vulkan device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_vulkan_queue {
    /// The `VkQueue`.
    pub queue: *mut c_void,
    /// Its family.
    pub family: u32,
}

/// Locks or unlocks the queue with this place in the list of queues, for the calling thread. A thread that holds the lock must not
/// call this library, which would wait for it.
pub type halite_vulkan_queue_fn = Option<unsafe extern "C" fn(context: *mut c_void, queue: usize)>;

/// A Vulkan device of the program's. Begin with `HALITE_VULKAN_DEVICE_INIT`. What is pointed to, except Vulkan's own objects, is
/// read during the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_vulkan_device {
    /// `sizeof(halite_vulkan_device)`.
    pub struct_size: usize,
    /// `vkGetInstanceProcAddr` of the loader, or of the driver, that the instance comes from.
    pub get_instance_proc_addr: *const c_void,
    /// The `VkInstance`.
    pub instance: *mut c_void,
    /// The `VkPhysicalDevice`.
    pub physical_device: *mut c_void,
    /// What the instance was made for: `VkApplicationInfo::apiVersion`, at least Vulkan 1.1.
    pub api_version: u32,
    /// The `VkDevice`. `halite_vulkan_wanted_create` takes NULL: there is none yet.
    pub device: *mut c_void,
    /// The queues that Halite may use, 1 to 8 of one family that computes.
    pub queues: *const halite_vulkan_queue,
    /// Their number.
    pub queue_count: usize,
    /// Extensions that were enabled when the device was created, of those that are wanted.
    pub extensions: *const *const c_char,
    /// Their number.
    pub extension_count: usize,
    /// Features that were enabled, of those that are wanted, by the names of Vulkan's fields: `shaderFloat16`. What is not
    /// named is not used.
    pub features: *const *const c_char,
    /// Their number.
    pub feature_count: usize,
    /// Called before Halite uses a queue, on any thread. NULL when no other thread uses these queues while Halite's device
    /// lives.
    pub lock: halite_vulkan_queue_fn,
    /// Called on the same thread after that. NULL exactly when `lock` is.
    pub unlock: halite_vulkan_queue_fn,
    /// Called when Halite does not use the Vulkan objects any more, also when the call fails; may be NULL. Device and instance
    /// have to live until then.
    pub release: halite_release_fn,
    /// Handed to `lock`, `unlock` and `release`.
    pub context: *mut c_void,
}

// SAFETY: the size comes first; zeros are what is not set.
unsafe impl Grows for halite_vulkan_device {
    const NAME: &'static str = "halite_vulkan_device";
    const FIRST: usize = std::mem::offset_of!(halite_vulkan_device, context) + 1;
}

/// What Halite would enable on a physical device, for programs that create the device.
pub struct halite_vulkan_wanted {
    extensions: Vec<CString>,
    features: Vec<CString>,
    queue_family: u32,
}

/// The program's lock, and its end.
struct Shared {
    lock: halite_vulkan_queue_fn,
    unlock: halite_vulkan_queue_fn,
    context: *mut c_void,
}

// SAFETY: the contract: the functions are called on any thread.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl QueueLock for Shared {
    fn lock(&self, queue: usize) {
        if let Some(lock) = self.lock {
            // SAFETY: the contract: it may be called on any thread.
            unsafe { lock(self.context, queue) };
        }
    }

    fn unlock(&self, queue: usize) {
        if let Some(unlock) = self.unlock {
            // SAFETY: as above; this thread has locked it.
            unsafe { unlock(self.context, queue) };
        }
    }
}

/// # Safety
/// The structure keeps the contract.
unsafe fn instance_of(stated: &halite_vulkan_device) -> Result<CallersInstance> {
    let (functions, instance) = (stated.get_instance_proc_addr, stated.instance);
    // SAFETY: the caller's promise.
    let made =
        unsafe { CallersInstance::new(functions, instance, stated.physical_device, stated.api_version) };
    Ok(made.map_err(halite::Error::from)?)
}

/// # Safety
/// The pointer is null or points to as many texts.
unsafe fn texts(pointer: *const *const c_char, count: usize, name: &str) -> Result<Vec<String>> {
    // SAFETY: the caller's promise.
    let list = unsafe { raw::slice(pointer, count, name) }?;
    // SAFETY: as above.
    list.iter().map(|text| Ok(unsafe { raw::text(*text, name) }?.to_owned())).collect()
}

/// A device on the program's own Vulkan device and queues, which it shares with the program. `drivers` has the options. Tensors
/// are Halite's own. Freeing the device waits for its work; objects that are left keep it until they are freed, too, and then
/// `release` is called.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_import_vulkan(
    drivers: *const halite_drivers,
    device: *const halite_vulkan_device,
    out: *mut *mut halite_device,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_device_import_vulkan", || unsafe {
        let stated = raw::structure(device)?;
        // From here on it is released, whatever happens.
        let release = Release::new(stated.release, stated.context);
        let out = Out::handle(out, "out")?;
        if stated.lock.is_some() != stated.unlock.is_some() {
            return Err(crate::failure::Failure::invalid("'lock' and 'unlock' come together, or not at all"));
        }
        let queues: Vec<_> = raw::slice(stated.queues, stated.queue_count, "queues")?
            .iter()
            .map(|queue| (queue.queue, queue.family))
            .collect();
        let extensions = texts(stated.extensions, stated.extension_count, "extensions")?;
        let features = texts(stated.features, stated.feature_count, "features")?;
        let instance = instance_of(&stated)?;
        let own = CallersDevice::new(instance, stated.device, &queues).map_err(halite::Error::from)?;
        let mut own = own.enabled(extensions, features).keep(Box::new(release));
        if stated.lock.is_some() {
            let shared = Shared { lock: stated.lock, unlock: stated.unlock, context: stated.context };
            own = own.lock(Box::new(shared));
        }
        out.give(halite_device::new(drivers::chosen(drivers)?.import_vulkan(own)?));
        Ok(())
    })
}

/// What Halite would enable on a physical device with the options of `drivers`: all of it optional. `device` names
/// `get_instance_proc_addr`, `instance`, `physical_device` and `api_version`; its `release` is not called.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_vulkan_wanted_create(
    drivers: *const halite_drivers,
    device: *const halite_vulkan_device,
    out: *mut *mut halite_vulkan_wanted,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_vulkan_wanted_create", || unsafe {
        let out = Out::handle(out, "out")?;
        let instance = instance_of(&raw::structure(device)?)?;
        let wanted = drivers::chosen(drivers)?.wanted_vulkan(&instance)?;
        let texts = |names: &[String]| names.iter().map(|name| raw::c_text(name)).collect();
        out.give(halite_vulkan_wanted {
            extensions: texts(&wanted.extensions),
            features: texts(&wanted.features),
            queue_family: wanted.queue_family,
        });
        Ok(())
    })
}

/// An extension of the device that Halite would enable; NULL after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_vulkan_wanted_extension(
    wanted: *const halite_vulkan_wanted,
    index: usize,
) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_vulkan_wanted_extension", ptr::null(), || unsafe {
        let own = raw::handle(wanted, "wanted")?;
        Ok(own.extensions.get(index).map_or(ptr::null(), |name| name.as_ptr()))
    })
}

/// A feature that Halite would enable, by the name of Vulkan's field; NULL after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_vulkan_wanted_feature(
    wanted: *const halite_vulkan_wanted,
    index: usize,
) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_vulkan_wanted_feature", ptr::null(), || unsafe {
        let own = raw::handle(wanted, "wanted")?;
        Ok(own.features.get(index).map_or(ptr::null(), |name| name.as_ptr()))
    })
}

/// The queue family that Halite would use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_vulkan_wanted_queue_family(wanted: *const halite_vulkan_wanted) -> u32 {
    // SAFETY: the contract of the interface.
    quiet("halite_vulkan_wanted_queue_family", 0, || unsafe {
        Ok(raw::handle(wanted, "wanted")?.queue_family)
    })
}

/// Frees the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_vulkan_wanted_free(wanted: *mut halite_vulkan_wanted) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_vulkan_wanted_free", wanted) }
}
