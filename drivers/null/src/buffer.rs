//! Buffers and the account of their memory.

use std::{any::Any, fmt, sync::Arc};

use bytes::Bytes;
use halite_abi::{BUFFER_PADDING, Result, bail, status};
use halite_hal::{Buffer, BufferParams, BufferUsage, MemoryAccess, MemoryStats, MemoryType};
use parking_lot::Mutex;

/// Bytes that a copy holds at a time.
const CHUNK: usize = 64 * 1024;

/// The device's memory: a limit and what is taken of it. Storage itself comes from the process's heap.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: u64,
    stats: Mutex<MemoryStats>,
}

impl Memory {
    /// Memory of this many bytes.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Memory { limit, stats: Mutex::default() })
    }

    /// What is taken now and was at most.
    pub(crate) fn stats(&self) -> MemoryStats {
        *self.stats.lock()
    }

    fn take(&self, bytes: u64) -> Result<()> {
        let mut stats = self.stats.lock();
        let Some(used) = stats.used.checked_add(bytes).filter(|used| *used <= self.limit) else {
            bail!(
                ResourceExhausted,
                "{bytes} bytes asked of the null device's memory, {} of its {} bytes are in use; raise the limit \
                 with '?memory=BYTES'",
                stats.used,
                self.limit
            );
        };
        stats.used = used;
        stats.reserved = used;
        stats.peak_used = stats.peak_used.max(used);
        stats.peak_reserved = stats.peak_used;
        stats.allocation_count += 1;
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        let mut stats = self.stats.lock();
        stats.used = stats.used.saturating_sub(bytes);
        stats.reserved = stats.used;
    }
}

/// Where a buffer's bytes are.
enum Storage {
    /// Nobody has written yet: all bytes read as zero.
    Untouched,
    /// Host memory of the buffer's length.
    Bytes(Vec<u8>),
    /// Memory of others, which is only read.
    Lent(Bytes),
    /// Given back in queue order; the handle is all that is left.
    GivenBack,
}

/// An allocation. Its storage is made by the first write.
pub(crate) struct NullBuffer {
    device_id: u64,
    params: BufferParams,
    byte_length: u64,
    memory: Arc<Memory>,
    storage: Mutex<Storage>,
}

impl NullBuffer {
    /// Takes `byte_length` bytes of the memory. RESOURCE_EXHAUSTED when they are not there.
    pub(crate) fn new(
        device_id: u64,
        memory: &Arc<Memory>,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Self> {
        memory.take(byte_length)?;
        Ok(NullBuffer {
            device_id,
            params: *params,
            byte_length,
            memory: memory.clone(),
            storage: Mutex::new(Storage::Untouched),
        })
    }

    /// A buffer over memory of others. It takes none of the device's.
    pub(crate) fn lent(device_id: u64, memory: &Arc<Memory>, params: &BufferParams, bytes: Bytes) -> Self {
        let byte_length = bytes.len() as u64 / BUFFER_PADDING * BUFFER_PADDING;
        let (memory, storage) = (memory.clone(), Mutex::new(Storage::Lent(bytes)));
        NullBuffer { device_id, params: *params, byte_length, memory, storage }
    }

    /// Gives the memory back; the handle stays. Harmless when repeated.
    pub(crate) fn give_back(&self) {
        let mut storage = self.storage.lock();
        match std::mem::replace(&mut *storage, Storage::GivenBack) {
            Storage::GivenBack | Storage::Lent(_) => {}
            Storage::Untouched | Storage::Bytes(_) => self.memory.give_back(self.byte_length),
        }
    }

    /// Repeats the low `pattern_length` bytes of `pattern` over a range.
    pub(crate) fn fill(&self, offset: u64, length: u64, pattern: u64, pattern_length: usize) -> Result<()> {
        let bytes = pattern.to_le_bytes();
        let Some(pattern) = bytes.get(..pattern_length).filter(|p| !p.is_empty()) else {
            bail!(InvalidArgument, "fill patterns have 1 to 8 bytes, not {pattern_length}");
        };
        self.modify(offset, length, |target| {
            for chunk in target.chunks_mut(pattern.len()) {
                chunk.copy_from_slice(&pattern[..chunk.len()]);
            }
        })
    }

    /// Copies from another buffer, or from a range of this one that does not overlap. Holds one lock at a time, so
    /// that copies in opposite directions cannot block each other.
    pub(crate) fn copy_from(&self, source: &NullBuffer, from: u64, to: u64, length: u64) -> Result<()> {
        let mut chunk = vec![0; CHUNK.min(usize::try_from(length).unwrap_or(CHUNK))];
        let mut done = 0;
        while done < length {
            let step = (length - done).min(CHUNK as u64);
            let part = &mut chunk[..step as usize];
            source.read(from.saturating_add(done), part)?;
            self.write(to.saturating_add(done), part)?;
            done += step;
        }
        Ok(())
    }

    /// Runs `change` on a range, with storage behind it.
    fn modify(&self, offset: u64, length: u64, change: impl FnOnce(&mut [u8])) -> Result<()> {
        let range = self.range(offset, length)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut storage = self.storage.lock();
        if matches!(*storage, Storage::Untouched) {
            *storage = Storage::Bytes(self.zeros()?);
        }
        match &mut *storage {
            Storage::Bytes(bytes) => {
                change(&mut bytes[range]);
                Ok(())
            }
            Storage::Lent(_) => Err(status!(PermissionDenied, "memory of others is only read")),
            _ => Err(given_back()),
        }
    }

    fn zeros(&self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.byte_length).unwrap_or(usize::MAX);
        halite_abi::room::zeros(length)
            .map_err(|e| status!(ResourceExhausted, "host memory for a buffer of {length} bytes: {e}"))
    }

    fn range(&self, offset: u64, length: u64) -> Result<std::ops::Range<usize>> {
        let end = offset.checked_add(length).filter(|end| *end <= self.byte_length);
        let range = end.and_then(|end| Some(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
        range.ok_or_else(|| {
            status!(
                OutOfRange,
                "{length} bytes at offset {offset} lie outside of a buffer of {} bytes",
                self.byte_length
            )
        })
    }
}

fn given_back() -> halite_abi::Status {
    status!(FailedPrecondition, "the buffer's memory was given back by dealloca; only its handle is left")
}

impl Drop for NullBuffer {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl fmt::Debug for NullBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NullBuffer({} bytes, {})", self.byte_length, self.params.usage)
    }
}

impl Buffer for NullBuffer {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn byte_length(&self) -> u64 {
        self.byte_length
    }

    fn memory_type(&self) -> MemoryType {
        self.params.memory_type | MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE
    }

    fn usage(&self) -> BufferUsage {
        self.params.usage
    }

    fn access(&self) -> MemoryAccess {
        match *self.storage.lock() {
            Storage::Lent(_) => MemoryAccess::READ,
            _ => MemoryAccess::ANY,
        }
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let range = self.range(offset, target.len() as u64)?;
        match &*self.storage.lock() {
            Storage::Bytes(bytes) => target.copy_from_slice(&bytes[range]),
            Storage::Lent(bytes) => target.copy_from_slice(&bytes[range]),
            Storage::Untouched => target.fill(0),
            Storage::GivenBack if range.is_empty() => {}
            Storage::GivenBack => return Err(given_back()),
        }
        Ok(())
    }

    fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        self.modify(offset, source.len() as u64, |target| target.copy_from_slice(source))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
