//! What a program in Python gives as inputs, as values of the library.

use halite::{Inputs, Value, ValueInfo, ValueType};
use numpy::PyUntypedArray;
use pyo3::{
    prelude::*,
    types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyTuple},
};

use crate::{
    array::{self, Target, type_name},
    error::invalid,
    tensor,
};

/// Most levels of lists in lists.
const DEEPEST: usize = 16;

/// Something that only modules understand: a result that another call takes.
#[pyclass(frozen, module = "halite")]
pub struct Opaque(pub Value);

#[pymethods]
impl Opaque {
    /// The name of its type.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn __repr__(&self) -> String {
        format!("Opaque({})", self.0.kind())
    }
}

/// What is known of where inputs go.
pub struct InputTarget<'a> {
    /// The inputs of the function.
    pub infos: &'a [ValueInfo],
    /// The device that tensors go to; none for a module that uses none.
    pub device: Option<&'a halite::Device>,
}

impl InputTarget<'_> {
    fn target(&self) -> Target<'_> {
        self.device.map_or(Target::Host, Target::Device)
    }

    /// The inputs of a call: a dictionary by names, a list or tuple by places, one value, or nothing.
    pub fn inputs(&self, given: Option<&Bound<'_, PyAny>>) -> PyResult<Inputs> {
        let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(Inputs::new()) };
        if let Ok(named) = given.cast::<PyDict>() {
            return self.named(named.iter());
        }
        let mut inputs = Inputs::new();
        if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
            for (place, value) in given.try_iter()?.enumerate() {
                inputs = inputs.push(self.value(&value?, self.infos.get(place), 0)?);
            }
            return Ok(inputs);
        }
        if !given.is_instance_of::<PyUntypedArray>()
            && given.hasattr("keys")?
            && given.hasattr("__getitem__")?
        {
            let keys: Vec<Bound<'_, PyAny>> =
                given.call_method0("keys")?.try_iter()?.collect::<PyResult<_>>()?;
            let pairs = keys.into_iter().map(|key| Ok((key.clone(), given.get_item(&key)?)));
            return self.named(pairs.collect::<PyResult<Vec<_>>>()?.into_iter());
        }
        Ok(inputs.push(self.value(given, self.infos.first(), 0)?))
    }

    fn named<'py>(
        &self,
        pairs: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    ) -> PyResult<Inputs> {
        let mut inputs = Inputs::new();
        for (name, value) in pairs {
            let py = name.py();
            let name: String = name
                .extract()
                .map_err(|_| invalid(py, "names of inputs are texts; give a list for inputs by place"))?;
            let info = self.infos.iter().find(|info| info.name == name);
            let value = self.value(&value, info, 0).map_err(|error| noted(py, error, &name))?;
            inputs = inputs.with(name, value);
        }
        Ok(inputs)
    }

    /// One value.
    pub fn value(&self, given: &Bound<'_, PyAny>, info: Option<&ValueInfo>, depth: usize) -> PyResult<Value> {
        let py = given.py();
        if let Ok(array) = given.cast::<PyUntypedArray>() {
            return Ok(array::tensor(array, self.target())?.into());
        }
        if let Ok(own) = given.cast::<tensor::Tensor>() {
            return Ok(own.get().0.clone().into());
        }
        if let Ok(opaque) = given.cast::<Opaque>() {
            return Ok(opaque.get().0.clone());
        }
        if given.is_none() {
            return Ok(Value::Null);
        }
        match info.map(|info| &info.value_type) {
            Some(ValueType::Scalar(name)) => return scalar(given, name),
            Some(ValueType::Sequence) => return self.list(given, depth),
            Some(ValueType::Other(_)) => {
                if let Ok(bytes) = given.cast::<PyBytes>() {
                    return Ok(Value::Bytes(bytes.as_bytes().to_vec().into()));
                }
                if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
                    return self.list(given, depth);
                }
            }
            Some(ValueType::Tensor { .. }) | None => {}
            Some(_) => return Err(invalid(py, "an input of this kind cannot be given from Python")),
        }
        let declared = info.and_then(|info| match &info.value_type {
            ValueType::Tensor { element_type: Some(of), .. } => Some(type_name(*of)),
            _ => None,
        });
        let array = array::array_of(given, declared.as_deref())?;
        Ok(array::tensor(&array, self.target())?.into())
    }

    fn list(&self, given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
        if depth == DEEPEST {
            return Err(invalid(
                given.py(),
                &format!("lists lie in lists {DEEPEST} levels deep; that is the most"),
            ));
        }
        let values = given.try_iter()?.map(|value| self.value(&value?, None, depth + 1));
        Ok(Value::List(values.collect::<PyResult<_>>()?))
    }
}

/// An exception that says which input it is about.
fn noted(py: Python<'_>, error: PyErr, name: &str) -> PyErr {
    let value = error.value(py);
    let Ok(text) = value.str() else { return error };
    match value.getattr("kind") {
        Ok(_) => invalid(py, &format!("input '{name}': {text}")),
        Err(_) => error,
    }
}

/// A number for a module that takes numbers.
fn scalar(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Value> {
    Ok(match name {
        "f32" => Value::F32(given.extract()?),
        "f64" => Value::F64(given.extract()?),
        "i64" | "index" => Value::I64(given.extract()?),
        "i1" | "i8" | "i16" | "i32" => Value::I32(given.extract()?),
        _ if given.is_instance_of::<PyBool>() => Value::I32(i32::from(given.extract::<bool>()?)),
        _ if given.is_instance_of::<PyInt>() => Value::I64(given.extract()?),
        _ if given.is_instance_of::<PyFloat>() => Value::F64(given.extract()?),
        _ => return Err(invalid(given.py(), &format!("an input of the type {name} takes a number"))),
    })
}
