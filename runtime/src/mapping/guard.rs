//! Mapped files that are cut while they are in use: what was there reads as zeros and is told as an error, instead of ending the
//! process.
//!
//! Reading a mapped file behind its end raises SIGBUS. The handler here looks whether the address is in a mapping that it knows. If
//! so it notes that the file was cut, and puts zeros in place of what is gone; if not, whoever handled the signal before gets it.

#[cfg(unix)]
mod unix;

use std::{fs::File, io};

use bytes::Bytes;

/// Maps all of a file that is not empty; `None` where its cutting could not be survived, so it has to be read.
pub(super) fn map(file: &File, length: usize) -> io::Result<Option<Bytes>> {
    #[cfg(unix)]
    return unix::map(file, length);
    #[cfg(not(unix))]
    return Ok((file, length, None).2);
}

/// Takes pages of mapped files that nobody will read soon off the process, so that they do not count as its memory. Whoever reads them
/// again finds what was there: the system keeps them as long as it has room. Other bytes stay as they are.
pub fn release_pages(bytes: &[u8]) {
    #[cfg(unix)]
    unix::release(bytes);
    #[cfg(not(unix))]
    let _ = bytes;
}

/// Whether any mapped file of this process was ever found to be cut: most programs need not look further.
pub(crate) fn is_any_cut() -> bool {
    #[cfg(unix)]
    return unix::is_any_cut();
    #[cfg(not(unix))]
    return false;
}

/// Whether these bytes lie in a mapped file that was cut before their end, as far as anybody has noticed by reading them.
pub fn is_cut(bytes: &Bytes) -> bool {
    #[cfg(unix)]
    return unix::is_cut(bytes);
    #[cfg(not(unix))]
    return (bytes, false).1;
}
