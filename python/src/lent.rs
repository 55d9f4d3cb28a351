//! Memory and handles of others: the pages of NumPy arrays, and descriptors by their numbers. The unsafe code of this crate is here.

use halite::{Bytes, ExternalHandle, ExternalKind};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::error::invalid;

/// The pages of an array, which stays as long as these are used.
struct Pages {
    address: *const u8,
    length: usize,
    _array: Py<PyUntypedArray>,
}

// SAFETY: the address does not move between threads, and the array is only let go of, which any thread may do.
unsafe impl Send for Pages {}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the array told the address and the number of bytes, and is held: NumPy frees the memory of an array with its last
        // reference. `SharedMemory.from_array` says that nobody may write to the array while a call uses it.
        unsafe { std::slice::from_raw_parts(self.address, self.length) }
    }
}

/// The elements of a dense array where they lie.
pub fn pages(array: &Bound<'_, PyUntypedArray>) -> PyResult<Bytes> {
    let py = array.py();
    let dtype = array.dtype();
    if !array.is_c_contiguous() {
        return Err(invalid(py, "the array is not contiguous; numpy.ascontiguousarray makes one that is"));
    }
    if dtype.getattr("hasobject")?.is_truthy()? {
        return Err(invalid(py, &format!("an array of '{dtype}' holds objects of Python, and no numbers")));
    }
    let length: usize = array.getattr("nbytes")?.extract()?;
    if length == 0 {
        return Err(invalid(py, "the array has no elements"));
    }
    // SAFETY: the pointer is that of an array which is alive.
    let address = unsafe { (*array.as_array_ptr()).fields.data }.cast_const().cast::<u8>();
    Ok(Bytes::from_owner(Pages { address, length, _array: array.clone().unbind() }))
}

/// A duplicate of somebody's handle, known by its number.
pub fn duplicate(py: Python<'_>, kind: ExternalKind, number: i64) -> PyResult<ExternalHandle> {
    match kind {
        ExternalKind::OpaqueFd => descriptor(py, number).map(ExternalHandle::OpaqueFd),
        ExternalKind::DmaBuf => descriptor(py, number).map(ExternalHandle::DmaBuf),
        ExternalKind::OpaqueWin32 => system_handle(py, number).map(ExternalHandle::OpaqueWin32),
        ExternalKind::Host => {
            Err(invalid(py, "memory of the process has no handle; take SharedMemory.from_array()"))
        }
        ExternalKind::AndroidHardwareBuffer => {
            Err(invalid(py, "Python has no AHardwareBuffer; Halite's interfaces for C and Java take them"))
        }
    }
}

#[cfg(unix)]
fn descriptor(py: Python<'_>, number: i64) -> PyResult<halite::hal::external::Descriptor> {
    let number = i32::try_from(number).ok().filter(|number| *number >= 0);
    let number = number.ok_or_else(|| invalid(py, "a descriptor is no such number"))?;
    // SAFETY: the number is not negative. Whoever gives it vouches that the file stays open during this call, in which it is only
    // duplicated; a number that no file has gives an error.
    let lent = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
    lent.try_clone_to_owned()
        .map_err(|error| invalid(py, &format!("descriptor {number} cannot be duplicated: {error}")))
}

#[cfg(not(unix))]
fn descriptor(py: Python<'_>, _number: i64) -> PyResult<halite::hal::external::Descriptor> {
    Err(invalid(py, "this system has no memory that descriptors stand for"))
}

#[cfg(windows)]
fn system_handle(py: Python<'_>, number: i64) -> PyResult<halite::hal::external::SystemHandle> {
    let pointer = std::ptr::with_exposed_provenance_mut(number as usize);
    // SAFETY: whoever gives the number vouches that it is an open handle, which is only duplicated.
    let lent = unsafe { std::os::windows::io::BorrowedHandle::borrow_raw(pointer) };
    lent.try_clone_to_owned()
        .map_err(|error| invalid(py, &format!("the handle {number} cannot be duplicated: {error}")))
}

#[cfg(not(windows))]
fn system_handle(py: Python<'_>, _number: i64) -> PyResult<halite::hal::external::SystemHandle> {
    Err(invalid(py, "only Windows has handles of this kind"))
}
