//! `halite.ExternalMemory`: memory as others know it, by a handle.

use halite::{ExternalHandle, ExternalKind, ExternalMemory as Inner};
use parking_lot::Mutex;
use pyo3::{prelude::*, sync::PyOnceLock, types::PyTuple};

use crate::{
    error::{OrRaise, invalid},
    lent,
};

/// A kind by its name.
pub fn kind_of(py: Python<'_>, name: &str) -> PyResult<ExternalKind> {
    ExternalKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<_> = ExternalKind::ALL.iter().map(|kind| format!("'{kind}'")).collect();
        invalid(py, &format!("there is no kind of memory '{name}'; there are {}", names.join(", ")))
    })
}

/// Memory as others know it: a descriptor of Linux or a `HANDLE` of Windows, which this object owns and `close()` closes.
///
/// `handle` is a number, or an object with `fileno()`. It stays the caller's: this gets a duplicate. `size` is that of the whole
/// allocation. It goes to other processes through pipes and queues of `multiprocessing`.
#[pyclass(frozen, module = "halite")]
pub struct ExternalMemory {
    held: Mutex<Option<ExternalHandle>>,
    kind: ExternalKind,
    size: u64,
    memory_type: Option<u32>,
    dedicated: bool,
}

impl ExternalMemory {
    /// What the library gave.
    pub fn given(py: Python<'_>, memory: Inner) -> PyResult<ExternalMemory> {
        crosses_processes(py)?;
        let Inner { handle, size, memory_type, dedicated } = memory;
        let kind = handle.kind();
        Ok(ExternalMemory { held: Mutex::new(Some(handle)), kind, size, memory_type, dedicated })
    }

    /// The same with a handle of its own, for the library.
    pub fn duplicate(&self, py: Python<'_>) -> PyResult<Inner> {
        let handle = match &*self.held.lock() {
            None => return Err(closed(py)),
            #[cfg(unix)]
            Some(ExternalHandle::OpaqueFd(own)) => own.try_clone().map(ExternalHandle::OpaqueFd),
            #[cfg(unix)]
            Some(ExternalHandle::DmaBuf(own)) => own.try_clone().map(ExternalHandle::DmaBuf),
            #[cfg(windows)]
            Some(ExternalHandle::OpaqueWin32(own)) => own.try_clone().map(ExternalHandle::OpaqueWin32),
            Some(other) => {
                return Err(invalid(py, &format!("memory of the kind {} has no handle", other.kind())));
            }
        };
        let handle = handle.map_err(|error| invalid(py, &format!("the handle has no duplicate: {error}")))?;
        Ok(Inner { handle, size: self.size, memory_type: self.memory_type, dedicated: self.dedicated })
    }
}

fn closed(py: Python<'_>) -> PyErr {
    invalid(py, "the handle was closed")
}

/// Has `multiprocessing` duplicate handles for the process that gets them.
fn crosses_processes(py: Python<'_>) -> PyResult<()> {
    static DONE: PyOnceLock<()> = PyOnceLock::new();
    let register = || py.import("halite._external")?.call_method0("register").map(drop);
    DONE.get_or_try_init(py, register).copied()
}

/// The number of a handle that is lent.
fn number(handle: &ExternalHandle) -> Option<i64> {
    match handle {
        #[cfg(unix)]
        ExternalHandle::OpaqueFd(own) | ExternalHandle::DmaBuf(own) => {
            Some(std::os::fd::AsRawFd::as_raw_fd(own).into())
        }
        #[cfg(windows)]
        ExternalHandle::OpaqueWin32(own) => {
            Some(std::os::windows::io::AsRawHandle::as_raw_handle(own).expose_provenance() as i64)
        }
        _ => None,
    }
}

/// The number of a handle that is given away.
fn into_number(handle: ExternalHandle) -> Option<i64> {
    match handle {
        #[cfg(unix)]
        ExternalHandle::OpaqueFd(own) | ExternalHandle::DmaBuf(own) => {
            Some(std::os::fd::IntoRawFd::into_raw_fd(own).into())
        }
        #[cfg(windows)]
        ExternalHandle::OpaqueWin32(own) => {
            Some(std::os::windows::io::IntoRawHandle::into_raw_handle(own).expose_provenance() as i64)
        }
        _ => None,
    }
}

#[pymethods]
impl ExternalMemory {
    #[new]
    #[pyo3(signature = (handle, size, *, kind="opaque-fd", memory_type=None, dedicated=false))]
    fn new(
        py: Python<'_>,
        handle: &Bound<'_, PyAny>,
        size: u64,
        kind: &str,
        memory_type: Option<u32>,
        dedicated: bool,
    ) -> PyResult<ExternalMemory> {
        let number: i64 = match handle.extract() {
            Ok(number) => number,
            Err(_) => handle.call_method0("fileno")?.extract()?,
        };
        let handle = lent::duplicate(py, kind_of(py, kind)?, number)?;
        ExternalMemory::given(py, Inner { handle, size, memory_type, dedicated })
    }

    /// What it is known by: `opaque-fd`, `dma-buf` or `opaque-win32`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind.name()
    }

    /// Bytes of the whole allocation.
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// Index of the Vulkan memory type that it was allocated from; `None` where that is not known.
    #[getter]
    fn memory_type(&self) -> Option<u32> {
        self.memory_type
    }

    /// Whether it was allocated for one buffer alone.
    #[getter]
    fn dedicated(&self) -> bool {
        self.dedicated
    }

    /// Whether the handle was closed or given away.
    #[getter]
    fn closed(&self) -> bool {
        self.held.lock().is_none()
    }

    /// The handle's number, which stays this object's: a descriptor, or a `HANDLE` of Windows.
    fn fileno(&self, py: Python<'_>) -> PyResult<i64> {
        let number = self.held.lock().as_ref().and_then(number);
        number.ok_or_else(|| closed(py))
    }

    /// The handle's number, which is the caller's then: for APIs that take handles over, such as CUDA.
    fn detach(&self, py: Python<'_>) -> PyResult<i64> {
        let handle = self.held.lock().take();
        handle.and_then(into_number).ok_or_else(|| closed(py))
    }

    /// Closes the handle; closing twice does nothing. The memory lives on where it is imported.
    fn close(&self) {
        drop(self.held.lock().take());
    }

    fn __enter__(own: PyRef<'_, Self>) -> PyRef<'_, Self> {
        own
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { ", closed" } else { "" };
        format!("ExternalMemory({} bytes, {}{state})", self.size, self.kind)
    }
}

/// What a device does with memory of others, by kind.
pub fn support(py: Python<'_>, info: &halite::DeviceInfo) -> PyResult<Py<PyAny>> {
    let told = pyo3::types::PyDict::new(py);
    for support in info.external_memory() {
        let one = pyo3::types::PyDict::new(py);
        one.set_item("import", support.import)?;
        one.set_item("export", support.export)?;
        one.set_item("alignment", support.alignment)?;
        told.set_item(support.kind.name(), one)?;
    }
    Ok(told.into_any().unbind())
}

/// A device's memory, exported.
pub fn export(py: Python<'_>, memory: &halite::SharedMemory, kind: ExternalKind) -> PyResult<ExternalMemory> {
    ExternalMemory::given(py, memory.export(kind).or_raise(py)?)
}
