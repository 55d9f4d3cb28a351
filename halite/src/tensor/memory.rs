//! Tensors that are made on a device without a copy on the host: zeros, copies, and elements that lie in a program's own memory; and
//! reading them into such memory.

use std::sync::Arc;

use halite_hal::{BufferParams, BufferSpan, Deadline, Fence, QueueAffinity, QueueOp};

use super::{Repr, Shape, Storage, Tensor, byte_length, describe};
use crate::{Device, ElementType, Error, Result};

/// Bytes of the words that devices fill.
const WORD: u64 = 4;

impl Tensor {
    /// A tensor on a device, of little-endian elements that somebody else owns: they are copied to the device and nowhere else. They may
    /// change as soon as this returns.
    ///
    /// # Errors
    /// There are more or fewer bytes than the tensor has, there is no memory, or the device fails.
    pub fn upload(
        device: &Device,
        element_type: ElementType,
        shape: impl Into<Shape>,
        bytes: &[u8],
    ) -> Result<Tensor> {
        let shape = shape.into().0;
        let length = byte_length(element_type, &shape)?;
        if bytes.len() != length {
            let what = describe(element_type, &shape);
            return Err(Error::invalid(format!("a tensor {what} has {length} bytes, not {}", bytes.len())));
        }
        Tensor::put(device, element_type, shape, bytes)
    }

    /// The same, where the number of bytes was checked.
    pub(super) fn put(
        device: &Device,
        element_type: ElementType,
        shape: Vec<usize>,
        bytes: &[u8],
    ) -> Result<Tensor> {
        let buffer = device.hal().allocate_buffer(&BufferParams::DEVICE, bytes.len() as u64)?;
        if !bytes.is_empty() {
            buffer.write(0, bytes)?;
            device.counters().count_upload(bytes.len() as u64);
        }
        let storage = Storage::Device { span: BufferSpan::whole(buffer), device: device.clone(), sent: None };
        Ok(Tensor(Arc::new(Repr { element_type, shape, storage })))
    }

    /// Copies the little-endian bytes of the elements to where the caller wants them, from the device if they are there; blocks.
    ///
    /// ```
    /// let mut bytes = [0; 8];
    /// halite::Tensor::from_slice(&[1i32, -1], [2])?.read_into(&mut bytes)?;
    /// assert_eq!(bytes, [1, 0, 0, 0, 255, 255, 255, 255]);
    /// # Ok::<(), halite::Error>(())
    /// ```
    ///
    /// # Errors
    /// The target has another length, or the device fails.
    pub fn read_into(&self, target: &mut [u8]) -> Result<()> {
        let length = self.byte_len();
        if target.len() != length {
            let what = describe(self.element_type(), self.shape());
            return Err(Error::invalid(format!("a tensor {what} has {length} bytes, not {}", target.len())));
        }
        match &self.0.storage {
            Storage::Host(bytes) => target.copy_from_slice(bytes),
            Storage::Device { .. } if length == 0 => {}
            Storage::Device { span, device, sent } => {
                match sent.as_ref().and_then(|sent| sent.bytes(length)) {
                    Some(bytes) => target.copy_from_slice(&bytes),
                    None => span.read(0, target)?,
                }
                device.counters().count_download(length as u64);
            }
        }
        Ok(())
    }

    /// Zeros on a device, in a buffer of their own.
    pub(crate) fn zeros_on(device: &Device, element_type: ElementType, shape: &[usize]) -> Result<Tensor> {
        let length = byte_length(element_type, shape)? as u64;
        let span = fresh(device, length)?;
        let target = BufferSpan::whole(span.buffer.clone());
        if target.length > 0 {
            submit(device, QueueOp::Fill { target, pattern: 0, pattern_length: WORD as u32 })?;
        }
        let storage = Storage::Device { span, device: device.clone(), sent: None };
        Ok(Tensor(Arc::new(Repr { element_type, shape: shape.to_vec(), storage })))
    }

    /// A copy in a buffer of its own on a device, which nothing else refers to.
    pub(crate) fn copied_on(&self, device: &Device) -> Result<Tensor> {
        let source = match &self.0.storage {
            Storage::Device { span, device: own, .. } if own.is_same(device) => span,
            _ => return self.to_host()?.to_device(device),
        };
        let (element_type, shape) = (self.0.element_type, self.0.shape.clone());
        let length = byte_length(element_type, &shape)? as u64;
        let span = fresh(device, length)?;
        if length > 0 {
            submit(device, QueueOp::Copy { source: source.subspan(0, length)?, target: span.clone() })?;
        }
        let storage = Storage::Device { span, device: device.clone(), sent: None };
        Ok(Tensor(Arc::new(Repr { element_type, shape, storage })))
    }

    /// Copies the elements into another tensor of as many bytes, on a device where both are.
    #[cfg(feature = "text")]
    pub(crate) fn copy_into(&self, other: &Tensor, device: &Device) -> Result<()> {
        match (&self.0.storage, &other.0.storage) {
            (Storage::Device { span: source, .. }, Storage::Device { span: target, .. })
                if self.byte_len() == other.byte_len() =>
            {
                let length = self.byte_len() as u64;
                let (source, target) = (source.subspan(0, length)?, target.subspan(0, length)?);
                submit(device, QueueOp::Copy { source, target })
            }
            _ => {
                let [own, other] = [self, other].map(|one| describe(one.element_type(), one.shape()));
                Err(Error::invalid(format!("a tensor {own} is not copied into one {other}")))
            }
        }
    }

    /// Makes all elements zeros, on the device where they are.
    #[cfg(feature = "text")]
    pub(crate) fn clear(&self) -> Result<()> {
        match &self.0.storage {
            Storage::Device { span, device, .. } if span.length > 0 => submit(
                device,
                QueueOp::Fill { target: span.clone(), pattern: 0, pattern_length: WORD as u32 },
            ),
            _ => Ok(()),
        }
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
pub(super) fn fresh(device: &Device, length: u64) -> Result<BufferSpan> {
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
