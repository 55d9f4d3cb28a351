//! Tensors that are made on a device without a way through the host: zeros, and copies.

use std::sync::Arc;

use halite_hal::{BufferParams, BufferSpan, Deadline, Fence, QueueAffinity, QueueOp};

use super::{Repr, Storage, Tensor, byte_length};
use crate::{Device, ElementType, Result};

/// Bytes of the words that devices fill.
const WORD: u64 = 4;

impl Tensor {
    /// Zeros on a device, in a buffer of their own.
    pub(crate) fn zeros_on(device: &Device, element_type: ElementType, shape: &[usize]) -> Result<Tensor> {
        let length = byte_length(element_type, shape)? as u64;
        let span = fresh(device, length)?;
        let target = BufferSpan::whole(span.buffer.clone());
        if target.length > 0 {
            submit(device, QueueOp::Fill { target, pattern: 0, pattern_length: WORD as u32 })?;
        }
        let storage = Storage::Device { span, device: device.clone() };
        Ok(Tensor(Arc::new(Repr { element_type, shape: shape.to_vec(), storage })))
    }

    /// A copy in a buffer of its own on a device, which nothing else refers to.
    pub(crate) fn copied_on(&self, device: &Device) -> Result<Tensor> {
        let source = match &self.0.storage {
            Storage::Device { span, device: own } if own.is_same(device) => span,
            _ => return self.to_host()?.to_device(device),
        };
        let (element_type, shape) = (self.0.element_type, self.0.shape.clone());
        let length = byte_length(element_type, &shape)? as u64;
        let span = fresh(device, length)?;
        if length > 0 {
            submit(device, QueueOp::Copy { source: source.subspan(0, length)?, target: span.clone() })?;
        }
        let storage = Storage::Device { span, device: device.clone() };
        Ok(Tensor(Arc::new(Repr { element_type, shape, storage })))
    }

    /// Whether both lie in the same bytes of a device.
    pub(crate) fn is_in_buffer_of(&self, other: &Tensor) -> bool {
        match (&self.0.storage, &other.0.storage) {
            (Storage::Device { span, .. }, Storage::Device { span: own, .. }) => {
                Arc::ptr_eq(&span.buffer, &own.buffer) && span.offset == own.offset
            }
            _ => false,
        }
    }
}

/// The first bytes of a new buffer, which has whole words.
fn fresh(device: &Device, length: u64) -> Result<BufferSpan> {
    let buffer = device.hal().allocate_buffer(&BufferParams::DEVICE, length.next_multiple_of(WORD))?;
    Ok(BufferSpan::whole(buffer).subspan(0, length)?)
}

/// Does something on a device, and waits for it.
fn submit(device: &Device, operation: QueueOp) -> Result<()> {
    let signal = Fence::new(device.hal().create_semaphore(0)?, 1);
    device.hal().queue_submit(QueueAffinity::ANY, &Fence::default(), &signal, operation)?;
    device.hal().queue_flush(QueueAffinity::ANY)?;
    Ok(signal.wait(Deadline::Never)?)
}
