//! Drivers, and the list of their devices.

use std::{
    ffi::{CString, c_char},
    ptr,
};

use halite::{DeviceInfo, DeviceKind, Drivers, Options};
use parking_lot::Mutex;

use crate::{
    error::{call, halite_error},
    failure::{Result, quiet},
    raw::{self, Grows, Out},
};

/// The drivers that find devices: those in the library, and plug-ins if you ask for them. Wherever a function takes
/// drivers, NULL stands for those in the library.
pub struct halite_drivers(Mutex<Drivers>);

/// What kind of hardware a device is: one of `HALITE_DEVICE_…`.
pub type halite_device_kind = u32;

/// Something else.
pub const HALITE_DEVICE_OTHER: halite_device_kind = 0;
/// A GPU with memory of its own.
pub const HALITE_DEVICE_DISCRETE_GPU: halite_device_kind = 1;
/// A GPU that shares the host's memory.
pub const HALITE_DEVICE_INTEGRATED_GPU: halite_device_kind = 2;
/// A GPU seen through virtualization.
pub const HALITE_DEVICE_VIRTUAL_GPU: halite_device_kind = 3;
/// The host's processor, also behind a GPU's interface.
pub const HALITE_DEVICE_CPU: halite_device_kind = 4;

/// A property in words.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_property {
    /// Its name.
    pub name: *const c_char,
    /// Its value.
    pub value: *const c_char,
}

/// What is known of a device. Begin with `HALITE_DEVICE_INFO_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_device_info {
    /// `sizeof(halite_device_info)`.
    pub struct_size: usize,
    /// The URI that opens exactly this device.
    pub uri: *const c_char,
    /// Its display name.
    pub name: *const c_char,
    /// Name of its driver.
    pub driver: *const c_char,
    /// The target that kernels are chosen by, such as `cpu-llvmpipe-linux`; NULL where the driver tells none.
    pub target: *const c_char,
    /// Why it cannot be used; NULL when it can.
    pub unusable: *const c_char,
    /// Properties in words.
    pub properties: *const halite_property,
    /// Number of them.
    pub property_count: usize,
    /// What kind of hardware it is.
    pub kind: halite_device_kind,
}

// SAFETY: the size comes first; zeros are pointers that are not set.
unsafe impl Grows for halite_device_info {
    const NAME: &'static str = "halite_device_info";
    const FIRST: usize = std::mem::offset_of!(halite_device_info, kind) + 1;
}

/// The devices that drivers found, and the drivers that found none. Never changes.
pub struct halite_device_list {
    devices: Vec<Described>,
    unavailable: Vec<(CString, CString)>,
}

/// A device with its texts for C.
pub(crate) struct Described {
    kind: halite_device_kind,
    texts: [CString; 3],
    target: Option<CString>,
    unusable: Option<CString>,
    properties: Vec<halite_property>,
    /// What the properties point to.
    _texts: Vec<(CString, CString)>,
}

// SAFETY: the pointers are into texts that it owns and that do not change.
unsafe impl Send for Described {}
// SAFETY: as above.
unsafe impl Sync for Described {}

impl Described {
    pub fn of(info: &DeviceInfo) -> Described {
        let kind = match info.kind() {
            DeviceKind::DiscreteGpu => HALITE_DEVICE_DISCRETE_GPU,
            DeviceKind::IntegratedGpu => HALITE_DEVICE_INTEGRATED_GPU,
            DeviceKind::VirtualGpu => HALITE_DEVICE_VIRTUAL_GPU,
            DeviceKind::Cpu => HALITE_DEVICE_CPU,
            _ => HALITE_DEVICE_OTHER,
        };
        let pair = |(name, value): &(String, String)| (raw::c_text(name), raw::c_text(value));
        let texts: Vec<_> = info.properties().iter().map(pair).collect();
        let lent = |(name, value): &(CString, CString)| halite_property {
            name: name.as_ptr(),
            value: value.as_ptr(),
        };
        Described {
            kind,
            texts: [&info.uri(), info.name(), info.driver()].map(raw::c_text),
            target: info.target().map(raw::c_text),
            unusable: info.unusable().map(raw::c_text),
            properties: texts.iter().map(lent).collect(),
            _texts: texts,
        }
    }

    /// For C; lives as long as this.
    pub fn info(&self) -> halite_device_info {
        let text = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let [uri, name, driver] = [0, 1, 2].map(|place: usize| self.texts[place].as_ptr());
        halite_device_info {
            struct_size: 0,
            uri,
            name,
            driver,
            target: text(&self.target),
            unusable: text(&self.unusable),
            properties: self.properties.as_ptr(),
            property_count: self.properties.len(),
            kind: self.kind,
        }
    }
}

/// The drivers that a handle stands for.
///
/// # Safety
/// The pointer is null or a handle.
pub(crate) unsafe fn chosen(drivers: *const halite_drivers) -> Result<Drivers> {
    // SAFETY: the caller's promise.
    let drivers = unsafe { raw::optional(drivers, "drivers") }?;
    Ok(drivers.map_or_else(Drivers::linked, |drivers| drivers.0.lock().clone()))
}

/// The drivers in the library; with `plugins` also those in libraries of their own, which are looked for in the folders of the
/// environment variable `HALITE_DRIVER_PATH` and beside the program. A plug-in is loaded when its driver is asked for.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_drivers_create(
    plugins: bool,
    out: *mut *mut halite_drivers,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_drivers_create", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_drivers(Mutex::new(if plugins {
            Drivers::with_plugins()
        } else {
            Drivers::linked()
        })));
        Ok(())
    })
}

/// Sets an option for the devices that are opened with these drivers. An option in a URI wins over it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_drivers_set_option(
    drivers: *mut halite_drivers,
    name: *const c_char,
    value: *const c_char,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_drivers_set_option", || unsafe {
        let (name, value) = (raw::text(name, "name")?, raw::text(value, "value")?);
        let mut own = raw::handle(drivers, "drivers")?.0.lock();
        let mut options: Options = own.device_options().clone();
        options.insert(name.to_owned(), value.to_owned());
        *own = own.clone().options(options);
        Ok(())
    })
}

/// Frees drivers. Devices that were opened with them stay open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_drivers_free(drivers: *mut halite_drivers) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_drivers_free", drivers) }
}

/// Lists the devices of all drivers. A driver that finds none is no failure: see `halite_device_list_unavailable`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_list_create(
    drivers: *const halite_drivers,
    out: *mut *mut halite_device_list,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_device_list_create", || unsafe {
        let out = Out::handle(out, "out")?;
        let drivers = chosen(drivers)?;
        let without =
            |(name, why): (String, halite::Error)| (raw::c_text(&name), raw::c_text(&why.to_string()));
        out.give(halite_device_list {
            devices: drivers.devices().iter().map(Described::of).collect(),
            unavailable: drivers.unavailable().into_iter().map(without).collect(),
        });
        Ok(())
    })
}

/// Number of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_list_count(list: *const halite_device_list) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_device_list_count", 0, || unsafe { Ok(raw::handle(list, "list")?.devices.len()) })
}

/// What is known of a device. The texts belong to the list.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_list_get(
    list: *const halite_device_list,
    index: usize,
    info: *mut halite_device_info,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_device_list_get", || unsafe {
        let devices = &raw::handle(list, "list")?.devices;
        raw::fill(info, raw::at(devices, index, "device")?.info())
    })
}

/// Driver number `index` of those that have no devices, and the reason. Returns false after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_list_unavailable(
    list: *const halite_device_list,
    index: usize,
    driver: *mut *const c_char,
    why: *mut *const c_char,
) -> bool {
    // SAFETY: the contract of the interface.
    quiet("halite_device_list_unavailable", false, || unsafe {
        let (driver, why) = (Out::value(driver, "driver")?, Out::value(why, "why")?);
        let found = raw::handle(list, "list")?.unavailable.get(index);
        driver.set(found.map_or(ptr::null(), |(name, _)| name.as_ptr()));
        why.set(found.map_or(ptr::null(), |(_, text)| text.as_ptr()));
        Ok(found.is_some())
    })
}

/// Frees a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_list_free(list: *mut halite_device_list) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_device_list_free", list) }
}
