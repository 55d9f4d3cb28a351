//! A process that forks while a device is open: the child gets errors for what it inherited, frees it, and opens its own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::ptr;

use common::*;
use halite_c::{builder::*, device::*, failure::*, session::*, source::*, tensor::*};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn alarm(seconds: u32) -> u32;
    fn _exit(code: i32) -> !;
}

/// The demo's network on a device.
fn digits(device: *const halite_device) -> Result<*mut halite_session, Told> {
    let bytes = std::fs::read(repo("demo/digits/digits.onnx").to_str().unwrap()).unwrap();
    // SAFETY: handles are ours, the bytes are copied.
    unsafe {
        let builder = halite_session_builder_create();
        let mut source: halite_source = std::mem::zeroed();
        source.struct_size = size_of::<halite_source>();
        (source.data, source.size) = (bytes.as_ptr(), bytes.len());
        halite_session_builder_model(builder, &source);
        halite_session_builder_open_device(builder, device);
        halite_session_builder_no_cache(builder);
        let made = made(|out| halite_session_builder_build(builder, ptr::null(), out));
        halite_session_builder_free(builder);
        made
    }
}

/// The digit in the demo's picture.
fn digit(session: *mut halite_session) -> Result<usize, Told> {
    let picture = floats(&array("sample_7.npy"), &[1, 1, 16, 16]);
    let outputs = run(session, &[named(c"picture", picture)]);
    // SAFETY: the tensor is ours.
    unsafe { halite_tensor_free(picture) };
    let found = read(result(outputs?, c"probabilities"));
    Ok((0..found.len()).max_by(|a, b| found[*a].total_cmp(&found[*b])).unwrap())
}

/// What a child does, which has a session of its parent; the number of the first step that went wrong.
fn child(device: *mut halite_device, session: *mut halite_session) -> i32 {
    let told = |made: Result<usize, Told>| {
        made.is_err_and(|told| told.kind == HALITE_ERROR_INVALID_INPUT && told.text.contains("forked"))
    };
    if !told(digit(session)) {
        return 1;
    }
    if !told(digits(device).and_then(digit)) {
        return 2;
    }
    // SAFETY: handles are the child's copies.
    unsafe {
        halite_session_free(session);
        halite_device_free(device);
    }
    // SAFETY: the arguments are a text and a place.
    let own = made(|out| unsafe { halite_device_open(ptr::null(), c"vulkan".as_ptr(), out) });
    match own.and_then(|own| digits(own)).and_then(digit) {
        Ok(7) => 0,
        // A driver whose devices share threads is refused.
        Err(told) if told.text.contains("swiftshader-forks") => 0,
        _ => 3,
    }
}

#[test]
fn a_child_is_told_and_opens_its_own() {
    let Some(device) = device() else { return };
    let session = digits(device).unwrap();
    assert_eq!(digit(session).unwrap(), 7);
    // SAFETY: the child ends without returning to the test; the alarm ends one that waits.
    unsafe {
        let process = fork();
        assert!(process >= 0);
        if process == 0 {
            alarm(60);
            _exit(child(device, session));
        }
        let mut status = 0;
        assert_eq!(waitpid(process, &raw mut status, 0), process);
        assert_eq!(status, 0, "256 times the step that went wrong, or the signal (14: it waited)");
        assert_eq!(digit(session).unwrap(), 7);
        halite_session_free(session);
        halite_device_free(device);
    }
}
