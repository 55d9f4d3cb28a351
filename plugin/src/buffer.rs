//! Buffers on their way through the interface.

use std::{any::Any, ptr, sync::Arc};

use super::{
    abi::*,
    guard,
    object::{self, Arrival, Count, Exported, Handle, Shared, present, table},
    peer::{Peer, Side},
    raw::{self, Grows},
    status,
};
use halite_hal::{Buffer, BufferParams, BufferUsage, MemoryAccess, MemoryType, QueueAffinity, Result};

table!(counted HaliteBufferVtable of HaliteBuffer: info, read, write);

static TABLE: HaliteBufferVtable = HaliteBufferVtable {
    struct_size: size_of::<HaliteBufferVtable>() as u32,
    reserved: 0,
    retain: Some(object::retain::<dyn Buffer>),
    release: Some(object::release::<dyn Buffer>),
    info: Some(info),
    read: Some(read),
    write: Some(write),
};

impl Shared for dyn Buffer {
    const NOUN: &'static str = "buffer";
    type Table = HaliteBufferVtable;
    fn table() -> &'static HaliteBufferVtable {
        &TABLE
    }
}

const NO_INFO: HaliteBufferInfo = HaliteBufferInfo {
    struct_size: HaliteBufferInfo::SIZE,
    memory_type: 0,
    usage: 0,
    access: 0,
    device_id: 0,
    byte_length: 0,
    host_address: ptr::null_mut(),
};

fn info_of(buffer: &dyn Buffer) -> HaliteBufferInfo {
    HaliteBufferInfo {
        struct_size: HaliteBufferInfo::SIZE,
        memory_type: buffer.memory_type().bits(),
        usage: buffer.usage().bits(),
        access: buffer.access().bits(),
        device_id: buffer.device_id(),
        byte_length: buffer.byte_length(),
        host_address: buffer.host_address().map_or(ptr::null_mut(), <*mut u8>::cast),
    }
}

unsafe extern "C" fn info(buffer: *mut HaliteBuffer, out_info: *mut HaliteBufferInfo) {
    // SAFETY: the caller has a live handle of ours, and `out_info` may be written as far as it says.
    unsafe {
        let info = guard::value::<dyn Buffer, _>(buffer, "info", NO_INFO, |b| info_of(b.inner.as_ref()));
        raw::answer(out_info, info);
    }
}

unsafe extern "C" fn read(
    buffer: *mut HaliteBuffer,
    offset: u64,
    target: *mut u8,
    length: usize,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours and `length` bytes that are its own for the call.
    unsafe {
        guard::call::<dyn Buffer>(buffer, "read", |b| {
            b.inner.read(offset, raw::writable(target, length, b.peer())?)
        })
    }
}

unsafe extern "C" fn write(buffer: *mut HaliteBuffer, offset: u64, source: HaliteBytes) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, and the bytes are there for the call.
    unsafe {
        guard::call::<dyn Buffer>(buffer, "write", |b| {
            b.inner.write(offset, raw::bytes(source, "bytes to write", b.peer())?)
        })
    }
}

/// A buffer of the far end, with the facts that never change.
#[derive(Debug)]
struct BufferProxy {
    handle: Handle<HaliteBufferVtable>,
    info: HaliteBufferInfo,
}

// SAFETY: `host_address` is handed on as it is; whoever uses it answers for that. All else may be shared.
unsafe impl Send for BufferProxy {}
// SAFETY: as above.
unsafe impl Sync for BufferProxy {}

impl Buffer for BufferProxy {
    fn device_id(&self) -> u64 {
        self.info.device_id
    }

    fn byte_length(&self) -> u64 {
        self.info.byte_length
    }

    fn memory_type(&self) -> MemoryType {
        MemoryType::from_bits_retain(self.info.memory_type)
    }

    fn usage(&self) -> BufferUsage {
        BufferUsage::from_bits_retain(self.info.usage)
    }

    fn access(&self) -> MemoryAccess {
        MemoryAccess::from_bits_retain(self.info.access)
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        // SAFETY: the handle is live, its table was checked, the bytes are ours for the call; a failure is ours.
        unsafe {
            let read = present(self.handle.table().read);
            let outcome = read(self.handle.raw(), offset, target.as_mut_ptr(), target.len());
            status::outcome(outcome, self.handle.peer)
        }
    }

    fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        // SAFETY: the handle is live, its table was checked, the bytes are there for the call; a failure is ours.
        unsafe {
            let write = present(self.handle.table().write);
            let outcome = write(self.handle.raw(), offset, raw::lend_bytes(source));
            status::outcome(outcome, self.handle.peer)
        }
    }

    fn host_address(&self) -> Option<*mut u8> {
        (!self.info.host_address.is_null()).then(|| self.info.host_address.cast())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A buffer that came in.
///
/// # Safety
/// As for [`object::receive`].
#[inline]
pub(super) unsafe fn receive(buffer: *mut HaliteBuffer, count: Count, peer: Peer) -> Result<Arc<dyn Buffer>> {
    // Recordings bring thousands of our own: they are looked at without a call.
    if count == Count::Borrowed {
        // SAFETY: the caller's promise.
        if let Some(exported) = unsafe { object::own::<dyn Buffer>(peer.side, buffer) } {
            return Ok(exported.inner.clone());
        }
    }
    // SAFETY: the caller's promise.
    unsafe { receive_any(buffer, count, peer) }
}

/// # Safety
/// As for [`object::receive`].
unsafe fn receive_any(buffer: *mut HaliteBuffer, count: Count, peer: Peer) -> Result<Arc<dyn Buffer>> {
    // SAFETY: the caller's promise.
    match unsafe { object::receive::<dyn Buffer>(buffer, count, peer)? } {
        Arrival::Own(buffer) => Ok(buffer),
        Arrival::Foreign(handle) => {
            let mut info = NO_INFO;
            // SAFETY: the handle is live, its table was checked, and `info` tells its size.
            unsafe { present(handle.table().info)(handle.raw(), &raw mut info) };
            Ok(Arc::new(BufferProxy { handle, info }))
        }
    }
}

/// A buffer for the far end, with a count that it owns.
pub(super) fn give(buffer: Arc<dyn Buffer>, side: Side) -> *mut HaliteBuffer {
    match buffer.as_any().downcast_ref::<BufferProxy>() {
        Some(proxy) => {
            // SAFETY: the handle is live and its table was checked.
            unsafe { present(proxy.handle.table().retain)(proxy.handle.raw()) };
            proxy.handle.raw()
        }
        None => Exported::give(Exported::new(side, buffer)),
    }
}

/// A buffer that is lent for a call; `made` keeps what had to be made for it.
pub(super) fn lend(
    buffer: &Arc<dyn Buffer>,
    side: Side,
    made: &mut Vec<Arc<Exported<dyn Buffer>>>,
) -> *mut HaliteBuffer {
    match buffer.as_any().downcast_ref::<BufferProxy>() {
        Some(proxy) => proxy.handle.raw(),
        None => {
            let object = Exported::new(side, buffer.clone());
            let handle = Exported::handle(&object);
            made.push(object);
            handle
        }
    }
}

/// Parameters as the interface has them.
pub(super) fn lend_params(params: &BufferParams) -> HaliteBufferParams {
    HaliteBufferParams {
        memory_type: params.memory_type.bits(),
        usage: params.usage.bits(),
        affinity: params.affinity.0,
    }
}

/// Parameters that came in.
///
/// # Safety
/// `params` is null or there for the call.
pub(super) unsafe fn receive_params(params: *const HaliteBufferParams, peer: Peer) -> Result<BufferParams> {
    // SAFETY: the caller's promise.
    let [params] = (unsafe { raw::array(params, 1, "buffer parameters", peer)? }) else {
        return Err(peer.broke(format_args!("buffer parameters are missing")));
    };
    Ok(BufferParams {
        memory_type: MemoryType::from_bits_retain(params.memory_type),
        usage: BufferUsage::from_bits_retain(params.usage),
        affinity: QueueAffinity(params.affinity),
    })
}
