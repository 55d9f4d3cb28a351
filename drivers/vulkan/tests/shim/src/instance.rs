//! The calls that belong to instances, and creating devices.

use std::{
    ffi::{CStr, c_char, c_void},
    sync::atomic::{AtomicU64, Ordering},
};

use ash::vk::{self, Handle};

use crate::{calls, disguise, real, rules, vkGetInstanceProcAddr};

/// The instance that was created last: good for asking for functions.
static INSTANCE: AtomicU64 = AtomicU64::new(0);

/// Some instance that is alive, if there is one.
pub(crate) fn some_instance() -> vk::Instance {
    vk::Instance::from_raw(INSTANCE.load(Ordering::Acquire))
}

/// Our function in the place of the loader's.
pub(crate) fn find(name: &CStr) -> vk::PFN_vkVoidFunction {
    let address: *const () = match name.to_bytes() {
        b"vkGetInstanceProcAddr" => vkGetInstanceProcAddr as *const (),
        b"vkGetDeviceProcAddr" => get_device_proc_addr as *const (),
        b"vkCreateInstance" => create_instance as *const (),
        b"vkEnumeratePhysicalDevices" => enumerate_physical_devices as *const (),
        b"vkEnumerateDeviceExtensionProperties" => enumerate_device_extension_properties as *const (),
        b"vkGetPhysicalDeviceFeatures2" => get_physical_device_features2 as *const (),
        b"vkGetPhysicalDeviceQueueFamilyProperties" => disguise::queue_families as *const (),
        b"vkCreateDevice" => create_device as *const (),
        b"vkDestroyDevice" => destroy_device as *const (),
        _ => return None,
    };
    // SAFETY: a function pointer of one type as a function pointer of another; callers know the right one.
    unsafe { std::mem::transmute::<*const (), vk::PFN_vkVoidFunction>(address) }
}

/// The loader's function as the type that it has.
///
/// # Safety
/// `F` must be the type of the function with this name, which must exist.
pub(crate) unsafe fn real_as<F: Copy>(name: &CStr) -> F {
    let instance = if name == c"vkCreateInstance" { vk::Instance::null() } else { some_instance() };
    let found = real(instance, name).unwrap_or_else(|| panic!("the Vulkan loader has no {name:?}"));
    // SAFETY: as the caller vouches; all function pointers have one size.
    unsafe { std::mem::transmute_copy(&found) }
}

unsafe extern "system" fn get_device_proc_addr(
    device: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: Vulkan's callers pass a C string.
    let text = unsafe { CStr::from_ptr(name) };
    // SAFETY: the type is that of the function; arguments are the caller's.
    let theirs = unsafe { real_as::<vk::PFN_vkGetDeviceProcAddr>(c"vkGetDeviceProcAddr")(device, name) };
    if text == c"vkGetDeviceFaultInfoEXT" && theirs.is_none() {
        return calls::fault_info();
    }
    if disguise::hides(text) {
        return None;
    }
    // What the device does not have must stay missing: callers look for other names then.
    theirs?;
    find(text).or_else(|| calls::find(text)).or(theirs)
}

unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    if let Some(result) = rules::lock().enter("vkCreateInstance", 0) {
        return result;
    }
    // SAFETY: arguments are the caller's.
    unsafe {
        let result = real_as::<vk::PFN_vkCreateInstance>(c"vkCreateInstance")(info, allocator, instance);
        if result == vk::Result::SUCCESS {
            INSTANCE.store((*instance).as_raw(), Ordering::Release);
        }
        result
    }
}

unsafe extern "system" fn enumerate_physical_devices(
    instance: vk::Instance,
    count: *mut u32,
    devices: *mut vk::PhysicalDevice,
) -> vk::Result {
    // A query in two calls counts once.
    if devices.is_null()
        && let Some(result) = rules::lock().enter("vkEnumeratePhysicalDevices", 0)
    {
        return result;
    }
    // SAFETY: arguments are the caller's.
    unsafe {
        real_as::<vk::PFN_vkEnumeratePhysicalDevices>(c"vkEnumeratePhysicalDevices")(instance, count, devices)
    }
}

const FAULT: &CStr = c"VK_EXT_device_fault";

unsafe extern "system" fn enumerate_device_extension_properties(
    physical: vk::PhysicalDevice,
    layer: *const c_char,
    count: *mut u32,
    out: *mut vk::ExtensionProperties,
) -> vk::Result {
    if out.is_null()
        && let Some(result) = rules::lock().enter("vkEnumerateDeviceExtensionProperties", 0)
    {
        return result;
    }
    // SAFETY: arguments are the caller's; no more entries are written than its array has room for.
    unsafe {
        let next =
            real_as::<vk::PFN_vkEnumerateDeviceExtensionProperties>(c"vkEnumerateDeviceExtensionProperties");
        let (fault, no_timelines) = {
            let rules = rules::lock();
            (rules.device_fault, rules.no_timelines)
        };
        if !(fault || no_timelines) || !layer.is_null() {
            return next(physical, layer, count, out);
        }
        let mut all = Vec::new();
        let mut length = 0;
        let result = next(physical, layer, &mut length, std::ptr::null_mut());
        if result != vk::Result::SUCCESS {
            return result;
        }
        all.resize(length as usize, vk::ExtensionProperties::default());
        let result = next(physical, layer, &mut length, all.as_mut_ptr());
        if result != vk::Result::SUCCESS {
            return result;
        }
        all.truncate(length as usize);
        all.retain(|e| !no_timelines || e.extension_name_as_c_str() != Ok(disguise::TIMELINE));
        if fault {
            all.push(vk::ExtensionProperties::default().extension_name(FAULT).unwrap_or_default());
        }
        if out.is_null() {
            *count = all.len() as u32;
            return vk::Result::SUCCESS;
        }
        let room = (*count as usize).min(all.len());
        out.copy_from_nonoverlapping(all.as_ptr(), room);
        *count = room as u32;
        if room < all.len() { vk::Result::INCOMPLETE } else { vk::Result::SUCCESS }
    }
}

unsafe extern "system" fn get_physical_device_features2(
    physical: vk::PhysicalDevice,
    features: *mut vk::PhysicalDeviceFeatures2<'_>,
) {
    // SAFETY: arguments are the caller's: a chain of Vulkan structures, each with its type first.
    unsafe {
        real_as::<vk::PFN_vkGetPhysicalDeviceFeatures2>(c"vkGetPhysicalDeviceFeatures2")(physical, features);
        if rules::lock().no_timelines {
            disguise::clear_timelines((*features).p_next);
        }
        if !rules::lock().device_fault {
            return;
        }
        let mut next: *mut vk::BaseOutStructure<'_> = (*features).p_next.cast();
        while !next.is_null() {
            if (*next).s_type == vk::StructureType::PHYSICAL_DEVICE_FAULT_FEATURES_EXT {
                (*next.cast::<vk::PhysicalDeviceFaultFeaturesEXT<'_>>()).device_fault = vk::TRUE;
            }
            next = (*next).p_next;
        }
    }
}

/// The chain without the structure of the extension that only the shim knows. Links are changed in place: the caller
/// does not look at them again.
///
/// # Safety
/// `head` must be a chain of Vulkan structures.
unsafe fn without_fault(head: *const c_void) -> *const c_void {
    let ours = |s: *mut vk::BaseOutStructure<'_>| {
        // SAFETY: as the caller vouches.
        unsafe { (*s).s_type == vk::StructureType::PHYSICAL_DEVICE_FAULT_FEATURES_EXT }
    };
    let mut first: *mut vk::BaseOutStructure<'_> = head.cast_mut().cast();
    // SAFETY: as the caller vouches.
    unsafe {
        while !first.is_null() && ours(first) {
            first = (*first).p_next;
        }
        let mut at = first;
        while !at.is_null() {
            while !(*at).p_next.is_null() && ours((*at).p_next) {
                (*at).p_next = (*(*at).p_next).p_next;
            }
            at = (*at).p_next;
        }
    }
    first.cast_const().cast()
}

unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    if let Some(result) = rules::lock().enter("vkCreateDevice", 0) {
        return result;
    }
    // SAFETY: arguments are the caller's; names are C strings that live until the call returns.
    unsafe {
        let mut info = *info;
        let names = std::slice::from_raw_parts(
            info.pp_enabled_extension_names,
            info.enabled_extension_count as usize,
        );
        if rules::lock().no_timelines && disguise::wants_timelines(&info, names) {
            return vk::Result::ERROR_FEATURE_NOT_PRESENT;
        }
        let queues = disguise::real_queues(&info);
        info = info.queue_create_infos(&queues);
        let fault = rules::lock().device_fault;
        let names: Vec<_> = names.iter().copied().filter(|n| !fault || CStr::from_ptr(*n) != FAULT).collect();
        info = info.enabled_extension_names(&names);
        if fault {
            info.p_next = without_fault(info.p_next);
        }
        let result = real_as::<vk::PFN_vkCreateDevice>(c"vkCreateDevice")(physical, &info, allocator, device);
        if result == vk::Result::SUCCESS {
            rules::lock().count("device", 1);
        }
        result
    }
}

unsafe extern "system" fn destroy_device(device: vk::Device, allocator: *const vk::AllocationCallbacks<'_>) {
    rules::lock().destroyed(device.as_raw());
    // SAFETY: arguments are the caller's.
    unsafe { real_as::<vk::PFN_vkDestroyDevice>(c"vkDestroyDevice")(device, allocator) };
}
