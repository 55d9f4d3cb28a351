//! Owns values between the command line and calls: host values onto devices, results into text and JSON. Does not
//! own: files that results are written to, or comparison (`run` does).

use std::io::Write;

use halite_hal::ElementKind;
use halite_runtime::{
    FunctionInfo, Session, Value,
    tensor::{ArgumentKind, HostTensor, HostValue, element_to_f64, format_g},
};
use halite_status::{Result as StatusResult, status};
use serde_json::{Value as Json, json};

use crate::{
    console::{Failure, Result},
    flags::InputFlags,
    inputs::{self, What},
    ports::Port,
};

/// Lists inside lists that are printed, at most.
const MAX_DEPTH: usize = 32;

/// Reads the inputs of a function and puts them on the session's first device.
pub(crate) fn read_inputs(session: &Session, info: &FunctionInfo, flags: &InputFlags) -> Result<Vec<Value>> {
    let values = read_host_inputs(info, flags)?;
    values.iter().map(|value| upload(session, value).map_err(|e| inside(info, e.into()))).collect()
}

/// Reads the inputs of a function.
pub(crate) fn read_host_inputs(info: &FunctionInfo, flags: &InputFlags) -> Result<Vec<HostValue>> {
    let what = What { one: "input", pictures: Some(&flags.pictures) };
    let values =
        inputs::read(&flags.input, &Port::inputs(info), what).map_err(|failure| inside(info, failure))?;
    // Modules take a null reference for what is left out.
    Ok(values.into_iter().map(|value| value.unwrap_or(HostValue::Null)).collect())
}

fn inside(info: &FunctionInfo, failure: Failure) -> Failure {
    failure.context("parsing function inputs").context(format!("`{}`", info.describe()))
}

/// The kinds of a function's arguments.
pub(crate) fn argument_kinds(info: &FunctionInfo) -> Vec<ArgumentKind> {
    info.input_kinds().iter().copied().map(kind_of).collect()
}

/// The kinds of a function's results.
pub(crate) fn result_kinds(info: &FunctionInfo) -> Vec<ArgumentKind> {
    info.output_kinds().iter().copied().map(kind_of).collect()
}

fn kind_of(kind: halite_vm::Kind) -> ArgumentKind {
    match kind {
        halite_vm::Kind::I32 => ArgumentKind::I32,
        halite_vm::Kind::I64 => ArgumentKind::I64,
        halite_vm::Kind::F32 => ArgumentKind::F32,
        halite_vm::Kind::F64 => ArgumentKind::F64,
        halite_vm::Kind::Ref => ArgumentKind::Reference,
    }
}

/// Puts a value on the session's first device.
pub(crate) fn upload(session: &Session, value: &HostValue) -> StatusResult<Value> {
    if session.device().is_none() && matches!(value, HostValue::Tensor(_) | HostValue::Buffer(_)) {
        return Err(status!(
            InvalidArgument,
            "the module uses no device, so it cannot take tensors; pass plain numbers"
        ));
    }
    Value::from_host(session.device(), value)
}

/// Name of a value's type as IREE's tools print it before a reference.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::View(_) => "hal.buffer_view",
        Value::Buffer(_) => "hal.buffer",
        Value::List(_) => "vm.list",
        Value::Bytes(_) => "vm.buffer",
        Value::Null => "empty",
        Value::Opaque(reference) => reference.type_name().unwrap_or("empty"),
        Value::I32(_) => "i32",
        Value::I64(_) => "i64",
        Value::F32(_) => "f32",
        Value::F64(_) => "f64",
    }
}

/// A scalar as `i32=7`; `None` for references.
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::I32(v) => format!("i32={v}"),
        Value::I64(v) => format!("i64={v}"),
        Value::F32(v) => format!("f32={}", format_g(f64::from(*v), false)),
        Value::F64(v) => format!("f64={}", format_g(*v, false)),
        _ => return None,
    })
}

/// Prints a value and ends the line. Tensors are read back from the device.
pub(crate) fn print(out: &mut dyn Write, value: &Value, max_elements: u64) -> Result<()> {
    print_nested(out, value, max_elements, 0)
}

fn print_nested(out: &mut dyn Write, value: &Value, max_elements: u64, depth: usize) -> Result<()> {
    if let Some(text) = scalar_text(value) {
        writeln!(out, "{text}")?;
        return Ok(());
    }
    match value {
        Value::Null => writeln!(out, "(null)")?,
        Value::View(view) => {
            writeln!(out, "{}", type_name(value))?;
            writeln!(out, "{}", view.to_host()?.display(max_elements))?;
        }
        Value::List(values) => {
            writeln!(out, "{}", type_name(value))?;
            if depth == MAX_DEPTH {
                writeln!(out, "(nested more than {MAX_DEPTH} deep)")?;
                return Ok(());
            }
            for (i, child) in values.iter().enumerate() {
                write!(out, "child_list[{i}]: ")?;
                print_nested(out, child, max_elements, depth + 1)?;
            }
            writeln!(out)?;
        }
        _ => writeln!(out, "{}\n(no printer)", type_name(value))?,
    }
    Ok(())
}

/// A value for machines. Tensors carry at most `max_elements` elements, row-major, and say when that cut them.
/// Numbers that JSON cannot hold are strings, complex and opaque elements are hexadecimal.
pub(crate) fn to_json(value: &Value, max_elements: u64) -> StatusResult<Json> {
    to_json_nested(value, max_elements, 0)
}

fn to_json_nested(value: &Value, max_elements: u64, depth: usize) -> StatusResult<Json> {
    let kind = type_name(value);
    Ok(match value {
        Value::I32(v) => json!({"kind": kind, "value": v}),
        Value::I64(v) => json!({"kind": kind, "value": v}),
        Value::F32(v) => json!({"kind": kind, "value": float_json(f64::from(*v))}),
        Value::F64(v) => json!({"kind": kind, "value": float_json(*v)}),
        Value::View(view) => tensor_json(kind, &view.to_host()?, max_elements),
        Value::Buffer(span) => json!({"kind": kind, "byte_length": span.length}),
        Value::Bytes(bytes) => json!({"kind": kind, "byte_length": bytes.len()}),
        Value::List(values) if depth < MAX_DEPTH => {
            let children = values.iter().map(|v| to_json_nested(v, max_elements, depth + 1));
            json!({"kind": kind, "values": children.collect::<StatusResult<Vec<_>>>()?})
        }
        _ => json!({"kind": kind}),
    })
}

fn tensor_json(kind: &str, tensor: &HostTensor, max_elements: u64) -> Json {
    let count = tensor.element_count();
    let shown = count.min(max_elements);
    let elements: Vec<Json> = (0..shown).map(|i| element_json(tensor, i)).collect();
    json!({
        "kind": kind,
        "element_type": tensor.element_type.to_string(),
        "shape": tensor.shape.as_slice(),
        "elements": elements,
        "truncated": shown < count,
    })
}

fn element_json(tensor: &HostTensor, index: u64) -> Json {
    let kind = tensor.element_type.kind();
    if matches!(kind, Some(ElementKind::Int | ElementKind::SInt | ElementKind::UInt)) {
        let text = tensor.element_text(index);
        return text
            .parse::<i64>()
            .map(Json::from)
            .or_else(|_| text.parse::<u64>().map(Json::from))
            .unwrap_or_else(|_| text.into());
    }
    match element_to_f64(tensor.element_type, &tensor.data, index) {
        Some(value) if kind == Some(ElementKind::Bool) => (value != 0.0).into(),
        Some(value) => float_json(value),
        None => tensor.element_text(index).into(),
    }
}

fn float_json(value: f64) -> Json {
    serde_json::Number::from_f64(value).map_or_else(|| format_g(value, false).into(), Json::Number)
}
