//! Files on their way through the interface.

use std::{ptr, sync::Arc};

use bytes::Bytes;

use super::{
    abi::*,
    guard,
    object::{self, Arrival, Count, Exported, Handle, Shared, present, table},
    peer::{Peer, Side},
    raw, status,
};
use halite_hal::{File, FileAccess, FileSource, Result};

table!(counted HaliteFileVtable of HaliteFile: writable, byte_length, memory, read_at, write_at);

static TABLE: HaliteFileVtable = HaliteFileVtable {
    struct_size: size_of::<HaliteFileVtable>() as u32,
    reserved: 0,
    retain: Some(object::retain::<File>),
    release: Some(object::release::<File>),
    writable: Some(writable),
    byte_length: Some(byte_length),
    memory: Some(memory),
    read_at: Some(read_at),
    write_at: Some(write_at),
};

impl Shared for File {
    const NOUN: &'static str = "file";
    type Table = HaliteFileVtable;
    fn table() -> &'static HaliteFileVtable {
        &TABLE
    }
}

unsafe extern "C" fn writable(file: *mut HaliteFile) -> u8 {
    // SAFETY: the caller has a live handle of ours.
    unsafe {
        guard::value::<File, _>(file, "writable", 0, |f| (f.inner.access() == FileAccess::ReadWrite).into())
    }
}

unsafe extern "C" fn byte_length(file: *mut HaliteFile, out_length: *mut u64) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, and `out_length` may be written.
    unsafe {
        guard::call::<File>(file, "byte_length", |f| raw::put(out_length, f.inner.byte_length()?, f.peer()))
    }
}

unsafe extern "C" fn memory(file: *mut HaliteFile) -> HaliteBytes {
    let nothing = HaliteBytes { data: ptr::null(), length: 0 };
    // SAFETY: the caller has a live handle of ours.
    unsafe {
        guard::value::<File, _>(file, "memory", nothing, |f| match f.inner.as_ref() {
            File::Memory(bytes) => raw::lend_bytes(bytes),
            _ => nothing,
        })
    }
}

unsafe extern "C" fn read_at(
    file: *mut HaliteFile,
    offset: u64,
    target: *mut u8,
    length: usize,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours and `length` bytes that are its own for the call.
    unsafe {
        guard::call::<File>(file, "read_at", |f| {
            f.inner.read_at(offset, raw::writable(target, length, f.peer())?)
        })
    }
}

unsafe extern "C" fn write_at(file: *mut HaliteFile, offset: u64, source: HaliteBytes) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, and the bytes are there for the call.
    unsafe {
        guard::call::<File>(file, "write_at", |f| {
            f.inner.write_at(offset, raw::bytes(source, "bytes to write", f.peer())?)
        })
    }
}

/// A file of the far end.
struct FileProxy(Handle<HaliteFileVtable>);

impl FileSource for FileProxy {
    fn byte_length(&self) -> Result<u64> {
        let mut length = 0;
        // SAFETY: the handle is live, its table was checked, and the length may be written; a failure is ours.
        unsafe {
            let outcome = present(self.0.table().byte_length)(self.0.raw(), &raw mut length);
            status::outcome(outcome, self.0.peer).map(|()| length)
        }
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        // SAFETY: the handle is live, its table was checked, the bytes are ours for the call; a failure is ours.
        unsafe {
            let read_at = present(self.0.table().read_at);
            let outcome = read_at(self.0.raw(), offset, target.as_mut_ptr(), target.len());
            status::outcome(outcome, self.0.peer)
        }
    }

    fn write_at(&self, offset: u64, source: &[u8]) -> Result<()> {
        // SAFETY: the handle is live, its table was checked, the bytes are there for the call; a failure is ours.
        unsafe {
            let write_at = present(self.0.table().write_at);
            let outcome = write_at(self.0.raw(), offset, raw::lend_bytes(source));
            status::outcome(outcome, self.0.peer)
        }
    }
}

/// The bytes of a file of the far end that is in memory; they are there as long as the handle.
struct FileMemory {
    _handle: Handle<HaliteFileVtable>,
    bytes: HaliteBytes,
}

// SAFETY: the bytes do not change and may be read on any thread.
unsafe impl Send for FileMemory {}

impl AsRef<[u8]> for FileMemory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `receive` has checked address and length; the handle keeps the bytes.
        unsafe { std::slice::from_raw_parts(self.bytes.data, self.bytes.length) }
    }
}

/// A file that came in.
///
/// # Safety
/// As for [`object::receive`].
pub(super) unsafe fn receive(file: *mut HaliteFile, count: Count, peer: Peer) -> Result<File> {
    // SAFETY: the caller's promise.
    let handle = match unsafe { object::receive::<File>(file, count, peer)? } {
        Arrival::Own(file) => return Ok(file.as_ref().clone()),
        Arrival::Foreign(handle) => handle,
    };
    // SAFETY: the handle is live and its table was checked.
    let (bytes, writable) = unsafe {
        (present(handle.table().memory)(handle.raw()), present(handle.table().writable)(handle.raw()))
    };
    let access = if writable == 1 { FileAccess::ReadWrite } else { FileAccess::Read };
    // A file of no bytes has no memory to point to; one that may be written is not a constant slice.
    if bytes.length == 0 || access == FileAccess::ReadWrite {
        return Ok(File::Custom { source: Arc::new(FileProxy(handle)), access });
    }
    // SAFETY: the bytes are there as long as the handle.
    unsafe { raw::bytes(bytes, "a file in memory", peer)? };
    Ok(File::Memory(Bytes::from_owner(FileMemory { _handle: handle, bytes })))
}

/// A file that is lent for a call.
pub(super) fn lend(file: File, side: Side) -> Arc<Exported<File>> {
    Exported::new(side, Arc::new(file))
}
