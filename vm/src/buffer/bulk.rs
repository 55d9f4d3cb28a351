//! What a buffer does with ranges of bytes together with another buffer: copies, comparisons.

use std::{hash::Hasher, ops::Range, sync::Arc};

use halite_abi::{Result, status};
use parking_lot::RwLock;

use super::{
    Buffer, Storage,
    host_memory::{self, HostMemory},
    read_only,
};
use crate::memory::Memory;

impl Buffer {
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
        match (&self.storage, &target.storage) {
            (_, Storage::Constant(_)) => return Err(read_only()),
            (Storage::Host(a), Storage::Host(b)) => copy_owned(a, from, b, to),
            (Storage::Constant(source), Storage::Host(b)) => b.write()[to].copy_from_slice(&source[from]),
            (Storage::Foreign(a), Storage::Host(b)) => return a.load(offset, &mut b.write()[to]),
            (Storage::Host(a), Storage::Foreign(b)) => return b.store(target_offset, &a.read()[from]),
            (Storage::Constant(source), Storage::Foreign(b)) => {
                return b.store(target_offset, &source[from]);
            }
            (Storage::Foreign(a), Storage::Foreign(b)) => {
                return host_memory::copy(a.as_ref(), offset, b.as_ref(), target_offset, length);
            }
        }
        Ok(())
    }

    /// Whether two byte ranges hold the same bytes.
    pub(crate) fn equal(&self, offset: u64, other: &Buffer, other_offset: u64, length: u64) -> Result<bool> {
        let mine = self.range(offset, length, 1)?;
        let theirs = other.range(other_offset, length, 1)?;
        Ok(match (&self.storage, &other.storage) {
            (Storage::Foreign(a), Storage::Foreign(b)) => {
                return host_memory::equal(a.as_ref(), offset, b.as_ref(), other_offset, length);
            }
            (Storage::Foreign(memory), _) => return other.equal_foreign(theirs, memory.as_ref(), offset),
            (_, Storage::Foreign(memory)) => return self.equal_foreign(mine, memory.as_ref(), other_offset),
            (Storage::Constant(a), Storage::Constant(b)) => a[mine] == b[theirs],
            (Storage::Constant(a), Storage::Host(b)) => a[mine] == b.read()[theirs],
            (Storage::Host(a), Storage::Constant(b)) => a.read()[mine] == b[theirs],
            (Storage::Host(a), Storage::Host(b)) => equal_owned(a, mine, b, theirs),
        })
    }

    /// Whether a range of this buffer, which is not foreign, holds the same bytes as foreign memory at `offset`.
    fn equal_foreign(&self, range: Range<usize>, memory: &dyn HostMemory, offset: u64) -> Result<bool> {
        let compare = |bytes: &[u8]| {
            let same = |done: u64, theirs: &[u8]| bytes[done as usize..].starts_with(theirs);
            host_memory::all(memory, offset, bytes.len() as u64, same)
        };
        match &self.storage {
            Storage::Constant(bytes) => compare(&bytes[range]),
            Storage::Host(bytes) => compare(&bytes.read()[range]),
            Storage::Foreign(_) => Err(status!(Internal, "the buffer is foreign memory itself")),
        }
    }

    /// Feeds a byte range to a hasher.
    pub(crate) fn hash(&self, offset: u64, length: u64, hasher: &mut impl Hasher) -> Result<()> {
        let range = self.range(offset, length, 1)?;
        match &self.storage {
            Storage::Constant(bytes) => hasher.write(&bytes[range]),
            Storage::Host(bytes) => hasher.write(&bytes.read()[range]),
            Storage::Foreign(memory) => {
                let feed = |_, bytes: &[u8]| {
                    hasher.write(bytes);
                    true
                };
                host_memory::all(memory.as_ref(), offset, length, feed)?;
            }
        }
        Ok(())
    }

    /// A mutable copy of a byte range.
    pub(crate) fn clone_range(&self, offset: u64, length: u64, memory: &Arc<Memory>) -> Result<Buffer> {
        self.range(offset, length, 1)?;
        let copy = Buffer::allocate(length, memory)?;
        self.copy_to(offset, &copy, 0, length)?;
        Ok(copy)
    }
}

/// Copies between buffers that own their bytes. Two contexts may copy in opposite directions: locks are taken in address
/// order.
fn copy_owned(a: &RwLock<Vec<u8>>, from: Range<usize>, b: &RwLock<Vec<u8>>, to: Range<usize>) {
    match std::ptr::from_ref(a).cmp(&std::ptr::from_ref(b)) {
        std::cmp::Ordering::Equal => b.write().copy_within(from, to.start),
        std::cmp::Ordering::Less => {
            let source = a.read();
            b.write()[to].copy_from_slice(&source[from]);
        }
        std::cmp::Ordering::Greater => {
            let mut sink = b.write();
            sink[to].copy_from_slice(&a.read()[from]);
        }
    }
}

/// Compares ranges of buffers that own their bytes, with locks in address order.
fn equal_owned(a: &RwLock<Vec<u8>>, mine: Range<usize>, b: &RwLock<Vec<u8>>, theirs: Range<usize>) -> bool {
    match std::ptr::from_ref(a).cmp(&std::ptr::from_ref(b)) {
        std::cmp::Ordering::Equal => {
            let bytes = a.read();
            bytes[mine] == bytes[theirs]
        }
        std::cmp::Ordering::Less => {
            let a = a.read();
            a[mine] == b.read()[theirs]
        }
        std::cmp::Ordering::Greater => {
            let b = b.read();
            a.read()[mine] == b[theirs]
        }
    }
}
