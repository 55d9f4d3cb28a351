//! The meaning of queue operations: resolving their waits, deferring what cannot be placed yet, and placing the rest.

use std::sync::Arc;

use halite_hal::{
    Buffer, BufferSpan, CommandBuffer, Fence, File, QueueOp, Result, TimedCommand, WorkKind, status,
};
use smallvec::SmallVec;

use crate::{
    buffer::VulkanBuffer,
    command_buffer::VulkanCommandBuffer,
    device::Core,
    lower::{MemoryRange, PreparedCommands},
    queue::{Deferred, Work},
    semaphore::{PointState, QueuePoint},
};

/// Points that accepted work will reach.
type Points = SmallVec<[QueuePoint; 4]>;

/// What an operation's wait fence looks like now.
enum Waits {
    /// Everything is reached or promised.
    Placed(Points),
    /// The point with this index is not.
    Open(usize),
}

impl Core {
    /// Accepts an operation: places it, or keeps it until what it waits for is promised. A failed wait fence fails
    /// the signal fence; so does an error, which is returned too.
    pub fn submit(self: &Arc<Self>, mut operation: Deferred) -> Result<()> {
        loop {
            if let Err(status) = self.check_open() {
                operation.signal.fail(&status);
                return Err(status);
            }
            let open = match self.look(&operation.wait) {
                Err(status) => {
                    operation.signal.fail(&status);
                    return Ok(());
                }
                Ok(Waits::Placed(points)) => return self.place(operation, points),
                Ok(Waits::Open(open)) => operation.wait.points()[open].clone(),
            };
            let Some(own) = self.own_semaphore(open.semaphore.as_ref()) else {
                self.defer_foreign(&open, operation);
                return Ok(());
            };
            match own.defer(open.value, operation) {
                None => {
                    self.note_waited_for(own.weak());
                    return Ok(());
                }
                Some(back) => operation = back,
            }
        }
    }

    fn look(&self, wait: &Fence) -> Result<Waits> {
        let mut points = Points::new();
        for (index, point) in wait.points().iter().enumerate() {
            match self.own_semaphore(point.semaphore.as_ref()) {
                Some(own) => match own.point(point.value)? {
                    PointState::Reached => {}
                    PointState::Pending(p) => points.push(p),
                    PointState::Unknown => return Ok(Waits::Open(index)),
                },
                None if point.semaphore.query()? >= point.value => {}
                None => return Ok(Waits::Open(index)),
            }
        }
        Ok(Waits::Placed(points))
    }

    fn defer_foreign(self: &Arc<Self>, open: &halite_hal::SemaphorePoint, operation: Deferred) {
        let core = self.clone();
        // A failure is found again when the operation is looked at, and handled there.
        open.semaphore.on_reached(open.value, Box::new(move |_| core.place_deferred(vec![operation])));
    }

    fn place(self: &Arc<Self>, operation: Deferred, points: Points) -> Result<()> {
        let Deferred { queue, signal, work, .. } = operation;
        let placed = match work {
            Work::Alloca(after) => self.place_alloca(queue, points, after, &signal),
            Work::Operation(op) => self.place_operation(queue, points, &signal, op),
        };
        if let Err(status) = &placed {
            signal.fail(status);
        }
        placed
    }

    fn place_alloca(
        self: &Arc<Self>,
        queue: usize,
        mut points: Points,
        after: Option<QueuePoint>,
        signal: &Fence,
    ) -> Result<()> {
        // Memory that work used which could not be submitted is free once what came before it is done.
        points.extend(after.map(|point| self.queues[point.queue].last_submitted(point)));
        let point = self.join(queue, &points)?;
        self.signal_at(point, signal);
        Ok(())
    }

    fn place_operation(
        self: &Arc<Self>,
        queue: usize,
        mut points: Points,
        signal: &Fence,
        op: QueueOp,
    ) -> Result<()> {
        if !matches!(op, QueueOp::Barrier | QueueOp::Dealloca { .. } | QueueOp::Read { .. }) {
            self.come_after_writes(&mut points);
        }
        match op {
            QueueOp::Barrier => self.place_alloca(queue, points, None, signal),
            QueueOp::Acquire { buffer } => {
                self.place_hand_over(queue, points, signal, buffer.as_ref(), false)
            }
            QueueOp::Release { buffer } => self.place_hand_over(queue, points, signal, buffer.as_ref(), true),
            QueueOp::Dealloca { buffer } => self.place_dealloca(queue, &points, signal, buffer.as_ref()),
            QueueOp::Fill { target, pattern, pattern_length } => {
                let mut program = PreparedCommands::default();
                program.fill(self, &MemoryRange::of(&target)?, pattern, pattern_length)?;
                self.place_transfer(queue, &points, signal, program, (WorkKind::Fill, target.length))
            }
            QueueOp::Update { source, target } => {
                let mut program = PreparedCommands::default();
                program.update(self, &source, &MemoryRange::of(&target)?)?;
                self.place_transfer(queue, &points, signal, program, (WorkKind::Update, target.length))
            }
            QueueOp::Copy { source, target } => {
                let mut program = PreparedCommands::default();
                program.copy(&MemoryRange::of(&source)?, &MemoryRange::of(&target)?)?;
                self.place_transfer(queue, &points, signal, program, (WorkKind::Copy, target.length))
            }
            QueueOp::Read { source, source_offset, target } => {
                self.place_read(queue, points, signal, &source, source_offset, &target)
            }
            QueueOp::Write { source, target, target_offset } => {
                self.submit_others(queue, &points)?;
                self.write_file(queue, &points, &MemoryRange::of(&source)?, &target, target_offset)?;
                self.reach(signal);
                Ok(())
            }
            QueueOp::Execute { command_buffer, bindings } => {
                let own = own_commands(command_buffer.as_ref())?;
                self.submit_others(queue, &points)?;
                own.execute(queue, &points, signal, &bindings)
            }
        }
    }

    /// Host bytes come before what may use them. On the queue of the writes the order is there, but one that could not be submitted has
    /// to be noticed.
    fn come_after_writes(&self, points: &mut Points) {
        points.extend(self.writes.last().filter(|point| !self.queues[point.queue].is_completed(point.value)));
    }

    fn place_dealloca(
        self: &Arc<Self>,
        queue: usize,
        points: &[QueuePoint],
        signal: &Fence,
        buffer: &dyn Buffer,
    ) -> Result<()> {
        let point = self.join(queue, points)?;
        if let Some(storage) = own_buffer(buffer)?.take_storage() {
            storage.release_after(point);
        }
        self.signal_at(point, signal);
        Ok(())
    }

    /// Takes memory that is shared from others, or gives it to them (`outside`).
    fn place_hand_over(
        self: &Arc<Self>,
        queue: usize,
        points: Points,
        signal: &Fence,
        buffer: &dyn Buffer,
        outside: bool,
    ) -> Result<()> {
        let Some((memory, other)) = own_buffer(buffer)?.hand_over(outside) else {
            return self.place_alloca(queue, points, None, signal);
        };
        let family = self.ctx.queues[queue].family;
        let (from, to) = if outside { (family, other) } else { (other, family) };
        let mut program = PreparedCommands::default();
        program.hand_over(&memory, from, to);
        self.submit_others(queue, &points)?;
        let record = |batch: &mut crate::queue::Batch, source: &mut crate::queue::RecorderSource<'_>| {
            batch.record(self, source, program)
        };
        self.queues[queue].place(self, &points, signal, record).map(drop)
    }

    /// Places a transfer, which a profile measures as one command.
    fn place_transfer(
        self: &Arc<Self>,
        queue: usize,
        points: &[QueuePoint],
        signal: &Fence,
        mut program: PreparedCommands,
        (kind, bytes): (WorkKind, u64),
    ) -> Result<()> {
        if self.profiler.is_on() {
            program.time(0, Arc::new(TimedCommand::transfer(kind, bytes)));
        }
        if program.is_empty() {
            let point = self.join(queue, points)?;
            self.signal_at(point, signal);
            return Ok(());
        }
        self.submit_others(queue, points)?;
        let record = |batch: &mut crate::queue::Batch, source: &mut crate::queue::RecorderSource<'_>| {
            batch.record(self, source, program)
        };
        self.queues[queue].place(self, points, signal, record).map(drop)
    }

    fn place_read(
        self: &Arc<Self>,
        queue: usize,
        mut points: Points,
        signal: &Fence,
        source: &File,
        source_offset: u64,
        target: &BufferSpan,
    ) -> Result<()> {
        let place = MemoryRange::of(target)?;
        let point = if points.is_empty() && self.read_file_mapped(source, source_offset, &place)? {
            None
        } else {
            self.come_after_writes(&mut points);
            self.submit_others(queue, &points)?;
            match self.read_file(queue, &points, source, source_offset, &place)? {
                Some(point) => Some(point),
                None => self.join(queue, &points)?,
            }
        };
        self.signal_at(point, signal);
        Ok(())
    }

    /// One point that is reached after all of these; `None` when there are none.
    fn join(self: &Arc<Self>, queue: usize, points: &[QueuePoint]) -> Result<Option<QueuePoint>> {
        let Some(first) = points.first() else { return Ok(None) };
        if points.iter().all(|p| p.queue == first.queue) {
            return Ok(points.iter().copied().max_by_key(|p| p.value));
        }
        self.submit_others(queue, points)?;
        self.queues[queue].place(self, points, &Fence::default(), |_, _| Ok(())).map(Some)
    }

    fn signal_at(self: &Arc<Self>, point: Option<QueuePoint>, signal: &Fence) {
        match point {
            None => self.reach(signal),
            Some(point) => self.queues[point.queue].signal_at(self, point.value, signal),
        }
    }

    /// Submits what the points of other queues stand for, so that another submission can wait for it. A point whose
    /// submission failed is never reached: nothing may wait for it.
    fn submit_others(self: &Arc<Self>, queue: usize, points: &[QueuePoint]) -> Result<()> {
        for point in points.iter().filter(|p| p.queue != queue) {
            self.queues[point.queue].submit_to(self, point.value);
            self.queues[point.queue].check_submitted(self, point.value)?;
        }
        Ok(())
    }
}

/// A command buffer as this driver's own.
fn own_commands(commands: &dyn CommandBuffer) -> Result<&VulkanCommandBuffer> {
    let own = commands.as_any().downcast_ref::<VulkanCommandBuffer>();
    own.ok_or_else(|| {
        status!(InvalidArgument, "a command buffer of another driver was given to a Vulkan device")
    })
}

/// A buffer as this driver's own.
pub(super) fn own_buffer(buffer: &dyn Buffer) -> Result<&VulkanBuffer> {
    let own = buffer.as_any().downcast_ref::<VulkanBuffer>();
    own.ok_or_else(|| status!(InvalidArgument, "a buffer of another driver was given to a Vulkan device"))
}
