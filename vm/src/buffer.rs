//! Owns `!vm.buffer`: host bytes, either constant or mutable. Does not own: device buffers.

use std::sync::Arc;

use bytes::Bytes;
use halite_status::{Result, Status, bail, status};
use parking_lot::RwLock;

use crate::{
    Object,
    memory::{Memory, Reservation},
};

/// A byte buffer of the VM. Constant ones alias module data; mutable ones own their bytes behind a lock. The length
/// never changes.
#[derive(Debug)]
pub struct Buffer {
    storage: Storage,
    len: u64,
    _charge: Reservation,
}

enum Storage {
    Constant(Bytes),
    Host(RwLock<Vec<u8>>),
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Storage::Constant(_) => "constant",
            Storage::Host(_) => "mutable",
        })
    }
}

impl Object for Buffer {
    fn type_name(&self) -> &'static str {
        "vm.buffer"
    }
}

impl Buffer {
    /// A constant buffer over shared bytes; nothing is copied.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Buffer { len: bytes.len() as u64, storage: Storage::Constant(bytes), _charge: Reservation::default() }
    }

    /// A mutable buffer with this content.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        Buffer {
            len: bytes.len() as u64,
            storage: Storage::Host(RwLock::new(bytes)),
            _charge: Reservation::default(),
        }
    }

    /// A mutable zero-filled buffer out of a budget. RESOURCE_EXHAUSTED when budget or memory are spent.
    pub(crate) fn allocate(len: u64, memory: &Arc<Memory>) -> Result<Self> {
        let charge = memory.reserve(len.saturating_add(OVERHEAD), "buffer.alloc")?;
        let mut bytes = Vec::new();
        let size = usize::try_from(len).map_err(|_| out_of_memory(len))?;
        bytes.try_reserve_exact(size).map_err(|_| out_of_memory(len))?;
        bytes.resize(size, 0);
        Ok(Buffer { len, storage: Storage::Host(RwLock::new(bytes)), _charge: charge })
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of a constant buffer, shared; `None` for a mutable one.
    pub fn constant(&self) -> Option<&Bytes> {
        match &self.storage {
            Storage::Constant(bytes) => Some(bytes),
            Storage::Host(_) => None,
        }
    }

    /// Runs `f` over the content. Other readers may run at the same time; `f` must not write to this buffer.
    pub fn read<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
        match &self.storage {
            Storage::Constant(bytes) => f(bytes),
            Storage::Host(bytes) => f(&bytes.read()),
        }
    }

    /// Runs `f` over the mutable content, alone. PERMISSION_DENIED for a constant buffer.
    pub fn write<T>(&self, f: impl FnOnce(&mut [u8]) -> T) -> Result<T> {
        match &self.storage {
            Storage::Constant(_) => {
                bail!(PermissionDenied, "the buffer is read-only; buffer.clone makes a mutable copy")
            }
            Storage::Host(bytes) => Ok(f(&mut bytes.write())),
        }
    }

    /// The content: shared when constant, copied when mutable.
    pub fn to_bytes(&self) -> Bytes {
        match &self.storage {
            Storage::Constant(bytes) => bytes.clone(),
            Storage::Host(bytes) => Bytes::copy_from_slice(&bytes.read()),
        }
    }

    /// Element `index` of width `N`.
    #[inline]
    pub(crate) fn load<const N: usize>(&self, index: u64) -> Result<[u8; N]> {
        let loaded = self.read(|bytes| {
            let start = usize::try_from(index).ok()?.checked_mul(N)?;
            bytes.get(start..)?.first_chunk::<N>().copied()
        });
        loaded.ok_or_else(|| self.out_of_bounds(index.saturating_mul(N as u64), N as u64, N as u64))
    }

    /// Sets element `index` of width `N`.
    #[inline]
    pub(crate) fn store<const N: usize>(&self, index: u64, value: [u8; N]) -> Result<()> {
        let stored = self.write(|bytes| {
            let start = usize::try_from(index).ok()?.checked_mul(N)?;
            *bytes.get_mut(start..)?.first_chunk_mut::<N>()? = value;
            Some(())
        })?;
        stored.ok_or_else(|| self.out_of_bounds(index.saturating_mul(N as u64), N as u64, N as u64))
    }

    /// Sets `count` elements of width `N` from element `index` on.
    pub(crate) fn fill<const N: usize>(&self, index: u64, count: u64, value: [u8; N]) -> Result<()> {
        let (offset, length) = (index.saturating_mul(N as u64), count.saturating_mul(N as u64));
        let range = self.range(offset, length, N as u64)?;
        self.write(|bytes| bytes[range].chunks_exact_mut(N).for_each(|c| c.copy_from_slice(&value)))
    }

    /// Checks a byte range.
    pub(crate) fn range(&self, offset: u64, length: u64, alignment: u64) -> Result<std::ops::Range<usize>> {
        let end = offset.checked_add(length).filter(|end| *end <= self.len);
        let range = end.and_then(|end| Some(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
        range.ok_or_else(|| self.out_of_bounds(offset, length, alignment))
    }

    /// Copies a byte range into another buffer, which may be this one (ranges may overlap).
    pub(crate) fn copy_to(
        &self,
        offset: u64,
        target: &Buffer,
        target_offset: u64,
        length: u64,
    ) -> Result<()> {
        let from = self.range(offset, length, 1)?;
        let to = target.range(target_offset, length, 1)?;
        if std::ptr::eq(self, target) {
            return self.write(|bytes| bytes.copy_within(from, to.start));
        }
        match (&self.storage, &target.storage) {
            (Storage::Host(a), Storage::Host(b)) => {
                // Two contexts may copy in opposite directions: lock in address order.
                if std::ptr::from_ref(a) < std::ptr::from_ref(b) {
                    let source = a.read();
                    b.write()[to].copy_from_slice(&source[from]);
                } else {
                    let mut sink = b.write();
                    sink[to].copy_from_slice(&a.read()[from]);
                }
                Ok(())
            }
            (Storage::Constant(source), _) => target.write(|bytes| bytes[to].copy_from_slice(&source[from])),
            (_, Storage::Constant(_)) => target.write(|_| ()),
        }
    }

    /// Whether two byte ranges hold the same bytes.
    pub(crate) fn equal(&self, offset: u64, other: &Buffer, other_offset: u64, length: u64) -> Result<bool> {
        let mine = self.range(offset, length, 1)?;
        let theirs = other.range(other_offset, length, 1)?;
        if std::ptr::eq(self, other) {
            return Ok(self.read(|bytes| bytes[mine] == bytes[theirs]));
        }
        Ok(if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
            self.read(|a| other.read(|b| a[mine] == b[theirs]))
        } else {
            other.read(|b| self.read(|a| a[mine] == b[theirs]))
        })
    }

    /// A mutable copy of a byte range.
    pub(crate) fn clone_range(&self, offset: u64, length: u64, memory: &Arc<Memory>) -> Result<Buffer> {
        let range = self.range(offset, length, 1)?;
        let copy = Buffer::allocate(length, memory)?;
        self.read(|bytes| copy.write(|to| to.copy_from_slice(&bytes[range])))?;
        Ok(copy)
    }

    #[cold]
    fn out_of_bounds(&self, offset: u64, length: u64, alignment: u64) -> Status {
        status!(
            OutOfRange,
            "out-of-bounds access detected (offset={offset}, length={length}, alignment={alignment}, buffer \
             length={})",
            self.len
        )
    }
}

/// What a buffer costs beyond its bytes, so that a budget also bounds the number of empty buffers.
const OVERHEAD: u64 = 128;

fn out_of_memory(len: u64) -> Status {
    status!(ResourceExhausted, "no memory for a buffer of {len} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_status::Code;

    #[test]
    fn bounds_speak_of_bytes() {
        let b = Buffer::from_vec(vec![0; 8]);
        let e = b.load::<4>(8).unwrap_err();
        assert_eq!(
            e.message(),
            "out-of-bounds access detected (offset=32, length=4, alignment=4, buffer length=8)"
        );
        for index in [2, u64::MAX, u64::MAX / 4 + 1] {
            assert_eq!(b.load::<4>(index).unwrap_err().code(), Code::OutOfRange);
            assert_eq!(b.store::<4>(index, [0; 4]).unwrap_err().code(), Code::OutOfRange);
            assert_eq!(b.fill::<4>(index, 1, [0; 4]).unwrap_err().code(), Code::OutOfRange);
        }
        b.fill::<2>(1, 3, [1, 2]).unwrap();
        assert_eq!(b.to_bytes()[..], [0, 0, 1, 2, 1, 2, 1, 2]);
        assert!(b.fill::<2>(1, 4, [1, 2]).is_err());
    }

    #[test]
    fn constants_refuse_writes_and_share() {
        let b = Buffer::from_bytes(Bytes::from_static(b"abcdef"));
        assert_eq!(b.store::<1>(0, [0]).unwrap_err().code(), Code::PermissionDenied);
        let m = Buffer::from_vec(vec![0; 6]);
        b.copy_to(1, &m, 2, 4).unwrap();
        assert_eq!(m.to_bytes()[..], *b"\0\0bcde");
        m.copy_to(2, &m, 0, 4).unwrap();
        assert_eq!(m.to_bytes()[..], *b"bcdede");
        assert_eq!(m.copy_to(0, &b, 0, 1).unwrap_err().code(), Code::PermissionDenied);
        assert!(b.equal(1, &m, 0, 4).unwrap() && !b.equal(0, &m, 0, 4).unwrap());
        let n = Buffer::from_vec(vec![7; 4]);
        n.copy_to(0, &m, 1, 2).unwrap();
        m.copy_to(0, &n, 0, 4).unwrap();
        assert_eq!(n.to_bytes()[..], [b'b', 7, 7, b'e']);
    }
}
