//! Owns `--output`: where results go. Does not own: the formats.

use std::{
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    path::Path,
};

use halite_hal::ElementType;
use halite_runtime::{HostTensor, Value, tensor::npy};
use halite_status::{ResultExt, status};

use crate::{
    console::{Failure, Result},
    values,
};

/// Writes each result where its text says.
pub(super) fn write(
    places: &[String],
    results: &[Value],
    max_elements: u64,
    out: &mut dyn Write,
) -> Result<()> {
    if places.len() != results.len() {
        return Err(status!(
            OutOfRange,
            "{} outputs specified but the provided variant list only has {} elements; give one --output for each \
             result, or none",
            places.len(),
            results.len()
        )
        .annotate("outputting results")
        .into());
    }
    for (place, value) in places.iter().zip(results) {
        match (place.as_str(), place.strip_prefix(['@', '+'])) {
            ("", _) => {}
            ("-", _) => values::print(out, value, max_elements)?,
            (_, Some(path)) => write_file(Path::new(path), place.starts_with('+'), value)?,
            _ => {
                let error = status!(
                    Unimplemented,
                    "unsupported output mode specification '{place}'; it is -, @FILE, +FILE or nothing"
                );
                return Err(error.annotate("outputting results").into());
            }
        }
    }
    Ok(())
}

fn write_file(path: &Path, append: bool, value: &Value) -> Result<()> {
    let tensor = to_tensor(value)?;
    let mut options = OpenOptions::new();
    options.create(true).append(append).write(true).truncate(!append);
    let file = options.open(path).map_err(|e| Failure::file("cannot create", path, &e))?;
    let mut file = BufWriter::new(file);
    let is_npy = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"));
    if is_npy {
        npy::write(&mut file, &tensor).context(|| format!("writing '{}'", path.display()))?;
    } else {
        file.write_all(&tensor.data).map_err(|e| Failure::file("cannot write", path, &e))?;
    }
    flush(file, path)
}

fn flush(file: BufWriter<File>, path: &Path) -> Result<()> {
    // Closing a file hides its errors; this does not.
    file.into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .and_then(|file| file.sync_data().or(Ok(())))
        .map_err(|e| Failure::file("cannot write", path, &e))
}

/// A value as an array: scalars have rank 0, plain bytes are a vector of i8, null is an empty one.
fn to_tensor(value: &Value) -> Result<HostTensor> {
    let scalar =
        |element_type, bytes: &[u8]| HostTensor::new(element_type, [0u64; 0].as_slice(), bytes.to_vec());
    let bytes = |data: Vec<u8>| HostTensor::new(ElementType::I8, [data.len() as u64].as_slice(), data);
    Ok(match value {
        Value::I32(v) => scalar(ElementType::I32, &v.to_le_bytes())?,
        Value::I64(v) => scalar(ElementType::I64, &v.to_le_bytes())?,
        Value::F32(v) => scalar(ElementType::F32, &v.to_le_bytes())?,
        Value::F64(v) => scalar(ElementType::F64, &v.to_le_bytes())?,
        Value::View(view) => view.to_host()?,
        Value::Buffer(span) => bytes(span.read_all()?)?,
        Value::Bytes(data) => bytes(data.to_vec())?,
        Value::Null => bytes(Vec::new())?,
        Value::List(_) | Value::Opaque(_) => {
            let name = values::type_name(value);
            return Err(status!(
                Unimplemented,
                "a {name} cannot be written to a file; print it with --output=-"
            )
            .into());
        }
    })
}
