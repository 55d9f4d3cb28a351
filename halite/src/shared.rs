//! Memory that a program shares with devices: of other parts of the program, of other APIs, of other processes.

use std::{fmt, sync::Arc};

use halite_abi::{BINDING_ALIGNMENT, BUFFER_PADDING};
use halite_hal::{
    Buffer, BufferParams, BufferSpan, Deadline, ExternalKind, ExternalMemory, Fence, QueueAffinity, QueueOp,
};

use crate::{Device, ElementType, Error, Result, Shape, Tensor};

/// Memory that others also use: it came from them ([`SharedMemory::import`]), or is made for them ([`SharedMemory::create`]). Tensors lie
/// in it without a copy.
///
/// ```no_run
/// use halite::{Device, ElementType, ExternalHandle, ExternalMemory, Inputs, Session, SharedMemory};
///
/// # fn from_elsewhere() -> std::os::fd::OwnedFd { unimplemented!() }
/// let device = Device::open("vulkan")?;
/// let session = Session::builder().device(&device).model("digits.onnx").build()?;
/// // A camera's or CUDA's memory, by its descriptor.
/// let handle = ExternalHandle::OpaqueFd(from_elsewhere());
/// let memory = SharedMemory::import(&device, ExternalMemory::new(handle, 1 << 21))?;
/// let image = memory.tensor(ElementType::F32, [1, 1, 28, 28], 0)?;
/// let out = session.run(Inputs::new().with("image", image))?;
/// # Ok::<(), halite::Error>(())
/// ```
///
/// # Who has it
/// Either Halite's device or the others. After [`SharedMemory::import`] and [`SharedMemory::create`] it is the device's. Before others
/// write to it, or read what was written, [`SharedMemory::release`] gives it to them; when they are done,
/// [`SharedMemory::acquire`] takes it back. Between the two, calls with its tensors fail. Halite waits for nobody here: the others
/// must have finished, as the host sees it, before the device acquires, and calls of Halite that use the memory must have returned
/// before it is released.
///
/// Cheap to clone; clones are the same memory. It is freed when the last of them is gone, and of its tensors and the calls that use them.
/// Memory of the process may be used by others again as soon as that has happened: its `Bytes` are dropped then.
#[derive(Clone)]
pub struct SharedMemory {
    buffer: Arc<dyn Buffer>,
    device: Device,
    size: u64,
}

impl SharedMemory {
    /// Takes memory from elsewhere, and acquires it. A handle that was given is the device's then; where this fails, it is closed.
    ///
    /// # Errors
    /// The device takes no memory of this kind ([`DeviceInfo::external_memory`](crate::DeviceInfo::external_memory) says which), or not
    /// this memory; size or alignment are not possible.
    pub fn import(device: &Device, memory: ExternalMemory) -> Result<SharedMemory> {
        let buffer = device.hal().import_buffer(&BufferParams::DEVICE, memory)?;
        let size = buffer.byte_length();
        let shared = SharedMemory { buffer, device: device.clone(), size };
        shared.acquire()?;
        Ok(shared)
    }

    /// Makes memory of at least so many bytes on a device, to be given away as this kind. What it holds is not defined.
    ///
    /// # Errors
    /// The device gives no memory of this kind, or has none left.
    pub fn create(device: &Device, kind: ExternalKind, size: usize) -> Result<SharedMemory> {
        let size = (size as u64).max(1).checked_next_multiple_of(BINDING_ALIGNMENT);
        let size = size.ok_or_else(|| Error::invalid("no memory is that large".to_owned()))?;
        let buffer = device.hal().allocate_exportable(&BufferParams::DEVICE, size, kind)?;
        Ok(SharedMemory { buffer, device: device.clone(), size })
    }

    /// A handle of memory from [`SharedMemory::create`], for others; each call gives a new one. The memory lives as long as either side
    /// uses it.
    ///
    /// # Errors
    /// The memory was not made for this.
    pub fn export(&self, kind: ExternalKind) -> Result<ExternalMemory> {
        Ok(self.device.hal().export_buffer(&self.buffer, kind)?)
    }

    /// Bytes that tensors can lie in.
    pub fn size(&self) -> usize {
        // As large as the memory that it is.
        self.size as usize
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A tensor of the bytes from `offset` on, which are little-endian elements. Nothing is copied: while a call uses the tensor, nobody
    /// may change them.
    ///
    /// # Errors
    /// It does not lie in the memory. `offset` is no multiple of 256.
    pub fn tensor(
        &self,
        element_type: ElementType,
        shape: impl Into<Shape>,
        offset: usize,
    ) -> Result<Tensor> {
        let (shape, offset) = (shape.into(), offset as u64);
        if !offset.is_multiple_of(BINDING_ALIGNMENT) {
            return Err(Error::invalid(format!(
                "a tensor in shared memory begins at a multiple of {BINDING_ALIGNMENT} bytes, not at {offset}"
            )));
        }
        let length = crate::tensor::byte_length(element_type, shape.sizes())? as u64;
        // Kernels read whole words and vectors.
        let end =
            length.checked_next_multiple_of(BUFFER_PADDING).and_then(|length| length.checked_add(offset));
        if end.is_none_or(|end| end > self.size) {
            return Err(Error::invalid(format!(
                "a tensor of {length} bytes at {offset} does not lie in memory of {} bytes; its bytes are counted in whole {BUFFER_PADDING}",
                self.size
            )));
        }
        let span = BufferSpan { buffer: self.buffer.clone(), offset, length };
        Ok(Tensor::on_device(element_type, shape, span, &self.device))
    }

    /// Copies a tensor to the bytes from `offset` on, and waits for that. From the same device, nothing goes through the host.
    ///
    /// # Errors
    /// It does not fit, `offset` is no multiple of 4, the memory is only read, or the device fails.
    pub fn write(&self, offset: usize, tensor: &Tensor) -> Result<()> {
        let (offset, length) = (offset as u64, tensor.byte_len() as u64);
        if !offset.is_multiple_of(4) {
            return Err(Error::invalid(format!("copies begin at a multiple of 4 bytes, not at {offset}")));
        }
        if offset.checked_add(length).is_none_or(|end| end > self.size) {
            let size = self.size;
            return Err(Error::invalid(format!(
                "{length} bytes at {offset} do not lie in memory of {size} bytes"
            )));
        }
        if length == 0 {
            return Ok(());
        }
        let source = tensor.to_device(&self.device)?;
        let span = source.span().ok_or_else(|| Error::invalid("the tensor is on no device".to_owned()))?;
        let target = BufferSpan { buffer: self.buffer.clone(), offset, length };
        self.submit(QueueOp::Copy { source: span.subspan(0, length)?, target })
    }

    /// Takes the memory back from the others, who must have finished; what they wrote is seen by calls that begin after this. Does nothing
    /// where the device has it.
    ///
    /// # Errors
    /// The device fails.
    pub fn acquire(&self) -> Result<()> {
        self.submit(QueueOp::Acquire { buffer: self.buffer.clone() })
    }

    /// Gives the memory to the others: they see what calls that have returned wrote, and may write themselves. Waits for the device. Does
    /// nothing where they have it.
    ///
    /// # Errors
    /// The device fails.
    pub fn release(&self) -> Result<()> {
        self.submit(QueueOp::Release { buffer: self.buffer.clone() })
    }

    /// Does something on the device, and waits for it.
    fn submit(&self, operation: QueueOp) -> Result<()> {
        let device = self.device.hal();
        let signal = Fence::new(device.create_semaphore(0)?, 1);
        device.queue_submit(QueueAffinity::ANY, &Fence::default(), &signal, operation)?;
        device.queue_flush(QueueAffinity::ANY)?;
        Ok(signal.wait(Deadline::Never)?)
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory({} bytes on {})", self.size, self.device.uri())
    }
}
