//! Tensors whose buffers have rows to spare: those of states that grow in place. Only a [`State`](crate::State) holds them; all else sees
//! dense copies.

use std::sync::Arc;

use halite_hal::{
    BufferSpan, Command, CommandBufferMode, CommandCategory, CommandList, Deadline, Fence, QueueAffinity,
    QueueOp,
};

use super::{Repr, Storage, Tensor, byte_length, memory::fresh};
use crate::{Device, Error, Result};

/// How many rows a tensor's buffer has in a dimension; the first count, as many as the tensor's shape says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// The dimension.
    pub axis: usize,
    /// Rows that count, and rows to spare.
    pub rows: usize,
    /// Rows by which a call moves it on; the buffer has places for many such calls.
    pub moves: usize,
}

/// Calls whose rows a tensor has places for that moves on by each of them, at least.
const MOVES: usize = 256;

impl Tensor {
    /// A copy in a buffer of its own on a device, which has rows to spare as `to` says where this one has them as `from` says; `None` is a
    /// dense tensor. Both have them in the same dimension. Waits for the copy.
    pub(crate) fn with_capacity(
        &self,
        device: &Device,
        from: Option<Capacity>,
        to: Option<Capacity>,
    ) -> Result<Tensor> {
        let source = match &self.0.storage {
            Storage::Device { span, device: own, .. } if own.is_same(device) => span.clone(),
            _ if from.is_none() => return self.to_device(device)?.with_capacity(device, None, to),
            _ => return Err(Error::invalid("a state is on another device than its session")),
        };
        // Dense tensors have no more rows than count.
        let axis = from.or(to).map(|capacity| capacity.axis);
        let dense = axis.and_then(|axis| Some(Capacity { axis, rows: *self.shape().get(axis)?, moves: 0 }));
        let [own, new] = [self.pieces(from.or(dense))?, self.pieces(to.or(dense))?];
        let moves = to.map_or(0, |to| (to.moves * MOVES).max(if to.moves > 0 { to.rows } else { 0 }));
        let target = fresh(device, new.length.saturating_add(new.row.saturating_mul(moves as u64)))?;
        let copies = (0..own.count).map(|piece| {
            Ok(Command::Copy {
                source: source.subspan(own.distance * piece, own.bytes)?.into(),
                target: target.subspan(new.distance * piece, new.bytes)?.into(),
            })
        });
        if own.bytes > 0 {
            run(device, copies.collect::<Result<_>>()?)?;
        }
        let storage = Storage::Device { span: target, device: device.clone(), sent: None };
        Ok(Tensor(Arc::new(Repr { element_type: self.0.element_type, shape: self.0.shape.clone(), storage })))
    }

    /// Bytes of the buffer of a tensor with rows to spare, or of a dense one.
    pub(crate) fn bytes_with(&self, capacity: Option<Capacity>) -> usize {
        let length = match (&self.0.storage, capacity) {
            (Storage::Device { span, .. }, Some(Capacity { moves: 1.., .. })) => span.buffer.byte_length(),
            _ => self.pieces(capacity).map_or(0, |pieces| pieces.length),
        };
        usize::try_from(length).unwrap_or(usize::MAX)
    }

    /// Whether what follows the tensor's first byte in its buffer has room for the rows to spare.
    #[cfg(feature = "compiler")]
    pub(crate) fn has_room(&self, capacity: Option<Capacity>) -> bool {
        let Storage::Device { span, .. } = &self.0.storage else { return false };
        self.pieces(capacity).is_ok_and(|pieces| span.buffer.byte_length() - span.offset >= pieces.length)
    }

    /// The tensor that begins as many rows behind this one, in the same buffer, and reaches to its end.
    pub(crate) fn moved_on(&self, Capacity { axis, moves, .. }: Capacity) -> Result<Tensor> {
        let Storage::Device { span, device, .. } = &self.0.storage else {
            return Err(Error::invalid("a state is not on its session's device"));
        };
        let row = byte_length(self.element_type(), &self.shape()[axis + 1..])? as u64;
        let whole = BufferSpan::whole(span.buffer.clone());
        let first = row.saturating_mul(moves as u64).saturating_add(span.offset);
        let span = whole.subspan(first, whole.length.saturating_sub(first))?;
        let storage = Storage::Device { span, device: device.clone(), sent: None };
        Ok(Tensor(Arc::new(Repr { element_type: self.0.element_type, shape: self.0.shape.clone(), storage })))
    }

    /// What of the tensor lies together, where its buffer has rows to spare.
    fn pieces(&self, capacity: Option<Capacity>) -> Result<Pieces> {
        let (element, shape) = (self.element_type(), self.shape());
        let whole = byte_length(element, shape)? as u64;
        let Some(Capacity { axis, rows, .. }) = capacity else {
            return Ok(Pieces { count: 1, bytes: whole, distance: whole, length: whole, row: 0 });
        };
        let mut larger = shape.to_vec();
        let size = larger.get_mut(axis).filter(|size| **size <= rows);
        *size.ok_or_else(|| Error::invalid("a state has more rows than its buffer"))? = rows;
        let length = byte_length(element, &larger)? as u64;
        let count = shape[..axis].iter().product::<usize>() as u64;
        let each = |bytes: u64| bytes.checked_div(count).unwrap_or(0);
        let row = byte_length(element, &shape[axis + 1..])? as u64;
        Ok(Pieces { count, bytes: each(whole), distance: each(length), length, row })
    }
}

/// Bytes of a tensor that lie together, several times at one distance.
struct Pieces {
    count: u64,
    bytes: u64,
    distance: u64,
    /// Bytes of all, with those between them.
    length: u64,
    /// Bytes of a row; 0 where there is nothing to spare.
    row: u64,
}

/// Runs commands on a device and waits for them.
fn run(device: &Device, commands: Vec<Command>) -> Result<()> {
    let list = CommandList {
        mode: CommandBufferMode::ONE_SHOT,
        categories: CommandCategory::TRANSFER,
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands,
    };
    let commands = device.hal().create_command_buffer(list)?;
    let signal = Fence::new(device.hal().create_semaphore(0)?, 1);
    let work = QueueOp::Execute { command_buffer: commands, bindings: Default::default() };
    device.hal().queue_submit(QueueAffinity::ANY, &Fence::default(), &signal, work)?;
    device.hal().queue_flush(QueueAffinity::ANY)?;
    Ok(signal.wait(Deadline::Never)?)
}
