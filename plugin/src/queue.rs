//! Queue operations on their way through the interface.

use std::{ptr, sync::Arc};

use bytes::Bytes;
use smallvec::SmallVec;

use super::{
    abi::*,
    buffer, command_buffer, file,
    object::{Count, Exported},
    peer::{Peer, Side},
    raw::{self, Grows},
};
use halite_hal::{BindingTable, Buffer, BufferSpan, QueueOp, Result, bail};

const NO_SPAN: HaliteSpan = HaliteSpan { buffer: ptr::null_mut(), offset: 0, length: 0 };

const NO_OP: HaliteQueueOp = HaliteQueueOp {
    struct_size: HaliteQueueOp::SIZE,
    kind: HALITE_QUEUE_OP_BARRIER,
    target: NO_SPAN,
    source: NO_SPAN,
    pattern: 0,
    pattern_length: 0,
    reserved: 0,
    data: HaliteBytes { data: ptr::null(), length: 0 },
    file: ptr::null_mut(),
    file_offset: 0,
    command_buffer: ptr::null_mut(),
    bindings: ptr::null(),
    binding_count: 0,
};

/// An operation that is lent for a call, and what was made for it.
struct Lender {
    side: Side,
    buffers: Vec<Arc<Exported<dyn Buffer>>>,
    file: Option<Arc<Exported<halite_hal::File>>>,
    bindings: SmallVec<[HaliteSpan; 8]>,
}

/// Calls `body` with the operation as the interface has it. INVALID_ARGUMENT for another driver's command buffer.
pub(super) fn lend_op<R>(
    op: &QueueOp,
    side: Side,
    body: impl FnOnce(&HaliteQueueOp) -> Result<R>,
) -> Result<R> {
    let mut lender = Lender { side, buffers: Vec::new(), file: None, bindings: SmallVec::new() };
    let mut lent = lender.lend(op)?;
    if !lender.bindings.is_empty() {
        lent.bindings = lender.bindings.as_ptr();
        lent.binding_count = lender.bindings.len();
    }
    body(&lent)
}

impl Lender {
    fn span(&mut self, span: &BufferSpan) -> HaliteSpan {
        let buffer = buffer::lend(&span.buffer, self.side, &mut self.buffers);
        HaliteSpan { buffer, offset: span.offset, length: span.length }
    }

    fn file(&mut self, file: &halite_hal::File) -> *mut HaliteFile {
        Exported::handle(self.file.insert(file::lend(file.clone(), self.side)))
    }

    fn table(&mut self, table: &BindingTable) {
        for entry in &table.entries {
            let span = entry.as_ref().map_or(NO_SPAN, |span| self.span(span));
            self.bindings.push(span);
        }
    }

    fn buffer_op(&mut self, kind: u32, buffer: &Arc<dyn Buffer>) -> HaliteQueueOp {
        let buffer = buffer::lend(buffer, self.side, &mut self.buffers);
        HaliteQueueOp { kind, target: HaliteSpan { buffer, ..NO_SPAN }, ..NO_OP }
    }

    fn file_op(&mut self, kind: u32, file: &halite_hal::File, file_offset: u64) -> HaliteQueueOp {
        HaliteQueueOp { kind, file: self.file(file), file_offset, ..NO_OP }
    }

    fn lend(&mut self, op: &QueueOp) -> Result<HaliteQueueOp> {
        Ok(match op {
            QueueOp::Barrier => NO_OP,
            QueueOp::Dealloca { buffer } => self.buffer_op(HALITE_QUEUE_OP_DEALLOCA, buffer),
            QueueOp::Acquire { buffer } => self.buffer_op(HALITE_QUEUE_OP_ACQUIRE, buffer),
            QueueOp::Release { buffer } => self.buffer_op(HALITE_QUEUE_OP_RELEASE, buffer),
            QueueOp::Fill { target, pattern, pattern_length } => HaliteQueueOp {
                kind: HALITE_QUEUE_OP_FILL,
                target: self.span(target),
                pattern: *pattern,
                pattern_length: *pattern_length,
                ..NO_OP
            },
            QueueOp::Update { source, target } => HaliteQueueOp {
                kind: HALITE_QUEUE_OP_UPDATE,
                target: self.span(target),
                data: raw::lend_bytes(source),
                ..NO_OP
            },
            QueueOp::Copy { source, target } => HaliteQueueOp {
                kind: HALITE_QUEUE_OP_COPY,
                target: self.span(target),
                source: self.span(source),
                ..NO_OP
            },
            QueueOp::Read { source, source_offset, target } => {
                let op = self.file_op(HALITE_QUEUE_OP_READ, source, *source_offset);
                HaliteQueueOp { target: self.span(target), ..op }
            }
            QueueOp::Write { source, target, target_offset } => {
                let op = self.file_op(HALITE_QUEUE_OP_WRITE, target, *target_offset);
                HaliteQueueOp { source: self.span(source), ..op }
            }
            QueueOp::Execute { command_buffer, bindings } => {
                self.table(bindings);
                HaliteQueueOp {
                    kind: HALITE_QUEUE_OP_EXECUTE,
                    command_buffer: command_buffer::lend(command_buffer.as_ref())?,
                    ..NO_OP
                }
            }
        })
    }
}

/// # Safety
/// The buffer is alive.
unsafe fn span(span: &HaliteSpan, peer: Peer) -> Result<BufferSpan> {
    // SAFETY: the caller's promise.
    let buffer = unsafe { buffer::receive(span.buffer, Count::Borrowed, peer)? };
    Ok(BufferSpan { buffer, offset: span.offset, length: span.length })
}

/// # Safety
/// The entries and their buffers are alive.
unsafe fn table(op: &HaliteQueueOp, peer: Peer) -> Result<BindingTable> {
    let mut entries = SmallVec::new();
    // SAFETY: the caller's promise.
    for entry in unsafe { raw::array(op.bindings, op.binding_count, "a binding table", peer)? } {
        // SAFETY: the caller's promise.
        let received = if entry.buffer.is_null() { None } else { Some(unsafe { span(entry, peer)? }) };
        entries.push(received);
    }
    Ok(BindingTable { entries })
}

/// An operation that came in, with everything it names retained and its bytes copied.
///
/// # Safety
/// `op` is null or there for the call, and so is what it points to.
pub(super) unsafe fn receive_op(op: *const HaliteQueueOp, peer: Peer) -> Result<QueueOp> {
    // SAFETY: the caller's promise, for all of it.
    unsafe {
        let op = raw::structure(op, peer)?;
        Ok(match op.kind {
            HALITE_QUEUE_OP_BARRIER => QueueOp::Barrier,
            HALITE_QUEUE_OP_DEALLOCA => {
                QueueOp::Dealloca { buffer: buffer::receive(op.target.buffer, Count::Borrowed, peer)? }
            }
            HALITE_QUEUE_OP_ACQUIRE => {
                QueueOp::Acquire { buffer: buffer::receive(op.target.buffer, Count::Borrowed, peer)? }
            }
            HALITE_QUEUE_OP_RELEASE => {
                QueueOp::Release { buffer: buffer::receive(op.target.buffer, Count::Borrowed, peer)? }
            }
            HALITE_QUEUE_OP_FILL => QueueOp::Fill {
                target: span(&op.target, peer)?,
                pattern: op.pattern,
                pattern_length: op.pattern_length,
            },
            HALITE_QUEUE_OP_UPDATE => QueueOp::Update {
                source: Bytes::copy_from_slice(raw::bytes(op.data, "an update", peer)?),
                target: span(&op.target, peer)?,
            },
            HALITE_QUEUE_OP_COPY => {
                QueueOp::Copy { source: span(&op.source, peer)?, target: span(&op.target, peer)? }
            }
            HALITE_QUEUE_OP_READ => QueueOp::Read {
                source: file::receive(op.file, Count::Borrowed, peer)?,
                source_offset: op.file_offset,
                target: span(&op.target, peer)?,
            },
            HALITE_QUEUE_OP_WRITE => QueueOp::Write {
                source: span(&op.source, peer)?,
                target: file::receive(op.file, Count::Borrowed, peer)?,
                target_offset: op.file_offset,
            },
            HALITE_QUEUE_OP_EXECUTE => QueueOp::Execute {
                command_buffer: command_buffer::receive_own(op.command_buffer, peer)?,
                bindings: table(op, peer)?,
            },
            unknown => {
                bail!(Unimplemented, "{peer} asked for a queue operation of the unknown kind {unknown}")
            }
        })
    }
}
