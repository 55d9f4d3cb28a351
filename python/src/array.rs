//! NumPy arrays and tensors: each becomes the other by one copy, straight between the array's memory and the device's.

use halite::{Device, ElementKind, ElementType, Tensor};
use numpy::{
    Element, IxDyn, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple},
};

use crate::{
    error::{OrRaise, invalid},
    work::short,
};

/// Most dimensions of an array in every version of NumPy.
const MOST_DIMENSIONS: usize = 32;

/// Names of types as NumPy has them.
const NAMES: [(ElementType, &str); 17] = [
    (ElementType::F32, "float32"),
    (ElementType::F64, "float64"),
    (ElementType::F16, "float16"),
    (ElementType::BF16, "bfloat16"),
    (ElementType::I1, "bool"),
    (ElementType::I8, "int8"),
    (ElementType::I16, "int16"),
    (ElementType::I32, "int32"),
    (ElementType::I64, "int64"),
    (ElementType::UI8, "uint8"),
    (ElementType::UI16, "uint16"),
    (ElementType::UI32, "uint32"),
    (ElementType::UI64, "uint64"),
    (ElementType::SI8, "int8"),
    (ElementType::SI16, "int16"),
    (ElementType::SI32, "int32"),
    (ElementType::SI64, "int64"),
];

/// The name of a type: NumPy's, or the library's own for types that NumPy does not know.
pub fn type_name(of: ElementType) -> String {
    NAMES.iter().find(|(own, _)| *own == of).map_or_else(|| of.to_string(), |(_, name)| (*name).to_owned())
}

/// NumPy's description of a type.
///
/// `bfloat16` comes from the package `ml_dtypes`.
pub fn dtype<'py>(py: Python<'py>, of: ElementType) -> PyResult<Bound<'py, PyAny>> {
    static BFLOAT16: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static DTYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = DTYPE.import(py, "numpy", "dtype")?;
    if of == ElementType::BF16 {
        let known =
            BFLOAT16.get_or_try_init(py, || Ok(py.import("ml_dtypes")?.getattr("bfloat16")?.unbind()));
        let known = known.map_err(|_: PyErr| {
            invalid(py, "NumPy has no type bfloat16; install the package `ml_dtypes`, which adds it")
        })?;
        return make.call1((known,));
    }
    match NAMES.iter().find(|(own, _)| *own == of) {
        Some((_, name)) => make.call1((*name,)),
        None => Err(invalid(py, &format!("NumPy has no type for elements of type {of}"))),
    }
}

/// The type of elements that NumPy's `dtype()` understands; `bfloat16` also by its name.
pub fn element_type(given: &Bound<'_, PyAny>) -> PyResult<ElementType> {
    let py = given.py();
    let is_named = given.extract::<String>().is_ok_and(|name| name == "bfloat16");
    if is_named {
        return Ok(ElementType::BF16);
    }
    let name = py.import("numpy")?.call_method1("dtype", (given,))?.str()?.to_string();
    let found = NAMES.iter().find(|(_, own)| *own == name).map(|(element, _)| *element);
    found.ok_or_else(|| invalid(py, &format!("tensors have no elements of type '{name}'")))
}

/// A NumPy array of what turns into one. Numbers and lists of Python take the type that is declared; what has a type of its own keeps
/// it.
pub fn array_of<'py>(
    given: &Bound<'py, PyAny>,
    declared: Option<&str>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = given.py();
    if let Ok(array) = given.cast::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    let numpy = py.import("numpy")?;
    let is_plain = given.is_instance_of::<PyList>()
        || given.is_instance_of::<PyTuple>()
        || given.is_exact_instance_of::<PyFloat>()
        || given.is_exact_instance_of::<PyInt>()
        || given.is_exact_instance_of::<PyBool>();
    if given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<PyDict>()
    {
        let kind = given.get_type().name()?.to_string();
        return Err(invalid(py, &format!("a {kind} cannot become a tensor; give numbers or an array")));
    }
    let array = if is_plain {
        numpy.call_method1("asarray", (given, declared.filter(|name| *name != "bfloat16")))?
    } else if !given.hasattr("__array__")? && given.hasattr("__dlpack__")? {
        numpy.call_method1("from_dlpack", (given,))?
    } else {
        numpy.call_method1("asarray", (given,))?
    };
    Ok(array.cast_into::<PyUntypedArray>()?)
}

/// Where the elements of an array go: to a device, or to memory of the host.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    Device(&'a Device),
    Host,
}

/// The elements of an array as a tensor.
pub fn tensor(array: &Bound<'_, PyUntypedArray>, target: Target<'_>) -> PyResult<Tensor> {
    let py = array.py();
    let dtype = array.dtype();
    if dtype.is_native_byteorder() == Some(false) || !array.is_c_contiguous() {
        return tensor(&dense(array)?, target);
    }
    match (dtype.kind(), dtype.itemsize()) {
        (b'f', 4) => put::<f32>(array, ElementType::F32, target),
        (b'f', 8) => put::<f64>(array, ElementType::F64, target),
        (b'f', 2) => put::<half::f16>(array, ElementType::F16, target),
        (b'i', 8) => put::<i64>(array, ElementType::I64, target),
        (b'i', 4) => put::<i32>(array, ElementType::I32, target),
        (b'i', 2) => put::<i16>(array, ElementType::I16, target),
        (b'i', 1) => put::<i8>(array, ElementType::I8, target),
        (b'u', 1) => put::<u8>(array, ElementType::UI8, target),
        (b'u', 2) => put::<u16>(array, ElementType::UI16, target),
        (b'u', 4) => put::<u32>(array, ElementType::UI32, target),
        (b'u', 8) => put::<u64>(array, ElementType::UI64, target),
        (b'b', 1) => put::<bool>(array, ElementType::I1, target),
        _ if dtype.to_string() == "bfloat16" => {
            let bits = array.call_method1("view", ("uint16",))?;
            put::<u16>(bits.cast::<PyUntypedArray>()?, ElementType::BF16, target)
        }
        (b'O' | b'U' | b'S' | b'T', _) => {
            let hint = "halite.onnxruntime takes the texts of ONNX models";
            Err(invalid(
                py,
                &format!("an array of '{dtype}' holds objects or text, and tensors hold numbers; {hint}"),
            ))
        }
        _ => Err(invalid(
            py,
            &format!("arrays of '{dtype}' cannot become tensors; convert them with astype()"),
        )),
    }
}

/// The array in the order of its dimensions, aligned, in this machine's order of bytes.
fn dense<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let native = array.dtype().call_method1("newbyteorder", ("=",))?;
    let copy = array.call_method1("astype", (native, "C"))?;
    Ok(copy.cast_into::<PyUntypedArray>()?)
}

fn put<T: Element + Copy + bytemuck::NoUninit>(
    array: &Bound<'_, PyUntypedArray>,
    element: ElementType,
    target: Target<'_>,
) -> PyResult<Tensor> {
    let py = array.py();
    let readable: PyReadonlyArrayDyn<'_, T> = array.extract()?;
    let Ok(elements) = readable.as_slice() else {
        // Not aligned.
        let copy: PyReadonlyArrayDyn<'_, T> = dense(array)?.extract()?;
        let elements = copy.as_slice().map_err(|error| invalid(py, &error.to_string()))?;
        return send(py, element, array.shape(), bytemuck::cast_slice(elements), target);
    };
    send(py, element, array.shape(), bytemuck::cast_slice(elements), target)
}

fn send(
    py: Python<'_>,
    element: ElementType,
    shape: &[usize],
    bytes: &[u8],
    target: Target<'_>,
) -> PyResult<Tensor> {
    let sent = py.detach(|| match target {
        Target::Device(device) => Tensor::upload(device, element, shape, bytes),
        Target::Host => Tensor::from_bytes(element, shape, bytes.to_vec()),
    });
    sent.or_raise(py)
}

/// The elements of a tensor in a new array, read from the device if they are there.
pub fn array<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    if tensor.shape().len() > MOST_DIMENSIONS {
        let text =
            format!("an array has at most {MOST_DIMENSIONS} dimensions, the tensor {}", tensor.shape().len());
        return Err(invalid(py, &text));
    }
    let of = tensor.element_type();
    let signless = match of.kind() {
        Some(ElementKind::SInt) => ElementType::new(ElementKind::Int, of.bit_count() as u8),
        _ => of,
    };
    match signless {
        ElementType::F32 => get::<f32>(py, tensor),
        ElementType::F64 => get::<f64>(py, tensor),
        ElementType::F16 => viewed::<u16>(py, tensor),
        ElementType::BF16 => viewed::<u16>(py, tensor),
        ElementType::I64 => get::<i64>(py, tensor),
        ElementType::I32 => get::<i32>(py, tensor),
        ElementType::I16 => get::<i16>(py, tensor),
        ElementType::I8 => get::<i8>(py, tensor),
        ElementType::UI8 => get::<u8>(py, tensor),
        ElementType::UI16 => get::<u16>(py, tensor),
        ElementType::UI32 => get::<u32>(py, tensor),
        ElementType::UI64 => get::<u64>(py, tensor),
        // A byte of a device may be any number, a bool of NumPy is 0 or 1.
        ElementType::I1 => get::<u8>(py, tensor)?.call_method1("astype", ("bool",)),
        _ => Err(invalid(py, &format!("NumPy has no type for elements of type {of}"))),
    }
}

/// An array of another type of the same width, looked at as what the tensor has.
fn viewed<'py, T: Element + bytemuck::Pod>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let seen_as = dtype(py, tensor.element_type())?;
    get::<T>(py, tensor)?.call_method1("view", (seen_as,))
}

fn get<'py, T: Element + bytemuck::Pod>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let array = PyArrayDyn::<T>::zeros(py, IxDyn(tensor.shape()), false);
    {
        let mut writable = array.readwrite();
        let elements = writable.as_slice_mut().map_err(|error| invalid(py, &error.to_string()))?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(elements);
        short(py, || tensor.read_into(bytes))?;
    }
    Ok(array.into_any())
}

/// Copies a tensor into an array that the caller has: of the same type and shape, dense, writable.
pub fn read_into(tensor: &Tensor, array: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = array.py();
    let target = array.cast::<PyUntypedArray>()?;
    let wanted = dtype(py, tensor.element_type())?;
    let same_type = wanted.eq(target.dtype())?;
    if !same_type || target.shape() != tensor.shape() || !target.is_c_contiguous() {
        let (name, shape) = (type_name(tensor.element_type()), tensor.shape());
        let text = format!(
            "the tensor {name}{shape:?} goes into a dense array of the same type and shape, not into {}{:?}",
            target.dtype(),
            target.shape()
        );
        return Err(invalid(py, &text));
    }
    let flat = target.call_method1("reshape", (-1,))?.call_method1("view", ("uint8",))?;
    let flat = flat.cast::<numpy::PyArray1<u8>>()?;
    let mut writable = flat.try_readwrite().map_err(|error| invalid(py, &error.to_string()))?;
    let bytes = writable.as_slice_mut().map_err(|error| invalid(py, &error.to_string()))?;
    short(py, || tensor.read_into(bytes))
}
