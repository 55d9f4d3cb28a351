//! Open devices.

use std::{ffi::c_char, sync::OnceLock};

use halite::Device;

use crate::{
    drivers::{self, Described, halite_device_info, halite_drivers},
    error::{call, halite_error},
    failure::quiet,
    raw::{self, Grows, Out},
};

/// An open device, for programs that share one among sessions or put tensors on it. It closes when its last handle is gone, and the
/// sessions and tensors on it.
pub struct halite_device {
    pub(crate) device: Device,
    described: OnceLock<Described>,
}

impl halite_device {
    pub(crate) fn new(device: Device) -> Self {
        halite_device { device, described: OnceLock::new() }
    }
}

/// Memory that a device holds for tensors, weights and programs, in bytes, what went through tensors between host and device, and how
/// often its driver wrote recordings of work in its own form. It does so once for given sizes and buffers, and for calls that grow step
/// by step while the device works for the call before; work that is recorded for one execution does not count. Begin with `HALITE_DEVICE_STATS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_device_stats {
    /// `sizeof(halite_device_stats)`.
    pub struct_size: usize,
    /// Taken from the system now.
    pub reserved: u64,
    /// In use now.
    pub used: u64,
    /// Largest `reserved` so far.
    pub peak_reserved: u64,
    /// Largest `used` so far.
    pub peak_used: u64,
    /// Number of allocations made from the system so far.
    pub allocations: u64,
    /// Tensors that were copied to the device since this handle's device was opened.
    pub uploads: u64,
    /// Their bytes.
    pub uploaded_bytes: u64,
    /// Tensors that were copied to the host.
    pub downloads: u64,
    /// Their bytes.
    pub downloaded_bytes: u64,
    /// Executions of recordings, since interface 0.6 like the fields that follow.
    pub recordings_executed: u64,
    /// Executions that waited for the recording to be written.
    pub recordings_written: u64,
    /// Recordings that were written ahead.
    pub recordings_written_ahead: u64,
    /// Recordings among these that were executed.
    pub recordings_found_ahead: u64,
}

// SAFETY: the size comes first; all others are numbers.
unsafe impl Grows for halite_device_stats {
    const NAME: &'static str = "halite_device_stats";
    const FIRST: usize = std::mem::offset_of!(halite_device_stats, downloaded_bytes) + 1;
}

/// Opens a device by URI: a driver (`vulkan`), or one of its devices by path, index or part of the name (`vulkan://0`,
/// `vulkan://llvmpipe`), with options (`?validation=core`).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_open(
    drivers: *const halite_drivers,
    uri: *const c_char,
    out: *mut *mut halite_device,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_device_open", || unsafe {
        let out = Out::handle(out, "out")?;
        let drivers = drivers::chosen(drivers)?;
        out.give(halite_device::new(drivers.open(raw::text(uri, "uri")?)?));
        Ok(())
    })
}

/// What is known of a device. The texts belong to the handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_get_info(
    device: *const halite_device,
    info: *mut halite_device_info,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_device_get_info", || unsafe {
        let own = raw::handle(device, "device")?;
        raw::fill(info, own.described.get_or_init(|| Described::of(&own.device.info())).info())
    })
}

/// How much memory a device holds, how much it has moved, and how often recordings were written.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_get_stats(
    device: *const halite_device,
    stats: *mut halite_device_stats,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_device_get_stats", || unsafe {
        let device = &raw::handle(device, "device")?.device;
        let (memory, moved, recordings) = (device.memory(), device.transfers(), device.recordings());
        let value = halite_device_stats {
            struct_size: 0,
            reserved: memory.reserved,
            used: memory.used,
            peak_reserved: memory.peak_reserved,
            peak_used: memory.peak_used,
            allocations: memory.allocations,
            uploads: moved.uploads,
            uploaded_bytes: moved.uploaded_bytes,
            downloads: moved.downloads,
            downloaded_bytes: moved.downloaded_bytes,
            recordings_executed: recordings.executed,
            recordings_written: recordings.written,
            recordings_written_ahead: recordings.written_ahead,
            recordings_found_ahead: recordings.found_ahead,
        };
        raw::fill(stats, value)
    })
}

/// Returns unused memory to the system.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_trim(device: *const halite_device) {
    // SAFETY: the contract of the interface.
    quiet("halite_device_trim", (), || unsafe {
        raw::handle(device, "device")?.device.trim();
        Ok(())
    });
}

/// Whether both are the same open device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_is_same(a: *const halite_device, b: *const halite_device) -> bool {
    // SAFETY: the contract of the interface.
    quiet("halite_device_is_same", false, || unsafe {
        Ok(raw::handle(a, "a")?.device.is_same(&raw::handle(b, "b")?.device))
    })
}

/// Frees a handle to a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_device_free(device: *mut halite_device) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_device_free", device) }
}
