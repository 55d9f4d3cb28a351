//! A Vulkan loader for tests: hands every call to the system's loader, except those that it is told to fail, to delay or to
//! crash in. Also counts what is created and destroyed. The rules are in `rules`.
//!
//! The driver loads it through the option `libvulkan`. Tests steer it through the functions named `halite_shim_*`, or,
//! from outside of the process, through the environment variable `HALITE_VULKAN_SHIM`, which holds such rules as
//! `vkCreateDevice=crash`, `vkAllocateMemory=-2@3` (result -2 from the fourth call on) or `vkQueueSubmit=tell` (a line on
//! standard error after each call), separated by commas. `timelines=hide` takes timeline semaphores away from all devices, and
//! `queues=two` gives them a second queue. With `exit=crash` the process crashes where it ends in order.

mod calls;
mod commands;
pub mod control;
mod disguise;
mod instance;
pub mod memory;
mod rules;

use std::{
    ffi::{CStr, c_char},
    sync::OnceLock,
};

use ash::vk;

/// Fails a call: after `after` more calls that are left alone, `times` of them give `result` (a `VkResult`).
///
/// # Safety
/// `call` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_shim_fail(call: *const c_char, after: u32, times: u32, result: i32) {
    // SAFETY: as the caller vouches.
    let call = unsafe { CStr::from_ptr(call) }.to_string_lossy().into_owned();
    rules::lock().fail(call, after, times, vk::Result::from_raw(result));
}

/// Forgets all rules, counts and lost devices.
#[unsafe(no_mangle)]
pub extern "C" fn halite_shim_reset() {
    rules::lock().reset();
}

/// Forgets the rules, and nothing else.
#[unsafe(no_mangle)]
pub extern "C" fn halite_shim_clear() {
    rules::lock().clear();
}

/// While on, no work seems to finish: counters stand still, waits time out, and waits for idle do not return.
#[unsafe(no_mangle)]
pub extern "C" fn halite_shim_stall(on: bool) {
    rules::lock().stalled = on;
}

/// While on, this call does not return.
///
/// # Safety
/// `call` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_shim_hang(call: *const c_char, on: bool) {
    // SAFETY: as the caller vouches.
    let call = unsafe { CStr::from_ptr(call) }.to_string_lossy().into_owned();
    rules::lock().hang(call, on);
}

/// While on, devices offer `VK_EXT_device_fault` and tell an invented fault.
#[unsafe(no_mangle)]
pub extern "C" fn halite_shim_device_fault(on: bool) {
    rules::lock().device_fault = on;
}

/// While on, devices have no timeline semaphores.
#[unsafe(no_mangle)]
pub extern "C" fn halite_shim_hide_timelines(on: bool) {
    rules::lock().no_timelines = on;
}

/// While on, devices have two queues: the second is the first under another name.
#[unsafe(no_mangle)]
pub extern "C" fn halite_shim_twin_queues(on: bool) {
    rules::lock().twin_queues = on;
}

/// How often a call was made since the last reset.
///
/// # Safety
/// `call` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_shim_calls(call: *const c_char) -> u32 {
    // SAFETY: as the caller vouches.
    let call = unsafe { CStr::from_ptr(call) }.to_string_lossy();
    rules::lock().calls(&call)
}

/// Objects below instances that were created and not destroyed since the last reset.
#[unsafe(no_mangle)]
pub extern "C" fn halite_shim_live() -> i64 {
    rules::lock().live()
}

/// Moves the log of recorded commands, one line each, to memory of the caller, as far as there is room; its length in bytes.
///
/// # Safety
/// `target` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_shim_commands(target: *mut u8, capacity: usize) -> usize {
    let text = std::mem::take(&mut *commands::log()).join("\n");
    let length = text.len().min(capacity);
    // SAFETY: as the caller vouches; the text has at least as many bytes.
    unsafe { target.copy_from_nonoverlapping(text.as_ptr(), length) };
    length
}

/// The entry point of every Vulkan loader.
///
/// # Safety
/// As Vulkan says.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vkGetInstanceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: Vulkan's callers pass a C string.
    let text = unsafe { CStr::from_ptr(name) };
    if disguise::hides(text) {
        return None;
    }
    instance::find(text).or_else(|| calls::find(text)).or_else(|| {
        // SAFETY: as the caller vouches.
        unsafe { real_entry()?(instance, name) }
    })
}

/// The system's loader. `None` where there is none.
fn real_entry() -> Option<vk::PFN_vkGetInstanceProcAddr> {
    static REAL: OnceLock<Option<vk::PFN_vkGetInstanceProcAddr>> = OnceLock::new();
    *REAL.get_or_init(|| {
        let name = if cfg!(windows) {
            "vulkan-1.dll"
        } else if cfg!(target_os = "macos") {
            "libvulkan.1.dylib"
        } else {
            "libvulkan.so.1"
        };
        // SAFETY: running the initialisers of the system's Vulkan loader is what a program that loads this asks for.
        let library = unsafe { libloading::Library::new(name) }.ok()?;
        // SAFETY: the symbol has this type in every loader.
        let get = unsafe { *library.get::<vk::PFN_vkGetInstanceProcAddr>(c"vkGetInstanceProcAddr").ok()? };
        std::mem::forget(library);
        Some(get)
    })
}

/// The system loader's function with this name, as an instance sees it: it works for all devices.
fn real(instance: vk::Instance, name: &CStr) -> vk::PFN_vkVoidFunction {
    // SAFETY: the instance is null or alive; the name is a C string.
    unsafe { real_entry()?(instance, name.as_ptr()) }
}
