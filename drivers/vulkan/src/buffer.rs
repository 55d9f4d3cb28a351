//! The driver's buffers: a handle for the program over an allocation that it may give back early.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use halite_hal::{Buffer, BufferParams, BufferUsage, MemoryAccess, MemoryType, Result, read_all, status};
use parking_lot::Mutex;

use crate::{allocator::Allocation, device::Core, lower::MemoryRange, semaphore::QueuePoint};

/// Mapped but uncached memory is read directly up to this many bytes; beyond, a copy by the device is faster.
const UNCACHED_READ: usize = 128;

/// A buffer of this driver.
pub(crate) struct VulkanBuffer {
    core: Arc<Core>,
    byte_length: u64,
    memory_type: MemoryType,
    usage: BufferUsage,
    host_address: Option<HostAddress>,
    storage: Mutex<Option<Arc<Allocation>>>,
    access: MemoryAccess,
    /// Whether others have the memory, which it is shared with.
    outside: AtomicBool,
    /// The last copy from here that nobody waited for.
    read: Mutex<Option<QueuePoint>>,
}

/// The first byte of mapped memory.
struct HostAddress(*mut u8);

// SAFETY: the address is only handed out; accesses through it are the business of those who use it.
unsafe impl Send for HostAddress {}
// SAFETY: as for `Send`; it never changes.
unsafe impl Sync for HostAddress {}

impl VulkanBuffer {
    /// A handle over an allocation that has at least `byte_length` bytes.
    pub fn new(core: Arc<Core>, params: &BufferParams, byte_length: u64, storage: Arc<Allocation>) -> Self {
        VulkanBuffer {
            core,
            byte_length,
            memory_type: storage.memory_type(),
            usage: params.usage,
            host_address: storage.host_address().map(HostAddress),
            storage: Mutex::new(Some(storage)),
            access: MemoryAccess::ANY,
            outside: AtomicBool::new(false),
            read: Mutex::default(),
        }
    }

    /// A handle over memory of others, who have it still. Only reads are allowed of what is `constant`.
    pub fn imported(
        core: Arc<Core>,
        params: &BufferParams,
        byte_length: u64,
        storage: Arc<Allocation>,
        constant: bool,
    ) -> Self {
        let access = if constant { MemoryAccess::READ } else { MemoryAccess::ANY };
        VulkanBuffer {
            access,
            outside: AtomicBool::new(true),
            ..Self::new(core, params, byte_length, storage)
        }
    }

    /// Notes who has the memory, if it is shared with others: they (`outside`), or this device. The memory and their queue family, where
    /// that changes and others' caches are between.
    pub fn hand_over(&self, outside: bool) -> Option<(Arc<Allocation>, u32)> {
        let storage = self.storage.lock().clone()?;
        let imported = self.access == MemoryAccess::READ;
        if storage.block.other_owner.is_none() && !imported {
            return None;
        }
        let changed = self.outside.swap(outside, Ordering::AcqRel) != outside;
        let owner = storage.block.other_owner.filter(|_| changed)?;
        Some((storage, owner))
    }

    /// The memory, whoever has it. FAILED_PRECONDITION after it was given back in queue order.
    pub fn kept(&self) -> Result<Arc<Allocation>> {
        self.storage.lock().clone().ok_or_else(|| {
            status!(
                FailedPrecondition,
                "the memory of this buffer of {} bytes was given back by a dealloca; allocate a new one",
                self.byte_length
            )
        })
    }

    /// The memory, for work of this device. FAILED_PRECONDITION after it was given back in queue order.
    pub fn storage(&self) -> Result<Arc<Allocation>> {
        if self.outside.load(Ordering::Acquire) {
            return Err(status!(
                FailedPrecondition,
                "the memory of this buffer of {} bytes is with those that it is shared with; acquire it first",
                self.byte_length
            ));
        }
        self.kept()
    }

    /// Takes the memory away from the handle.
    pub fn take_storage(&self) -> Option<Arc<Allocation>> {
        self.storage.lock().take()
    }

    fn check(&self, offset: u64, length: usize) -> Result<()> {
        self.core.ctx.check_process()?;
        match offset.checked_add(length as u64) {
            Some(end) if end <= self.byte_length => Ok(()),
            _ => Err(status!(
                OutOfRange,
                "host access of {length} bytes at {offset} is outside of a buffer of {} bytes",
                self.byte_length
            )),
        }
    }
}

impl fmt::Debug for VulkanBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage = self.storage.lock();
        f.debug_struct("VulkanBuffer")
            .field("byte_length", &self.byte_length)
            .field("memory_type", &self.memory_type)
            .field("place", &storage.as_ref().map(|s| (s.block.id, s.offset)))
            .finish_non_exhaustive()
    }
}

impl Buffer for VulkanBuffer {
    fn device_id(&self) -> u64 {
        self.core.ctx.id
    }

    fn byte_length(&self) -> u64 {
        self.byte_length
    }

    fn memory_type(&self) -> MemoryType {
        self.memory_type
    }

    fn usage(&self) -> BufferUsage {
        self.usage
    }

    fn access(&self) -> MemoryAccess {
        self.access
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        self.check(offset, target.len())?;
        let storage = self.storage()?;
        let fast = storage.block.candidate.cached || target.len() <= UNCACHED_READ;
        if fast && storage.read_mapped(offset, target)? {
            return Ok(());
        }
        self.core.read_staged(&storage, offset, target)
    }

    fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        self.check(offset, source.len())?;
        let own: &dyn Buffer = self;
        own.check_access("host access", MemoryAccess::WRITE)?;
        let storage = self.storage()?;
        if storage.write_mapped(offset, source)? {
            return Ok(());
        }
        self.core.write_staged(&storage, offset, source)
    }

    fn write_from(&self, offset: u64, source: &dyn Buffer, length: u64) -> Result<()> {
        self.check(offset, length as usize)?;
        let own = source.as_any().downcast_ref::<VulkanBuffer>();
        let Some(own) = own.filter(|own| Arc::ptr_eq(&own.core, &self.core)) else {
            return Err(status!(InvalidArgument, "a copy from a buffer of another device"));
        };
        own.check(0, length as usize)?;
        if length == 0 {
            return Ok(());
        }
        let from = MemoryRange { allocation: own.storage()?, offset: 0, length };
        let to = MemoryRange { allocation: self.storage()?, offset, length };
        *own.read.lock() = Some(self.core.write_copied(&from, &to)?);
        Ok(())
    }

    fn bytes_mut(&mut self) -> Result<Option<&mut [u8]>> {
        self.core.ctx.check_process()?;
        let read = self.read.get_mut().take();
        self.core.finish_point(read)?;
        // Work that has finished holds what it used until somebody looks.
        self.core.queues.iter().try_for_each(|queue| queue.retire(&self.core))?;
        let memory = self.storage.get_mut().as_mut().and_then(Arc::get_mut);
        Ok(memory.and_then(|memory| memory.bytes_mut(self.byte_length)))
    }

    fn into_bytes(self: Arc<Self>) -> Result<Bytes> {
        let length = self.byte_length;
        let own = match Arc::try_unwrap(self) {
            Ok(own) => own,
            Err(shared) => return read_all(shared.as_ref(), length),
        };
        own.core.ctx.check_process()?;
        let (core, storage) = (own.core.clone(), own.storage()?);
        drop(own.take_storage());
        // Work that has finished holds what it used until somebody looks.
        core.queues.iter().try_for_each(|queue| queue.retire(&core))?;
        let storage = match storage.into_bytes(length) {
            Ok(bytes) => return Ok(bytes),
            Err(storage) => storage,
        };
        *own.storage.lock() = Some(storage);
        read_all(&own, length)
    }

    fn host_address(&self) -> Option<*mut u8> {
        // After a dealloca the memory may be gone: the program may not use it, and does not get it.
        let storage = self.storage.lock();
        storage.as_ref().and(self.host_address.as_ref()).map(|a| a.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
