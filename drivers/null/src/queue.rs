//! The order of queue work: an operation starts when its wait fence is reached.
//!
//! Work runs on the thread that makes it ready: the submitter's, or that of whoever signals the last semaphore it
//! waits for. One thread at a time drains the queue, so operations run one after the other in the order in which
//! they became ready, and a long chain of operations that wait for each other does not recurse.

use std::{collections::VecDeque, fmt, sync::Arc};

use halite_abi::{Code, Result, ResultExt, Status, bail, status};
use halite_hal::sync::{Condvar, Mutex};
use halite_hal::{BufferSpan, Deadline, Fence, File, QueueOp};

use crate::{
    buffer::NullBuffer,
    command_buffer::{self, NullCommandBuffer},
};

/// Bytes that a file transfer holds at a time.
const CHUNK: usize = 64 * 1024;

/// The device's one queue. Operations hold it, so work that is ready finishes also when the device is dropped.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Ready>,
    draining: bool,
}

/// An operation whose wait fence is settled.
struct Ready {
    waited: Result<()>,
    op: QueueOp,
    signal: Fence,
}

impl Queue {
    /// Runs the operation once `wait` is reached, then signals `signal` or fails it.
    pub(crate) fn submit(self: &Arc<Self>, wait: &Fence, signal: &Fence, op: QueueOp) {
        let queue = self.clone();
        let signal = signal.clone();
        wait.on_reached(Box::new(move |waited| {
            queue.state.lock().ready.push_back(Ready { waited, op, signal });
            queue.drain();
        }));
    }

    /// Blocks until no operation is ready or running. Operations whose wait fence is not reached have not started
    /// and are not waited for: it may be the caller who has to signal it.
    pub(crate) fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        let mut state = self.state.lock();
        while state.draining || !state.ready.is_empty() {
            match deadline.remaining() {
                None => self.idle.wait(&mut state),
                Some(left) if left.is_zero() => bail!(DeadlineExceeded, "the null device is still at work"),
                Some(left) => _ = self.idle.wait_for(&mut state, left),
            }
        }
        Ok(())
    }

    /// Runs what is ready, unless another call (maybe one further up this thread's stack) is at it.
    fn drain(&self) {
        let mut state = self.state.lock();
        if state.draining {
            return;
        }
        state.draining = true;
        while let Some(ready) = state.ready.pop_front() {
            drop(state);
            ready.run();
            state = self.state.lock();
        }
        state.draining = false;
        self.idle.notify_all();
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        write!(f, "Queue({} ready, draining: {})", state.ready.len(), state.draining)
    }
}

impl Ready {
    fn run(self) {
        let name = self.op.name();
        let result = match self.waited {
            Ok(()) => execute(self.op).context(|| format!("queue {name}")),
            Err(failure) => Err(waited_in_vain(name, &failure)),
        };
        // A signal fence that cannot be raised has failed or was raised by somebody else: its waiters know.
        match result.and_then(|()| self.signal.signal()) {
            Ok(()) => {}
            Err(failure) => self.signal.fail(&failure),
        }
    }
}

/// Failures travel along fences under the code of the first one.
fn waited_in_vain(name: &str, failure: &Status) -> Status {
    let code = failure.code();
    Status::new(code, failure.message().to_owned()).annotate(format!("queue {name} waited for it"))
}

fn execute(op: QueueOp) -> Result<()> {
    match op {
        // No memory is shared with others.
        QueueOp::Barrier | QueueOp::Acquire { .. } | QueueOp::Release { .. } => Ok(()),
        QueueOp::Dealloca { buffer } => match buffer.as_any().downcast_ref::<NullBuffer>() {
            Some(buffer) => {
                buffer.give_back();
                Ok(())
            }
            None => Err(status!(Internal, "{buffer:?} is no buffer of the null driver")),
        },
        QueueOp::Fill { target, pattern, pattern_length } => {
            command_buffer::fill(&target, pattern, pattern_length)
        }
        QueueOp::Update { source, target } => target.write(0, &source),
        QueueOp::Copy { source, target } => command_buffer::copy(&source, &target),
        QueueOp::Read { source, source_offset, target } => read_file(&source, source_offset, &target),
        QueueOp::Write { source, target, target_offset } => write_file(&source, &target, target_offset),
        QueueOp::Execute { command_buffer, bindings } => {
            match command_buffer.as_any().downcast_ref::<NullCommandBuffer>() {
                Some(commands) => commands.execute(&bindings),
                None => {
                    bail!(Internal, "{command_buffer:?} is no command buffer of the null driver")
                }
            }
        }
    }
}

fn read_file(source: &File, source_offset: u64, target: &BufferSpan) -> Result<()> {
    in_chunks(target.length, |done, chunk| {
        source.read_at(position(source_offset, done)?, chunk)?;
        target.write(done, chunk)
    })
}

fn write_file(source: &BufferSpan, target: &File, target_offset: u64) -> Result<()> {
    in_chunks(source.length, |done, chunk| {
        source.read(done, chunk)?;
        target.write_at(position(target_offset, done)?, chunk)
    })
}

fn position(offset: u64, done: u64) -> Result<u64> {
    offset.checked_add(done).ok_or_else(|| Status::new(Code::OutOfRange, "file offset overflows"))
}

/// Calls `step` with how far it came and room for the next chunk, until `length` bytes are through.
fn in_chunks(length: u64, mut step: impl FnMut(u64, &mut [u8]) -> Result<()>) -> Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    while done < length {
        let bytes = (length - done).min(CHUNK as u64);
        step(done, &mut chunk[..bytes as usize])?;
        done += bytes;
    }
    Ok(())
}
