//! The ways between host memory, files and device memory that the host cannot map: bounded staging memory and copies in chunks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use halite_hal::{
    BufferParams, BufferUsage, Code, Deadline, Fence, File, MemoryType, QueueAffinity, Result, TimedCommand,
    WorkKind, status,
};

use crate::{
    allocator::Allocation,
    device::Core,
    lower::{MemoryRange, PreparedCommands},
    semaphore::QueuePoint,
};

/// Bytes of one chunk.
const CHUNK: u64 = 4 << 20;
/// Most bytes of chunks in flight on one queue.
const IN_FLIGHT: u64 = 8 * CHUNK;
/// The queue that host bytes are written on and read on.
const HOST_QUEUE: usize = 0;

/// Host memory that the device reads.
const UPLOAD: BufferParams = BufferParams {
    memory_type: MemoryType::HOST_VISIBLE.union(MemoryType::HOST_COHERENT).union(MemoryType::DEVICE_VISIBLE),
    usage: BufferUsage::TRANSFER_SOURCE
        .union(BufferUsage::MAPPING_SCOPED)
        .union(BufferUsage::MAPPING_ACCESS_SEQUENTIAL_WRITE),
    affinity: QueueAffinity::ANY,
};

/// Copies of host bytes to device memory that nobody waits for: they go with the submission that uses them. Waiting for the inputs of a
/// call one by one took 20 to 30 µs each on an H200.
#[derive(Default)]
pub(crate) struct Writes {
    /// Where the last one is on `HOST_QUEUE`; 0 before the first.
    last: AtomicU64,
    /// Bytes of staging memory since somebody waited.
    bytes: AtomicU64,
}

impl Writes {
    /// What later work, on any queue, comes after.
    pub fn last(&self) -> Option<QueuePoint> {
        let value = self.last.load(Ordering::Acquire);
        (value > 0).then_some(QueuePoint { queue: HOST_QUEUE, value })
    }

    /// Notes one. Gives whether so much staging memory is in use that it has to be waited for.
    fn note(&self, point: QueuePoint, length: u64) -> bool {
        self.last.fetch_max(point.value, Ordering::AcqRel);
        let full = self.bytes.fetch_add(length, Ordering::Relaxed) + length > IN_FLIGHT;
        if full {
            self.bytes.store(0, Ordering::Relaxed);
        }
        full
    }
}

impl Core {
    /// Host bytes in memory that the device can read.
    pub fn stage(&self, bytes: &[u8]) -> Result<Arc<Allocation>> {
        let staging = self.upload_memory(bytes.len() as u64)?;
        staging.write_mapped(0, bytes)?;
        Ok(staging)
    }

    fn upload_memory(&self, length: u64) -> Result<Arc<Allocation>> {
        Ok(self.allocator.allocate(&UPLOAD, length, None)?.0)
    }

    fn readback_memory(&self, length: u64) -> Result<Arc<Allocation>> {
        let cached = self.allocator.allocate(&BufferParams::READBACK, length, None);
        // A device without cached host memory can still be read from, only slower.
        Ok(cached.or_else(|_| self.allocator.allocate(&UPLOAD, length, None))?.0)
    }

    /// Copies host bytes to device memory through staging. What is placed later, on any queue, finds them there (`Core::writes`). Blocks
    /// only where they are many.
    pub fn write_staged(
        self: &Arc<Self>,
        target: &Arc<Allocation>,
        offset: u64,
        source: &[u8],
    ) -> Result<()> {
        let length = source.len() as u64;
        let place = MemoryRange { allocation: target.clone(), offset, length };
        let point = self.upload(HOST_QUEUE, &[], &place, |staging, at, length| {
            let at = at as usize;
            staging.write_mapped(0, &source[at..at + length as usize]).map(drop)
        })?;
        let Some(point) = point else { return Ok(()) };
        match self.writes.note(point, length) || length > IN_FLIGHT {
            true => self.finish_point(Some(point)),
            false => Ok(()),
        }
    }

    /// Copies memory that the host can map to device memory, as `write_staged` does with host bytes. Gives when it has been read.
    pub fn write_copied(self: &Arc<Self>, from: &MemoryRange, to: &MemoryRange) -> Result<QueuePoint> {
        let point = self.enqueue_copy(HOST_QUEUE, &[], from, to)?;
        // It takes no staging memory.
        self.writes.note(point, 0);
        Ok(point)
    }

    /// Copies device memory to the host through staging; blocks. It is behind all writes, which are on the same queue.
    pub fn read_staged(
        self: &Arc<Self>,
        source: &Arc<Allocation>,
        offset: u64,
        target: &mut [u8],
    ) -> Result<()> {
        let place = MemoryRange { allocation: source.clone(), offset, length: target.len() as u64 };
        self.download(HOST_QUEUE, &[], &place, |staging, at, length| {
            let at = at as usize;
            staging.read_mapped(0, &mut target[at..at + length as usize]).map(drop)
        })
    }

    /// Reads a file range into device memory: staging chunks are filled while earlier ones are copied. Returns the
    /// point where all bytes are there; `None` when there are none.
    pub fn read_file(
        self: &Arc<Self>,
        queue: usize,
        waits: &[QueuePoint],
        source: &File,
        source_offset: u64,
        target: &MemoryRange,
    ) -> Result<Option<QueuePoint>> {
        self.upload(queue, waits, target, |staging, at, length| {
            fill_from_file(staging, 0, source, source_offset + at, length)
        })
    }

    /// Reads a file range straight into mapped memory. Returns false, without touching anything, when the memory is
    /// not mapped.
    pub fn read_file_mapped(&self, source: &File, source_offset: u64, target: &MemoryRange) -> Result<bool> {
        if target.allocation.host_address().is_none() {
            return Ok(false);
        }
        let mut done = 0;
        while done < target.length {
            let length = CHUNK.min(target.length - done);
            fill_from_file(&target.allocation, target.offset + done, source, source_offset + done, length)?;
            done += length;
        }
        Ok(true)
    }

    /// Writes device memory to a file; blocks until it is written.
    pub fn write_file(
        self: &Arc<Self>,
        queue: usize,
        waits: &[QueuePoint],
        source: &MemoryRange,
        target: &File,
        target_offset: u64,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        self.download(queue, waits, source, |staging, at, length| {
            make_room(&mut buffer, length)?;
            staging.read_mapped(0, &mut buffer)?;
            target.write_at(target_offset + at, &buffer)
        })
    }

    /// Fills chunks of staging memory and enqueues their copies. Waits only when too much is in flight.
    fn upload(
        self: &Arc<Self>,
        queue: usize,
        waits: &[QueuePoint],
        target: &MemoryRange,
        mut fill: impl FnMut(&Allocation, u64, u64) -> Result<()>,
    ) -> Result<Option<QueuePoint>> {
        let mut points = std::collections::VecDeque::new();
        let mut done = 0;
        while done < target.length {
            let length = CHUNK.min(target.length - done);
            if points.len() as u64 * CHUNK >= IN_FLIGHT
                && let Some(oldest) = points.pop_front()
            {
                self.finish_point(Some(oldest))?;
            }
            let staging = self.upload_memory(length)?;
            fill(&staging, done, length)?;
            let to =
                MemoryRange { allocation: target.allocation.clone(), offset: target.offset + done, length };
            let from = MemoryRange { allocation: staging, offset: 0, length };
            // Later copies are behind the first on the queue, and so behind what it waits for.
            let waits = if done == 0 { waits } else { &[] };
            let point = self.enqueue_copy(queue, waits, &from, &to)?;
            if target.length > CHUNK {
                // Big transfers start at once, so that filling and copying overlap.
                self.queues[queue].flush_to(self, point.value);
            }
            points.push_back(point);
            done += length;
        }
        Ok(points.pop_back())
    }

    /// Copies chunks to staging memory and hands them to `take`, one after the other.
    fn download(
        self: &Arc<Self>,
        queue: usize,
        waits: &[QueuePoint],
        source: &MemoryRange,
        mut take: impl FnMut(&Allocation, u64, u64) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        let mut ahead: Option<(Arc<Allocation>, u64, u64, QueuePoint)> = None;
        loop {
            let next = if done < source.length {
                let length = CHUNK.min(source.length - done);
                let staging = self.readback_memory(length)?;
                let from = MemoryRange {
                    allocation: source.allocation.clone(),
                    offset: source.offset + done,
                    length,
                };
                let to = MemoryRange { allocation: staging.clone(), offset: 0, length };
                let waits = if done == 0 { waits } else { &[] };
                let point = self.enqueue_copy(queue, waits, &from, &to)?;
                self.queues[queue].flush_to(self, point.value);
                done += length;
                Some((staging, done - length, length, point))
            } else {
                None
            };
            let ready = std::mem::replace(&mut ahead, next);
            if let Some((staging, at, length, point)) = ready {
                self.finish_point(Some(point))?;
                take(&staging, at, length)?;
            }
            if ahead.is_none() {
                return Ok(());
            }
        }
    }

    fn enqueue_copy(
        self: &Arc<Self>,
        queue: usize,
        waits: &[QueuePoint],
        from: &MemoryRange,
        to: &MemoryRange,
    ) -> Result<QueuePoint> {
        let mut program = PreparedCommands::default();
        program.copy(from, to)?;
        if self.profiler.is_on() {
            program.time(0, Arc::new(TimedCommand::transfer(WorkKind::Copy, to.length)));
        }
        let queue = &self.queues[queue];
        queue.place(self, waits, &Fence::default(), |batch, source| batch.record(self, source, program))
    }

    /// Blocks until a queue has passed a point. DEADLINE_EXCEEDED when the queue finishes nothing for as long as the
    /// option `stall_limit` says.
    pub fn finish_point(self: &Arc<Self>, point: Option<QueuePoint>) -> Result<()> {
        let Some(point) = point else { return Ok(()) };
        let (queue, limit) = (&self.queues[point.queue], self.ctx.options.stall_limit);
        let mut stall = Stall::new(queue.completed(), limit);
        while !queue.is_completed(point.value) {
            match queue.wait(self, point.value, stall.deadline) {
                Err(e) if e.code() == Code::DeadlineExceeded => {
                    stall = stall
                        .over(queue.completed(), limit)
                        .ok_or_else(|| self.stalled(point.queue, limit.unwrap_or_default()))?;
                }
                result => result?,
            }
            queue.check_submitted(self, point.value)?;
        }
        Ok(())
    }

    /// Memory that stands in for bindings without bytes.
    pub fn dummy(&self) -> Result<Arc<Allocation>> {
        let mut dummy = self.dummy.lock();
        if let Some(found) = &*dummy {
            return Ok(found.clone());
        }
        let made = self.allocator.allocate(&BufferParams::DEVICE, 256, None)?.0;
        *dummy = Some(made.clone());
        Ok(made)
    }
}

/// A wait that goes on as long as the queue gets anywhere.
struct Stall {
    seen: u64,
    deadline: Deadline,
}

impl Stall {
    fn new(seen: u64, limit: Option<Duration>) -> Self {
        Stall { seen, deadline: limit.map_or(Deadline::Never, Deadline::after) }
    }

    /// The wait after a deadline has passed; `None` when nothing was finished meanwhile.
    fn over(&self, completed: u64, limit: Option<Duration>) -> Option<Self> {
        (completed > self.seen).then(|| Stall::new(completed, limit))
    }
}

/// Makes a buffer this long. RESOURCE_EXHAUSTED when the host has no memory for it.
fn make_room(buffer: &mut Vec<u8>, length: u64) -> Result<()> {
    let length = length as usize;
    halite_abi::room::make_room(buffer, length)
        .map_err(|_| status!(ResourceExhausted, "the host has no memory for a transfer of {length} bytes"))
}

/// Reads a range of a file into mapped memory: one copy where the file is in memory already.
fn fill_from_file(
    target: &Allocation,
    offset: u64,
    source: &File,
    source_offset: u64,
    length: u64,
) -> Result<()> {
    if let Some(bytes) = source.memory_range(source_offset, length) {
        return target.write_mapped(offset, &bytes).map(drop);
    }
    let mut bytes = Vec::new();
    make_room(&mut bytes, length)?;
    source.read_at(source_offset, &mut bytes)?;
    target.write_mapped(offset, &bytes).map(drop)
}
