//! The sources and targets of queue reads and writes.

use std::{fmt, fs, sync::Arc};

use bytes::Bytes;

use crate::{Result, status};

/// What may be done to a [`File`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Only read.
    Read,
    /// Read and write.
    ReadWrite,
}

/// A file that somebody else implements: an archive member, a download, the far side of a plug-in. Any thread may
/// call it; calls may overlap.
pub trait FileSource: Send + Sync + 'static {
    /// Bytes in it now.
    fn byte_length(&self) -> Result<u64>;

    /// Reads exactly `target.len()` bytes at `offset`. OUT_OF_RANGE past the end.
    fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()>;

    /// Writes all bytes at `offset`. PERMISSION_DENIED for read-only files.
    fn write_at(&self, offset: u64, source: &[u8]) -> Result<()>;
}

/// A random-access source or target of bytes. Cheap to clone.
#[derive(Clone)]
pub enum File {
    /// Bytes in host memory, often a file mapping. Read-only.
    Memory(Bytes),
    /// An open file. Reads and writes are positioned: the file cursor is never used.
    Handle {
        /// The file.
        file: Arc<fs::File>,
        /// What was asked for when it was opened.
        access: FileAccess,
    },
    /// Somebody else's file.
    Custom {
        /// The file.
        source: Arc<dyn FileSource>,
        /// What may be done to it.
        access: FileAccess,
    },
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            File::Memory(bytes) => write!(f, "File::Memory({} bytes)", bytes.len()),
            File::Handle { file, access } => write!(f, "File::Handle({file:?}, {access:?})"),
            File::Custom { access, .. } => write!(f, "File::Custom({access:?})"),
        }
    }
}

impl File {
    /// Bytes in it now.
    pub fn byte_length(&self) -> Result<u64> {
        match self {
            File::Memory(bytes) => Ok(bytes.len() as u64),
            File::Handle { file, .. } => {
                file.metadata().map(|m| m.len()).map_err(|e| status!(Unknown, "cannot read file size: {e}"))
            }
            File::Custom { source, .. } => source.byte_length(),
        }
    }

    /// What may be done to it.
    pub fn access(&self) -> FileAccess {
        match self {
            File::Memory(_) => FileAccess::Read,
            File::Handle { access, .. } | File::Custom { access, .. } => *access,
        }
    }

    /// The bytes of a range when they are in memory already; lets drivers skip a copy.
    pub fn memory_range(&self, offset: u64, length: u64) -> Option<Bytes> {
        let File::Memory(bytes) = self else { return None };
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        (end <= bytes.len()).then(|| bytes.slice(start..end))
    }

    /// Reads exactly `target.len()` bytes at `offset`. OUT_OF_RANGE past the end.
    pub fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        match self {
            File::Memory(bytes) => {
                let source = self.memory_range(offset, target.len() as u64).ok_or_else(|| {
                    status!(
                        OutOfRange,
                        "read of {} bytes at {offset} is outside of a file of {} bytes",
                        target.len(),
                        bytes.len()
                    )
                })?;
                target.copy_from_slice(&source);
                Ok(())
            }
            File::Handle { file, .. } => read_exact_at(file, target, offset).map_err(|e| {
                status!(OutOfRange, "cannot read {} bytes at offset {offset}: {e}", target.len())
            }),
            File::Custom { source, .. } => source.read_at(offset, target),
        }
    }

    /// Writes all bytes at `offset`. PERMISSION_DENIED for read-only files.
    pub fn write_at(&self, offset: u64, source: &[u8]) -> Result<()> {
        match self {
            File::Handle { file, access: FileAccess::ReadWrite } => write_all_at(file, source, offset)
                .map_err(|e| {
                    status!(DataLoss, "cannot write {} bytes at offset {offset}: {e}", source.len())
                }),
            File::Custom { source: file, access: FileAccess::ReadWrite } => file.write_at(offset, source),
            _ => Err(status!(PermissionDenied, "file is read-only")),
        }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &fs::File, target: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, target, offset)
}

#[cfg(unix)]
fn write_all_at(file: &fs::File, source: &[u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, source, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &fs::File, mut target: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !target.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, target, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => {
                target = &mut target[n..];
                offset += n as u64;
            }
        }
    }
    Ok(())
}

#[cfg(windows)]
fn write_all_at(file: &fs::File, mut source: &[u8], mut offset: u64) -> std::io::Result<()> {
    while !source.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_write(file, source, offset)?;
        source = &source[n..];
        offset += n as u64;
    }
    Ok(())
}
