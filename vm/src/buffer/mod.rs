//! `!vm.buffer`: host bytes, either constant, or mutable and its own, or mutable and somebody else's.

mod bulk;
mod host_memory;

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use halite_abi::{Result, Status, status};
use parking_lot::RwLock;

use crate::{
    Object,
    memory::{Memory, Reservation},
};

pub use host_memory::HostMemory;

/// A byte buffer of the VM. Constant ones alias module data; mutable ones own their bytes behind a lock, or stand for
/// host memory that somebody else owns. The length never changes.
#[derive(Debug)]
pub struct Buffer {
    storage: Storage,
    len: u64,
    _charge: Reservation,
}

enum Storage {
    Constant(Bytes),
    Host(RwLock<Vec<u8>>),
    Foreign(Arc<dyn HostMemory>),
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Storage::Constant(_) => "constant",
            Storage::Host(_) => "mutable",
            Storage::Foreign(_) => "foreign",
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

    /// A mutable buffer over memory that somebody else owns; nothing is copied.
    pub fn from_host_memory(memory: Arc<dyn HostMemory>) -> Self {
        Buffer { len: memory.len(), storage: Storage::Foreign(memory), _charge: Reservation::default() }
    }

    /// A mutable zero-filled buffer out of a budget. RESOURCE_EXHAUSTED when budget or memory are spent.
    pub(crate) fn allocate(len: u64, memory: &Arc<Memory>) -> Result<Self> {
        let charge = memory.reserve(len.saturating_add(OVERHEAD), "buffer.alloc")?;
        let bytes = zeros(len)?;
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

    /// Copies `target.len()` bytes at `offset` to `target`. OUT_OF_RANGE when they do not exist.
    pub fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let range = self.range(offset, target.len() as u64, 1)?;
        match &self.storage {
            Storage::Constant(bytes) => target.copy_from_slice(&bytes[range]),
            Storage::Host(bytes) => target.copy_from_slice(&bytes.read()[range]),
            Storage::Foreign(memory) => return memory.load(offset, target),
        }
        Ok(())
    }

    /// Copies `source` to `offset`. OUT_OF_RANGE when it does not fit, PERMISSION_DENIED for a constant buffer.
    pub fn write_at(&self, offset: u64, source: &[u8]) -> Result<()> {
        let range = self.range(offset, source.len() as u64, 1)?;
        match &self.storage {
            Storage::Constant(_) => return Err(read_only()),
            Storage::Host(bytes) => bytes.write()[range].copy_from_slice(source),
            Storage::Foreign(memory) => return memory.store(offset, source),
        }
        Ok(())
    }

    /// A range of the content: shared when constant, copied when mutable. OUT_OF_RANGE when it does not exist.
    pub fn slice(&self, offset: u64, length: u64) -> Result<Bytes> {
        let range = self.range(offset, length, 1)?;
        Ok(match &self.storage {
            Storage::Constant(bytes) => bytes.slice(range),
            Storage::Host(bytes) => Bytes::copy_from_slice(&bytes.read()[range]),
            Storage::Foreign(memory) => {
                let mut copy = zeros(length)?;
                memory.load(offset, &mut copy)?;
                copy.into()
            }
        })
    }

    /// The whole content: shared when constant, copied when mutable.
    pub fn to_bytes(&self) -> Result<Bytes> {
        self.slice(0, self.len)
    }

    /// Element `index` of width `N`.
    #[inline]
    pub(crate) fn load<const N: usize>(&self, index: u64) -> Result<[u8; N]> {
        let element = |bytes: &[u8]| {
            let start = usize::try_from(index).ok()?.checked_mul(N)?;
            bytes.get(start..)?.first_chunk::<N>().copied()
        };
        let loaded = match &self.storage {
            Storage::Host(bytes) => element(&bytes.read()),
            Storage::Constant(bytes) => element(bytes),
            Storage::Foreign(memory) => match self.element_offset::<N>(index) {
                Some(offset) => {
                    let mut value = [0; N];
                    memory.load(offset, &mut value)?;
                    Some(value)
                }
                None => None,
            },
        };
        loaded.ok_or_else(|| self.out_of_bounds(index.saturating_mul(N as u64), N as u64, N as u64))
    }

    /// Sets element `index` of width `N`.
    #[inline]
    pub(crate) fn store<const N: usize>(&self, index: u64, value: [u8; N]) -> Result<()> {
        let stored = match &self.storage {
            Storage::Host(bytes) => (|bytes: &mut [u8]| {
                let start = usize::try_from(index).ok()?.checked_mul(N)?;
                *bytes.get_mut(start..)?.first_chunk_mut::<N>()? = value;
                Some(())
            })(&mut bytes.write()),
            Storage::Constant(_) => return Err(read_only()),
            Storage::Foreign(memory) => match self.element_offset::<N>(index) {
                Some(offset) => return memory.store(offset, &value),
                None => None,
            },
        };
        stored.ok_or_else(|| self.out_of_bounds(index.saturating_mul(N as u64), N as u64, N as u64))
    }

    /// Where element `index` of width `N` begins, if all of it exists.
    #[inline]
    fn element_offset<const N: usize>(&self, index: u64) -> Option<u64> {
        let offset = index.checked_mul(N as u64)?;
        (offset.checked_add(N as u64)? <= self.len).then_some(offset)
    }

    /// Sets `count` elements of width `N` from element `index` on.
    pub(crate) fn fill<const N: usize>(&self, index: u64, count: u64, value: [u8; N]) -> Result<()> {
        let (offset, length) = (index.saturating_mul(N as u64), count.saturating_mul(N as u64));
        let range = self.range(offset, length, N as u64)?;
        match &self.storage {
            Storage::Constant(_) => return Err(read_only()),
            Storage::Host(bytes) => {
                bytes.write()[range].chunks_exact_mut(N).for_each(|c| c.copy_from_slice(&value));
            }
            Storage::Foreign(memory) => return memory.fill(offset, length, &value),
        }
        Ok(())
    }

    /// Checks a byte range.
    fn range(&self, offset: u64, length: u64, alignment: u64) -> Result<Range<usize>> {
        let end = offset.checked_add(length).filter(|end| *end <= self.len);
        let range = end.and_then(|end| Some(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
        range.ok_or_else(|| self.out_of_bounds(offset, length, alignment))
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

fn zeros(len: u64) -> Result<Vec<u8>> {
    let size = usize::try_from(len).map_err(|_| out_of_memory(len))?;
    halite_abi::room::zeros(size).map_err(|_| out_of_memory(len))
}

fn out_of_memory(len: u64) -> Status {
    status!(ResourceExhausted, "no memory for a buffer of {len} bytes")
}

#[cold]
fn read_only() -> Status {
    status!(PermissionDenied, "the buffer is read-only; buffer.clone makes a mutable copy")
}

#[cfg(test)]
mod tests;
