//! Buffers: the trait that drivers implement, what a buffer is asked to be, and ranges of one.

use std::{any::Any, fmt, sync::Arc};

use bytes::Bytes;

use crate::{BufferUsage, MemoryAccess, MemoryType, QueueAffinity, Result, bail, status};

/// Length that means "to the end of the buffer" in the HAL ABI (-1 as i64).
pub const WHOLE_BUFFER: u64 = u64::MAX;

/// What a buffer is asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferParams {
    /// Bits that the memory must at least have.
    pub memory_type: MemoryType,
    /// What the buffer may be used for.
    pub usage: BufferUsage,
    /// Queues that use it.
    pub affinity: QueueAffinity,
}

impl BufferParams {
    /// Device-local memory for transfers and dispatches: what tensors use.
    pub const DEVICE: BufferParams = BufferParams {
        memory_type: MemoryType::DEVICE_LOCAL,
        usage: BufferUsage::DEFAULT,
        affinity: QueueAffinity::ANY,
    };

    /// Host memory that the host writes and the device copies from.
    pub const PINNED: BufferParams = BufferParams {
        memory_type: MemoryType::HOST_VISIBLE
            .union(MemoryType::HOST_COHERENT)
            .union(MemoryType::DEVICE_VISIBLE),
        usage: BufferUsage::TRANSFER_SOURCE
            .union(BufferUsage::MAPPING_PERSISTENT)
            .union(BufferUsage::MAPPING_ACCESS_RANDOM),
        affinity: QueueAffinity::ANY,
    };

    /// Host memory that the device writes and the host reads.
    pub const READBACK: BufferParams = BufferParams {
        memory_type: MemoryType::HOST_VISIBLE
            .union(MemoryType::HOST_CACHED)
            .union(MemoryType::DEVICE_VISIBLE),
        usage: BufferUsage::TRANSFER_TARGET
            .union(BufferUsage::MAPPING_SCOPED)
            .union(BufferUsage::MAPPING_ACCESS_RANDOM),
        affinity: QueueAffinity::ANY,
    };
}

/// The first bytes of a buffer, as a copy.
///
/// # Errors
/// There is no room for them, or the device fails.
pub fn read_all<B: Buffer + ?Sized>(buffer: &B, length: u64) -> Result<Bytes> {
    let mut bytes = room(length)?;
    buffer.read(0, &mut bytes)?;
    Ok(bytes.into())
}

/// Zeros in host memory, or the error that there is no room for them.
fn room(length: u64) -> Result<Vec<u8>> {
    let none = || status!(ResourceExhausted, "{length} bytes do not fit in host memory");
    let size = usize::try_from(length).map_err(|_| none())?;
    halite_abi::room::zeros(size).map_err(|_| none())
}

/// A whole allocation on one device. Sub-ranges are [`BufferSpan`]s.
///
/// Dropping the last reference gives the memory back once all queue work that was submitted with the buffer has
/// finished; a driver must not free memory that its queues still use.
pub trait Buffer: fmt::Debug + Send + Sync + 'static {
    /// Identity of the device that made it ([`crate::Device::id`]).
    fn device_id(&self) -> u64;

    /// Logical size in bytes. Drivers pad the memory behind it to at least the next multiple of [`halite_abi::BUFFER_PADDING`], so a
    /// kernel may read (and write back) the last partial word.
    fn byte_length(&self) -> u64;

    /// The memory type it really has: at least the bits asked for.
    fn memory_type(&self) -> MemoryType;

    /// What it may be used for.
    fn usage(&self) -> BufferUsage;

    /// What the program may do to it.
    fn access(&self) -> MemoryAccess {
        MemoryAccess::ANY
    }

    /// Copies bytes at `offset` to the host. Blocks; the caller makes sure that no queued work still writes them.
    /// Works for any memory: mapped where the host can see it, through a staging copy where it cannot.
    fn read(&self, offset: u64, target: &mut [u8]) -> Result<()>;

    /// Copies bytes from the host to `offset`: when it returns, `source` may change, and reads of the host and queue operations that come
    /// later find them. Whether the device has them by then is the driver's affair. May block; the caller makes sure that no queued work
    /// still uses what was there.
    fn write(&self, offset: u64, source: &[u8]) -> Result<()>;

    /// All bytes, of a buffer that nobody uses any more: the caller's is the last handle, and no queued work is left. Without a copy where
    /// the driver can give the memory away, and the same as [`Buffer::read`] otherwise.
    fn into_bytes(self: Arc<Self>) -> Result<Bytes> {
        let length = self.byte_length();
        read_all(self.as_ref(), length)
    }

    /// Copies the first `length` bytes of another buffer of the device to `offset`, as [`Buffer::write`] copies those of the host. The device
    /// may read them later: [`Buffer::bytes_mut`] of the other buffer waits for that.
    fn write_from(&self, offset: u64, source: &dyn Buffer, length: u64) -> Result<()> {
        let mut bytes = room(length)?;
        source.read(0, &mut bytes)?;
        self.write(offset, &bytes)
    }

    /// All bytes, to be written where they lie, of a buffer that nobody else has a handle of; the host reads and writes them as its own
    /// memory, and the device finds what was written. Waits for what [`Buffer::write_from`] began. `None` where the memory is not
    /// such, or other queued work uses it.
    fn bytes_mut(&mut self) -> Result<Option<&mut [u8]>> {
        Ok(None)
    }

    /// Address of the first byte in host memory when the buffer is persistently mapped, for drivers that work on
    /// host memory. Valid as long as the buffer lives; accesses through it are unsynchronised.
    fn host_address(&self) -> Option<*mut u8> {
        None
    }

    /// The driver's own type, for downcasts inside that driver.
    fn as_any(&self) -> &dyn Any;
}

impl dyn Buffer + '_ {
    /// OUT_OF_RANGE when a range does not lie in the buffer. Its length is a number of bytes, never [`WHOLE_BUFFER`];
    /// `what` names it in the message.
    pub fn check_bounds(&self, what: &str, offset: u64, length: u64) -> Result<()> {
        let limit = self.byte_length();
        if offset.checked_add(length).is_none_or(|end| end > limit) {
            bail!(
                OutOfRange,
                "{what} covers {length} bytes at offset {offset}, beyond the {limit} bytes that exist"
            );
        }
        Ok(())
    }

    /// PERMISSION_DENIED when the buffer does not allow this access; `what` names who asks.
    pub fn check_access(&self, what: &str, needed: MemoryAccess) -> Result<()> {
        let access = self.access();
        if access.intersects(MemoryAccess::ANY | needed) {
            return Ok(());
        }
        bail!(PermissionDenied, "{what} needs {needed} access to a buffer that allows {access}")
    }
}

/// A byte range of a buffer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BufferSpan {
    /// The allocation.
    pub buffer: Arc<dyn Buffer>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl BufferSpan {
    /// All of a buffer.
    pub fn whole(buffer: Arc<dyn Buffer>) -> Self {
        let length = buffer.byte_length();
        BufferSpan { buffer, offset: 0, length }
    }

    /// A range inside this one; `length` may be [`WHOLE_BUFFER`] for the rest. OUT_OF_RANGE when it does not fit.
    pub fn subspan(&self, offset: u64, length: u64) -> Result<Self> {
        let rest = self.length.checked_sub(offset).ok_or_else(|| self.range_error(offset, length))?;
        let length = if length == WHOLE_BUFFER { rest } else { length };
        if length > rest {
            return Err(self.range_error(offset, length));
        }
        let offset = self.offset.checked_add(offset).ok_or_else(|| self.range_error(offset, length))?;
        Ok(BufferSpan { buffer: self.buffer.clone(), offset, length })
    }

    fn range_error(&self, offset: u64, length: u64) -> crate::Status {
        status!(
            OutOfRange,
            "attempted to access an address outside of the valid buffer range (offset={offset}, \
             length={length}, buffer byte_length={})",
            self.length
        )
    }

    /// Host access to the span: bounds and access bits.
    fn check_host_access(&self, access: MemoryAccess) -> Result<()> {
        self.buffer.check_bounds("host access", self.offset, self.length)?;
        self.buffer.check_access("host access", access)
    }

    /// Reads from `offset` within the span; blocks. OUT_OF_RANGE outside of span or buffer, PERMISSION_DENIED when
    /// the buffer's access bits forbid it.
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let span = self.subspan(offset, target.len() as u64)?;
        span.check_host_access(MemoryAccess::READ)?;
        span.buffer.read(span.offset, target)
    }

    /// Reads the whole span; blocks. RESOURCE_EXHAUSTED when the host has no memory for it.
    pub fn read_all(&self) -> Result<Vec<u8>> {
        self.check_host_access(MemoryAccess::READ)?;
        let mut bytes = room(self.length)?;
        self.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes at `offset` within the span; blocks. Errors as for [`BufferSpan::read`].
    pub fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        let span = self.subspan(offset, source.len() as u64)?;
        span.check_host_access(MemoryAccess::WRITE)?;
        span.buffer.write(span.offset, source)
    }

    /// Whether both spans address the same bytes of the same allocation.
    pub fn same_range(&self, other: &BufferSpan) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer) && self.offset == other.offset && self.length == other.length
    }
}
