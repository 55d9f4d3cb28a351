//! Tensors: typed arrays on the host or on a device.

#[cfg(feature = "ndarray")]
mod array;
mod capacity;
mod element;
mod memory;
mod pinned;
mod sent;
#[cfg(test)]
mod tests;

#[cfg(feature = "text")]
use std::ops::Range;
use std::{fmt, sync::Arc};

use bytes::Bytes;
use halite_hal::BufferSpan;
use halite_runtime::{BufferView, Encoding, HostTensor};

pub(crate) use capacity::Capacity;
pub use element::Element;
pub use pinned::PinnedTensor;
pub(crate) use sent::{Copy, Given, Habit, Sent, send};

use crate::{Device, ElementType, Error, ErrorKind, Result};

/// A dense row-major array of numbers, on the host or on a device.
///
/// ```
/// use halite::{ElementType, Tensor};
///
/// let t = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
/// assert_eq!((t.element_type(), t.shape()), (ElementType::F32, &[2, 3][..]));
/// assert_eq!(t.reshape([3, 2])?.to_vec::<f32>()?[5], 6.0);
/// assert_eq!(Tensor::scalar(7i64).item::<i64>()?, 7);
/// # Ok::<(), halite::Error>(())
/// ```
///
/// Cheap to clone: clones share the elements, which never change. Any thread may use it. Results of a
/// [`Session`](crate::Session) stay on its device until somebody reads them, so feeding one into the next call copies
/// nothing.
#[derive(Clone)]
pub struct Tensor(Arc<Repr>);

struct Repr {
    element_type: ElementType,
    shape: Vec<usize>,
    storage: Storage,
}

#[derive(Clone)]
enum Storage {
    Host(Bytes),
    Device {
        span: BufferSpan,
        device: Device,
        /// Of results: their way to the host.
        sent: Option<Sent>,
    },
}

/// The dimensions of a new tensor, outermost first. Functions take what turns into one: `[2, 3]`, a slice or `Vec` of sizes, `6` for a
/// vector, `()` for a scalar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape(Vec<usize>);

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(sizes: [usize; N]) -> Self {
        Shape(sizes.to_vec())
    }
}

impl From<&[usize]> for Shape {
    fn from(sizes: &[usize]) -> Self {
        Shape(sizes.to_vec())
    }
}

impl From<Vec<usize>> for Shape {
    fn from(sizes: Vec<usize>) -> Self {
        Shape(sizes)
    }
}

impl From<&Vec<usize>> for Shape {
    fn from(sizes: &Vec<usize>) -> Self {
        Shape(sizes.clone())
    }
}

impl From<usize> for Shape {
    fn from(size: usize) -> Self {
        Shape(vec![size])
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Self {
        Shape::default()
    }
}

impl Shape {
    /// The sizes.
    pub fn sizes(&self) -> &[usize] {
        &self.0
    }
}

/// Bytes of a dense tensor.
pub(crate) fn byte_length(element_type: ElementType, shape: &[usize]) -> Result<usize> {
    let dims: Vec<u64> = shape.iter().map(|size| *size as u64).collect();
    let length = element_type.dense_byte_length(&dims).and_then(|length| usize::try_from(length).ok());
    length.ok_or_else(|| {
        let what = describe(element_type, shape);
        Error::invalid(format!("a tensor {what} is larger than the address space"))
    })
}

/// `1x3xf32`.
pub(crate) fn describe(element_type: ElementType, shape: &[usize]) -> String {
    let dims: String = shape.iter().map(|size| format!("{size}x")).collect();
    format!("{dims}{element_type}")
}

impl Tensor {
    /// A tensor on the host with a copy of these elements.
    ///
    /// ```
    /// let t = halite::Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    /// assert_eq!(t.shape(), [2, 3]);
    /// # Ok::<(), halite::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shape does not have as many elements.
    pub fn from_slice<T: Element>(elements: &[T], shape: impl Into<Shape>) -> Result<Tensor> {
        Self::from_vec(elements.to_vec(), shape)
    }

    /// A tensor on the host of these elements, which are not copied.
    ///
    /// # Errors
    /// The shape does not have as many elements.
    pub fn from_vec<T: Element>(elements: Vec<T>, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into().0;
        let wanted = shape.iter().try_fold(1usize, |n, size| n.checked_mul(*size));
        if wanted != Some(elements.len()) {
            return Err(Error::invalid(format!(
                "{} elements do not fill a tensor of shape {shape:?}",
                elements.len()
            )));
        }
        Ok(Tensor::host(T::TYPE, shape, T::into_bytes(elements)))
    }

    /// A tensor on the host with no dimensions.
    pub fn scalar<T: Element>(element: T) -> Tensor {
        Tensor::host(T::TYPE, Vec::new(), T::into_bytes(vec![element]))
    }

    /// A tensor on the host that is full of zeros.
    ///
    /// # Errors
    /// It does not fit into memory.
    pub fn zeros(element_type: ElementType, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into().0;
        let length = byte_length(element_type, &shape)?;
        let bytes = halite_abi::room::zeros(length).map_err(|_| {
            let what = describe(element_type, &shape);
            Error::new(ErrorKind::OutOfMemory, format!("no memory for a tensor {what} of {length} bytes"))
        })?;
        Ok(Tensor::host(element_type, shape, bytes.into()))
    }

    /// A tensor on the host of little-endian elements, which are not copied.
    ///
    /// # Errors
    /// There are more or fewer bytes than the tensor has.
    pub fn from_bytes(
        element_type: ElementType,
        shape: impl Into<Shape>,
        bytes: impl Into<Bytes>,
    ) -> Result<Tensor> {
        let (shape, bytes) = (shape.into().0, bytes.into());
        let length = byte_length(element_type, &shape)?;
        if bytes.len() != length {
            let what = describe(element_type, &shape);
            return Err(Error::invalid(format!("a tensor {what} has {length} bytes, not {}", bytes.len())));
        }
        Ok(Tensor::host(element_type, shape, bytes))
    }

    /// A tensor whose number of bytes was checked.
    fn host(element_type: ElementType, shape: Vec<usize>, bytes: Bytes) -> Tensor {
        Tensor(Arc::new(Repr { element_type, shape, storage: Storage::Host(bytes) }))
    }

    /// Type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.0.element_type
    }

    /// Dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all elements.
    pub fn byte_len(&self) -> usize {
        match &self.0.storage {
            Storage::Host(bytes) => bytes.len(),
            Storage::Device { .. } => byte_length(self.0.element_type, &self.0.shape).unwrap_or(usize::MAX),
        }
    }

    /// The device that it lies on; `None` on the host.
    pub fn device(&self) -> Option<&Device> {
        match &self.0.storage {
            Storage::Host(_) => None,
            Storage::Device { device, .. } => Some(device),
        }
    }

    /// The same elements in another shape; nothing is copied.
    ///
    /// # Errors
    /// The shape has more or fewer elements.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into().0;
        if shape.iter().try_fold(1usize, |n, size| n.checked_mul(*size)) != Some(self.len()) {
            return Err(Error::invalid(format!(
                "a tensor of shape {:?} cannot become {shape:?}",
                self.shape()
            )));
        }
        let storage = self.0.storage.clone();
        Ok(Tensor(Arc::new(Repr { element_type: self.0.element_type, shape, storage })))
    }

    /// A copy of the elements. Reads them from the device if they are there, which blocks.
    ///
    /// # Errors
    /// They are of another type, or the device fails.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_type::<T>()?;
        Ok(T::from_bytes(&self.to_bytes()?))
    }

    /// The elements without a copy: `None` where they lie on a device, are of another type, are `bool`, or are not aligned
    /// for it.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        match &self.0.storage {
            Storage::Host(bytes) if T::reads(self.0.element_type) => T::cast(bytes),
            _ => None,
        }
    }

    /// The only element.
    ///
    /// # Errors
    /// There are none or several, they are of another type, or the device fails.
    pub fn item<T: Element>(&self) -> Result<T> {
        match self.to_vec::<T>()?[..] {
            [only] => Ok(only),
            _ => Err(Error::invalid(format!("a tensor of shape {:?} is not one element", self.shape()))),
        }
    }

    /// The little-endian bytes of the elements; from the device if they are there, which blocks. No copy on the host.
    ///
    /// # Errors
    /// The device fails.
    pub fn to_bytes(&self) -> Result<Bytes> {
        match &self.0.storage {
            Storage::Host(bytes) => Ok(bytes.clone()),
            Storage::Device { span, device, sent } => {
                let length = byte_length(self.0.element_type, &self.0.shape)?;
                if length == 0 {
                    return Ok(Bytes::new());
                }
                let bytes = match sent.as_ref().and_then(|sent| sent.bytes(length)) {
                    Some(bytes) => bytes,
                    None => span.subspan(0, length as u64).and_then(|span| span.read_all())?.into(),
                };
                device.counters().count_download(length as u64);
                Ok(bytes)
            }
        }
    }

    /// This tensor on the host; the same one if it is there already.
    ///
    /// # Errors
    /// The device fails.
    pub fn to_host(&self) -> Result<Tensor> {
        match &self.0.storage {
            Storage::Host(_) => Ok(self.clone()),
            Storage::Device { .. } => {
                Ok(Tensor::host(self.0.element_type, self.0.shape.clone(), self.to_bytes()?))
            }
        }
    }

    /// This tensor on a device; the same one if it is there already. A tensor of another device goes through the host.
    ///
    /// # Errors
    /// There is no memory, or a device fails.
    pub fn to_device(&self, device: &Device) -> Result<Tensor> {
        if self.device().is_some_and(|own| own.is_same(device)) {
            return Ok(self.clone());
        }
        Tensor::put(device, self.0.element_type, self.0.shape.clone(), &self.to_bytes()?)
    }

    /// Some of the parts that the first dimension counts, such as rows of a matrix: the same memory, not copied.
    ///
    /// # Errors
    /// There is no dimension, or there are fewer parts.
    #[cfg(feature = "text")]
    pub(crate) fn part(&self, parts: Range<usize>) -> Result<Tensor> {
        let whole = self.shape().first().copied().unwrap_or(0);
        if parts.start > parts.end || parts.end > whole {
            let what = describe(self.element_type(), self.shape());
            return Err(Error::invalid(format!(
                "a tensor {what} has no parts {} to {}",
                parts.start, parts.end
            )));
        }
        let mut shape = self.0.shape.clone();
        shape[0] = parts.end - parts.start;
        let size = byte_length(self.element_type(), &self.shape()[1..])?;
        let (start, length) = (parts.start * size, shape[0] * size);
        let storage = match &self.0.storage {
            Storage::Host(bytes) => Storage::Host(bytes.slice(start..start + length)),
            Storage::Device { span, device, .. } => {
                let span = span.subspan(start as u64, length as u64)?;
                Storage::Device { span, device: device.clone(), sent: None }
            }
        };
        Ok(Tensor(Arc::new(Repr { element_type: self.0.element_type, shape, storage })))
    }

    fn check_type<T: Element>(&self) -> Result<()> {
        if T::reads(self.0.element_type) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the tensor has elements of type {}, not {}",
            self.0.element_type,
            T::TYPE
        )))
    }

    /// The same memory, read as another element type of the same width.
    pub(crate) fn relabelled(&self, element_type: ElementType) -> Tensor {
        let storage = self.0.storage.clone();
        Tensor(Arc::new(Repr { element_type, shape: self.0.shape.clone(), storage }))
    }

    /// A tensor in bytes of a device, as many as it has.
    pub(crate) fn on_device(
        element_type: ElementType,
        shape: Shape,
        span: BufferSpan,
        device: &Device,
    ) -> Tensor {
        let storage = Storage::Device { span, device: device.clone(), sent: None };
        Tensor(Arc::new(Repr { element_type, shape: shape.0, storage }))
    }

    /// Its bytes on its device.
    pub(crate) fn span(&self) -> Option<&BufferSpan> {
        match &self.0.storage {
            Storage::Host(_) => None,
            Storage::Device { span, .. } => Some(span),
        }
    }

    /// As programs take it; on its device.
    pub(crate) fn to_view(&self) -> Option<BufferView> {
        let Storage::Device { span, .. } = &self.0.storage else { return None };
        Some(BufferView {
            span: span.clone(),
            shape: self.0.shape.iter().map(|size| *size as u64).collect(),
            element_type: self.0.element_type,
            encoding: Encoding::DENSE_ROW_MAJOR,
        })
    }

    /// A result of a program.
    pub(crate) fn from_view(view: &BufferView, device: &Device) -> Result<Tensor> {
        let broken = |what: String| Error::new(ErrorKind::Other, format!("a result of the program {what}"));
        let shape: Option<Vec<usize>> = view.shape.iter().map(|size| usize::try_from(*size).ok()).collect();
        let shape = shape.ok_or_else(|| broken("is larger than the address space".to_owned()))?;
        let length = byte_length(view.element_type, &shape)? as u64;
        if length > view.span.length {
            let what = describe(view.element_type, &shape);
            return Err(broken(format!(
                "is a tensor {what}, which its {} bytes do not hold",
                view.span.length
            )));
        }
        if view.encoding != Encoding::DENSE_ROW_MAJOR && view.encoding != Encoding::OPAQUE {
            return Err(broken("is not dense".to_owned()));
        }
        let storage = Storage::Device { span: view.span.clone(), device: device.clone(), sent: None };
        Ok(Tensor(Arc::new(Repr { element_type: view.element_type, shape, storage })))
    }

    /// The same tensor, a result of a call, which may have been sent to the host.
    pub(crate) fn with_sent(self, call: &Arc<Given>, copy: Option<Copy>) -> Tensor {
        let Storage::Device { span, device, .. } = &self.0.storage else { return self };
        let sent = Some(Sent::new(call, copy));
        let storage = Storage::Device { span: span.clone(), device: device.clone(), sent };
        Tensor(Arc::new(Repr { element_type: self.0.element_type, shape: self.0.shape.clone(), storage }))
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.device().map_or("host".to_owned(), Device::uri);
        write!(f, "Tensor({} on {place})", describe(self.0.element_type, &self.0.shape))
    }
}

impl From<HostTensor> for Tensor {
    fn from(tensor: HostTensor) -> Self {
        // Sizes of a tensor in memory fit.
        let shape = tensor.shape.iter().map(|size| *size as usize).collect();
        Tensor::host(tensor.element_type, shape, tensor.data.into())
    }
}

impl TryFrom<&Tensor> for HostTensor {
    type Error = Error;

    /// The tensor on the host, read from its device if need be.
    fn try_from(tensor: &Tensor) -> Result<HostTensor> {
        let shape: Vec<u64> = tensor.shape().iter().map(|size| *size as u64).collect();
        Ok(HostTensor::new(tensor.element_type(), shape.as_slice(), tensor.to_bytes()?.to_vec())?)
    }
}
