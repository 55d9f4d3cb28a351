//! The C interface between a program and a driver library: layouts, numbers, and the contract in words.
//!
//! `include/halite/driver.h` is generated from this file; `cargo xtask header --check` tells whether it is current.
//!
//! # Contract
//! * **One symbol.** A driver library exports `halite_driver_query_v1` of type [`HaliteQueryFn`]; nothing else is looked up.
//!   It does no device work, starts no thread, and may be called any number of times.
//! * **Versions.** The host passes the newest version it knows. The plug-in answers the version it will speak: at most that
//!   one, or it fails with INCOMPATIBLE. While [`HALITE_ABI_MAJOR`] is 0, both sides must have the same version; from 1 on, the
//!   same major number is enough.
//! * **Sizes.** Structures that may grow begin with `struct_size`, the number of bytes that their maker knows. Fields are only
//!   ever appended. A reader looks at a field only if `struct_size` reaches its end. Small value types without that field
//!   ([`HaliteStr`], [`HaliteBytes`], [`HaliteSpan`], …) are frozen.
//! * **Objects.** A handle points to a structure whose first field is a pointer to its table of functions. Handles are
//!   counted: `retain` and `release` may be called on any thread. A function that returns a handle gives the caller one
//!   count. A handle passed as argument is borrowed for the call; whoever keeps it retains it. Children keep parents alive.
//!   Your own objects come back as the very handles that you gave out; an object of somebody else may come under
//!   another handle each time.
//! * **Tables** live for ever and never change. Every function of a table is there, unless its description says that it may be
//!   null.
//! * **Memory.** The maker frees. Strings and arrays are borrowed for the call; who needs them longer copies them. Lists of unknown
//!   length come through a visitor: a function that is called once per entry, on the same thread, before the call returns.
//!   Bytes that are to be written (`target`) are initialised by whoever lends them.
//! * **Errors.** A null [`HaliteStatus`] is success. Any other belongs to the receiver, which calls its `release` once. Out
//!   parameters are untouched on failure.
//! * **Panics and exceptions** never cross. A call that panicked answers INTERNAL, and its object answers
//!   FAILED_PRECONDITION from then on.
//! * **Threads.** Any function may be called on any thread, at the same time as any other, unless it says otherwise. Callbacks
//!   must not block. No function blocks for longer than its time limit says; those without one return promptly.
//! * **Life.** Libraries are never unloaded. The host table stays valid until the process ends.
//! * **Booleans** are `uint8_t`, 0 or 1. **Enumerations** are `uint32_t`; unknown numbers are refused, never guessed.

#![allow(
    missing_docs,
    reason = "fields say what they are by name; each structure documents what is not obvious"
)]

use std::ffi::{c_char, c_void};

/// Incompatible changes. 0 while the interface is young: then the minor version has to be equal as well.
pub const HALITE_ABI_MAJOR: u32 = 0;
/// Compatible additions.
pub const HALITE_ABI_MINOR: u32 = 4;
/// The version of this file: major in the upper half, minor in the lower.
pub const HALITE_ABI_VERSION: u32 = (HALITE_ABI_MAJOR << 16) | HALITE_ABI_MINOR;
/// Name of the exported function.
pub const QUERY_SYMBOL: &std::ffi::CStr = c"halite_driver_query_v1";
/// A time limit that never passes.
pub const HALITE_FOREVER: u64 = u64::MAX;

/// UTF-8 text, not terminated. Null is the empty text.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteStr {
    pub data: *const c_char,
    pub length: usize,
}

/// Borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteBytes {
    pub data: *const u8,
    pub length: usize,
}

/// Bytes that change hands: the receiver calls `release(context)` exactly once when it needs them no more, also when the
/// call that brought them fails. `release` may be null: then nothing is to be done and the bytes live for ever.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteBlob {
    pub data: *const u8,
    pub length: usize,
    pub context: *mut c_void,
    pub release: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

/// A name and a value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HalitePair {
    pub name: HaliteStr,
    pub value: HaliteStr,
}

/// A failure. Readable as it stands; freed through `release`, which may be null for one that is never freed.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteStatus {
    pub struct_size: u32,
    /// One of the status codes 1 to 18, such as 3 for INVALID_ARGUMENT.
    pub code: u32,
    /// What was asked, what exists, what to do next.
    pub message: HaliteStr,
    /// What outer layers added, innermost first.
    pub annotations: *const HaliteStr,
    pub annotation_count: usize,
    /// Machine-readable facts, such as `vk.result`.
    pub details: *const HalitePair,
    pub detail_count: usize,
    pub release: Option<unsafe extern "C" fn(status: *mut HaliteStatus)>,
}

/// What a driver may ask of the program.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteHost {
    pub struct_size: u32,
    /// Newest version that the host speaks.
    pub abi_version: u32,
    pub context: *mut c_void,
    /// Writes a line to the program's log. Levels: 1 error, 2 warning, 3 information, 4 debug, 5 trace.
    pub log:
        Option<unsafe extern "C" fn(context: *mut c_void, level: u32, target: HaliteStr, message: HaliteStr)>,
    /// The most talkative level that is listened to; 0 is none.
    pub log_level: Option<unsafe extern "C" fn(context: *mut c_void) -> u32>,
    /// A number that no other device of this process has.
    pub next_device_id: Option<unsafe extern "C" fn(context: *mut c_void) -> u64>,
}

/// What a driver library answers. The caller sets `struct_size` and zeroes the rest.
#[repr(C)]
#[derive(Debug)]
pub struct HalitePlugin {
    pub struct_size: u32,
    /// The version that the plug-in will speak.
    pub abi_version: u32,
    /// The driver; lives for ever.
    pub driver: *mut HaliteDriver,
    /// Version of the plug-in, for people. Lives for ever.
    pub version: HaliteStr,
    /// What it was built from and with, for bug reports. Lives for ever.
    pub build: HaliteStr,
}

/// Type of the exported function: `host` stays valid for ever, `max_version` is the newest version the host speaks.
pub type HaliteQueryFn = unsafe extern "C" fn(
    host: *const HaliteHost,
    max_version: u32,
    out_plugin: *mut HalitePlugin,
) -> *mut HaliteStatus;

/// A driver. Never released.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteDriver {
    pub vtable: *const HaliteDriverVtable,
}

#[repr(C)]
#[derive(Debug)]
pub struct HaliteDriverVtable {
    pub struct_size: u32,
    pub reserved: u32,
    /// Short name that device URIs begin with: 1 to 64 of a-z, 0-9, '-' and '_'. Lives for ever.
    pub name: Option<unsafe extern "C" fn(driver: *mut HaliteDriver) -> HaliteStr>,
    /// One line for people. Lives for ever.
    pub description: Option<unsafe extern "C" fn(driver: *mut HaliteDriver) -> HaliteStr>,
    /// Visits the options that `open` and `enumerate` understand: name and meaning.
    pub options: Option<
        unsafe extern "C" fn(
            driver: *mut HaliteDriver,
            context: *mut c_void,
            visit: Option<unsafe extern "C" fn(context: *mut c_void, option: *const HalitePair)>,
        ) -> *mut HaliteStatus,
    >,
    /// Visits the devices that exist now, best first. UNAVAILABLE when the system has no support at all.
    pub enumerate: Option<
        unsafe extern "C" fn(
            driver: *mut HaliteDriver,
            options: *const HalitePair,
            option_count: usize,
            context: *mut c_void,
            visit: Option<unsafe extern "C" fn(context: *mut c_void, info: *const HaliteDeviceInfo)>,
        ) -> *mut HaliteStatus,
    >,
    /// Opens the device with this path; the best usable one when the path is empty.
    pub open: Option<
        unsafe extern "C" fn(
            driver: *mut HaliteDriver,
            path: HaliteStr,
            options: *const HalitePair,
            option_count: usize,
            out_device: *mut *mut HaliteDevice,
        ) -> *mut HaliteStatus,
    >,
    /// Visits the path of a device that `enumerate` leaves out but a user named, by its path or a part of its name. May be
    /// null: then there are no such devices.
    pub find_unlisted: Option<
        unsafe extern "C" fn(
            driver: *mut HaliteDriver,
            name: HaliteStr,
            options: *const HalitePair,
            option_count: usize,
            context: *mut c_void,
            visit: Option<unsafe extern "C" fn(context: *mut c_void, path: HaliteStr)>,
        ) -> *mut HaliteStatus,
    >,
    /// Visits what the driver tells about itself for listings; the group `workarounds` has the faults of underlying
    /// drivers that it steers around. May be null.
    pub tables: Option<
        unsafe extern "C" fn(
            driver: *mut HaliteDriver,
            context: *mut c_void,
            visit: Option<unsafe extern "C" fn(context: *mut c_void, table: *const HaliteInfoGroup)>,
        ) -> *mut HaliteStatus,
    >,
}

/// Kind of device: a GPU with its own memory.
pub const HALITE_DEVICE_DISCRETE_GPU: u32 = 0;
/// Kind of device: a GPU that shares the host's memory.
pub const HALITE_DEVICE_INTEGRATED_GPU: u32 = 1;
/// Kind of device: a GPU seen through virtualization.
pub const HALITE_DEVICE_VIRTUAL_GPU: u32 = 2;
/// Kind of device: the host's processor.
pub const HALITE_DEVICE_CPU: u32 = 3;
/// Kind of device: something else.
pub const HALITE_DEVICE_OTHER: u32 = 4;

/// Points for or against a device, and why.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteScoreItem {
    pub points: i64,
    pub reason: HaliteStr,
}

/// Facts of one subject, such as limits.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteInfoGroup {
    pub title: HaliteStr,
    pub entries: *const HalitePair,
    pub entry_count: usize,
}

/// Formats of executables whose code nothing keeps within its bounds on a device. A device that nobody named is opened with
/// `option=refuse`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteUnconfinedCode {
    pub formats: *const HaliteStr,
    pub format_count: usize,
    /// What such code can do, as a clause.
    pub reason: HaliteStr,
    /// Name of the device option that decides.
    pub option: HaliteStr,
    /// Its value that allows the code.
    pub allow: HaliteStr,
    /// Its value that refuses the code.
    pub refuse: HaliteStr,
    /// 1 when the device takes the code where the option is not given.
    pub default_allows: u8,
    pub reserved: [u8; 7],
}

/// Kind of memory: a file descriptor that only the same driver of the same device understands.
pub const HALITE_EXTERNAL_OPAQUE_FD: u32 = 1;
/// Kind of memory: a file descriptor of Linux's dma-buf.
pub const HALITE_EXTERNAL_DMA_BUF: u32 = 2;
/// Kind of memory: that of the process.
pub const HALITE_EXTERNAL_HOST: u32 = 3;
/// Kind of memory: an `AHardwareBuffer` of the format `BLOB`.
pub const HALITE_EXTERNAL_ANDROID_HARDWARE_BUFFER: u32 = 4;
/// Kind of memory: a handle of Windows that only the same driver of the same device understands.
pub const HALITE_EXTERNAL_OPAQUE_WIN32: u32 = 5;

/// What a device does with one kind of memory that is shared with others.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteExternalSupport {
    /// One of `HALITE_EXTERNAL_*`.
    pub kind: u32,
    /// 1 when the device takes such memory.
    pub import: u8,
    /// 1 when it makes memory that can be given away as such.
    pub export: u8,
    pub reserved: u16,
    /// What addresses and sizes of memory of the process are multiples of; 1 for other kinds.
    pub alignment: u64,
}

/// Memory that is shared with others. All of it that is passed is borrowed for the call, but for `bytes`; what a function
/// gives is the receiver's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteExternalMemory {
    pub struct_size: u32,
    /// One of `HALITE_EXTERNAL_*`.
    pub kind: u32,
    /// A descriptor, or a handle or an address as a number; 0 for memory of the process.
    pub handle: u64,
    /// All bytes of the memory.
    pub size: u64,
    /// Index of the Vulkan memory type; all ones when it is not known.
    pub memory_type: u32,
    /// 1 when the memory was allocated for one buffer alone.
    pub dedicated: u8,
    pub reserved: [u8; 3],
    /// Memory of the process; it changes hands.
    pub bytes: HaliteBlob,
}

/// A device as enumeration sees it.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteDeviceInfo {
    pub struct_size: u32,
    /// One of `HALITE_DEVICE_*`.
    pub kind: u32,
    pub driver: HaliteStr,
    /// Stable path within the driver; empty for an only device.
    pub path: HaliteStr,
    pub name: HaliteStr,
    /// Why it cannot be opened with default options; `data` is null when it can.
    pub unusable: HaliteStr,
    /// Target triple; `data` is null when none fits.
    pub target: HaliteStr,
    /// Record of the device as JSON; `data` is null when there is none.
    pub capabilities: HaliteStr,
    pub executable_formats: *const HaliteStr,
    pub executable_format_count: usize,
    pub score: *const HaliteScoreItem,
    pub score_count: usize,
    pub properties: *const HalitePair,
    pub property_count: usize,
    pub groups: *const HaliteInfoGroup,
    pub group_count: usize,
    pub unconfined: *const HaliteUnconfinedCode,
    pub unconfined_count: usize,
    /// Memory that it shares with others, by kind.
    pub external: *const HaliteExternalSupport,
    pub external_count: usize,
}

/// Memory that a device holds for its buffers, in bytes. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteMemoryStats {
    pub struct_size: u32,
    pub reserved: u32,
    pub bytes_reserved: u64,
    pub bytes_used: u64,
    pub peak_bytes_reserved: u64,
    pub peak_bytes_used: u64,
    pub allocation_count: u64,
}

/// When one command ran, once, while a profile was taken.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteCommandTime {
    pub struct_size: u32,
    /// One of `HALITE_COMMAND_FILL`, `_UPDATE`, `_COPY` and `_DISPATCH`.
    pub kind: u32,
    /// Name of a dispatch's entry point; empty for others.
    pub name: HaliteStr,
    /// Name of the innermost debug group; empty outside of all, and for queue operations.
    pub group: HaliteStr,
    /// The place among the commands of the group that do work, or of the recording outside of all groups.
    pub index: u32,
    pub queue: u32,
    /// Workgroups of a dispatch; zeros for others, and where only the device knows them.
    pub workgroups: [u32; 3],
    pub reserved: u32,
    /// Bytes that a transfer writes; 0 for a dispatch, and where they are not known.
    pub bytes: u64,
    /// Number of the queue operation since profiling began. What one operation executed comes in order.
    pub run: u64,
    /// Nanoseconds of the device's clock since the first command of the profile began.
    pub start_ns: u64,
    pub end_ns: u64,
}

/// What else a profile tells. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteProfileSummary {
    pub struct_size: u32,
    pub reserved: u32,
    /// Commands that ran and were not measured.
    pub lost: u64,
    /// Nanoseconds between two values of the device's clock.
    pub resolution_ns: f64,
}

/// What a buffer is asked to be. Bits are IREE's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteBufferParams {
    pub memory_type: u32,
    pub usage: u32,
    /// Set of queues; all bits mean any.
    pub affinity: u64,
}

/// A semaphore and the payload that counts as reached.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteSemaphorePoint {
    pub semaphore: *mut HaliteSemaphore,
    pub value: u64,
}

/// A set of semaphore points: reached when all are. Semaphores may be the program's or another driver's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteFence {
    pub points: *const HaliteSemaphorePoint,
    pub count: usize,
}

/// An open device.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteDevice {
    pub vtable: *const HaliteDeviceVtable,
}

#[repr(C)]
#[derive(Debug)]
pub struct HaliteDeviceVtable {
    pub struct_size: u32,
    pub reserved: u32,
    pub retain: Option<unsafe extern "C" fn(device: *mut HaliteDevice)>,
    pub release: Option<unsafe extern "C" fn(device: *mut HaliteDevice)>,
    /// The identity that the driver took from `next_device_id` of the host; never 0.
    pub id: Option<unsafe extern "C" fn(device: *mut HaliteDevice) -> u64>,
    /// Visits the device's info once.
    pub info: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            context: *mut c_void,
            visit: Option<unsafe extern "C" fn(context: *mut c_void, info: *const HaliteDeviceInfo)>,
        ) -> *mut HaliteStatus,
    >,
    /// Number of queues, 1 at least.
    pub queue_count: Option<unsafe extern "C" fn(device: *mut HaliteDevice) -> u32>,
    /// Answers a module's query: 1 and the value, or 0 when the key is not known.
    pub query_i64: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            category: HaliteStr,
            key: HaliteStr,
            out_value: *mut i64,
        ) -> u8,
    >,
    pub memory_stats:
        Option<unsafe extern "C" fn(device: *mut HaliteDevice, out_stats: *mut HaliteMemoryStats)>,
    pub trim: Option<unsafe extern "C" fn(device: *mut HaliteDevice)>,
    pub allocate_buffer: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            params: *const HaliteBufferParams,
            byte_length: u64,
            out_buffer: *mut *mut HaliteBuffer,
        ) -> *mut HaliteStatus,
    >,
    pub create_semaphore: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            initial: u64,
            out_semaphore: *mut *mut HaliteSemaphore,
        ) -> *mut HaliteStatus,
    >,
    /// Takes the code in `desc->data` over, whatever comes of it.
    pub create_executable: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            desc: *const HaliteExecutableDesc,
            out_executable: *mut *mut HaliteExecutable,
        ) -> *mut HaliteStatus,
    >,
    /// Accepts a finished recording. What the recording names is borrowed for the call: keep it by retaining it.
    pub create_command_buffer: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            list: *const HaliteCommandList,
            out_command_buffer: *mut *mut HaliteCommandBuffer,
        ) -> *mut HaliteStatus,
    >,
    pub queue_alloca: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            affinity: u64,
            wait: HaliteFence,
            signal: HaliteFence,
            params: *const HaliteBufferParams,
            byte_length: u64,
            out_buffer: *mut *mut HaliteBuffer,
        ) -> *mut HaliteStatus,
    >,
    /// Enqueues an operation: it starts when `wait` is reached and ends by signalling `signal` or failing it.
    pub queue_submit: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            affinity: u64,
            wait: HaliteFence,
            signal: HaliteFence,
            op: *const HaliteQueueOp,
        ) -> *mut HaliteStatus,
    >,
    pub queue_flush:
        Option<unsafe extern "C" fn(device: *mut HaliteDevice, affinity: u64) -> *mut HaliteStatus>,
    /// Waits until all queues are idle; DEADLINE_EXCEEDED after `timeout_ns`.
    pub wait_idle:
        Option<unsafe extern "C" fn(device: *mut HaliteDevice, timeout_ns: u64) -> *mut HaliteStatus>,
    /// Begins to measure commands; FAILED_PRECONDITION while a profile is taken. Null where the device cannot, and then
    /// `stop_profiling` is null, too.
    pub start_profiling: Option<unsafe extern "C" fn(device: *mut HaliteDevice) -> *mut HaliteStatus>,
    /// Waits until the work that was accepted during the profile has finished, ends the profile, and visits its times.
    /// DEADLINE_EXCEEDED after `timeout_ns`: then the profile goes on.
    pub stop_profiling: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            timeout_ns: u64,
            context: *mut c_void,
            visit: Option<unsafe extern "C" fn(context: *mut c_void, time: *const HaliteCommandTime)>,
            out_summary: *mut HaliteProfileSummary,
        ) -> *mut HaliteStatus,
    >,
    /// Makes a buffer over memory from elsewhere. What it holds is seen from the next `HALITE_QUEUE_OP_ACQUIRE` on. Takes `bytes`
    /// over, whatever comes of it. Null where the device has no such memory.
    pub import_buffer: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            params: *const HaliteBufferParams,
            memory: *const HaliteExternalMemory,
            out_buffer: *mut *mut HaliteBuffer,
        ) -> *mut HaliteStatus,
    >,
    /// Allocates a buffer whose memory can be given away as this kind. Null where the device has no such memory.
    pub allocate_exportable: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            params: *const HaliteBufferParams,
            byte_length: u64,
            kind: u32,
            out_buffer: *mut *mut HaliteBuffer,
        ) -> *mut HaliteStatus,
    >,
    /// The memory of such a buffer, for others. The caller sets `struct_size`. Null where the device has no such memory.
    pub export_buffer: Option<
        unsafe extern "C" fn(
            device: *mut HaliteDevice,
            buffer: *mut HaliteBuffer,
            kind: u32,
            out_memory: *mut HaliteExternalMemory,
        ) -> *mut HaliteStatus,
    >,
}

/// A buffer of a device.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteBuffer {
    pub vtable: *const HaliteBufferVtable,
}

/// Facts of a buffer that never change. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteBufferInfo {
    pub struct_size: u32,
    pub memory_type: u32,
    pub usage: u32,
    pub access: u32,
    pub device_id: u64,
    pub byte_length: u64,
    /// Address of the first byte where the host can reach it as long as the buffer lives, or null.
    pub host_address: *mut c_void,
}

#[repr(C)]
#[derive(Debug)]
pub struct HaliteBufferVtable {
    pub struct_size: u32,
    pub reserved: u32,
    pub retain: Option<unsafe extern "C" fn(buffer: *mut HaliteBuffer)>,
    pub release: Option<unsafe extern "C" fn(buffer: *mut HaliteBuffer)>,
    pub info: Option<unsafe extern "C" fn(buffer: *mut HaliteBuffer, out_info: *mut HaliteBufferInfo)>,
    /// Copies `length` bytes at `offset` to the host; blocks until they are there.
    pub read: Option<
        unsafe extern "C" fn(
            buffer: *mut HaliteBuffer,
            offset: u64,
            target: *mut u8,
            length: usize,
        ) -> *mut HaliteStatus,
    >,
    /// Copies bytes from the host; blocks until they are there.
    pub write: Option<
        unsafe extern "C" fn(
            buffer: *mut HaliteBuffer,
            offset: u64,
            source: HaliteBytes,
        ) -> *mut HaliteStatus,
    >,
}

/// Called once: `call` with null when the value is reached, or with the failure, which it then owns; or `drop`, when neither
/// will happen. Never both, never twice.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteCallback {
    pub context: *mut c_void,
    pub call: Option<unsafe extern "C" fn(context: *mut c_void, failure: *mut HaliteStatus)>,
    pub drop: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

/// A timeline semaphore: of the device, of the program, or of another driver.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteSemaphore {
    pub vtable: *const HaliteSemaphoreVtable,
}

#[repr(C)]
#[derive(Debug)]
pub struct HaliteSemaphoreVtable {
    pub struct_size: u32,
    pub reserved: u32,
    pub retain: Option<unsafe extern "C" fn(semaphore: *mut HaliteSemaphore)>,
    pub release: Option<unsafe extern "C" fn(semaphore: *mut HaliteSemaphore)>,
    pub device_id: Option<unsafe extern "C" fn(semaphore: *mut HaliteSemaphore) -> u64>,
    pub query: Option<
        unsafe extern "C" fn(semaphore: *mut HaliteSemaphore, out_value: *mut u64) -> *mut HaliteStatus,
    >,
    pub signal:
        Option<unsafe extern "C" fn(semaphore: *mut HaliteSemaphore, value: u64) -> *mut HaliteStatus>,
    /// Takes the failure over.
    pub fail: Option<unsafe extern "C" fn(semaphore: *mut HaliteSemaphore, failure: *mut HaliteStatus)>,
    pub wait: Option<
        unsafe extern "C" fn(
            semaphore: *mut HaliteSemaphore,
            value: u64,
            timeout_ns: u64,
        ) -> *mut HaliteStatus,
    >,
    /// May call back before it returns.
    pub on_reached:
        Option<unsafe extern "C" fn(semaphore: *mut HaliteSemaphore, value: u64, callback: HaliteCallback)>,
}

/// What an executable is made from.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteExecutableDesc {
    pub struct_size: u32,
    pub reserved: u32,
    pub format: HaliteStr,
    /// The code; changes hands.
    pub data: HaliteBlob,
    pub constants: *const u32,
    pub constant_count: usize,
    pub label: HaliteStr,
    /// Subgroup sizes that the code may assume; none when the module does not say.
    pub subgroup_sizes: *const u32,
    pub subgroup_size_count: usize,
}

/// Facts about one function of an executable.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteFunctionInfo {
    pub struct_size: u32,
    pub binding_count: u32,
    pub constant_count: u32,
    /// Invocations per workgroup; zeros when the format leaves it open.
    pub workgroup_size: [u32; 3],
    pub name: HaliteStr,
}

/// Device code.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteExecutable {
    pub vtable: *const HaliteExecutableVtable,
}

#[repr(C)]
#[derive(Debug)]
pub struct HaliteExecutableVtable {
    pub struct_size: u32,
    pub reserved: u32,
    pub retain: Option<unsafe extern "C" fn(executable: *mut HaliteExecutable)>,
    pub release: Option<unsafe extern "C" fn(executable: *mut HaliteExecutable)>,
    pub device_id: Option<unsafe extern "C" fn(executable: *mut HaliteExecutable) -> u64>,
    /// Visits the functions in order.
    pub functions: Option<
        unsafe extern "C" fn(
            executable: *mut HaliteExecutable,
            context: *mut c_void,
            visit: Option<unsafe extern "C" fn(context: *mut c_void, function: *const HaliteFunctionInfo)>,
        ) -> *mut HaliteStatus,
    >,
    /// Waits until these functions can be dispatched at once, but no longer than `timeout_ns`; tells how many of them can.
    /// Null where code is ready once the executable exists.
    pub wait_built: Option<
        unsafe extern "C" fn(
            executable: *mut HaliteExecutable,
            functions: *const u32,
            function_count: usize,
            timeout_ns: u64,
            out_built: *mut usize,
        ) -> *mut HaliteStatus,
    >,
}

/// A byte range of a buffer; a null buffer is an empty slot.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteSpan {
    pub buffer: *mut HaliteBuffer,
    pub offset: u64,
    pub length: u64,
}

/// A byte range that a command touches. With a null buffer it lies in slot `slot` of the binding table given at execution,
/// and `offset` counts from the entry's offset. A length of all ones reaches to the end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteBufferRef {
    pub buffer: *mut HaliteBuffer,
    pub offset: u64,
    pub length: u64,
    pub slot: u32,
    pub reserved: u32,
}

/// Kind of command: `target`, `pattern`, `pattern_length`.
pub const HALITE_COMMAND_FILL: u32 = 0;
/// Kind of command: `data`, `target`.
pub const HALITE_COMMAND_UPDATE: u32 = 1;
/// Kind of command: `source`, `target`.
pub const HALITE_COMMAND_COPY: u32 = 2;
/// Kind of command: `executable`, `function`, `constants`, `bindings`, `flags`, and `counts`, or `target` when `indirect_counts` is 1.
pub const HALITE_COMMAND_DISPATCH: u32 = 3;
/// Kind of command: no field.
pub const HALITE_COMMAND_BARRIER: u32 = 4;
/// Kind of command: `data` is the name.
pub const HALITE_COMMAND_BEGIN_DEBUG_GROUP: u32 = 5;
/// Kind of command: no field.
pub const HALITE_COMMAND_END_DEBUG_GROUP: u32 = 6;

/// One recorded command. All commands of a list have the same `struct_size`, which is also their distance.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HaliteCommand {
    pub struct_size: u32,
    /// One of `HALITE_COMMAND_*`; its description tells the fields that count.
    pub kind: u32,
    pub target: HaliteBufferRef,
    pub source: HaliteBufferRef,
    pub pattern: u64,
    pub pattern_length: u32,
    pub function: u32,
    pub counts: [u32; 3],
    pub indirect_counts: u32,
    pub flags: u64,
    pub executable: *mut HaliteExecutable,
    pub data: HaliteBytes,
    pub constants: *const u32,
    pub constant_count: usize,
    pub bindings: *const HaliteBufferRef,
    pub binding_count: usize,
}

/// A recording.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteCommandList {
    pub struct_size: u32,
    pub mode: u32,
    pub categories: u32,
    pub binding_capacity: u32,
    pub affinity: u64,
    pub commands: *const HaliteCommand,
    pub command_count: usize,
}

/// A recording that the driver has accepted.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteCommandBuffer {
    pub vtable: *const HaliteCommandBufferVtable,
}

#[repr(C)]
#[derive(Debug)]
pub struct HaliteCommandBufferVtable {
    pub struct_size: u32,
    pub reserved: u32,
    pub retain: Option<unsafe extern "C" fn(command_buffer: *mut HaliteCommandBuffer)>,
    pub release: Option<unsafe extern "C" fn(command_buffer: *mut HaliteCommandBuffer)>,
    pub device_id: Option<unsafe extern "C" fn(command_buffer: *mut HaliteCommandBuffer) -> u64>,
}

/// A file that the program holds open. Offsets are absolute; calls may overlap.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteFile {
    pub vtable: *const HaliteFileVtable,
}

#[repr(C)]
#[derive(Debug)]
pub struct HaliteFileVtable {
    pub struct_size: u32,
    pub reserved: u32,
    pub retain: Option<unsafe extern "C" fn(file: *mut HaliteFile)>,
    pub release: Option<unsafe extern "C" fn(file: *mut HaliteFile)>,
    /// 1 when it may be written.
    pub writable: Option<unsafe extern "C" fn(file: *mut HaliteFile) -> u8>,
    pub byte_length:
        Option<unsafe extern "C" fn(file: *mut HaliteFile, out_length: *mut u64) -> *mut HaliteStatus>,
    /// The file's bytes where they are in memory already, as long as the handle is kept; null where they are not.
    pub memory: Option<unsafe extern "C" fn(file: *mut HaliteFile) -> HaliteBytes>,
    pub read_at: Option<
        unsafe extern "C" fn(
            file: *mut HaliteFile,
            offset: u64,
            target: *mut u8,
            length: usize,
        ) -> *mut HaliteStatus,
    >,
    pub write_at: Option<
        unsafe extern "C" fn(file: *mut HaliteFile, offset: u64, source: HaliteBytes) -> *mut HaliteStatus,
    >,
}

/// Kind of operation: no field.
pub const HALITE_QUEUE_OP_BARRIER: u32 = 0;
/// Kind of operation: `target.buffer`.
pub const HALITE_QUEUE_OP_DEALLOCA: u32 = 1;
/// Kind of operation: `target`, `pattern`, `pattern_length`.
pub const HALITE_QUEUE_OP_FILL: u32 = 2;
/// Kind of operation: `data`, `target`.
pub const HALITE_QUEUE_OP_UPDATE: u32 = 3;
/// Kind of operation: `source`, `target`.
pub const HALITE_QUEUE_OP_COPY: u32 = 4;
/// Kind of operation: `file`, `file_offset`, `target`.
pub const HALITE_QUEUE_OP_READ: u32 = 5;
/// Kind of operation: `source`, `file`, `file_offset`.
pub const HALITE_QUEUE_OP_WRITE: u32 = 6;
/// Kind of operation: `command_buffer`, `bindings`.
pub const HALITE_QUEUE_OP_EXECUTE: u32 = 7;
/// Kind of operation: `target.buffer`. Memory that is shared with others comes back from them.
pub const HALITE_QUEUE_OP_ACQUIRE: u32 = 8;
/// Kind of operation: `target.buffer`. Memory that is shared with others goes to them.
pub const HALITE_QUEUE_OP_RELEASE: u32 = 9;

/// One operation on a queue. All it names is borrowed for the call: keep it by retaining it, copy `data`.
#[repr(C)]
#[derive(Debug)]
pub struct HaliteQueueOp {
    pub struct_size: u32,
    /// One of `HALITE_QUEUE_OP_*`; its description tells the fields that count.
    pub kind: u32,
    pub target: HaliteSpan,
    pub source: HaliteSpan,
    pub pattern: u64,
    pub pattern_length: u32,
    pub reserved: u32,
    pub data: HaliteBytes,
    pub file: *mut HaliteFile,
    pub file_offset: u64,
    pub command_buffer: *mut HaliteCommandBuffer,
    /// The binding table: slot n is entry n.
    pub bindings: *const HaliteSpan,
    pub binding_count: usize,
}
