//! JSON schemas that programs give: as text, or as what `json` would write as text.

use halite::JsonSchema;
use pyo3::{prelude::*, types::PyString};

use crate::error::OrRaise;

/// A schema, if there is one: a text, or a dictionary or a truth value.
pub fn given(schema: Option<&Bound<'_, PyAny>>) -> PyResult<Option<JsonSchema>> {
    schema.map(read).transpose()
}

/// The schema of a text, or of what is written as one.
pub fn read(schema: &Bound<'_, PyAny>) -> PyResult<JsonSchema> {
    let py = schema.py();
    let text: String = match schema.cast::<PyString>() {
        Ok(text) => text.extract()?,
        Err(_) => py.import("json")?.call_method1("dumps", (schema,))?.extract()?,
    };
    py.detach(|| JsonSchema::parse(&text)).or_raise(py)
}
