//! What queue operations do when their turn comes, and what they signal.

use std::sync::Arc;

use halite_abi::{Code, Result, ResultExt, Status, bail, status};
use halite_hal::{Buffer, BufferSpan, Deadline, Fence, File, QueueOp, TimedCommand, WorkKind};

use crate::{
    buffer::LocalBuffer, code::HostRange, engine::Engine, execution::Execution, profile::Measured,
    program::LocalCommandBuffer, queue::waited_in_vain, transfer,
};

/// Bytes that a file transfer holds at a time.
const CHUNK: usize = 256 * 1024;

/// An accepted operation. Its signal fence is signalled or failed exactly once, whatever becomes of it.
pub(crate) struct Operation {
    wait: Fence,
    signal: Fence,
    failure: Option<Status>,
    work: Work,
}

/// What an operation does.
#[expect(
    clippy::large_enum_variant,
    reason = "boxing the common case would cost every operation an allocation"
)]
pub(crate) enum Work {
    /// Makes a buffer's memory exist.
    Alloca(Arc<LocalBuffer>),
    /// A HAL operation.
    Operation(QueueOp),
    /// A command buffer that has begun.
    Running(Box<Execution>),
    /// Nothing any more.
    Done,
}

/// How far a run of an operation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// To the end: its fence is signalled or failed.
    Finished,
    /// The deadline passed first; running it again goes on where it stopped.
    Interrupted,
}

impl Operation {
    /// An operation that runs after `wait` and then signals `signal`.
    pub fn new(wait: Fence, signal: Fence, work: Work) -> Self {
        Operation { wait, signal, failure: None, work }
    }

    /// What it still waits for.
    pub fn wait(&self) -> &Fence {
        &self.wait
    }

    /// Replaces what it waits for.
    pub fn set_wait(&mut self, wait: Fence) {
        self.wait = wait;
    }

    /// What it signals.
    pub fn signal(&self) -> &Fence {
        &self.signal
    }

    /// Notes that something it waited for failed; the first failure counts.
    pub fn note_failure(&mut self, failure: Status) {
        self.failure.get_or_insert(failure);
    }

    /// Whether it takes next to no time.
    pub fn is_cheap(&self) -> bool {
        matches!(self.work, Work::Done | Work::Operation(QueueOp::Barrier | QueueOp::Dealloca { .. }))
    }

    /// Whether it may run for ever.
    pub fn may_hang(&self) -> bool {
        match &self.work {
            Work::Operation(QueueOp::Execute { command_buffer, .. }) => {
                own_commands(command_buffer.as_ref()).is_ok_and(|own| own.program().may_hang)
            }
            Work::Running(execution) => execution.program().may_hang,
            _ => false,
        }
    }

    fn name(&self) -> &'static str {
        match &self.work {
            Work::Alloca(_) => "alloca",
            Work::Operation(op) => op.name(),
            Work::Running(_) => "execute",
            Work::Done => "nothing",
        }
    }

    /// Does it, and settles its signal fence.
    pub fn run(&mut self, engine: &Arc<Engine>, deadline: Deadline) -> Progress {
        let name = self.name();
        let result = match self.waited(engine) {
            Ok(()) => self.step(engine, deadline).context(|| format!("queue {name}")),
            Err(failure) => Err(waited_in_vain(name, &failure)),
        };
        if matches!(result, Ok(Progress::Interrupted)) {
            return Progress::Interrupted;
        }
        // Memory first: who waits for the signal may want to allocate again.
        self.work = Work::Done;
        self.settle(engine, result.map(drop));
        Progress::Finished
    }

    /// The failure of something that it waited for. Everything has settled, or the operation were not in the queue.
    fn waited(&self, engine: &Engine) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        for point in self.wait.points() {
            let reached = match engine.own_semaphore(point.semaphore.as_ref()) {
                Some(own) => own.is_reached(point.value)?,
                None => point.semaphore.query()? >= point.value,
            };
            if !reached {
                bail!(Internal, "queue order broke: {:?} is not at {} yet", point.semaphore, point.value);
            }
        }
        Ok(())
    }

    fn step(&mut self, engine: &Arc<Engine>, deadline: Deadline) -> Result<Progress> {
        match std::mem::replace(&mut self.work, Work::Done) {
            Work::Alloca(buffer) => buffer.make_live()?,
            Work::Operation(QueueOp::Execute { command_buffer, bindings }) => {
                let own = own_commands(command_buffer.as_ref())?;
                let measured = engine.profile.is_on().then(|| engine.profile.begin(own.timed().clone()));
                let execution = Box::new(Execution::new(own.program().clone(), bindings, measured)?);
                return self.execute(engine, execution, deadline);
            }
            Work::Operation(op) => {
                let timed = engine.profile.is_on().then(|| transfer_of(&op)).flatten();
                let mut measured = timed.map(|timed| engine.profile.begin([Arc::new(timed)].into()));
                let start = measured.as_ref().map(Measured::now);
                perform(op)?;
                if let (Some(measured), Some(start)) = (&mut measured, start) {
                    measured.note(0, start);
                }
            }
            Work::Running(execution) => return self.execute(engine, execution, deadline),
            Work::Done => {}
        }
        Ok(Progress::Finished)
    }

    fn execute(
        &mut self,
        engine: &Arc<Engine>,
        mut execution: Box<Execution>,
        deadline: Deadline,
    ) -> Result<Progress> {
        let progress = execution.run(engine.as_ref(), deadline)?;
        if progress == Progress::Interrupted {
            self.work = Work::Running(execution);
        }
        Ok(progress)
    }

    fn settle(&mut self, engine: &Engine, result: Result<()>) {
        let signal = std::mem::take(&mut self.signal);
        // A semaphore that cannot be raised has failed or was raised by somebody else: its waiters know.
        let raised =
            result.and_then(|()| signal.points().iter().map(|p| engine.reach(p)).fold(Ok(()), Result::and));
        if let Err(failure) = raised {
            signal.fail(&failure);
        }
    }
}

impl Drop for Operation {
    /// Whoever waits for an operation that can never run has to know.
    fn drop(&mut self) {
        if !self.signal.is_empty() {
            let name = self.name();
            let gone = status!(Aborted, "queue {name} never ran: what it waited for was dropped");
            self.signal.fail(&gone);
        }
    }
}

/// What a profile calls a queue operation that moves bytes.
fn transfer_of(op: &QueueOp) -> Option<TimedCommand> {
    let (kind, span) = match op {
        QueueOp::Fill { target, .. } => (WorkKind::Fill, target),
        QueueOp::Update { target, .. } => (WorkKind::Update, target),
        QueueOp::Copy { target, .. } | QueueOp::Read { target, .. } => (WorkKind::Copy, target),
        QueueOp::Write { source, .. } => (WorkKind::Copy, source),
        QueueOp::Barrier
        | QueueOp::Acquire { .. }
        | QueueOp::Release { .. }
        | QueueOp::Dealloca { .. }
        | QueueOp::Execute { .. } => return None,
    };
    Some(TimedCommand::transfer(kind, span.length))
}

fn perform(op: QueueOp) -> Result<()> {
    match op {
        // No memory is shared with others.
        QueueOp::Barrier | QueueOp::Acquire { .. } | QueueOp::Release { .. } => Ok(()),
        QueueOp::Dealloca { buffer } => {
            own_buffer(buffer.as_ref())?.give_back();
            Ok(())
        }
        QueueOp::Fill { target, pattern, pattern_length } => {
            transfer::fill(span_range(&target)?, &transfer::Pattern::new(pattern, pattern_length)?);
            Ok(())
        }
        QueueOp::Update { source, target } => transfer::update(span_range(&target)?, &source),
        QueueOp::Copy { source, target } => transfer::copy(span_range(&source)?, span_range(&target)?),
        QueueOp::Read { source, source_offset, target } => read_file(&source, source_offset, &target),
        QueueOp::Write { source, target, target_offset } => write_file(&source, &target, target_offset),
        QueueOp::Execute { .. } => Err(Status::new(Code::Internal, "command buffers run step by step")),
    }
}

/// The driver's own type behind a buffer. Validation has checked the owner, so a miss is a bug above this driver.
pub(crate) fn own_buffer(buffer: &dyn Buffer) -> Result<&LocalBuffer> {
    let own = buffer.as_any().downcast_ref();
    own.ok_or_else(|| status!(InvalidArgument, "a buffer of another driver was given to a CPU device"))
}

fn own_commands(commands: &dyn halite_hal::CommandBuffer) -> Result<&LocalCommandBuffer> {
    let own = commands.as_any().downcast_ref();
    own.ok_or_else(|| {
        status!(InvalidArgument, "a command buffer of another driver was given to a CPU device")
    })
}

/// The memory of a span; no bytes are no memory.
pub(crate) fn span_range(span: &BufferSpan) -> Result<HostRange> {
    if span.length == 0 {
        return Ok(HostRange::EMPTY);
    }
    own_buffer(span.buffer.as_ref())?.range()?.part(span.offset, span.length)
}

fn read_file(source: &File, source_offset: u64, target: &BufferSpan) -> Result<()> {
    let range = span_range(target)?;
    if let Some(bytes) = source.memory_range(source_offset, target.length) {
        return transfer::update(range, &bytes);
    }
    in_chunks(target.length, |done, chunk| {
        source.read_at(position(source_offset, done)?, chunk)?;
        transfer::update(range.part(done, chunk.len() as u64)?, chunk)
    })
}

fn write_file(source: &BufferSpan, target: &File, target_offset: u64) -> Result<()> {
    let range = span_range(source)?;
    in_chunks(source.length, |done, chunk| {
        transfer::download(range.part(done, chunk.len() as u64)?, chunk)?;
        target.write_at(position(target_offset, done)?, chunk)
    })
}

fn position(offset: u64, done: u64) -> Result<u64> {
    offset.checked_add(done).ok_or_else(|| Status::new(Code::OutOfRange, "file offset overflows"))
}

/// Calls `step` with how far it came and room for the next chunk, until `length` bytes are through.
fn in_chunks(length: u64, mut step: impl FnMut(u64, &mut [u8]) -> Result<()>) -> Result<()> {
    let mut chunk = vec![0; CHUNK.min(usize::try_from(length).unwrap_or(CHUNK))];
    let mut done = 0;
    while done < length {
        let bytes = (length - done).min(CHUNK as u64);
        step(done, &mut chunk[..bytes as usize])?;
        done += bytes;
    }
    Ok(())
}
