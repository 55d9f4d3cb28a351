//! Sources: where models and modules come from.

use std::{
    ffi::{c_char, c_void},
    io,
};

use bytes::Bytes;
use halite::{LoadMode, Source};

use crate::{
    failure::{Failure, Result},
    raw::{self, Grows},
};

/// Ends what the library has borrowed for longer than a call. Called once, on any thread.
pub type halite_release_fn = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Reads the next bytes into `target`: returns how many, at most `capacity`; 0 at the end; a negative number when it failed.
pub type halite_read_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, target: *mut u8, capacity: usize) -> i64>;

/// How files come into memory: one of `HALITE_LOAD_…`.
pub type halite_load_mode = u32;

/// Mapped: pages are read when they are first touched. The file must not change while anything made from it lives.
pub const HALITE_LOAD_MAP: halite_load_mode = 0;
/// Read at once into memory. Later changes of the file do not matter.
pub const HALITE_LOAD_PRELOAD: halite_load_mode = 1;

/// Where a model or module comes from: a file (`path`), memory (`data` and `size`), or a reader (`read`). Exactly one of them is
/// set. Begin with `HALITE_SOURCE_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_source {
    /// `sizeof(halite_source)`.
    pub struct_size: usize,
    /// A file. Required for a model whose weights are in files beside it.
    pub path: *const c_char,
    /// Bytes. Without `release` they are copied; with it they are borrowed until it is called, and must not change.
    pub data: *const u8,
    /// Number of bytes.
    pub size: usize,
    /// Reads all that there is, when the session is built or the model opened, on the thread that does it.
    pub read: halite_read_fn,
    /// Ends the borrowing of `data`, or the reader; may be NULL.
    pub release: halite_release_fn,
    /// Handed to `read` and `release`.
    pub context: *mut c_void,
    /// A name for messages, where there is no file that has one; may be NULL.
    pub name: *const c_char,
}

// SAFETY: the size comes first; zeros are pointers that are not set.
unsafe impl Grows for halite_source {
    const NAME: &'static str = "halite_source";
    const FIRST: usize = std::mem::offset_of!(halite_source, name) + 1;
}

/// Calls the caller's function when it is dropped.
pub(crate) struct Release {
    function: halite_release_fn,
    context: *mut c_void,
}

// SAFETY: the contract: it is called on any thread.
unsafe impl Send for Release {}
// SAFETY: it has nothing that several threads could do at once.
unsafe impl Sync for Release {}

impl Release {
    pub fn new(function: halite_release_fn, context: *mut c_void) -> Self {
        Release { function, context }
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(function) = self.function {
            // SAFETY: the contract: it may be called once, on any thread.
            unsafe { function(self.context) };
        }
    }
}

/// Memory that was lent.
struct Lent {
    data: *const u8,
    size: usize,
    /// Called after the last use.
    _release: Release,
}

// SAFETY: the contract: the bytes do not change, and are there until they are released.
unsafe impl Send for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: as above; `lend` checked pointer and length.
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }
}

/// Bytes of the caller's: copied where there is no function that releases them.
///
/// # Safety
/// The pointer is null or points to as many bytes, which stay as they are until they are released, if there is a function for that.
pub(crate) unsafe fn lend(data: *const u8, size: usize, release: Release, name: &str) -> Result<Bytes> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { raw::slice(data, size, name) }?;
    if release.function.is_none() {
        return Ok(Bytes::copy_from_slice(bytes));
    }
    Ok(Bytes::from_owner(Lent { data, size, _release: release }))
}

/// A reader of the caller's.
struct Reader {
    read: unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> i64,
    /// Has the context, which the reader gets, too.
    release: Release,
}

impl io::Read for Reader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the contract; the target is as long as is said.
        let count = unsafe { (self.read)(self.release.context, target.as_mut_ptr(), target.len()) };
        let count = usize::try_from(count)
            .map_err(|_| io::Error::other(format!("the program's reader failed with {count}")))?;
        if count > target.len() {
            return Err(io::Error::other("the program's reader wrote more than there was room for"));
        }
        Ok(count)
    }
}

/// Reads what the caller states.
///
/// # Safety
/// The pointer is null or points to a source that keeps the contract.
pub(crate) unsafe fn read(source: *const halite_source) -> Result<Source> {
    // SAFETY: the caller's promise.
    unsafe { raw::handle(source, "source") }?;
    // SAFETY: as above.
    let stated = unsafe { raw::structure(source) }?;
    // From here on it is released, whatever happens.
    let release = Release::new(stated.release, stated.context);
    let ways = [!stated.path.is_null(), !stated.data.is_null(), stated.read.is_some()];
    if ways.iter().filter(|way| **way).count() != 1 {
        return Err(Failure::invalid("a source has exactly one of 'path', 'data' and 'read'"));
    }
    // SAFETY: the caller's promise.
    let source = unsafe {
        if let Some(read) = stated.read {
            Source::reader(Reader { read, release })
        } else if stated.path.is_null() {
            Source::bytes(lend(stated.data, stated.size, release, "data")?)
        } else {
            Source::path(raw::path(stated.path, "path")?)
        }
    };
    // SAFETY: as above.
    Ok(match unsafe { raw::optional_text(stated.name, "name") }? {
        Some(name) => source.named(name),
        None => source,
    })
}

/// A load mode by its number.
pub(crate) fn load_mode(mode: halite_load_mode) -> Result<LoadMode> {
    match mode {
        HALITE_LOAD_MAP => Ok(LoadMode::Map),
        HALITE_LOAD_PRELOAD => Ok(LoadMode::Preload),
        other => Err(Failure::invalid(format!(
            "there is no load mode {other}; there are HALITE_LOAD_MAP, HALITE_LOAD_PRELOAD"
        ))),
    }
}
