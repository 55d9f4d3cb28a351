//! Far ends that do not keep the contract, made by hand as C code would make them: each fault becomes a failure that names
//! the driver, and nothing worse.

use std::{
    ffi::c_void,
    ptr,
    sync::{Arc, Mutex, PoisonError},
};

use super::{abi::*, driver, peer::Side, raw};
use halite_hal::{BufferParams, Code, Device, Driver, Options, Result};

/// Makes a table with its size.
macro_rules! sized {
    ($name:ident { $($field:ident: $value:expr),* $(,)? }) => {
        $name { struct_size: size_of::<$name>() as u32, reserved: 0, $($field: $value),* }
    };
}

unsafe extern "C" fn keep<T>(_object: *mut T) {}

unsafe extern "C" fn device_number(_object: *mut HaliteBuffer, out: *mut HaliteBufferInfo) {
    // SAFETY: the caller's structure.
    unsafe { (*out).byte_length = 16 };
}

unsafe extern "C" fn read(_: *mut HaliteBuffer, _: u64, _: *mut u8, _: usize) -> *mut HaliteStatus {
    ptr::null_mut()
}

unsafe extern "C" fn write(_: *mut HaliteBuffer, _: u64, _: HaliteBytes) -> *mut HaliteStatus {
    ptr::null_mut()
}

const BUFFER: HaliteBufferVtable = sized!(HaliteBufferVtable {
    retain: Some(keep),
    release: Some(keep),
    info: Some(device_number),
    read: Some(read),
    write: Some(write),
});

/// What the faulty driver does next; tests that set it run one after the other.
#[derive(Clone, Copy)]
struct Faults {
    name: &'static [u8],
    infos: usize,
    kind: u32,
    info_size: u32,
    id: u64,
    queues: u32,
    failure: u32,
    device: fn() -> *mut HaliteDevice,
    buffer: fn() -> *mut HaliteBuffer,
}

const NONE: Faults = Faults {
    name: b"faulty",
    infos: 1,
    kind: HALITE_DEVICE_OTHER,
    info_size: size_of::<HaliteDeviceInfo>() as u32,
    id: 5,
    queues: 1,
    failure: 0,
    device: || device_with(DEVICE),
    buffer: || buffer_with(BUFFER),
};

static FAULTS: Mutex<Faults> = Mutex::new(NONE);
static TURN: Mutex<()> = Mutex::new(());

fn now() -> Faults {
    *FAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn device_with(table: HaliteDeviceVtable) -> *mut HaliteDevice {
    let vtable: &'static _ = Box::leak(Box::new(table));
    Box::leak(Box::new(HaliteDevice { vtable }))
}

fn buffer_with(table: HaliteBufferVtable) -> *mut HaliteBuffer {
    let vtable: &'static _ = Box::leak(Box::new(table));
    Box::leak(Box::new(HaliteBuffer { vtable }))
}

fn failure(code: u32) -> *mut HaliteStatus {
    if code == 0 {
        return ptr::null_mut();
    }
    Box::leak(Box::new(HaliteStatus {
        struct_size: size_of::<HaliteStatus>() as u32,
        code,
        message: raw::lend("no luck"),
        annotations: ptr::null(),
        annotation_count: 0,
        details: ptr::null(),
        detail_count: 0,
        release: None,
    }))
}

type Visit = unsafe extern "C" fn(*mut c_void, *const HaliteDeviceInfo);

unsafe fn tell(context: *mut c_void, visit: Option<Visit>) {
    let none = HaliteStr { data: ptr::null(), length: 0 };
    let info = HaliteDeviceInfo {
        struct_size: now().info_size,
        kind: now().kind,
        driver: raw::lend("another"),
        path: none,
        name: raw::lend("device"),
        unusable: none,
        target: none,
        capabilities: none,
        executable_formats: ptr::null(),
        executable_format_count: 0,
        score: ptr::null(),
        score_count: 0,
        properties: ptr::null(),
        property_count: 0,
        groups: ptr::null(),
        group_count: 0,
        unconfined: ptr::null(),
        unconfined_count: 0,
        external: ptr::null(),
        external_count: 0,
    };
    for _ in 0..now().infos {
        // SAFETY: the caller's visitor.
        unsafe { visit.unwrap()(context, &raw const info) };
    }
}

unsafe extern "C" fn id(_: *mut HaliteDevice) -> u64 {
    now().id
}
unsafe extern "C" fn info(
    _: *mut HaliteDevice,
    context: *mut c_void,
    visit: Option<Visit>,
) -> *mut HaliteStatus {
    // SAFETY: the caller's visitor and context.
    unsafe { tell(context, visit) };
    ptr::null_mut()
}
unsafe extern "C" fn queue_count(_: *mut HaliteDevice) -> u32 {
    now().queues
}
unsafe extern "C" fn query_i64(_: *mut HaliteDevice, _: HaliteStr, _: HaliteStr, out: *mut i64) -> u8 {
    // SAFETY: the caller's result.
    unsafe { out.write(9) };
    200
}
unsafe extern "C" fn memory_stats(_: *mut HaliteDevice, _: *mut HaliteMemoryStats) {}
unsafe extern "C" fn allocate(
    _: *mut HaliteDevice,
    _: *const HaliteBufferParams,
    _: u64,
    out: *mut *mut HaliteBuffer,
) -> *mut HaliteStatus {
    // SAFETY: the caller's result.
    unsafe { out.write((now().buffer)()) };
    failure(now().failure)
}
unsafe extern "C" fn semaphore(
    _: *mut HaliteDevice,
    _: u64,
    _: *mut *mut HaliteSemaphore,
) -> *mut HaliteStatus {
    ptr::null_mut()
}
unsafe extern "C" fn executable(
    _: *mut HaliteDevice,
    _: *const HaliteExecutableDesc,
    _: *mut *mut HaliteExecutable,
) -> *mut HaliteStatus {
    ptr::null_mut()
}
unsafe extern "C" fn commands(
    _: *mut HaliteDevice,
    _: *const HaliteCommandList,
    _: *mut *mut HaliteCommandBuffer,
) -> *mut HaliteStatus {
    ptr::null_mut()
}
unsafe extern "C" fn alloca(
    _: *mut HaliteDevice,
    _: u64,
    _: HaliteFence,
    _: HaliteFence,
    _: *const HaliteBufferParams,
    _: u64,
    _: *mut *mut HaliteBuffer,
) -> *mut HaliteStatus {
    ptr::null_mut()
}
unsafe extern "C" fn submit(
    _: *mut HaliteDevice,
    _: u64,
    _: HaliteFence,
    _: HaliteFence,
    _: *const HaliteQueueOp,
) -> *mut HaliteStatus {
    ptr::null_mut()
}
unsafe extern "C" fn with_u64(_: *mut HaliteDevice, _: u64) -> *mut HaliteStatus {
    ptr::null_mut()
}

const DEVICE: HaliteDeviceVtable = sized!(HaliteDeviceVtable {
    retain: Some(keep),
    release: Some(keep),
    id: Some(id),
    info: Some(info),
    queue_count: Some(queue_count),
    query_i64: Some(query_i64),
    memory_stats: Some(memory_stats),
    trim: Some(keep),
    allocate_buffer: Some(allocate),
    create_semaphore: Some(semaphore),
    create_executable: Some(executable),
    create_command_buffer: Some(commands),
    queue_alloca: Some(alloca),
    queue_submit: Some(submit),
    queue_flush: Some(with_u64),
    wait_idle: Some(with_u64),
    start_profiling: None,
    stop_profiling: None,
    import_buffer: None,
    allocate_exportable: None,
    export_buffer: None,
});

unsafe extern "C" fn name(_: *mut HaliteDriver) -> HaliteStr {
    HaliteStr { data: now().name.as_ptr().cast(), length: now().name.len() }
}
unsafe extern "C" fn options(
    _: *mut HaliteDriver,
    _: *mut c_void,
    _: Option<unsafe extern "C" fn(*mut c_void, *const HalitePair)>,
) -> *mut HaliteStatus {
    ptr::null_mut()
}
unsafe extern "C" fn null_option(
    _: *mut HaliteDriver,
    context: *mut c_void,
    visit: Option<unsafe extern "C" fn(*mut c_void, *const HalitePair)>,
) -> *mut HaliteStatus {
    // SAFETY: not what the contract allows; the visitor looks.
    unsafe { visit.unwrap()(context, ptr::null()) };
    ptr::null_mut()
}
unsafe extern "C" fn enumerate(
    _: *mut HaliteDriver,
    _: *const HalitePair,
    _: usize,
    context: *mut c_void,
    visit: Option<Visit>,
) -> *mut HaliteStatus {
    // SAFETY: the caller's visitor and context.
    unsafe { tell(context, visit) };
    failure(now().failure)
}
unsafe extern "C" fn open(
    _: *mut HaliteDriver,
    _: HaliteStr,
    _: *const HalitePair,
    _: usize,
    out: *mut *mut HaliteDevice,
) -> *mut HaliteStatus {
    // SAFETY: the caller's result.
    unsafe { out.write((now().device)()) };
    ptr::null_mut()
}

const DRIVER: HaliteDriverVtable = sized!(HaliteDriverVtable {
    name: Some(name),
    description: Some(name),
    options: Some(options),
    enumerate: Some(enumerate),
    open: Some(open),
    find_unlisted: None,
    tables: None,
});

fn load(table: HaliteDriverVtable) -> Result<Arc<dyn Driver>> {
    let vtable: &'static _ = Box::leak(Box::new(table));
    let driver = Box::leak(Box::new(HaliteDriver { vtable }));
    // SAFETY: leaked, so it lives for ever.
    unsafe { driver::receive(driver, Side::Host, "library 'x.so'") }
}

fn open_device() -> Result<Arc<dyn Device>> {
    load(DRIVER).unwrap().open("", &Options::new())
}

/// Runs `body` with these faults.
fn with<R>(faults: Faults, body: impl FnOnce() -> R) -> R {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    *FAULTS.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    body()
}

#[track_caller]
fn refused<T>(result: Result<T>, code: Code, words: &[&str]) {
    let Err(status) = result else { panic!("accepted, expected {words:?}") };
    assert_eq!(status.code(), code, "{status}");
    for word in words {
        assert!(status.to_string().contains(word), "'{status}' lacks '{word}'");
    }
}

#[test]
fn a_driver_that_keeps_the_contract_works() {
    with(NONE, || {
        let device = open_device().unwrap();
        assert_eq!((device.id(), device.info().driver.as_str()), (5, "faulty"));
        assert_eq!(device.allocate_buffer(&BufferParams::DEVICE, 1).unwrap().byte_length(), 16);
        assert_eq!(device.query_i64("a", "b"), None, "200 is no boolean");
    });
}

#[test]
fn tables_with_holes_are_refused() {
    with(NONE, || {
        // SAFETY: null is what is to be refused.
        let nothing = unsafe { driver::receive(ptr::null_mut(), Side::Host, "library 'x.so'") };
        refused(nothing, Code::Internal, &["library 'x.so'", "null"]);
        let driver: &'static mut _ = Box::leak(Box::new(HaliteDriver { vtable: ptr::null() }));
        // SAFETY: leaked, so it lives for ever.
        let no_table = unsafe { driver::receive(driver, Side::Host, "library 'x.so'") };
        refused(no_table, Code::Incompatible, &["HaliteDriverVtable is null"]);
        refused(
            load(HaliteDriverVtable { open: None, ..DRIVER }),
            Code::Incompatible,
            &["HaliteDriverVtable.open"],
        );
        refused(
            load(HaliteDriverVtable { name: None, ..DRIVER }),
            Code::Incompatible,
            &["HaliteDriverVtable.name"],
        );
        let short = HaliteDriverVtable { struct_size: 24, ..DRIVER };
        refused(load(short), Code::Incompatible, &["has 24 bytes instead of 64"]);
        let option = HaliteDriverVtable { options: Some(null_option), ..DRIVER };
        refused(load(option), Code::Internal, &["driver 'faulty'", "option"]);
    });
    let device = || device_with(HaliteDeviceVtable { queue_submit: None, ..DEVICE });
    with(Faults { device, ..NONE }, || {
        refused(
            open_device(),
            Code::Incompatible,
            &["driver 'faulty'", "HaliteDeviceVtable.queue_submit is null"],
        );
    });
    let buffer = || buffer_with(HaliteBufferVtable { release: None, ..BUFFER });
    with(Faults { buffer, ..NONE }, || {
        let made = open_device().unwrap().allocate_buffer(&BufferParams::DEVICE, 1);
        refused(made, Code::Incompatible, &["HaliteBufferVtable.release"]);
    });
}

#[test]
fn names_begin_device_uris() {
    for name in [&b""[..], b"a:b", b"Two Words", b"\xFF", b"x?y", b"\0"] {
        with(Faults { name, ..NONE }, || refused(load(DRIVER), Code::Internal, &["library 'x.so'"]));
    }
}

#[test]
fn success_without_a_result_is_a_failure() {
    with(Faults { device: ptr::null_mut, ..NONE }, || {
        refused(open_device(), Code::Internal, &["driver 'faulty'", "null"]);
    });
    with(Faults { buffer: ptr::null_mut, ..NONE }, || {
        let device = open_device().unwrap();
        refused(device.allocate_buffer(&BufferParams::DEVICE, 1), Code::Internal, &["null"]);
        refused(device.create_semaphore(0), Code::Internal, &["HaliteSemaphoreVtable"]);
        let desc = halite_hal::ExecutableDesc {
            format: String::new(),
            data: bytes::Bytes::new(),
            constants: Vec::new(),
            label: String::new(),
            subgroup_sizes: Vec::new(),
        };
        refused(device.create_executable(desc), Code::Internal, &["HaliteExecutableVtable"]);
    });
}

#[test]
fn devices_tell_of_themselves_exactly_once() {
    for infos in [0, 2] {
        with(Faults { infos, ..NONE }, || {
            refused(open_device(), Code::Internal, &["driver 'faulty'", "instead of one"]);
        });
    }
    with(Faults { kind: 99, ..NONE }, || refused(open_device(), Code::Internal, &["kind 99"]));
    with(Faults { info_size: 8, ..NONE }, || {
        refused(open_device(), Code::Internal, &["HaliteDeviceInfo has 8 bytes"]);
        refused(load(DRIVER).unwrap().enumerate(&Options::new()), Code::Internal, &["driver 'faulty'"]);
    });
    with(Faults { id: 0, ..NONE }, || refused(open_device(), Code::Internal, &["identity 0"]));
    with(Faults { queues: 0, ..NONE }, || refused(open_device(), Code::Internal, &["0 queues"]));
}

#[test]
fn failures_win_over_results_and_unknown_codes_are_told() {
    with(Faults { failure: 8, buffer: ptr::null_mut, ..NONE }, || {
        let made = open_device().unwrap().allocate_buffer(&BufferParams::DEVICE, 1);
        refused(made, Code::ResourceExhausted, &["no luck"]);
        refused(load(DRIVER).unwrap().enumerate(&Options::new()), Code::ResourceExhausted, &["no luck"]);
    });
    with(Faults { failure: 4711, ..NONE }, || {
        let made = open_device().unwrap().allocate_buffer(&BufferParams::DEVICE, 1);
        refused(made, Code::Internal, &["driver 'faulty'", "4711", "no luck"]);
    });
}
