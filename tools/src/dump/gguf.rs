//! What `halite dump` shows of GGUF files.

use std::{io::Write, path::Path};

use bytes::Bytes;
use halite::hal::{Code, Status};
use halite_formats::gguf::{Array, Gguf, GgufError, Tensor, Value};
use serde_json::json;

use super::{Flags, Output, text::clean};
use crate::console::{Failure, Result};

/// Elements of an array that are shown.
const SHOWN: usize = 6;
/// Characters of a text that are shown.
const LONGEST: usize = 100;

/// Prints a file: metadata and tensors.
pub(super) fn print(flags: &Flags, path: &Path, file: &Bytes, out: &mut dyn Write) -> Result<()> {
    if flags.spirv.is_some() || matches!(flags.output, Output::Disassembly | Output::FlatbufferBinary) {
        let text = format!("'{}' is a model, not a module: 'halite compile' makes one of it", path.display());
        return Err(Failure::Usage(text));
    }
    let fail = |e: GgufError| {
        let status = Status::new(Code::InvalidArgument, e.to_string());
        Failure::Status(status.annotate(format!("reading '{}'", path.display())))
    };
    let gguf = Gguf::read(file).map_err(fail)?;
    if flags.json || flags.output == Output::FlatbufferJson {
        let all = to_json(&gguf);
        let text = if flags.pretty { format!("{all:#}") } else { all.to_string() };
        return Ok(writeln!(out, "{text}")?);
    }
    writeln!(out, "GGUF version {}, {} bytes", gguf.version, file.len())?;
    writeln!(out, "\nmetadata")?;
    for (key, value) in &gguf.metadata {
        writeln!(out, "  {} = {}", clean(key), told(value))?;
    }
    writeln!(out, "\ntensors: {}", gguf.tensors.len())?;
    gguf.tensors.iter().try_for_each(|tensor| {
        let (name, length) = (clean(&tensor.name), tensor.length);
        writeln!(out, "  {:8} {:>16}  {length:12} bytes  {name}", tensor.element.name, dims(tensor))
    })?;
    let bytes: u128 = gguf.tensors.iter().map(|tensor| u128::from(tensor.length)).sum();
    Ok(writeln!(out, "  {bytes} bytes in all")?)
}

fn dims(tensor: &Tensor) -> String {
    let all: Vec<_> = tensor.dims.iter().map(u64::to_string).collect();
    all.join(" x ")
}

/// A value as a line of text.
fn told(value: &Value) -> String {
    match value {
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => shown(text),
        Value::Array(array) => {
            let some = first(array).map(|value| told(&value)).collect::<Vec<_>>().join(", ");
            let more = if array.len() > SHOWN as u64 { ", …" } else { "" };
            format!("[{some}{more}] ({} in all)", array.len())
        }
    }
}

fn shown(text: &str) -> String {
    let cut: String = text.chars().take(LONGEST).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}

/// The first elements of an array. Those of arrays within arrays are left out.
fn first(array: &Array) -> impl Iterator<Item = Value> {
    let texts = array.texts().map(|text| Value::Text(String::from_utf8_lossy(text).into_owned()));
    texts.chain(array.scalars()).take(SHOWN)
}

fn to_json(gguf: &Gguf) -> serde_json::Value {
    let metadata: serde_json::Map<_, _> =
        gguf.metadata.iter().map(|(key, value)| (key.clone(), value_json(value))).collect();
    let tensors: Vec<_> = gguf.tensors.iter().map(tensor_json).collect();
    json!({"version": gguf.version, "metadata": metadata, "tensors": tensors})
}

fn tensor_json(tensor: &Tensor) -> serde_json::Value {
    json!({
        "name": tensor.name,
        "type": tensor.element.name,
        "dims": tensor.dims,
        "offset": tensor.offset,
        "bytes": tensor.length,
    })
}

/// Arrays with as many elements as are shown.
fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Int(value) => {
            i64::try_from(*value).map_or_else(|_| json!(value.to_string()), |value| json!(value))
        }
        Value::Float(value) => json!(value),
        Value::Bool(value) => json!(value),
        Value::Text(text) => json!(text),
        Value::Array(array) => {
            json!({"count": array.len(), "first": first(array).map(|value| value_json(&value)).collect::<Vec<_>>()})
        }
    }
}
