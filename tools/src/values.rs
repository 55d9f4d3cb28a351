//! Values between the command line and calls: inputs as texts into values, results into text and JSON.

use std::io::Write;

use halite::{Device, DeviceBuffer, Inputs, Tensor};
use halite_abi::object;
use serde_json::{Value as Json, json};

use crate::{
    console::{Failure, Result},
    engine::{
        ArgumentKind, ElementKind, FunctionInfo, HostTensor, HostValue, Value, element_to_f64, format_g,
    },
    flags::InputFlags,
    inputs::{self, What},
    ports::{self, Port},
};

/// Lists inside lists that are printed, at most.
const MAX_DEPTH: usize = 32;

/// Reads the inputs of a function.
pub(crate) fn read_inputs(info: &FunctionInfo, flags: &InputFlags) -> Result<Vec<HostValue>> {
    let what = What { one: "input", pictures: Some(&flags.pictures) };
    let ports = Port::inputs(info);
    let values = inputs::read(&flags.input, &ports, what).map_err(|failure| inside(info, failure))?;
    Ok(values.into_iter().map(|value| value.unwrap_or(HostValue::Null)).collect())
}

/// Refuses a call with fewer values than the function needs.
pub(crate) fn check_count(info: &FunctionInfo, given: usize) -> Result<()> {
    let needed = info.inputs.iter().rposition(|input| !input.is_optional).map_or(0, |last| last + 1);
    if given >= needed {
        return Ok(());
    }
    let text = format!(
        "input list and function mismatch; expected {} arguments but passed {given}; give each with --input: {}",
        info.inputs.len(),
        ports::list(&Port::inputs(info))
    );
    Err(Failure::invalid(text).context(format!("`{}`", describe(info))))
}

fn inside(info: &FunctionInfo, failure: Failure) -> Failure {
    failure.context("parsing function inputs").context(format!("`{}`", describe(info)))
}

/// The function's signature, in the words of whoever made it.
pub(crate) fn describe(info: &FunctionInfo) -> String {
    match &info.declaration {
        Some(declaration) => declaration.clone(),
        None if info.calling_convention.is_empty() => info.to_string(),
        None => info.calling_convention.clone(),
    }
}

/// The inputs of a call, on the device if there is one.
pub(crate) fn upload(device: Option<&Device>, values: &[HostValue]) -> Result<Inputs> {
    let mut inputs = Inputs::new();
    for value in values {
        inputs = inputs.push(to_value(device, value)?);
    }
    Ok(inputs)
}

pub(crate) fn to_value(device: Option<&Device>, value: &HostValue) -> Result<Value> {
    let tensor = |tensor: &HostTensor| Tensor::from(tensor.clone());
    Ok(match value {
        HostValue::I32(v) => Value::I32(*v),
        HostValue::I64(v) => Value::I64(*v),
        HostValue::F32(v) => Value::F32(*v),
        HostValue::F64(v) => Value::F64(*v),
        HostValue::Null => Value::Null,
        HostValue::Ignored(ArgumentKind::I32) => Value::I32(0),
        HostValue::Ignored(ArgumentKind::I64) => Value::I64(0),
        HostValue::Ignored(ArgumentKind::F32) => Value::F32(0.0),
        HostValue::Ignored(ArgumentKind::F64) => Value::F64(0.0),
        HostValue::Ignored(ArgumentKind::Reference) => Value::Null,
        HostValue::List(all) => {
            Value::List(all.iter().map(|one| to_value(device, one)).collect::<Result<_>>()?)
        }
        HostValue::Tensor(data) => {
            let data = tensor(data);
            Value::Tensor(device.map(|device| data.to_device(device)).transpose()?.unwrap_or(data))
        }
        HostValue::Buffer(data) => {
            let device = device.ok_or_else(|| {
                Failure::invalid("the module uses no device, so it cannot take buffers; pass plain numbers")
            })?;
            Value::Buffer(DeviceBuffer::from_tensor(&tensor(data), device)?)
        }
    })
}

/// Name of a value's type as IREE's tools print it before a reference.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Tensor(_) => object::BUFFER_VIEW,
        Value::Buffer(_) => object::BUFFER,
        Value::List(_) => "vm.list",
        Value::Bytes(_) => "vm.buffer",
        Value::Null => "empty",
        other => other.kind(),
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
        Value::Tensor(tensor) => {
            writeln!(out, "{}", type_name(value))?;
            writeln!(out, "{}", HostTensor::try_from(tensor)?.display(max_elements))?;
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
pub(crate) fn to_json(value: &Value, max_elements: u64) -> Result<Json> {
    to_json_nested(value, max_elements, 0)
}

fn to_json_nested(value: &Value, max_elements: u64, depth: usize) -> Result<Json> {
    let kind = type_name(value);
    Ok(match value {
        Value::I32(v) => json!({"kind": kind, "value": v}),
        Value::I64(v) => json!({"kind": kind, "value": v}),
        Value::F32(v) => json!({"kind": kind, "value": float_json(f64::from(*v))}),
        Value::F64(v) => json!({"kind": kind, "value": float_json(*v)}),
        Value::Tensor(tensor) => tensor_json(kind, &HostTensor::try_from(tensor)?, max_elements),
        Value::Buffer(buffer) => json!({"kind": kind, "byte_length": buffer.len()}),
        Value::Bytes(bytes) => json!({"kind": kind, "byte_length": bytes.len()}),
        Value::List(values) if depth < MAX_DEPTH => {
            let children = values.iter().map(|v| to_json_nested(v, max_elements, depth + 1));
            json!({"kind": kind, "values": children.collect::<Result<Vec<_>>>()?})
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
