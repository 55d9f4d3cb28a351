//! `halite.SharedMemory`: memory that a device shares with others.

use halite::{ExternalKind, ExternalMemory as Handle, SharedMemory as Inner};
use numpy::PyUntypedArray;
use parking_lot::RwLock;
use pyo3::{prelude::*, types::PyTuple};

use crate::{
    array::{self, Target},
    device::Device,
    error::{OrRaise, invalid},
    external::{self, ExternalMemory, kind_of},
    lent,
    tensor::Tensor,
    work::short,
};

/// Memory that others also use; tensors lie in it without a copy. This makes some for others, `open()` and `from_array()` take theirs.
///
///     with SharedMemory(session.device, 4000) as memory:
///         memory.write(session.run(inputs).tensor("logits"))
///         memory.release()
///         show(memory.export())
///
/// Either the device has the memory, as at first, or the others, between `release()` and `acquire()`; meanwhile calls with its tensors
/// fail. Nobody waits for the others: they must have finished before `acquire()`.
#[pyclass(frozen, module = "halite")]
pub struct SharedMemory {
    held: RwLock<Option<Inner>>,
    device: halite::Device,
    kind: ExternalKind,
    size: usize,
}

impl SharedMemory {
    fn of(memory: Inner, kind: ExternalKind) -> SharedMemory {
        let (device, size) = (memory.device().clone(), memory.size());
        SharedMemory { held: RwLock::new(Some(memory)), device, kind, size }
    }

    /// The memory, unless it was closed.
    fn get(&self, py: Python<'_>) -> PyResult<Inner> {
        let held = self.held.read().clone();
        held.ok_or_else(|| invalid(py, "the memory was closed"))
    }
}

#[pymethods]
impl SharedMemory {
    #[new]
    #[pyo3(signature = (device, size, *, kind="opaque-fd"))]
    fn new(py: Python<'_>, device: &Device, size: usize, kind: &str) -> PyResult<SharedMemory> {
        let kind = kind_of(py, kind)?;
        let made = short(py, || Inner::create(&device.0, kind, size))?;
        Ok(SharedMemory::of(made, kind))
    }

    /// Memory of others, on a device that understands its handle. The handle stays the caller's.
    #[staticmethod]
    fn open(py: Python<'_>, device: &Device, memory: &ExternalMemory) -> PyResult<SharedMemory> {
        let memory = memory.duplicate(py)?;
        let kind = memory.handle.kind();
        let taken = short(py, || Inner::import(&device.0, memory))?;
        Ok(SharedMemory::of(taken, kind))
    }

    /// The memory of an array, which the device reads where it lies. It begins at a multiple of the device's alignment, mostly a page, as
    /// `numpy.frombuffer(mmap.mmap(-1, size), numpy.float32)` does, and its size is one, too. It is held until `close()`, the last tensor
    /// and the last call; nobody may write to it while a call uses it.
    #[staticmethod]
    fn from_array(
        py: Python<'_>,
        device: &Device,
        array: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<SharedMemory> {
        let pages = lent::pages(array)?;
        let taken = short(py, || Inner::import(&device.0, Handle::host(pages)))?;
        Ok(SharedMemory::of(taken, ExternalKind::Host))
    }

    /// A tensor of the bytes from `offset` on, a multiple of 256. It keeps the memory.
    #[pyo3(signature = (shape, dtype=None, *, offset=0))]
    fn tensor(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        offset: usize,
    ) -> PyResult<Tensor> {
        let shape: Vec<usize> = match shape.extract::<usize>() {
            Ok(size) => vec![size],
            Err(error) if !shape.hasattr("__len__")? => return Err(error),
            Err(_) => shape.extract()?,
        };
        let element = dtype.map_or(Ok(halite::ElementType::F32), array::element_type)?;
        self.get(py)?.tensor(element, shape, offset).or_raise(py).map(Tensor)
    }

    /// Copies a tensor, or what turns into one, to the bytes from `offset` on, a multiple of 4, and waits for that. Tensors of the device
    /// do not go through the host.
    #[pyo3(signature = (tensor, *, offset=0))]
    fn write(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>, offset: usize) -> PyResult<()> {
        let memory = self.get(py)?;
        let tensor = match tensor.cast::<Tensor>() {
            Ok(own) => own.get().0.clone(),
            Err(_) => array::tensor(&array::array_of(tensor, None)?, Target::Device(&self.device))?,
        };
        short(py, || memory.write(offset, &tensor))
    }

    /// Gives the memory to the others, who see what calls that have returned wrote. Waits for the device.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let memory = self.get(py)?;
        short(py, || memory.release())
    }

    /// Takes the memory back from the others, who must have finished; calls that begin afterwards see what they wrote.
    fn acquire(&self, py: Python<'_>) -> PyResult<()> {
        let memory = self.get(py)?;
        short(py, || memory.acquire())
    }

    /// A new handle of memory that was made for others. `kind` is that of the memory, if it is not given.
    #[pyo3(signature = (kind=None))]
    fn export(&self, py: Python<'_>, kind: Option<&str>) -> PyResult<ExternalMemory> {
        let kind = kind.map_or(Ok(self.kind), |name| kind_of(py, name))?;
        external::export(py, &self.get(py)?, kind)
    }

    /// Bytes that tensors can lie in.
    #[getter]
    fn nbytes(&self) -> usize {
        self.size
    }

    /// The device.
    #[getter]
    fn device(&self) -> Device {
        Device(self.device.clone())
    }

    /// What it is known by.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind.name()
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.held.read().is_none()
    }

    /// Lets go of the memory; closing twice does nothing. It stays as long as its tensors and calls with them.
    fn close(&self, py: Python<'_>) {
        let last = self.held.write().take();
        py.detach(move || drop(last));
    }

    fn __enter__(own: PyRef<'_, Self>) -> PyRef<'_, Self> {
        own
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { ", closed" } else { "" };
        format!("SharedMemory({} bytes on {}, {}{state})", self.size, self.device.uri(), self.kind)
    }
}
