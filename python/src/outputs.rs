//! `halite.Outputs`: the results of a call, by name and by place. They are read from the device when they are looked at.

use halite::{Tensor as InnerTensor, Value};
use parking_lot::Mutex;
use pyo3::{
    exceptions::{PyIndexError, PyKeyError, PyTypeError},
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};

use crate::{array, inputs::Opaque, tensor::Tensor};

/// The results of a call: a mapping from names to NumPy arrays, which also takes places. A result is copied from the device when it
/// is first looked at; `tensor()` gives it as it lies there.
#[pyclass(frozen, mapping, module = "halite")]
pub struct Outputs {
    inner: halite::Outputs,
    /// Results that were looked at.
    seen: Mutex<Vec<Option<Py<PyAny>>>>,
}

impl Outputs {
    pub fn new(inner: halite::Outputs) -> Self {
        let seen = Mutex::new(inner.values().iter().map(|_| None).collect());
        Outputs { inner, seen }
    }

    fn place(&self, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        let names = || self.inner.names().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        if let Ok(name) = key.extract::<std::borrow::Cow<'_, str>>() {
            let found = self.inner.names().position(|own| own == &*name);
            let missing =
                || PyKeyError::new_err(format!("there is no output '{name}'; there are: {}", names()));
            let place = found.ok_or_else(missing)?;
            // A sequence gives as many values as it has tensors.
            return (place < self.inner.len()).then_some(place).ok_or_else(|| {
                PyKeyError::new_err(format!("the call gave no value for the output '{}'", &*name))
            });
        }
        let place: isize =
            key.extract().map_err(|_| PyTypeError::new_err("outputs are found by names and by places"))?;
        let count = self.inner.len();
        let from_start = if place < 0 { place.checked_add_unsigned(count) } else { Some(place) };
        let found = from_start.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < count);
        found.ok_or_else(|| {
            PyIndexError::new_err(format!("there is no output {place}; there are {count}: {}", names()))
        })
    }

    /// The names that have a value.
    fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.inner.names().take(self.inner.len())
    }

    fn value(&self, py: Python<'_>, place: usize) -> PyResult<Py<PyAny>> {
        if let Some(seen) = &self.seen.lock()[place] {
            return Ok(seen.clone_ref(py));
        }
        let made = lift(py, &self.inner.values()[place])?.unbind();
        // Another thread may have been first: its array counts.
        Ok(self.seen.lock()[place].get_or_insert(made).clone_ref(py))
    }
}

/// A value as Python has it.
pub fn lift<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Tensor(tensor) => array::array(py, tensor)?,
        Value::I32(v) => v.into_pyobject(py)?.into_any(),
        Value::I64(v) => v.into_pyobject(py)?.into_any(),
        Value::F32(v) => v.into_pyobject(py)?.into_any(),
        Value::F64(v) => v.into_pyobject(py)?.into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Null => py.None().into_bound(py),
        Value::List(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(lift(py, value)?)?;
            }
            list.into_any()
        }
        other => Bound::new(py, Opaque(other.clone()))?.into_any(),
    })
}

#[pymethods]
impl Outputs {
    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.value(py, self.place(key)?)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> bool {
        key.extract::<std::borrow::Cow<'_, str>>().is_ok_and(|name| self.names().any(|own| own == name))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, self.names())?.try_iter()?.into_any())
    }

    /// The names, in the function's order.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names())
    }

    /// The results, in the function's order.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let values = (0..self.inner.len()).map(|place| self.value(py, place));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    /// Names and results, in the function's order.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let pairs = self.names().enumerate().map(|(place, name)| Ok((name, self.value(py, place)?)));
        PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
    }

    /// The result with a name or place, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get(&self, py: Python<'_>, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        match self.place(key) {
            Ok(place) => self.value(py, place),
            Err(_) => Ok(default.unwrap_or_else(|| py.None())),
        }
    }

    /// The tensor with a name or place as it lies on the device, to go into another call without a copy.
    fn tensor(&self, key: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let value = &self.inner.values()[self.place(key)?];
        let tensor: Option<&InnerTensor> = value.as_tensor();
        tensor
            .cloned()
            .map(Tensor)
            .ok_or_else(|| PyTypeError::new_err(format!("this output is a {}, not a tensor", value.kind())))
    }

    /// All tensors as they lie on the device, by name.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tensors = PyDict::new(py);
        for (name, value) in self.inner.iter() {
            if let Some(tensor) = value.as_tensor() {
                tensors.set_item(name, Tensor(tensor.clone()))?;
            }
        }
        Ok(tensors)
    }

    fn __repr__(&self) -> String {
        let shown = self.inner.iter().map(|(name, value)| match value.as_tensor() {
            Some(t) => format!("'{name}': {}{:?}", array::type_name(t.element_type()), t.shape()),
            None => format!("'{name}': {}", value.kind()),
        });
        format!("Outputs({})", shown.collect::<Vec<_>>().join(", "))
    }
}
