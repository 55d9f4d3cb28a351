//! What a program gives as a model: a path, bytes, a file that is open, or a message of the package `onnx`.

use halite::{Bytes, Source};
use pyo3::{
    prelude::*,
    pybacked::PyBackedBytes,
    types::{PyByteArray, PyBytes},
};

use crate::error::invalid;

/// The source of a model or module.
pub fn source(given: &Bound<'_, PyAny>) -> PyResult<Source> {
    let py = given.py();
    if let Some(bytes) = bytes(given)? {
        return Ok(Source::bytes(bytes));
    }
    if let Ok(path) = given.extract::<std::path::PathBuf>() {
        return Ok(Source::path(path));
    }
    if given.hasattr("SerializeToString")? {
        let message = given.call_method0("SerializeToString")?;
        return Ok(Source::bytes(owned(&message)?).named("model.onnx"));
    }
    if given.hasattr("read")? {
        let content = given.call_method0("read")?;
        let content =
            bytes(&content)?.ok_or_else(|| invalid(py, "the file gives text; open it with mode 'rb'"))?;
        let name: Option<String> = given.getattr("name").ok().and_then(|name| name.extract().ok());
        let source = Source::bytes(content);
        return Ok(match name {
            Some(name) => source.named(name),
            None => source,
        });
    }
    let kind = given.get_type().name()?.to_string();
    Err(invalid(py, &format!("a model is a path, bytes, or a file that is open for reading, not a {kind}")))
}

/// The bytes of what holds bytes. Those of `bytes` are not copied.
fn bytes(given: &Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    if given.is_instance_of::<PyBytes>() {
        return owned(given).map(Some);
    }
    if let Ok(array) = given.cast::<PyByteArray>() {
        return Ok(Some(array.to_vec().into()));
    }
    if given.is_instance(&given.py().import("builtins")?.getattr("memoryview")?)? {
        return owned(&given.call_method0("tobytes")?).map(Some);
    }
    Ok(None)
}

fn owned(bytes: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    Ok(Bytes::from_owner(bytes.extract::<PyBackedBytes>()?))
}
