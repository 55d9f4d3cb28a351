//! The transfers of one call: a chain of queue operations between the call's two fences.

use std::sync::Arc;

use bytes::Bytes;
use halite_abi::{Result, ResultExt, bail, parameters::SpanRecord, status};
use halite_hal::{BufferSpan, Fence, File, FileAccess, QueueOp, Semaphore};

use halite_vm::Invocation;

use super::index::Parameter;
use crate::{hal_module::QueueArgs, mapping::release_pages, progress::Progress};

/// Patterns that no fill can write are written in pieces of this many bytes.
const PIECE: usize = 64 << 10;
/// Most bytes that are read between two looks at the caller's cancellation and deadline.
const SLICE: u64 = 32 << 20;
/// Fewer bytes are not worth a call of the system.
const RELEASED: u64 = 64 << 10;

/// Operations run one after the other: the first waits for the call's wait fence, the last signals its signal fence.
/// When the call fails midway its signal fence stays unsignalled: the program gets the error and does not go on.
pub(super) struct Transfers<'a> {
    queue: &'a QueueArgs,
    invocation: &'a Invocation,
    progress: &'a Progress,
    /// Bytes of this call that were handed to the device, and all of them.
    bytes: (u64, u64),
    /// Held back until it is known whether it is the last.
    pending: Option<QueueOp>,
    semaphore: Option<Arc<dyn Semaphore>>,
    submitted: u64,
}

impl<'a> Transfers<'a> {
    /// Transfers of `total` bytes.
    pub(super) fn new(
        queue: &'a QueueArgs,
        invocation: &'a Invocation,
        progress: &'a Progress,
        total: u64,
    ) -> Self {
        let bytes = (0, total);
        Transfers { queue, invocation, progress, bytes, pending: None, semaphore: None, submitted: 0 }
    }

    /// From the parameter to the buffer. The caller has checked that the span lies in the parameter.
    pub(super) fn read(
        &mut self,
        parameter: &Parameter,
        span: &SpanRecord,
        buffer: &BufferSpan,
    ) -> Result<()> {
        let target = buffer.subspan(span.buffer_offset, span.length)?;
        match parameter {
            Parameter::Stored { file, offset, .. } => {
                self.copy(file, add(*offset, span.parameter_offset)?, &target)
            }
            Parameter::Splat { pattern, .. } => self.fill(pattern, span.parameter_offset, target),
        }
    }

    /// Reads a range of a file in slices. A device may read a slice while it is handed over, so no one is large.
    fn copy(&mut self, file: &File, offset: u64, target: &BufferSpan) -> Result<()> {
        let mut done = 0;
        loop {
            let length = SLICE.min(target.length - done);
            let (source_offset, part) = (add(offset, done)?, target.subspan(done, length)?);
            self.push(QueueOp::Read { source: file.clone(), source_offset, target: part })?;
            done += length;
            if done >= target.length {
                return Ok(());
            }
        }
    }

    /// From the buffer to the parameter. PERMISSION_DENIED when the parameter cannot be written.
    pub(super) fn write(
        &mut self,
        parameter: &Parameter,
        span: &SpanRecord,
        buffer: &BufferSpan,
    ) -> Result<()> {
        let source = buffer.subspan(span.buffer_offset, span.length)?;
        match parameter {
            Parameter::Stored {
                file: file @ File::Handle { access: FileAccess::ReadWrite, .. },
                offset,
                ..
            } => {
                let target_offset = add(*offset, span.parameter_offset)?;
                self.push(QueueOp::Write { source, target: file.clone(), target_offset })
            }
            Parameter::Stored { .. } => bail!(
                PermissionDenied,
                "the parameter's archive is read-only; add it with ParameterIndex::add_writable_file"
            ),
            Parameter::Splat { .. } => {
                bail!(PermissionDenied, "the parameter is a repeated pattern; it has no storage to write to")
            }
        }
    }

    /// Repeats a pattern over the target, as seen from `offset` bytes into the parameter.
    fn fill(&mut self, pattern: &[u8], offset: u64, target: BufferSpan) -> Result<()> {
        if pattern.is_empty() {
            bail!(InvalidArgument, "the parameter repeats an empty pattern");
        }
        let mut pattern = pattern.to_vec();
        let turn = offset % pattern.len() as u64;
        pattern.rotate_left(usize::try_from(turn).expect("less than the pattern's length"));
        let pattern = shortest_period(&pattern);
        let width = pattern.len() as u64;
        let aligned = target.offset.is_multiple_of(width) && target.length.is_multiple_of(width);
        if let (1 | 2 | 4 | 8, true) = (pattern.len(), aligned) {
            let mut word = [0; 8];
            word[..pattern.len()].copy_from_slice(pattern);
            let (pattern, pattern_length) = (u64::from_le_bytes(word), pattern.len() as u32);
            return self.push(QueueOp::Fill { target, pattern, pattern_length });
        }
        let piece = Bytes::from(pattern.repeat((PIECE / pattern.len()).max(1)));
        let step = piece.len() as u64;
        for start in (0..target.length).step_by(piece.len()) {
            let target = target.subspan(start, step.min(target.length - start))?;
            self.push(QueueOp::Read { source: File::Memory(piece.clone()), source_offset: 0, target })?;
        }
        Ok(())
    }

    /// Submits what was held back and holds back this.
    fn push(&mut self, op: QueueOp) -> Result<()> {
        let (done, total) = self.bytes;
        self.invocation
            .check()
            .context(|| format!("while {done} of {total} bytes of parameters were read"))?;
        self.progress.report(done, total);
        let bytes = match &op {
            QueueOp::Read { target, .. } | QueueOp::Fill { target, .. } => target.length,
            _ => 0,
        };
        self.bytes.0 = done.saturating_add(bytes);
        match self.pending.replace(op) {
            None => Ok(()),
            Some(before) => {
                let wait = self.wait_fence();
                let semaphore = match &self.semaphore {
                    Some(semaphore) => semaphore.clone(),
                    None => self.queue.device().create_semaphore(0)?,
                };
                self.semaphore = Some(semaphore.clone());
                self.submitted += 1;
                let signal = Fence::new(semaphore, self.submitted);
                self.submit(&wait, &signal, before)
            }
        }
    }

    /// Hands an operation to the device. Most drivers have read its bytes then, so their pages are let go of: with those of large files the
    /// process would have all weights twice. A driver that reads later finds them again.
    fn submit(&self, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        let read = match &op {
            QueueOp::Read { source, source_offset, target } if target.length >= RELEASED => {
                source.memory_range(*source_offset, target.length)
            }
            _ => None,
        };
        self.queue.device().queue_submit(self.queue.affinity, wait, signal, op)?;
        read.iter().for_each(|bytes| release_pages(bytes));
        Ok(())
    }

    fn wait_fence(&self) -> Fence {
        match &self.semaphore {
            Some(semaphore) => Fence::new(semaphore.clone(), self.submitted),
            None => self.queue.wait.clone(),
        }
    }

    /// Submits the last operation, or only fences when there was none.
    pub(super) fn finish(mut self) -> Result<()> {
        self.progress.report(self.bytes.0, self.bytes.1);
        let last = self.pending.take().unwrap_or(QueueOp::Barrier);
        let wait = self.wait_fence();
        self.submit(&wait, &self.queue.signal, last)
    }
}

fn add(a: u64, b: u64) -> Result<u64> {
    a.checked_add(b).ok_or_else(|| status!(OutOfRange, "file offset {a} + {b} overflows"))
}

/// The shortest part whose repetition is the pattern, among halves of halves.
fn shortest_period(mut pattern: &[u8]) -> &[u8] {
    while pattern.len().is_multiple_of(2) {
        let (head, tail) = pattern.split_at(pattern.len() / 2);
        if head != tail {
            break;
        }
        pattern = head;
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::shortest_period;

    #[test]
    fn periods() {
        assert_eq!(shortest_period(&[0; 16]), [0]);
        assert_eq!(shortest_period(b"abababab"), b"ab");
        assert_eq!(shortest_period(b"abcabd"), b"abcabd");
        assert_eq!(shortest_period(b"x"), b"x");
    }
}
