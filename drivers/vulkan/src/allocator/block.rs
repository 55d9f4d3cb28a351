//! One piece of device memory with the buffer over it, and the ranges handed out of it.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use ash::vk;
use bytes::Bytes;
use halite_hal::{ExternalHandle, ExternalKind, MemoryType, Result, status};

use super::{Failure, Shared};
use crate::{
    context::DeviceContext,
    external::{Import, Taken, Way, way},
    memory_types::MemoryCandidate,
    semaphore::QueuePoint,
};

/// Usage of every block: any buffer of the HAL can live in any block.
pub(super) fn block_usage(ctx: &DeviceContext) -> vk::BufferUsageFlags {
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::UNIFORM_BUFFER
        | vk::BufferUsageFlags::INDIRECT_BUFFER
        | vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST;
    if ctx.plan.abis.buffer_device_address {
        usage | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS
    } else {
        usage
    }
}

/// Where a block's memory comes from.
pub(super) enum Source {
    /// The device, for nobody else.
    Own,
    /// The device, to be given away as this kind.
    Give {
        /// The kind.
        kind: ExternalKind,
        /// Whether it is for this buffer alone.
        dedicated: bool,
    },
    /// Others.
    Take {
        /// What it is known by.
        handle: ExternalHandle,
        /// Its bytes.
        size: u64,
        /// Whether it is for one buffer alone.
        dedicated: bool,
    },
}

impl Source {
    /// Bytes of memory that is there already.
    fn size(&self) -> Option<u64> {
        if let Source::Take { size, .. } = self { Some(*size) } else { None }
    }

    fn is_dedicated(&self) -> bool {
        matches!(self, Source::Give { dedicated: true, .. } | Source::Take { dedicated: true, .. })
    }
}

/// Device memory with one buffer over all of it. Lives as long as a range of it is referenced, by a program or by
/// work in flight.
pub(crate) struct Block {
    ctx: Arc<DeviceContext>,
    /// Number that no other block of the process's lifetime has; unlike the handle it is never reused.
    pub id: u64,
    /// The buffer.
    pub buffer: vk::Buffer,
    pub(super) memory: vk::DeviceMemory,
    /// Bytes.
    pub size: u64,
    /// Bytes of its memory, which may be more.
    pub(super) allocated: u64,
    /// As what it can be given away.
    pub(super) exportable: Option<ExternalKind>,
    /// The queue family that stands for whoever else may have it; `None` where it is the device's alone.
    pub other_owner: Option<u32>,
    /// What has to live as long.
    _taken: Taken,
    /// Where it lives.
    pub candidate: MemoryCandidate,
    /// Host address of the first byte when mapped.
    mapped: Option<*mut u8>,
    /// Device address of the first byte; 0 without buffer device addresses.
    pub address: u64,
}

// SAFETY: the pointer is to memory that is mapped for the block's whole life; accesses through it are bounded by
// `Allocation`, and their order is the caller's business as with any buffer.
unsafe impl Send for Block {}
// SAFETY: as for `Send`; nothing in a block changes after it was made.
unsafe impl Sync for Block {}

impl Block {
    /// Makes a block of `size` bytes. The error names the call, so that the allocator can try elsewhere.
    pub fn new(
        ctx: &Arc<DeviceContext>,
        id: u64,
        size: u64,
        candidate: MemoryCandidate,
    ) -> Result<Self, Failure> {
        let mut block = Block::empty(ctx, id, size, None)?;
        block.candidate = candidate;
        block.bind(Source::Own)?;
        Ok(block)
    }

    /// A block without memory, which may be shared in this way. Where it is to live is decided next.
    pub(super) fn empty(
        ctx: &Arc<DeviceContext>,
        id: u64,
        size: u64,
        shared: Option<&Way>,
    ) -> Result<Self, Failure> {
        let mut external = vk::ExternalMemoryBufferCreateInfo::default();
        let mut info = vk::BufferCreateInfo::default().size(size).usage(block_usage(ctx));
        if let Some(way) = shared {
            external = external.handle_types(way.handle_type);
            info = info.push_next(&mut external);
        }
        // SAFETY: the info is complete, and the device has the extension of the handle type; the handle is destroyed in `drop`.
        let buffer =
            unsafe { ctx.device.create_buffer(&info, None) }.map_err(Failure::of("vkCreateBuffer"))?;
        Ok(Block {
            ctx: ctx.clone(),
            id,
            buffer,
            memory: vk::DeviceMemory::null(),
            size,
            allocated: 0,
            exportable: None,
            other_owner: None,
            _taken: Taken::Nothing,
            candidate: MemoryCandidate::default(),
            mapped: None,
            address: 0,
        })
    }

    /// What its buffer asks of memory.
    pub(super) fn needs(&self) -> vk::MemoryRequirements {
        // SAFETY: the buffer is of this device.
        unsafe { self.ctx.device.get_buffer_memory_requirements(self.buffer) }
    }

    /// Gives it memory of the type that was chosen. A handle is gone afterwards, whatever comes of it: with the memory, or closed.
    pub(super) fn bind(&mut self, source: Source) -> Result<(), Failure> {
        self.allocate(source)?;
        let (device, bda) = (&self.ctx.device, self.ctx.plan.abis.buffer_device_address);
        // SAFETY: memory and buffer are new, ours, and of fitting size and type.
        unsafe { device.bind_buffer_memory(self.buffer, self.memory, 0) }
            .map_err(Failure::of("vkBindBufferMemory"))?;
        if self.candidate.mapped {
            // SAFETY: the type is host-visible and the memory is not mapped yet.
            let address =
                unsafe { device.map_memory(self.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) }
                    .map_err(Failure::of("vkMapMemory"))?;
            self.mapped = Some(address.cast());
        }
        if bda {
            self.address = self.device_address();
        }
        self.ctx.set_name(self.buffer, &format!("block {}", self.id));
        Ok(())
    }

    fn allocate(&mut self, source: Source) -> Result<(), Failure> {
        let (device, bda) = (&self.ctx.device, self.ctx.plan.abis.buffer_device_address);
        let needs = self.needs();
        if needs.memory_type_bits & (1 << self.candidate.index) == 0 {
            // The type was chosen for a smaller buffer of the same usage, which must allow the same types.
            return Err(Failure::of("vkGetBufferMemoryRequirements")(vk::Result::ERROR_FEATURE_NOT_PRESENT));
        }
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let mut alone = vk::MemoryDedicatedAllocateInfo::default().buffer(self.buffer);
        let (mut give, mut import) = (vk::ExportMemoryAllocateInfo::default(), Import::default());
        self.allocated = source.size().unwrap_or(needs.size);
        let mut info = vk::MemoryAllocateInfo::default()
            .allocation_size(self.allocated)
            .memory_type_index(self.candidate.index);
        if bda {
            info = info.push_next(&mut flags);
        }
        if source.is_dedicated() {
            info = info.push_next(&mut alone);
        }
        match &source {
            Source::Own => {}
            Source::Give { kind, .. } => {
                give = give.handle_types(way(*kind).handle_type);
                info = info.push_next(&mut give);
            }
            Source::Take { handle, .. } => info = import.of(handle, info),
        }
        // SAFETY: the type is one that the buffer allows; a handle is alive, of its kind, and of as many bytes as far as anybody could
        // check. The memory is freed in `drop`.
        self.memory =
            unsafe { device.allocate_memory(&info, None) }.map_err(Failure::of("vkAllocateMemory"))?;
        if let Source::Take { handle, .. } = source {
            self._taken = Taken::from(handle);
        }
        Ok(())
    }

    fn device_address(&self) -> u64 {
        let info = vk::BufferDeviceAddressInfo::default().buffer(self.buffer);
        // SAFETY: the feature is enabled (the plan says so) and the buffer was made with the usage for it.
        unsafe { self.ctx.device.get_buffer_device_address(&info) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.ctx.is_forked() {
            return;
        }
        // SAFETY: whoever uses a block holds a reference to it, submitted work included, so nothing uses it now.
        // Destroying null handles does nothing.
        unsafe {
            self.ctx.device.destroy_buffer(self.buffer, None);
            self.ctx.device.free_memory(self.memory, None);
        }
    }
}

/// A range of a block. Goes back to the allocator when the last reference is dropped; work in flight holds one.
pub(crate) struct Allocation {
    /// The block.
    pub block: Arc<Block>,
    /// First byte in the block.
    pub offset: u64,
    /// Bytes that belong to it, padding included.
    pub size: u64,
    owner: Arc<Shared>,
    released: AtomicBool,
}

impl Allocation {
    pub(super) fn new(owner: Arc<Shared>, block: Arc<Block>, offset: u64, size: u64) -> Self {
        Allocation { block, offset, size, owner, released: AtomicBool::new(false) }
    }

    /// All of a block that is not the allocator's.
    pub(super) fn unpooled(owner: Arc<Shared>, block: Arc<Block>, size: u64) -> Self {
        Allocation { block, offset: 0, size, owner, released: AtomicBool::new(true) }
    }

    /// Where it is, without keeping it.
    pub fn place(&self) -> Place {
        Place {
            block: Arc::downgrade(&self.block),
            offset: self.offset,
            size: self.size,
            owner: self.owner.clone(),
        }
    }

    /// Lets later operations of the queue reuse the memory at once, other users after `point`. For memory that the
    /// program gave back in queue order.
    pub fn release_after(&self, point: Option<QueuePoint>) {
        if !self.released.swap(true, Ordering::AcqRel) {
            self.owner.give_back(self, point);
        }
    }

    /// The HAL's name for where it lives.
    pub fn memory_type(&self) -> MemoryType {
        self.block.candidate.memory_type()
    }

    /// Host address of the first byte when mapped. Valid for `size` bytes while the allocation lives.
    pub fn host_address(&self) -> Option<*mut u8> {
        let base = self.block.mapped?;
        // SAFETY: the allocator hands out ranges inside the block, which is mapped as a whole.
        Some(unsafe { base.add(self.offset as usize) })
    }

    /// Device address of the first byte.
    pub fn device_address(&self) -> u64 {
        self.block.address + self.offset
    }

    /// Copies host bytes into mapped memory. Returns false, without touching anything, when it is not mapped. The
    /// range must lie inside the allocation.
    pub fn write_mapped(&self, offset: u64, source: &[u8]) -> Result<bool> {
        let Some(base) = self.host_address() else { return Ok(false) };
        self.check_range(offset, source.len() as u64)?;
        // SAFETY: the range is inside the mapping (just checked); device and host cannot overlap in a slice.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), base.add(offset as usize), source.len()) };
        self.sync_mapped(offset, source.len() as u64, true)?;
        Ok(true)
    }

    /// Copies mapped memory to the host. Returns false, without touching anything, when it is not mapped.
    pub fn read_mapped(&self, offset: u64, target: &mut [u8]) -> Result<bool> {
        let Some(base) = self.host_address() else { return Ok(false) };
        self.check_range(offset, target.len() as u64)?;
        self.sync_mapped(offset, target.len() as u64, false)?;
        // SAFETY: as in `write_mapped`.
        unsafe {
            std::ptr::copy_nonoverlapping(base.add(offset as usize), target.as_mut_ptr(), target.len());
        }
        Ok(true)
    }

    /// The first bytes of mapped memory, without a copy, where nothing else holds it; the allocation is given back with them. The memory
    /// itself where something does, or where it is not mapped or slow to read.
    pub fn into_bytes(self: Arc<Self>, length: u64) -> std::result::Result<Bytes, Arc<Self>> {
        let fits = self.check_range(0, length).is_ok()
            && self.host_address().is_some()
            && self.block.candidate.cached;
        if !fits || self.sync_mapped(0, length, false).is_err() {
            return Err(self);
        }
        match Arc::try_unwrap(self) {
            Ok(memory) => Ok(Bytes::from_owner(HostBytes { memory, length: length as usize })),
            Err(shared) => Err(shared),
        }
    }

    /// The first bytes of mapped memory that needs no flush, to be written; `None` where it is no such memory, or has fewer.
    pub fn bytes_mut(&mut self, length: u64) -> Option<&mut [u8]> {
        let base = self.host_address().filter(|_| self.block.candidate.coherent)?;
        self.check_range(0, length).ok()?;
        // SAFETY: the range is inside the block, which is mapped as long as the allocation lives. Nobody else has the allocation, so no
        // work that was submitted uses it, and none is submitted while the slice borrows it.
        Some(unsafe { std::slice::from_raw_parts_mut(base, length as usize) })
    }

    fn check_range(&self, offset: u64, length: u64) -> Result<()> {
        match offset.checked_add(length) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(status!(
                OutOfRange,
                "host access of {length} bytes at {offset} is outside of an allocation of {} bytes",
                self.size
            )),
        }
    }

    /// Flushes (`to_device`) or invalidates a mapped range where the memory is not coherent.
    fn sync_mapped(&self, offset: u64, length: u64, to_device: bool) -> Result<()> {
        let ctx = &self.block.ctx;
        if self.block.candidate.coherent || length == 0 {
            return Ok(());
        }
        let atom = ctx.facts.limits.non_coherent_atom_size.max(1);
        let first = (self.offset + offset) / atom * atom;
        let end = (self.offset + offset + length).next_multiple_of(atom);
        let length = if end >= self.block.size { vk::WHOLE_SIZE } else { end - first };
        let range = [vk::MappedMemoryRange::default().memory(self.block.memory).offset(first).size(length)];
        // SAFETY: the memory is mapped as a whole, and the range is rounded to the device's granularity inside it.
        let result = unsafe {
            if to_device {
                ctx.device.flush_mapped_memory_ranges(&range)
            } else {
                ctx.device.invalidate_mapped_memory_ranges(&range)
            }
        };
        let call = if to_device { "vkFlushMappedMemoryRanges" } else { "vkInvalidateMappedMemoryRanges" };
        result.map_err(|e| ctx.error(call, e, "mapped buffer"))
    }
}

/// Where an allocation is, or was.
#[derive(Clone)]
pub(crate) struct Place {
    block: Weak<Block>,
    offset: u64,
    size: u64,
    owner: Arc<Shared>,
}

impl Place {
    /// The range as memory that is not this one's, and that is not given back with it: for commands that run once somebody has it. `None`
    /// where its block is gone.
    pub fn unowned(&self) -> Option<Arc<Allocation>> {
        let block = self.block.upgrade()?;
        let (offset, size, owner) = (self.offset, self.size, self.owner.clone());
        Some(Arc::new(Allocation { block, offset, size, owner, released: AtomicBool::new(true) }))
    }

    /// Whether both are the same range.
    pub fn is_same(&self, other: &Place) -> bool {
        Weak::ptr_eq(&self.block, &other.block) && (self.offset, self.size) == (other.offset, other.size)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if !*self.released.get_mut() {
            self.owner.give_back(self, None);
        }
    }
}

/// Mapped memory that nobody else has.
struct HostBytes {
    memory: Allocation,
    length: usize,
}

impl AsRef<[u8]> for HostBytes {
    fn as_ref(&self) -> &[u8] {
        let base = self.memory.host_address().expect("checked when it was made");
        // SAFETY: the range is inside the block, which is mapped as long as the allocation lives; work that was submitted holds what
        // it uses, so none that writes here is left, and no handle is there to submit more with.
        unsafe { std::slice::from_raw_parts(base, self.length) }
    }
}
