//! `halite.FunctionInfo` and `halite.ValueInfo`: what functions take and give.

use halite::{Dimension, ValueType};
use pyo3::{prelude::*, types::PyTuple};

use crate::array::type_name;

/// An input or output of a function.
#[pyclass(frozen, module = "halite")]
pub struct ValueInfo(halite::ValueInfo);

#[pymethods]
impl ValueInfo {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// `tensor`, `sequence` (a list of tensors), `scalar` or `other`.
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.0.value_type {
            ValueType::Tensor { .. } => "tensor",
            ValueType::Sequence => "sequence",
            ValueType::Scalar(_) => "scalar",
            _ => "other",
        }
    }

    /// NumPy's name of a tensor's elements, or the name of a number's type; `None` where it is not known.
    #[getter]
    fn dtype(&self) -> Option<String> {
        match &self.0.value_type {
            ValueType::Tensor { element_type, .. } => element_type.map(type_name),
            ValueType::Scalar(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// Sizes of a tensor: numbers, names of open dimensions, `None` for open ones without a name. `None` where not even their number
    /// is known.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let ValueType::Tensor { shape: Some(shape), .. } = &self.0.value_type else { return Ok(None) };
        let sizes = shape.iter().map(|dimension| match dimension {
            Dimension::Fixed(size) => Ok(size.into_pyobject(py)?.into_any()),
            Dimension::Named(name) => Ok(name.into_pyobject(py)?.into_any()),
            _ => Ok(py.None().into_bound(py)),
        });
        PyTuple::new(py, sizes.collect::<PyResult<Vec<_>>>()?).map(Some)
    }

    /// The most that each dimension may be, where the model states it: those of known size, and bounds of open ones.
    #[getter]
    fn most<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let ValueType::Tensor { shape: Some(shape), .. } = &self.0.value_type else { return Ok(None) };
        let sizes = shape.iter().map(|dimension| match dimension {
            Dimension::Fixed(size) | Dimension::AtMost(size) => Some(*size),
            _ => None,
        });
        PyTuple::new(py, sizes.collect::<Vec<_>>()).map(Some)
    }

    /// Whether it may be left out.
    #[getter]
    fn optional(&self) -> bool {
        self.0.is_optional
    }

    fn __repr__(&self) -> String {
        format!("ValueInfo({})", self.0)
    }
}

/// What a function takes and gives.
#[pyclass(frozen, module = "halite")]
pub struct FunctionInfo(pub halite::FunctionInfo);

#[pymethods]
impl FunctionInfo {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The module that it belongs to; empty for functions of models.
    #[getter]
    fn module(&self) -> &str {
        &self.0.module
    }

    /// Its inputs.
    #[getter]
    fn inputs(&self) -> Vec<ValueInfo> {
        values(&self.0.inputs)
    }

    /// Its outputs.
    #[getter]
    fn outputs(&self) -> Vec<ValueInfo> {
        values(&self.0.outputs)
    }

    /// Inputs and the outputs that replace them: state.
    #[getter]
    fn states(&self) -> Vec<(String, String)> {
        self.0.states.iter().map(|pair| (pair.input.clone(), pair.output.clone())).collect()
    }

    /// Its signature in the compiler's words, where a module has it.
    #[getter]
    fn declaration(&self) -> Option<&str> {
        self.0.declaration.as_deref()
    }

    fn __repr__(&self) -> String {
        format!("FunctionInfo({})", self.0)
    }
}

/// Inputs or outputs as objects of Python.
pub fn values(of: &[halite::ValueInfo]) -> Vec<ValueInfo> {
    of.iter().cloned().map(ValueInfo).collect()
}
