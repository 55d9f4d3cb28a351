//! The functions of a device of ours that the far end calls.

use std::{ffi::c_void, sync::Arc};

use crate::{
    abi::*,
    buffer, command, command_buffer, executable, external, guard, info,
    object::{self, Count, Exported, Shared, table},
    peer::{Peer, Side},
    profile, queue, raw, semaphore, time,
};
use halite_hal::{Device, QueueAffinity, bail};

table!(counted HaliteDeviceVtable of HaliteDevice: id, info, queue_count, query_i64, memory_stats, trim,
    allocate_buffer, create_semaphore, create_executable, create_command_buffer, queue_alloca, queue_submit,
    queue_flush, wait_idle);

static TABLE: HaliteDeviceVtable = HaliteDeviceVtable {
    struct_size: size_of::<HaliteDeviceVtable>() as u32,
    reserved: 0,
    retain: Some(object::retain::<dyn Device>),
    release: Some(object::release::<dyn Device>),
    id: Some(id),
    info: Some(visit_info),
    queue_count: Some(queue_count),
    query_i64: Some(query_i64),
    memory_stats: Some(memory_stats),
    trim: Some(trim),
    allocate_buffer: Some(allocate_buffer),
    create_semaphore: Some(create_semaphore),
    create_executable: Some(create_executable),
    create_command_buffer: Some(create_command_buffer),
    queue_alloca: Some(queue_alloca),
    queue_submit: Some(queue_submit),
    queue_flush: Some(queue_flush),
    wait_idle: Some(wait_idle),
    start_profiling: Some(start_profiling),
    stop_profiling: Some(stop_profiling),
    import_buffer: Some(import_buffer),
    allocate_exportable: Some(allocate_exportable),
    export_buffer: Some(export_buffer),
};

impl Shared for dyn Device {
    const NOUN: &'static str = "device";
    type Table = HaliteDeviceVtable;
    fn table() -> &'static HaliteDeviceVtable {
        &TABLE
    }
}

/// A device for the far end, with a count that it owns.
pub(crate) fn give(device: Arc<dyn Device>, side: Side) -> *mut HaliteDevice {
    Exported::give(Exported::new(side, device))
}

unsafe extern "C" fn id(device: *mut HaliteDevice) -> u64 {
    // SAFETY: the caller has a live handle of ours.
    unsafe { guard::value::<dyn Device, _>(device, "id", 0, |d| d.inner.id()) }
}

unsafe extern "C" fn visit_info(
    device: *mut HaliteDevice,
    context: *mut c_void,
    visit: Option<info::VisitInfo>,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, and its visitor takes what is lent for the visit.
    unsafe {
        guard::call::<dyn Device>(device, "info", |d| {
            let Some(visit) = visit else { bail!(InvalidArgument, "'info' needs a visitor") };
            info::lend(d.inner.info(), |lent| visit(context, lent));
            Ok(())
        })
    }
}

unsafe extern "C" fn queue_count(device: *mut HaliteDevice) -> u32 {
    // SAFETY: the caller has a live handle of ours.
    unsafe { guard::value::<dyn Device, _>(device, "queue_count", 1, |d| d.inner.queue_count()) }
}

unsafe extern "C" fn query_i64(
    device: *mut HaliteDevice,
    category: HaliteStr,
    key: HaliteStr,
    out_value: *mut i64,
) -> u8 {
    // SAFETY: the caller has a live handle of ours, the texts are there for the call, the value may be written. What is
    // no text is no key that anybody knows.
    unsafe {
        guard::value::<dyn Device, _>(device, "query_i64", 0, |d| {
            let texts = raw::text(category, "a category", d.peer())
                .and_then(|category| Ok((category, raw::text(key, "a key", d.peer())?)));
            let Some(value) = texts.ok().and_then(|(category, key)| d.inner.query_i64(category, key)) else {
                return 0;
            };
            raw::put(out_value, value, d.peer()).is_ok().into()
        })
    }
}

unsafe extern "C" fn memory_stats(device: *mut HaliteDevice, out_stats: *mut HaliteMemoryStats) {
    // SAFETY: the caller has a live handle of ours, and the result may be written as far as it says.
    unsafe {
        let stats = guard::value::<dyn Device, _>(device, "memory_stats", Default::default(), |d| {
            d.inner.memory_stats()
        });
        raw::answer(out_stats, info::lend_stats(&stats));
    }
}

unsafe extern "C" fn trim(device: *mut HaliteDevice) {
    // SAFETY: the caller has a live handle of ours.
    unsafe { guard::value::<dyn Device, _>(device, "trim", (), |d| d.inner.trim()) }
}

unsafe extern "C" fn allocate_buffer(
    device: *mut HaliteDevice,
    params: *const HaliteBufferParams,
    byte_length: u64,
    out_buffer: *mut *mut HaliteBuffer,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, the parameters are there, the result may be written.
    unsafe {
        guard::make::<dyn Device, _>(device, "allocate_buffer", out_buffer, |d| {
            let params = buffer::receive_params(params, d.peer())?;
            Ok(buffer::give(d.inner.allocate_buffer(&params, byte_length)?, d.side))
        })
    }
}

unsafe extern "C" fn import_buffer(
    device: *mut HaliteDevice,
    params: *const HaliteBufferParams,
    memory: *const HaliteExternalMemory,
    out_buffer: *mut *mut HaliteBuffer,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, parameters and memory are there, the result may be written. Bytes are taken over
    // before anything can fail, so that they are given back whatever comes of the call.
    unsafe {
        let peer = Exported::<dyn Device>::borrow(device).map_or(Peer::of(Side::Plugin), Exported::peer);
        let memory = external::receive(memory, false, peer);
        guard::make::<dyn Device, _>(device, "import_buffer", out_buffer, |d| {
            let params = buffer::receive_params(params, d.peer())?;
            Ok(buffer::give(d.inner.import_buffer(&params, memory?)?, d.side))
        })
    }
}

unsafe extern "C" fn allocate_exportable(
    device: *mut HaliteDevice,
    params: *const HaliteBufferParams,
    byte_length: u64,
    kind: u32,
    out_buffer: *mut *mut HaliteBuffer,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, the parameters are there, the result may be written.
    unsafe {
        guard::make::<dyn Device, _>(device, "allocate_exportable", out_buffer, |d| {
            let params = buffer::receive_params(params, d.peer())?;
            let kind = external::kind(kind, d.peer())?;
            Ok(buffer::give(d.inner.allocate_exportable(&params, byte_length, kind)?, d.side))
        })
    }
}

unsafe extern "C" fn export_buffer(
    device: *mut HaliteDevice,
    buffer: *mut HaliteBuffer,
    kind: u32,
    out_memory: *mut HaliteExternalMemory,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours and lends the buffer, and the result may be written as far as it says.
    unsafe {
        guard::call::<dyn Device>(device, "export_buffer", |d| {
            if out_memory.is_null() {
                bail!(InvalidArgument, "'export_buffer' was given no place for its result");
            }
            let buffer = buffer::receive(buffer, Count::Borrowed, d.peer())?;
            let memory = d.inner.export_buffer(&buffer, external::kind(kind, d.peer())?)?;
            raw::answer(out_memory, external::give(memory));
            Ok(())
        })
    }
}

unsafe extern "C" fn create_semaphore(
    device: *mut HaliteDevice,
    initial: u64,
    out_semaphore: *mut *mut HaliteSemaphore,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, and the result may be written.
    unsafe {
        guard::make::<dyn Device, _>(device, "create_semaphore", out_semaphore, |d| {
            Ok(semaphore::give(d.inner.create_semaphore(initial)?, d.side))
        })
    }
}

unsafe extern "C" fn create_executable(
    device: *mut HaliteDevice,
    desc: *const HaliteExecutableDesc,
    out_executable: *mut *mut HaliteExecutable,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, the description is there, the result may be written. The code is taken
    // over before anything can fail, so that it is given back whatever comes of the call.
    unsafe {
        let peer = Exported::<dyn Device>::borrow(device).map_or(Peer::of(Side::Plugin), Exported::peer);
        let desc = executable::receive_desc(desc, peer);
        guard::make::<dyn Device, _>(device, "create_executable", out_executable, |d| {
            Ok(executable::give(d.inner.create_executable(desc?)?, d.side))
        })
    }
}

unsafe extern "C" fn create_command_buffer(
    device: *mut HaliteDevice,
    list: *const HaliteCommandList,
    out_command_buffer: *mut *mut HaliteCommandBuffer,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, the recording is there, the result may be written.
    unsafe {
        guard::make::<dyn Device, _>(device, "create_command_buffer", out_command_buffer, |d| {
            let list = command::receive_list(list, d.peer())?;
            Ok(command_buffer::give(d.inner.create_command_buffer(list)?, d.side))
        })
    }
}

unsafe extern "C" fn queue_alloca(
    device: *mut HaliteDevice,
    affinity: u64,
    wait: HaliteFence,
    signal: HaliteFence,
    params: *const HaliteBufferParams,
    byte_length: u64,
    out_buffer: *mut *mut HaliteBuffer,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, fences and parameters are there, the result may be written.
    unsafe {
        guard::make::<dyn Device, _>(device, "queue_alloca", out_buffer, |d| {
            let wait = semaphore::receive_fence(wait, d.peer())?;
            let signal = semaphore::receive_fence(signal, d.peer())?;
            let params = buffer::receive_params(params, d.peer())?;
            let affinity = QueueAffinity(affinity);
            let buffer = d.inner.queue_alloca(affinity, &wait, &signal, &params, byte_length)?;
            Ok(buffer::give(buffer, d.side))
        })
    }
}

unsafe extern "C" fn queue_submit(
    device: *mut HaliteDevice,
    affinity: u64,
    wait: HaliteFence,
    signal: HaliteFence,
    op: *const HaliteQueueOp,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours; fences and operation are there for the call.
    unsafe {
        guard::call::<dyn Device>(device, "queue_submit", |d| {
            let wait = semaphore::receive_fence(wait, d.peer())?;
            let signal = semaphore::receive_fence(signal, d.peer())?;
            let op = queue::receive_op(op, d.peer())?;
            d.inner.queue_submit(QueueAffinity(affinity), &wait, &signal, op)
        })
    }
}

unsafe extern "C" fn queue_flush(device: *mut HaliteDevice, affinity: u64) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours.
    unsafe {
        guard::call::<dyn Device>(device, "queue_flush", |d| d.inner.queue_flush(QueueAffinity(affinity)))
    }
}

unsafe extern "C" fn wait_idle(device: *mut HaliteDevice, timeout_ns: u64) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours.
    unsafe {
        guard::call::<dyn Device>(device, "wait_idle", |d| d.inner.wait_idle(time::deadline(timeout_ns)))
    }
}

unsafe extern "C" fn start_profiling(device: *mut HaliteDevice) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours.
    unsafe { guard::call::<dyn Device>(device, "start_profiling", |d| d.inner.start_profiling()) }
}

unsafe extern "C" fn stop_profiling(
    device: *mut HaliteDevice,
    timeout_ns: u64,
    context: *mut c_void,
    visit: Option<profile::VisitTime>,
    out_summary: *mut HaliteProfileSummary,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, its visitor takes what is lent for the visit, and the summary may be
    // written as far as it says.
    unsafe {
        guard::call::<dyn Device>(device, "stop_profiling", |d| {
            let Some(visit) = visit else { bail!(InvalidArgument, "'stop_profiling' needs a visitor") };
            let profile = d.inner.stop_profiling(time::deadline(timeout_ns))?;
            for time in &profile.times {
                let lent = profile::lend(time);
                visit(context, &raw const lent);
            }
            raw::answer(out_summary, profile::lend_summary(&profile));
            Ok(())
        })
    }
}
