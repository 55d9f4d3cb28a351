//! The loader that fails calls (`tests/shim`), and devices opened through it.
#![allow(dead_code, reason = "every test program uses a part of it")]

use std::{ffi::CString, path::PathBuf, sync::Arc};

use halite_hal::{Device, DeviceInfo, Driver as _, Options};
use halite_vulkan::VulkanDriver;

// Named so that it is built; what it does happens in the library that the driver loads.
use halite_vulkan_shim as _;

use super::{print_log, turn, validation};

/// How the queues of a test's devices count what has finished: the calls that tests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timelines {
    /// With timeline semaphores.
    Native,
    /// With fences: the device has nothing else. It has two queues, which wait for each other.
    Hidden,
}

impl Timelines {
    pub fn wait(self) -> &'static str {
        if self == Timelines::Native { "vkWaitSemaphores" } else { "vkWaitForFences" }
    }

    pub fn look(self) -> &'static str {
        if self == Timelines::Native { "vkGetSemaphoreCounterValue" } else { "vkGetFenceStatus" }
    }
}

/// Results as Vulkan numbers them.
pub const OUT_OF_HOST_MEMORY: i32 = -1;
pub const OUT_OF_DEVICE_MEMORY: i32 = -2;
pub const DEVICE_LOST: i32 = -4;

/// The shim, as the driver loads it.
pub struct Shim {
    library: libloading::Library,
    path: PathBuf,
    timelines: std::cell::Cell<Timelines>,
}

impl Shim {
    fn load() -> Self {
        let name =
            format!("{}halite_vulkan_shim{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let path = std::env::current_exe().unwrap().parent().unwrap().join(name);
        // SAFETY: a library of this workspace without initialisers.
        let library = unsafe { libloading::Library::new(&path) };
        let library = library.unwrap_or_else(|e| panic!("{} was not built: {e}", path.display()));
        Shim { library, path, timelines: std::cell::Cell::new(Timelines::Native) }
    }

    fn call<F: Copy>(&self, name: &str) -> F {
        // SAFETY: each caller below names a function of the shim with its type.
        unsafe { *self.library.get::<F>(name).unwrap() }
    }

    /// After `after` more calls, `times` calls give `result`.
    pub fn fail(&self, call: &str, after: u32, times: u32, result: i32) {
        let name = CString::new(call).unwrap();
        // SAFETY: the function's own type; the name is a C string.
        unsafe {
            self.call::<unsafe extern "C" fn(*const std::ffi::c_char, u32, u32, i32)>("halite_shim_fail")(
                name.as_ptr(),
                after,
                times,
                result,
            );
        }
    }

    /// Whether a call returns.
    pub fn hang(&self, call: &str, on: bool) {
        let name = CString::new(call).unwrap();
        // SAFETY: as in `fail`.
        unsafe {
            self.call::<unsafe extern "C" fn(*const std::ffi::c_char, bool)>("halite_shim_hang")(
                name.as_ptr(),
                on,
            );
        }
    }

    pub fn calls(&self, call: &str) -> u32 {
        let name = CString::new(call).unwrap();
        // SAFETY: as in `fail`.
        unsafe {
            self.call::<unsafe extern "C" fn(*const std::ffi::c_char) -> u32>("halite_shim_calls")(
                name.as_ptr(),
            )
        }
    }

    /// What was recorded into command buffers since the last call: `dispatch`, `copy`, …, and `barrier` with the stages
    /// before and behind and the accesses before and behind, as numbers.
    pub fn commands(&self) -> Vec<String> {
        let mut bytes = vec![0; 1 << 20];
        // SAFETY: the function's own type; the memory has so many bytes.
        let length = unsafe {
            self.call::<unsafe extern "C" fn(*mut u8, usize) -> usize>("halite_shim_commands")(
                bytes.as_mut_ptr(),
                bytes.len(),
            )
        };
        String::from_utf8_lossy(&bytes[..length]).lines().map(str::to_owned).collect()
    }

    pub fn reset(&self) {
        self.call::<extern "C" fn()>("halite_shim_reset")();
    }

    /// Forgets the rules.
    pub fn clear(&self) {
        self.call::<extern "C" fn()>("halite_shim_clear")();
    }

    pub fn stall(&self, on: bool) {
        self.call::<extern "C" fn(bool)>("halite_shim_stall")(on);
    }

    /// Whether devices have no timeline semaphores, as those of older phones.
    pub fn hide_timelines(&self, on: bool) {
        self.call::<extern "C" fn(bool)>("halite_shim_hide_timelines")(on);
    }

    /// Whether devices have a second queue.
    pub fn twin_queues(&self, on: bool) {
        self.call::<extern "C" fn(bool)>("halite_shim_twin_queues")(on);
    }

    pub fn device_fault(&self, on: bool) {
        self.call::<extern "C" fn(bool)>("halite_shim_device_fault")(on);
    }

    /// Objects that were made since the last reset and not destroyed.
    pub fn live(&self) -> i64 {
        self.call::<extern "C" fn() -> i64>("halite_shim_live")()
    }

    /// Options that lead through the shim, and these.
    pub fn options(&self, more: &[(&str, &str)]) -> Options {
        let base = [
            ("libvulkan", self.path.to_str().unwrap().to_owned()),
            ("pipeline_cache", "off".to_owned()),
            ("validation", validation()),
            // It would stand in for devices that the shim hides.
            ("swiftshader", "off".to_owned()),
        ];
        let mut options: Options = base.map(|(k, v)| (k.to_owned(), v)).into();
        options.extend(more.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        options
    }

    /// How devices of this shim count.
    pub fn timelines(&self) -> Timelines {
        self.timelines.get()
    }

    pub fn open(&self, info: &DeviceInfo, more: &[(&str, &str)]) -> halite_hal::Result<Arc<dyn Device>> {
        VulkanDriver.open(&info.path, &self.options(more))
    }
}

/// Runs a test on every device through the shim, which has no rules and counts nothing yet.
pub fn on_shim(test: impl Fn(&Shim, &DeviceInfo)) {
    let _turn = turn();
    print_log();
    let shim = Shim::load();
    shim.reset();
    let devices = match VulkanDriver.enumerate(&shim.options(&[])) {
        Ok(devices) => devices,
        Err(e) => {
            eprintln!("SKIPPED: no Vulkan here: {e}");
            return;
        }
    };
    let usable: Vec<_> = devices.iter().filter(|d| d.unusable.is_none()).collect();
    if usable.is_empty() {
        eprintln!("SKIPPED: no usable Vulkan device among {}", devices.len());
    }
    let both = [Timelines::Native, Timelines::Hidden];
    for (info, timelines) in usable.into_iter().flat_map(|info| both.map(|timelines| (info, timelines))) {
        eprintln!("on '{}', timelines {timelines:?}", info.name);
        shim.reset();
        shim.timelines.set(timelines);
        shim.hide_timelines(timelines == Timelines::Hidden);
        shim.twin_queues(timelines == Timelines::Hidden);
        let before = halite_vulkan::validation_message_count();
        test(&shim, info);
        shim.reset();
        assert_eq!(
            halite_vulkan::validation_message_count(),
            before,
            "validation messages on '{}'",
            info.name
        );
    }
}
