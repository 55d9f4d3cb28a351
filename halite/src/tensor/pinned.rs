//! Inputs in memory of the host that a device reads by itself.

use std::{fmt, sync::Arc};

use halite_hal::{Buffer, BufferParams, BufferSpan};

use super::{Element, Repr, Shape, Storage, Tensor, byte_length, describe};
use crate::{Device, ElementType, Error, ErrorKind, Result};

/// A tensor in memory of the host that a device can read, for inputs which are filled anew for each call: pictures of a camera, sound, the
/// state of a simulation. Elements of a plain [`Tensor`] are copied to such memory for each call, which takes the processor some 60
/// microseconds for each megabyte; these are there already, and the device fetches them while the processor goes on.
///
/// ```
/// use halite::{Device, ElementType, PinnedTensor};
///
/// let device = Device::open("local-sync")?;
/// let mut picture = PinnedTensor::new(&device, ElementType::F32, [2, 3])?;
/// for frame in 0..2 {
///     picture.as_mut_slice::<f32>()?.fill(frame as f32);
///     let input = picture.send()?; // For Session::run.
///     assert_eq!(input.to_vec::<f32>()?, [frame as f32; 6]);
/// }
/// # Ok::<(), halite::Error>(())
/// ```
///
/// Where a device has no such memory, or its driver is a plug-in, this is memory of the program, and [`PinnedTensor::send`] copies it.
pub struct PinnedTensor {
    device: Device,
    element_type: ElementType,
    shape: Vec<usize>,
    length: usize,
    memory: Memory,
}

/// Where the elements are.
enum Memory {
    /// Only here is there a handle of the buffer.
    Pinned(Arc<dyn Buffer>),
    Plain(Vec<u8>),
}

impl PinnedTensor {
    /// Zeros.
    ///
    /// # Errors
    /// There is no memory, or the device fails.
    pub fn new(device: &Device, element_type: ElementType, shape: impl Into<Shape>) -> Result<PinnedTensor> {
        let shape = shape.into().0;
        let length = byte_length(element_type, &shape)?;
        let mut buffer = device.hal().allocate_buffer(&BufferParams::PINNED, length as u64)?;
        let memory = match own(&mut buffer)? {
            Some(bytes) => {
                bytes.fill(0);
                Memory::Pinned(buffer)
            }
            None => Memory::Plain(plain(length)?),
        };
        Ok(PinnedTensor { device: device.clone(), element_type, shape, length, memory })
    }

    /// Type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The device that reads it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether the device reads the elements where they are; if not, [`PinnedTensor::send`] copies them.
    pub fn is_pinned(&self) -> bool {
        matches!(self.memory, Memory::Pinned(_))
    }

    /// The little-endian bytes of the elements, to be read and written. Waits until the device has fetched what was sent.
    ///
    /// # Errors
    /// The device fails.
    pub fn as_mut_bytes(&mut self) -> Result<&mut [u8]> {
        match &mut self.memory {
            Memory::Pinned(buffer) => {
                own(buffer)?.ok_or_else(|| Error::invalid("the memory is still in use"))
            }
            Memory::Plain(bytes) => Ok(bytes),
        }
    }

    /// The elements, to be read and written. Waits until the device has fetched what was sent.
    ///
    /// # Errors
    /// They are of another type, or are `bool`; or the device fails.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        if !T::reads(self.element_type) {
            let what = describe(self.element_type, &self.shape);
            return Err(Error::invalid(format!("a tensor {what} has no elements of type {}", T::TYPE)));
        }
        let element = self.element_type;
        let none = || {
            Error::invalid(format!("elements of type {element} cannot be written in place; as_mut_bytes can"))
        };
        T::cast_mut(self.as_mut_bytes()?).ok_or_else(none)
    }

    /// A tensor on the device with these elements, for a call. Does not wait for the device: it fetches them before the work that reads the
    /// tensor.
    ///
    /// # Errors
    /// There is no memory, or the device fails.
    pub fn send(&mut self) -> Result<Tensor> {
        let bytes = match &self.memory {
            Memory::Pinned(_) if self.length == 0 => &[][..],
            Memory::Pinned(source) => {
                let length = self.length as u64;
                let buffer = self.device.hal().allocate_buffer(&BufferParams::DEVICE, length)?;
                buffer.write_from(0, source.as_ref(), length)?;
                self.device.counters().count_upload(length);
                let span = BufferSpan::whole(buffer);
                let storage = Storage::Device { span, device: self.device.clone(), sent: None };
                let (element_type, shape) = (self.element_type, self.shape.clone());
                return Ok(Tensor(Arc::new(Repr { element_type, shape, storage })));
            }
            Memory::Plain(bytes) => bytes,
        };
        Tensor::put(&self.device, self.element_type, self.shape.clone(), bytes)
    }
}

/// Zeros in memory of the program.
fn plain(length: usize) -> Result<Vec<u8>> {
    let none = |_| Error::new(ErrorKind::OutOfMemory, format!("{length} bytes do not fit in host memory"));
    halite_abi::room::zeros(length).map_err(none)
}

/// The bytes of a buffer that has no other handle.
fn own(buffer: &mut Arc<dyn Buffer>) -> Result<Option<&mut [u8]>> {
    match Arc::get_mut(buffer) {
        Some(own) => Ok(own.bytes_mut()?),
        None => Ok(None),
    }
}

impl fmt::Debug for PinnedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedTensor({}, {:?})", describe(self.element_type, &self.shape), self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_program_serves_where_a_device_reads_none() {
        let device = Device::open("local-sync").unwrap();
        let memory = Memory::Plain(plain(8).unwrap());
        let mut tensor =
            PinnedTensor { device, element_type: ElementType::I32, shape: vec![2], length: 8, memory };
        assert!(!tensor.is_pinned());
        for value in [3, 4] {
            tensor.as_mut_bytes().unwrap()[4] = value;
            assert_eq!(tensor.send().unwrap().to_vec::<i32>().unwrap(), [0, value.into()]);
        }
        assert!(plain(usize::MAX).unwrap_err().message().contains("do not fit"));
    }
}
