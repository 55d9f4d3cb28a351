//! Buffers: host memory behind a handle, and access from the host.

use std::{any::Any, fmt, sync::Arc};

use halite_abi::{Result, Status, status};
use halite_hal::{Buffer, BufferParams, BufferUsage, MemoryType};
use parking_lot::Mutex;

use crate::{
    code::HostRange,
    memory::{Block, Memory},
};

/// Where a buffer's bytes are.
#[derive(Debug)]
enum Storage {
    /// Queue order has not come to the allocation yet.
    Promised,
    /// Here.
    Live(Block),
    /// Given back in queue order; the handle is all that is left.
    GivenBack,
}

/// An allocation. Host access locks the storage, so that it cannot be given back meanwhile; queue work does not,
/// because giving back is queue work too.
pub(crate) struct LocalBuffer {
    device_id: u64,
    params: BufferParams,
    byte_length: u64,
    memory: Arc<Memory>,
    storage: Mutex<Storage>,
}

impl LocalBuffer {
    /// A buffer with memory. RESOURCE_EXHAUSTED when there is none.
    pub fn new(
        device_id: u64,
        memory: &Arc<Memory>,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Self> {
        let buffer = Self::promised(device_id, memory, params, byte_length)?;
        buffer.make_live()?;
        Ok(buffer)
    }

    /// A buffer that gets its memory by [`LocalBuffer::make_live`].
    pub fn promised(
        device_id: u64,
        memory: &Arc<Memory>,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Self> {
        memory.check_length(byte_length)?;
        let storage = Mutex::new(Storage::Promised);
        Ok(LocalBuffer { device_id, params: *params, byte_length, memory: memory.clone(), storage })
    }

    /// Takes the memory of a promised buffer; others are left alone.
    pub fn make_live(&self) -> Result<()> {
        let mut storage = self.storage.lock();
        if matches!(*storage, Storage::Promised) {
            *storage = Storage::Live(self.memory.take(self.byte_length)?);
        }
        Ok(())
    }

    /// Gives the memory back; the handle stays. Harmless when repeated.
    pub fn give_back(&self) {
        let storage = std::mem::replace(&mut *self.storage.lock(), Storage::GivenBack);
        if let Storage::Live(block) = storage {
            self.memory.give_back(block);
        }
    }

    /// The bytes. Valid as long as the buffer lives and no queue operation gives its memory back.
    pub fn range(&self) -> Result<HostRange> {
        range(&self.storage.lock(), self.byte_length)
    }

    /// Runs `access` on a part of the memory, which stays where it is meanwhile.
    fn access(&self, offset: u64, length: usize, access: impl FnOnce(HostRange)) -> Result<()> {
        let storage = self.storage.lock();
        if length == 0 && offset <= self.byte_length {
            return Ok(());
        }
        access(range(&storage, self.byte_length)?.part(offset, length as u64)?);
        Ok(())
    }
}

fn range(storage: &Storage, byte_length: u64) -> Result<HostRange> {
    match storage {
        Storage::Live(block) => Ok(block.range(usize::try_from(byte_length).unwrap_or(usize::MAX))),
        Storage::Promised => Err(status!(
            FailedPrecondition,
            "the buffer's memory does not exist yet: wait for the fence that its allocation signals"
        )),
        Storage::GivenBack => Err(given_back()),
    }
}

fn given_back() -> Status {
    status!(FailedPrecondition, "the buffer's memory was given back by dealloca; only its handle is left")
}

impl Drop for LocalBuffer {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl fmt::Debug for LocalBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalBuffer({} bytes, {})", self.byte_length, self.params.usage)
    }
}

impl Buffer for LocalBuffer {
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

    fn read(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        self.access(offset, target.len(), |range| {
            // SAFETY: `range` is live memory of `target.len()` bytes, and `target` is memory of its own. Whoever reads
            // while queued work writes gets some mixture of bytes, as the trait says.
            unsafe { range.pointer.copy_to_nonoverlapping(target.as_mut_ptr(), target.len()) };
        })
    }

    fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        self.access(offset, source.len(), |range| {
            // SAFETY: as for reading.
            unsafe { range.pointer.copy_from_nonoverlapping(source.as_ptr(), source.len()) };
        })
    }

    fn bytes_mut(&mut self) -> Result<Option<&mut [u8]>> {
        let Storage::Live(block) = self.storage.get_mut() else { return Ok(None) };
        let length = usize::try_from(self.byte_length).unwrap_or(usize::MAX);
        let range = block.range(length);
        // SAFETY: the memory is that of this buffer, which queued work holds while it uses it: nobody else has a handle, so none does.
        Ok(Some(unsafe { std::slice::from_raw_parts_mut(range.pointer, length) }))
    }

    fn host_address(&self) -> Option<*mut u8> {
        self.range().ok().map(|range| range.pointer)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
