//! Memory that a program shares with devices, as C sees it: a second Vulkan device stands for the others.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::{
    ffi::c_void,
    os::fd::{FromRawFd as _, OwnedFd},
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use common::*;
use halite_c::{device::*, failure::*, shared::*, tensor::*};

fn empty() -> halite_external_memory {
    // SAFETY: zeros are what is not set.
    let mut memory: halite_external_memory = unsafe { std::mem::zeroed() };
    memory.struct_size = size_of::<halite_external_memory>();
    memory
}

fn support(device: *const halite_device, kind: halite_memory_kind) -> halite_memory_support {
    // SAFETY: as above; the handle is ours.
    unsafe {
        let mut support: halite_memory_support = std::mem::zeroed();
        support.struct_size = size_of::<halite_memory_support>();
        outcome(halite_device_get_memory_support(device, kind, &mut support)).unwrap();
        support
    }
}

fn tensor(memory: *const halite_memory, length: usize, offset: usize) -> Result<*mut halite_tensor, Told> {
    // SAFETY: the handle is ours.
    made(|out| unsafe { halite_memory_tensor(memory, HALITE_ELEMENT_F32, &length, 1, offset, out) })
}

#[test]
fn a_descriptor_crosses_and_stays_the_callers() {
    let (Some(device), Some(other)) = (device(), device()) else { return };
    let kind = HALITE_MEMORY_OPAQUE_FD;
    let there = support(device, kind);
    // SAFETY: handles are ours, arrays as long as is said.
    unsafe {
        if !(there.can_import && there.can_export) {
            println!("SKIPPED: the device shares no memory by opaque descriptors");
            let told = made(|out| halite_memory_create(device, kind, 64, out)).unwrap_err();
            assert_eq!(told.kind, HALITE_ERROR_UNSUPPORTED);
            return;
        }
        let given = made(|out| halite_memory_create(device, kind, 1000, out)).unwrap();
        assert_eq!(halite_memory_size(given), 1024);
        let mut stated = empty();
        outcome(halite_memory_export(given, kind, &mut stated)).unwrap();
        assert!(stated.fd >= 0 && stated.size >= 1024 && stated.has_memory_type && stated.kind == kind);
        let own = OwnedFd::from_raw_fd(stated.fd);
        let taken = made(|out| halite_memory_import(other, &stated, out)).unwrap();
        own.try_clone().expect("the descriptor is still open");

        let values = floats(&[1.5, -2.0, 3.0], &[3]);
        outcome(halite_memory_release(taken)).unwrap();
        outcome(halite_memory_write(given, 256, values)).unwrap();
        outcome(halite_memory_release(given)).unwrap();
        outcome(halite_memory_acquire(taken)).unwrap();
        let seen = tensor(taken, 3, 256).unwrap();
        halite_memory_free(given);
        halite_memory_free(taken);
        assert!(halite_tensor_is_on_device(seen));
        assert_eq!(read(seen), [1.5, -2.0, 3.0], "the tensor keeps the memory");

        refusals(other, stated);
        halite_tensor_free(values);
        halite_device_free(device);
        halite_device_free(other);
    }
}

/// Memory that cannot be right is refused; `stated` is right.
unsafe fn refusals(other: *const halite_device, stated: halite_external_memory) {
    // SAFETY: handles are ours, and what is stated is read only.
    unsafe {
        let mut wrong = stated;
        wrong.fd = -1;
        let told = made(|out| halite_memory_import(other, &wrong, out)).unwrap_err();
        assert!(told.text.contains("-1 is no descriptor"), "{}", told.text);
        wrong.fd = 1 << 20;
        assert!(
            made(|out| halite_memory_import(other, &wrong, out)).unwrap_err().text.contains("duplicated")
        );
        wrong = stated;
        wrong.size = 0;
        assert!(made(|out| halite_memory_import(other, &wrong, out)).is_err());
        wrong = stated;
        wrong.kind = 99;
        let told = made(|out| halite_memory_import(other, &wrong, out)).unwrap_err();
        assert!(told.text.contains("no kind of memory 99"), "{}", told.text);
        let told = made(|out| halite_memory_import(other, ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("no kind of memory 0"), "{}", told.text);
    }
}

/// Counts releases.
unsafe extern "C" fn count(context: *mut c_void) {
    // SAFETY: the context is a counter.
    unsafe { &*context.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn memory_of_the_process_is_released_once() {
    let Some(device) = device() else { return };
    let there = support(device, HALITE_MEMORY_HOST);
    if !there.can_import {
        println!("SKIPPED: the device takes no memory of the process");
        return;
    }
    let alignment = there.alignment as usize;
    let mut pages = vec![0f32; 2 * alignment / 4];
    let start = pages.as_ptr().align_offset(alignment);
    pages[start..start + 4].copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    let counter = AtomicUsize::new(0);
    let mut stated = empty();
    stated.kind = HALITE_MEMORY_HOST;
    stated.handle = pages[start..].as_mut_ptr().cast();
    stated.size = alignment as u64;
    stated.release = Some(count);
    stated.context = ptr::from_ref(&counter).cast_mut().cast();
    // SAFETY: handles are ours, and the memory outlives what is made of it.
    unsafe {
        let memory = made(|out| halite_memory_import(device, &stated, out)).unwrap();
        let seen = tensor(memory, 4, 0).unwrap();
        assert_eq!(read(seen), [1.0, 2.0, 3.0, 4.0]);
        let values = floats(&[9.0], &[1]);
        let told = outcome(halite_memory_write(memory, 0, values)).unwrap_err();
        assert_eq!(told.kind, HALITE_ERROR_PERMISSION_DENIED, "{}", told.text);
        assert!(tensor(memory, alignment, 0).is_err() && tensor(memory, 1, 4).is_err());
        halite_memory_free(memory);
        halite_device_trim(device);
        assert_eq!(counter.swap(0, Ordering::SeqCst), 1);
        let mut wrong = stated;
        wrong.size -= 1;
        let told = made(|out| halite_memory_import(device, &wrong, out)).unwrap_err();
        assert!(told.text.contains("multiple of"), "{}", told.text);
        assert_eq!(counter.swap(0, Ordering::SeqCst), 1, "a call that fails releases, too");
        wrong = stated;
        wrong.release = None;
        assert!(made(|out| halite_memory_import(device, &wrong, out)).unwrap_err().text.contains("borrowed"));
        halite_tensor_free(values);
        halite_device_free(device);
    }
}

#[test]
fn devices_tell_who_they_are() {
    let Some(device) = device() else { return };
    let (mut own, mut driver) = ([0u8; 16], [0u8; 16]);
    // SAFETY: the handle is ours, and there are sixteen bytes each.
    unsafe {
        outcome(halite_device_get_uuids(device, own.as_mut_ptr(), driver.as_mut_ptr())).unwrap();
        assert!(own != [0; 16]);
        outcome(halite_device_get_uuids(device, ptr::null_mut(), ptr::null_mut())).unwrap();
        assert!(outcome(halite_device_get_uuids(ptr::null(), own.as_mut_ptr(), ptr::null_mut())).is_err());
        halite_device_free(device);
        let processor = made(|out| halite_device_open(ptr::null(), c"local-sync".as_ptr(), out)).unwrap();
        assert!(outcome(halite_device_get_uuids(processor, own.as_mut_ptr(), ptr::null_mut())).is_err());
        let kinds = HALITE_MEMORY_OPAQUE_FD..=HALITE_MEMORY_OPAQUE_WIN32;
        assert!(kinds.into_iter().all(|kind| !support(processor, kind).can_import));
        halite_device_free(processor);
    }
}
