//! `halite.Tensor`: a tensor on the host or on a device.

use halite::Tensor as Inner;
use numpy::PyUntypedArray;
use pyo3::{prelude::*, types::PyTuple};

use crate::{
    array::{self, Target},
    device::Device,
    error::{OrRaise, invalid},
    running,
    work::short,
};

/// A dense array of numbers on a device or on the host, which never changes. `numpy()` or `numpy.asarray()` read it; calls take it as
/// it is, so results go into the next call without a copy.
///
///     Tensor([[1.0, 2.0]], dtype="float32", device=session.device)
#[pyclass(frozen, module = "halite")]
pub struct Tensor(pub Inner);

#[pymethods]
impl Tensor {
    /// A copy of what turns into an array: a NumPy array, a list, or an object with `__dlpack__`.
    #[new]
    #[pyo3(signature = (data, *, dtype=None, device=None))]
    fn new(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        dtype: Option<&str>,
        device: Option<&Device>,
    ) -> PyResult<Tensor> {
        let target = device.map_or(Target::Host, |device| Target::Device(&device.0));
        if let Ok(tensor) = data.cast::<Tensor>() {
            let inner = &tensor.get().0;
            return match target {
                Target::Device(device) => short(py, || inner.to_device(device)).map(Tensor),
                Target::Host => short(py, || inner.to_host()).map(Tensor),
            };
        }
        let _call = running::within(py)?;
        let array = array::array_of(data, dtype)?;
        let array = match dtype {
            // Arrays have types of their own, which only this argument changes.
            Some(name) => array.call_method1("astype", (name,))?.cast_into::<PyUntypedArray>()?,
            None => array,
        };
        array::tensor(&array, target).map(Tensor)
    }

    /// Sizes, outermost first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// NumPy's type of the elements.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array::dtype(py, self.0.element_type())
    }

    /// The device that it lies on; `None` on the host.
    #[getter]
    fn device(&self) -> Option<Device> {
        self.0.device().cloned().map(Device)
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.shape().len()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.0.len()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.byte_len()
    }

    /// The elements as a new NumPy array.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array::array(py, &self.0)
    }

    /// Copies the elements into a NumPy array of the same type and shape, which saves making one.
    fn read_into(&self, array: &Bound<'_, PyAny>) -> PyResult<()> {
        array::read_into(&self.0, array)
    }

    /// This tensor on a device, or on the host for `None`; the same one if it is there already.
    #[pyo3(signature = (device))]
    fn to(&self, py: Python<'_>, device: Option<&Device>) -> PyResult<Tensor> {
        let moved = match device {
            Some(device) => short(py, || self.0.to_device(&device.0)),
            None => short(py, || self.0.to_host()),
        };
        moved.map(Tensor)
    }

    /// The same elements in another shape, without a copy. One size may be -1.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<Tensor> {
        let sizes: Vec<i64> = match shape.len() {
            1 => shape.get_item(0)?.extract().or_else(|_| shape.extract())?,
            _ => shape.iter().map(|size| size.extract()).collect::<PyResult<_>>()?,
        };
        let sizes = filled(&sizes, self.0.len()).ok_or_else(|| {
            invalid(py, &format!("a tensor of shape {:?} cannot become {sizes:?}", self.0.shape()))
        })?;
        self.0.reshape(sizes).or_raise(py).map(Tensor)
    }

    /// The only element as a number of Python.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.0.len() != 1 {
            return Err(invalid(py, &format!("a tensor of shape {:?} is not one element", self.0.shape())));
        }
        self.numpy(py)?.call_method0("item")
    }

    /// The elements as lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy(py)?.call_method0("tolist")
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "the elements of a tensor are copied when they become an array",
            ));
        }
        let array = self.numpy(py)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// The elements for other libraries, copied to the host: they know no memory of Vulkan devices.
    #[pyo3(signature = (**options))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        options: Option<&Bound<'py, pyo3::types::PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wanted = options.map(|given| given.get_item("copy")).transpose()?.flatten();
        if wanted.is_some_and(|copy| copy.is(pyo3::types::PyBool::new(py, false))) {
            return Err(pyo3::exceptions::PyBufferError::new_err("the elements of a tensor are copied"));
        }
        self.numpy(py)?.call_method0("__dlpack__")
    }

    /// DLPack's name of the host: the number of its kind, and the number of the device.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.shape().first().copied().ok_or_else(|| {
            let _ = py;
            pyo3::exceptions::PyTypeError::new_err("a tensor without dimensions has no length")
        })
    }

    fn __repr__(&self) -> String {
        let place = self.0.device().map_or("the host".to_owned(), halite::Device::uri);
        format!("Tensor({}{:?} on {place})", array::type_name(self.0.element_type()), self.0.shape())
    }
}

/// Sizes with the -1 among them filled in.
fn filled(sizes: &[i64], count: usize) -> Option<Vec<usize>> {
    let known: Vec<usize> = sizes.iter().filter_map(|size| usize::try_from(*size).ok()).collect();
    let open = sizes.len() - known.len();
    if open == 0 {
        return Some(known);
    }
    let product = known.iter().try_fold(1usize, |product, size| product.checked_mul(*size))?;
    if open > 1 || sizes.iter().any(|size| *size < -1) || product == 0 || !count.is_multiple_of(product) {
        return None;
    }
    Some(sizes.iter().map(|size| usize::try_from(*size).unwrap_or(count / product)).collect())
}

/// A tensor for a choice that is made before there is a device.
pub fn host_tensor(given: &Bound<'_, PyAny>) -> PyResult<Inner> {
    if let Ok(own) = given.cast::<Tensor>() {
        return Ok(own.get().0.clone());
    }
    array::tensor(&array::array_of(given, None)?, Target::Host)
}
