//! Reading and writing plain C memory: text, arrays, structures that know their size.

use std::ffi::c_char;

use super::{
    abi::{self, HaliteBytes, HalitePair, HaliteStr},
    peer::Peer,
};
use halite_hal::{Result, status};

/// A structure that begins with `struct_size: u32`.
///
/// # Safety
/// The type is `repr(C)`, its first field is `struct_size: u32`, and any bit pattern of its plain fields is valid.
pub(super) unsafe trait Grows: Sized {
    /// Its C name, for messages.
    const NAME: &'static str;
    /// What a maker of this version writes into `struct_size`.
    const SIZE: u32 = size_of::<Self>() as u32;
}

macro_rules! grows {
    ($($name:ident),* $(,)?) => {$(
        // SAFETY: the structures of the interface are `repr(C)`, begin with `struct_size`, and hold numbers, pointers
        // and nullable functions only.
        unsafe impl Grows for abi::$name { const NAME: &'static str = stringify!($name); }
    )*};
}

grows!(
    HaliteStatus,
    HaliteHost,
    HalitePlugin,
    HaliteDeviceInfo,
    HaliteExternalMemory,
    HaliteMemoryStats,
    HaliteCommandTime,
    HaliteProfileSummary,
    HaliteBufferInfo,
    HaliteExecutableDesc,
    HaliteFunctionInfo,
    HaliteCommand,
    HaliteCommandList,
    HaliteQueueOp,
);

/// A structure of the far end. INTERNAL when there is none, or one that lacks fields of this version (both ends speak the
/// same one).
///
/// # Safety
/// `data` is null or points to a structure that lives for `'a` and tells its size truthfully.
pub(super) unsafe fn structure<'a, T: Grows>(data: *const T, peer: Peer) -> Result<&'a T> {
    if data.is_null() || !data.is_aligned() {
        return Err(peer.broke(format_args!("a pointer to {} is null or misaligned", T::NAME)));
    }
    // SAFETY: not null and aligned, and every such structure has at least its first field.
    let size = unsafe { data.cast::<u32>().read() };
    if size < T::SIZE {
        return Err(peer.broke(format_args!(
            "{} has {size} bytes, {} belong to interface {}",
            T::NAME,
            T::SIZE,
            version(abi::HALITE_ABI_VERSION)
        )));
    }
    // SAFETY: the structure has all fields that this version knows.
    Ok(unsafe { &*data })
}

/// Answers an out-structure of the far end: its `struct_size` stays, fields that it does not know are left out. Nothing
/// happens when it is null.
///
/// # Safety
/// `out` is null or points to a structure that may be written as far as its `struct_size` says.
pub(super) unsafe fn answer<T: Grows>(out: *mut T, value: T) {
    if out.is_null() || !out.is_aligned() {
        return;
    }
    // SAFETY: the caller's structure has a size and that many bytes; the value has `size_of::<T>()`.
    unsafe {
        let size = out.cast::<u32>().read();
        let known = (size as usize).min(size_of::<T>());
        std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), out.cast::<u8>(), known);
        if known >= size_of::<u32>() {
            out.cast::<u32>().write(size);
        }
    }
}

/// Writes a plain result.
///
/// # Safety
/// `out` is null or may be written.
pub(super) unsafe fn put<T: Copy>(out: *mut T, value: T, peer: Peer) -> Result<()> {
    if out.is_null() || !out.is_aligned() {
        return Err(peer.broke(format_args!("there is no place for the result")));
    }
    // SAFETY: not null, aligned, and writable as the caller says.
    unsafe { out.write(value) };
    Ok(())
}

/// An array of the far end. Null is the empty array.
///
/// # Safety
/// `data` points to `count` values that live for `'a` and do not change.
pub(super) unsafe fn array<'a, T>(data: *const T, count: usize, what: &str, peer: Peer) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if data.is_null() || !data.is_aligned() || !fits {
        return Err(peer.broke(format_args!("{count} entries of {what} are at no possible address")));
    }
    // SAFETY: not null, aligned, of possible length; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// Bytes of the far end that may be written. Null is no bytes.
///
/// # Safety
/// `data` points to `length` initialised bytes that live for `'a` and that nobody else uses.
pub(super) unsafe fn writable<'a>(data: *mut u8, length: usize, peer: Peer) -> Result<&'a mut [u8]> {
    if length == 0 {
        return Ok(&mut []);
    }
    if data.is_null() || isize::try_from(length).is_err() {
        return Err(peer.broke(format_args!("{length} bytes to write are at no possible address")));
    }
    // SAFETY: not null, of possible length; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(data, length) })
}

/// Bytes of the far end.
///
/// # Safety
/// As for [`array`].
pub(super) unsafe fn bytes<'a>(bytes: HaliteBytes, what: &str, peer: Peer) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { array(bytes.data, bytes.length, what, peer) }
}

/// Text of the far end. INTERNAL when it is no UTF-8.
///
/// # Safety
/// As for [`array`].
pub(super) unsafe fn text<'a>(text: HaliteStr, what: &str, peer: Peer) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { array(text.data.cast::<u8>(), text.length, what, peer)? };
    std::str::from_utf8(bytes).map_err(|e| peer.broke(format_args!("{what} is no UTF-8 text: {e}")))
}

/// Text of the far end where null means that there is none.
///
/// # Safety
/// As for [`array`].
pub(super) unsafe fn optional_text(optional: HaliteStr, what: &str, peer: Peer) -> Result<Option<String>> {
    if optional.data.is_null() && optional.length == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    Ok(Some(unsafe { text(optional, what, peer)?.to_owned() }))
}

/// Names and values of the far end.
///
/// # Safety
/// As for [`array`], also for the texts in it.
pub(super) unsafe fn pairs(
    data: *const HalitePair,
    count: usize,
    what: &str,
    peer: Peer,
) -> Result<Vec<(String, String)>> {
    // SAFETY: the caller's promise.
    let pairs = unsafe { array(data, count, what, peer)? };
    // SAFETY: the caller's promise.
    let owned = |t: HaliteStr| Ok(unsafe { text(t, what, peer)? }.to_owned());
    pairs.iter().map(|p| Ok((owned(p.name)?, owned(p.value)?))).collect()
}

/// Lends text. Never null, so that it is text even when it is empty.
pub(super) fn lend(text: &str) -> HaliteStr {
    HaliteStr { data: text.as_ptr().cast::<c_char>(), length: text.len() }
}

/// Lends text that may be missing.
pub(super) fn lend_optional(text: Option<&str>) -> HaliteStr {
    text.map_or(HaliteStr { data: std::ptr::null(), length: 0 }, lend)
}

/// Lends bytes.
pub(super) fn lend_bytes(bytes: &[u8]) -> HaliteBytes {
    HaliteBytes { data: bytes.as_ptr(), length: bytes.len() }
}

/// Lends a name and a value.
pub(super) fn lend_pair(name: &str, value: &str) -> HalitePair {
    HalitePair { name: lend(name), value: lend(value) }
}

/// A version as people write it.
pub(super) fn version(number: u32) -> String {
    format!("{}.{}", number >> 16, number & 0xFFFF)
}

/// Room for `count` values that the far end announces, or RESOURCE_EXHAUSTED.
pub(super) fn room<T>(count: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(count)
        .map_err(|e| status!(ResourceExhausted, "no memory for {count} entries: {e}"))?;
    Ok(room)
}
