//! What C passes becoming what Rust can use: references, texts, slices, structures that grow. Each function checks what can be
//! checked; that pointers point to what their types say is the caller's promise, the contract of the interface.

use std::{
    ffi::{CStr, CString, c_char},
    mem,
    path::PathBuf,
    ptr,
};

use crate::failure::{Failure, Result};

/// A text for C; zero bytes in it become U+FFFD.
pub fn c_text(text: &str) -> CString {
    let plain = text.replace('\0', "\u{fffd}");
    CString::new(plain).expect("all zero bytes were replaced")
}

fn null(name: &str) -> Failure {
    Failure::invalid(format!("'{name}' is NULL"))
}

fn check<T>(pointer: *const T, name: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(null(name));
    }
    if !pointer.is_aligned() {
        return Err(Failure::invalid(format!(
            "'{name}' does not point to what it should: it is not aligned"
        )));
    }
    Ok(())
}

/// A handle, or a structure.
///
/// # Safety
/// The pointer is null or points to a `T` that lives as long as it is used.
pub unsafe fn handle<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    check(pointer, name)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { &*pointer })
}

/// A handle that may be left out.
///
/// # Safety
/// As for [`handle`].
pub unsafe fn optional<'a, T>(pointer: *const T, name: &str) -> Result<Option<&'a T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { handle(pointer, name) }.map(Some)
}

/// Ends a handle.
///
/// # Safety
/// The pointer is null or came from [`Out::give`], and nobody uses it any more.
pub unsafe fn free<T>(name: &str, pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise.
        crate::failure::quiet(name, (), || unsafe {
            drop(Box::from_raw(pointer));
            Ok(())
        });
    }
}

/// A text.
///
/// # Safety
/// The pointer is null or points to bytes that end with a zero byte and live as long as the text is used.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|e| Failure::invalid(format!("'{name}' is no UTF-8: {e}")))
}

/// A text that may be left out.
///
/// # Safety
/// As for [`text`].
pub unsafe fn optional_text<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { text(pointer, name) }.map(Some)
}

/// A path: on Unix any bytes, elsewhere UTF-8.
///
/// # Safety
/// As for [`text`].
pub unsafe fn path(pointer: *const c_char, name: &str) -> Result<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        if pointer.is_null() {
            return Err(null(name));
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
        Ok(std::ffi::OsStr::from_bytes(bytes).into())
    }
    #[cfg(not(unix))]
    // SAFETY: the caller's promise.
    unsafe { text(pointer, name) }.map(PathBuf::from)
}

/// An array; without elements the pointer may be null.
///
/// # Safety
/// The pointer is null or points to `count` elements that live as long as they are used and do not change meanwhile.
pub unsafe fn slice<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, name)?;
    length::<T>(count, name)?;
    // SAFETY: the caller's promise; the length fits.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// An entry of a list, by its place.
pub fn at<'a, T>(list: &'a [T], index: usize, what: &str) -> Result<&'a T> {
    list.get(index)
        .ok_or_else(|| Failure::not_found(format!("there is no {what} {index}; there are {}", list.len())))
}

/// Memory of the caller's that is written.
///
/// # Safety
/// The pointer is null or points to `count` bytes that nobody else uses meanwhile.
pub unsafe fn target<'a>(pointer: *mut u8, count: usize, name: &str) -> Result<&'a mut [u8]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer, name)?;
    length::<u8>(count, name)?;
    // SAFETY: the caller's promise; the length fits.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

fn length<T>(count: usize, name: &str) -> Result<()> {
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if fits {
        return Ok(());
    }
    Err(Failure::invalid(format!("'{name}' cannot have {count} elements: memory has no room for that many")))
}

/// Where a result goes.
pub struct Out<T>(*mut T);

impl<T> Out<*mut T> {
    /// A place for a handle, which is null until there is one.
    ///
    /// # Safety
    /// The pointer is null or may be written until the call ends.
    pub unsafe fn handle(pointer: *mut *mut T, name: &str) -> Result<Self> {
        check(pointer, name)?;
        // SAFETY: the caller's promise.
        unsafe { pointer.write(ptr::null_mut()) };
        Ok(Out(pointer))
    }

    /// A place that may be left out.
    ///
    /// # Safety
    /// As for [`Out::handle`].
    pub unsafe fn optional(pointer: *mut *mut T, name: &str) -> Result<Option<Self>> {
        if pointer.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        unsafe { Self::handle(pointer, name) }.map(Some)
    }

    /// Gives an object to the caller.
    pub fn give(self, object: T) {
        // SAFETY: whoever made this promised that the place can be written.
        unsafe { self.0.write(Box::into_raw(Box::new(object))) };
    }
}

impl<T: Copy> Out<T> {
    /// A place for a plain value.
    ///
    /// # Safety
    /// The pointer is null or may be written until the call ends.
    pub unsafe fn value(pointer: *mut T, name: &str) -> Result<Self> {
        check(pointer, name)?;
        Ok(Out(pointer))
    }

    /// Writes the value.
    pub fn set(self, value: T) {
        // SAFETY: whoever made this promised that the place can be written.
        unsafe { self.0.write(value) };
    }
}

/// A structure that begins with its size, `struct_size: usize`, and may get more fields at its end.
///
/// # Safety
/// It is `repr(C)`, begins with that field, and is valid when all of its other bytes are zero, or came from a caller who kept the
/// contract.
pub unsafe trait Grows: Copy {
    /// Its name.
    const NAME: &'static str;
    /// Fewer bytes than this no header has: up to into its last field in the first version of the interface.
    const FIRST: usize;
}

/// Reads a structure of the caller's; null is one of zeros.
///
/// # Safety
/// The pointer is null or points to as many bytes as its first field says.
pub unsafe fn structure<T: Grows>(pointer: *const T) -> Result<T> {
    let own = size_of::<T>();
    // SAFETY: `Grows` says that zeros are valid.
    let mut copy: T = unsafe { mem::zeroed() };
    if pointer.is_null() {
        return Ok(copy);
    }
    // SAFETY: the caller's promise.
    let size = unsafe { size_of_structure(pointer) }?;
    let (from, to) = (pointer.cast::<u8>(), ptr::from_mut(&mut copy).cast::<u8>());
    // SAFETY: both are at least this long, and the copy is ours.
    unsafe { ptr::copy_nonoverlapping(from, to, size.min(own)) };
    // SAFETY: the caller's promise.
    let rest = unsafe { slice(from.wrapping_add(own), size.saturating_sub(own), T::NAME) }?;
    if rest.iter().any(|byte| *byte != 0) {
        return Err(Failure::unsupported(format!(
            "the program sets fields of {} that this library does not have: the header is newer than the library, which knows \
             {own} of {size} bytes",
            T::NAME
        )));
    }
    Ok(copy)
}

/// Fills a structure of the caller's as far as it goes; the rest becomes zeros.
///
/// # Safety
/// The pointer is null or points to as many bytes as its first field says, which may be written.
pub unsafe fn fill<T: Grows>(pointer: *mut T, value: T) -> Result<()> {
    let own = size_of::<T>();
    // SAFETY: the caller's promise.
    let size = unsafe { size_of_structure(pointer) }?;
    let (from, to) = (ptr::from_ref(&value).cast::<u8>(), pointer.cast::<u8>());
    // The size stays the caller's.
    let head = size_of::<usize>();
    // SAFETY: both are at least as long as what is copied, and what lies behind it is the caller's, too.
    unsafe {
        ptr::copy_nonoverlapping(from.add(head), to.add(head), size.min(own) - head);
        if size > own {
            ptr::write_bytes(to.add(own), 0, size - own);
        }
    }
    Ok(())
}

/// The size that a structure states.
///
/// # Safety
/// The pointer is null or points to a structure of the caller's.
unsafe fn size_of_structure<T: Grows>(pointer: *const T) -> Result<usize> {
    check(pointer, T::NAME)?;
    // SAFETY: the caller's promise; `Grows` says that the size comes first.
    let size = unsafe { pointer.cast::<usize>().read() };
    // No structure grows this long; more is a size that nobody set.
    if size < T::FIRST || size > (1 << 16) {
        return Err(Failure::invalid(format!(
            "the struct_size of {} is {size}; set it to sizeof({}), which is at least {}",
            T::NAME,
            T::NAME,
            T::FIRST
        )));
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Old {
        struct_size: usize,
        a: usize,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct New {
        struct_size: usize,
        a: usize,
        b: usize,
    }

    // SAFETY: plain numbers, the size first.
    unsafe impl Grows for Old {
        const NAME: &'static str = "old";
        const FIRST: usize = 16;
    }

    // SAFETY: as above.
    unsafe impl Grows for New {
        const NAME: &'static str = "new";
        const FIRST: usize = 16;
    }

    #[test]
    fn structures_of_older_and_newer_headers_are_read() {
        let old = Old { struct_size: 16, a: 1 };
        // SAFETY: sixteen bytes are there, as the structure says.
        let read = unsafe { structure(ptr::from_ref(&old).cast::<New>()) }.unwrap();
        assert_eq!((read.a, read.b), (1, 0));
        let mut new = New { struct_size: 24, a: 1, b: 0 };
        // SAFETY: as above.
        let read = |new: &New| unsafe { structure(ptr::from_ref(new).cast::<Old>()) };
        assert_eq!(read(&new).unwrap().a, 1);
        new.b = 5;
        assert!(read(&new).err().unwrap().message.contains("newer"));
        for size in [0, 15, usize::MAX] {
            new.struct_size = size;
            assert!(read(&new).err().unwrap().message.contains("sizeof(old)"));
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { structure::<New>(ptr::null()) }.unwrap(), New { struct_size: 0, a: 0, b: 0 });
    }

    #[test]
    fn structures_are_filled_as_far_as_they_go() {
        let mut old = Old { struct_size: 16, a: 0 };
        let value = New { struct_size: 0, a: 3, b: 4 };
        // SAFETY: sixteen bytes are there, as the structure says.
        unsafe { fill(ptr::from_mut(&mut old).cast::<New>(), value) }.unwrap();
        assert_eq!((old.struct_size, old.a), (16, 3));
        let mut new = New { struct_size: 24, a: 9, b: 9 };
        // SAFETY: as above.
        unsafe { fill(ptr::from_mut(&mut new).cast::<Old>(), Old { struct_size: 0, a: 3 }) }.unwrap();
        assert_eq!(new, New { struct_size: 24, a: 3, b: 0 });
    }

    #[test]
    fn wrong_pointers_and_lengths_are_refused() {
        // SAFETY: nothing is read.
        unsafe {
            assert!(handle::<u64>(ptr::null(), "x").err().unwrap().message.contains("'x' is NULL"));
            assert!(
                handle::<u64>(ptr::without_provenance(3), "x").err().unwrap().message.contains("aligned")
            );
            assert!(slice::<u64>(ptr::dangling(), usize::MAX, "x").err().unwrap().message.contains("room"));
            assert!(slice::<u64>(ptr::null(), 1, "x").is_err() && slice::<u64>(ptr::null(), 0, "x").is_ok());
            assert!(text(c"\xff".as_ptr(), "x").err().unwrap().message.contains("UTF-8"));
            assert!(Out::<*mut u8>::handle(ptr::null_mut(), "out").is_err());
        }
    }
}
