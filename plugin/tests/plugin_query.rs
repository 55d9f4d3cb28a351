//! A driver library's answer to its program, from the program's side of the one function: versions, sizes, what the library
//! uses of the program. One test, because a library is the guest of one program.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use std::{
    ffi::c_void,
    ptr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use halite_hal::{Code, Driver, next_device_id};
use halite_plugin::{Plugin, abi::*};

static READY: AtomicBool = AtomicBool::new(false);
static MADE: AtomicU32 = AtomicU32::new(0);
static LEVEL: AtomicU32 = AtomicU32::new(2);
static LAST_ID: AtomicU64 = AtomicU64::new(1000);
static LINES: Mutex<Vec<(u32, String, String)>> = Mutex::new(Vec::new());

fn create() -> Arc<dyn Driver> {
    assert!(READY.load(Ordering::SeqCst), "not ready yet");
    MADE.fetch_add(1, Ordering::SeqCst);
    Arc::new(halite_null::NullDriver)
}

static PLUGIN: Plugin = Plugin::new(create, "1.2.3", "by hand");

unsafe fn text(text: HaliteStr) -> String {
    // SAFETY: the texts of these tests are there while they are looked at.
    let bytes = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
    String::from_utf8(bytes.to_vec()).unwrap()
}

unsafe extern "C" fn log_line(context: *mut c_void, level: u32, target: HaliteStr, message: HaliteStr) {
    assert!(!context.is_null());
    // SAFETY: the texts are there for the call.
    LINES.lock().unwrap().push(unsafe { (level, text(target), text(message)) });
}

unsafe extern "C" fn log_level(_context: *mut c_void) -> u32 {
    LEVEL.load(Ordering::SeqCst)
}

unsafe extern "C" fn device_id(_context: *mut c_void) -> u64 {
    LAST_ID.fetch_add(1, Ordering::SeqCst) + 1
}

fn host_table() -> HaliteHost {
    HaliteHost {
        struct_size: size_of::<HaliteHost>() as u32,
        abi_version: HALITE_ABI_VERSION,
        context: (&raw const LEVEL).cast_mut().cast(),
        log: Some(log_line),
        log_level: Some(log_level),
        next_device_id: Some(device_id),
    }
}

fn nothing() -> HalitePlugin {
    let none = HaliteStr { data: ptr::null(), length: 0 };
    let struct_size = size_of::<HalitePlugin>() as u32;
    HalitePlugin { struct_size, abi_version: 0, driver: ptr::null_mut(), version: none, build: none }
}

/// The answer, or the failure's code and message.
fn query(host: *const HaliteHost, version: u32, out: *mut HalitePlugin) -> Result<(), (u32, String)> {
    // SAFETY: hosts of these tests live for ever, and results may be written.
    let status = unsafe { PLUGIN.query(host, version, out) };
    if status.is_null() {
        return Ok(());
    }
    // SAFETY: the failure is ours; it is released once.
    unsafe {
        let failure = ((*status).code, text((*status).message));
        (*status).release.unwrap()(status);
        Err(failure)
    }
}

#[test]
fn a_library_answers_its_program() {
    let host: &'static HaliteHost = Box::leak(Box::new(host_table()));
    let mut plugin = nothing();
    let out = &raw mut plugin;
    let refused = |host: *const HaliteHost, version, out, code: Code, words: &[&str]| {
        let (number, message) = query(host, version, out).unwrap_err();
        assert_eq!(number, code as u32, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "'{message}' lacks one of {words:?}");
    };

    let number = |version: u32| format!("{}.{}", version >> 16, version & 0xFFFF);
    let (ours, newer) = (number(HALITE_ABI_VERSION), number(HALITE_ABI_VERSION + 1));
    refused(
        host,
        HALITE_ABI_VERSION + 1,
        out,
        Code::Incompatible,
        &[&ours, &newer, "newer build of this driver"],
    );
    refused(host, 0, out, Code::Incompatible, &[&ours, "0.0", "update the program"]);
    refused(host, 1 << 16, out, Code::Incompatible, &[&ours, "1.0"]);
    refused(ptr::null(), HALITE_ABI_VERSION, out, Code::Internal, &["HaliteHost is null"]);
    refused(host, HALITE_ABI_VERSION, ptr::null_mut(), Code::Internal, &["HalitePlugin is null"]);
    let mut short = HalitePlugin { struct_size: 8, ..nothing() };
    refused(host, HALITE_ABI_VERSION, &raw mut short, Code::Internal, &["HalitePlugin has 8 bytes"]);
    let small: &'static HaliteHost = Box::leak(Box::new(HaliteHost { struct_size: 16, ..host_table() }));
    refused(small, HALITE_ABI_VERSION, out, Code::Internal, &["HaliteHost has 16 bytes"]);
    let mute: &'static HaliteHost = Box::leak(Box::new(HaliteHost { log: None, ..host_table() }));
    refused(mute, HALITE_ABI_VERSION, out, Code::Incompatible, &["lacks a function"]);
    assert!(plugin.driver.is_null(), "nothing is written on failure");

    // The first program that counts is taken; a constructor that panics is asked again the next time.
    refused(host, HALITE_ABI_VERSION, out, Code::Internal, &["'query' panicked", "not ready yet"]);
    let lines = std::mem::take(&mut *LINES.lock().unwrap());
    let [(1, _, message)] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(message.contains("not ready yet") && message.contains("plugin_query.rs"), "{message}");
    READY.store(true, Ordering::SeqCst);
    query(host, HALITE_ABI_VERSION, out).unwrap();
    let first = plugin.driver;
    query(host, HALITE_ABI_VERSION, out).unwrap();
    assert_eq!((plugin.driver, MADE.load(Ordering::SeqCst)), (first, 1));
    assert_eq!(
        (plugin.abi_version, plugin.struct_size),
        (HALITE_ABI_VERSION, size_of::<HalitePlugin>() as u32)
    );
    // SAFETY: what a library answers lives for ever.
    let texts = unsafe { (text(plugin.version), text(plugin.build)) };
    assert_eq!(texts, ("1.2.3".to_owned(), "by hand".to_owned()));

    assert_eq!((next_device_id(), next_device_id()), (1001, 1002));
    log::warn!(target: "there", "ä {}", 1);
    log::info!("not listened to");
    LEVEL.store(5, Ordering::SeqCst);
    query(host, HALITE_ABI_VERSION, out).unwrap();
    log::trace!(target: "there", "now it is");
    let expected = [(2, "ä 1"), (5, "now it is")];
    let lines = LINES.lock().unwrap();
    assert!(
        lines
            .iter()
            .map(|(level, target, m)| (*level, target.as_str(), m.as_str()))
            .eq(expected.map(|(l, m)| (l, "there", m))),
        "{lines:?}"
    );
}
