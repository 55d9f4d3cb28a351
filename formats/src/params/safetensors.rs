//! Reading safetensors: u64 header length, a JSON object from names to dtype, shape and data offsets, the data.

use super::{Entry, Kind, ParamError, Storage, TensorInfo, error::shorten};
use bytes::Bytes;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

type Result<T> = std::result::Result<T, ParamError>;

const KIND: Kind = Kind::Safetensors;
/// Key that holds free text rather than a tensor.
const METADATA: &str = "__metadata__";

#[derive(serde::Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The header's tensors in file order. (A map would hide duplicates.)
struct Header(Vec<(String, Tensor)>);

impl<'de> serde::Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Tensors;
        impl<'de> Visitor<'de> for Tensors {
            type Value = Header;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object from tensor names to dtype, shape and data_offsets")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Header, A::Error> {
                let mut tensors = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        tensors.push((name, map.next_value()?));
                    }
                }
                Ok(Header(tensors))
            }
        }
        deserializer.deserialize_map(Tensors)
    }
}

/// Bits per element of the known types. Others are taken at their word.
fn element_bits(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "F4" => 4,
        "F6_E2M3" | "F6_E3M2" => 6,
        "BOOL" | "U8" | "I8" | "F8_E5M2" | "F8_E4M3" | "F8_E8M0" | "F8_E4M3FNUZ" | "F8_E5M2FNUZ" => 8,
        "U16" | "I16" | "F16" | "BF16" => 16,
        "U32" | "I32" | "F32" => 32,
        "U64" | "I64" | "F64" | "C64" => 64,
        _ => return None,
    })
}

pub(super) fn read(file: &Bytes) -> Result<Vec<Entry>> {
    let out_of_range = |what: &str, offset: u64, length: u64, limit: u64| ParamError::OutOfRange {
        kind: KIND,
        what: what.to_owned(),
        offset,
        length,
        limit,
    };
    let limit = file.len() as u64;
    let length = file.first_chunk().ok_or_else(|| out_of_range("header length", 0, 8, limit))?;
    let length = u64::from_le_bytes(*length);
    let data_start = length.checked_add(8).filter(|end| *end <= limit);
    let data_start = data_start.ok_or_else(|| out_of_range("header", 8, length, limit))?;
    let header: Header = serde_json::from_slice(&file[8..data_start as usize]).map_err(|e| {
        ParamError::invalid(KIND, "header", format!("not the JSON of a safetensors file: {e}"))
    })?;
    header.0.into_iter().map(|(name, tensor)| entry(name, tensor, data_start, limit)).collect()
}

fn entry(name: String, tensor: Tensor, data_start: u64, limit: u64) -> Result<Entry> {
    let what = || format!("tensor `{}`", shorten(&name));
    let (begin, end) = tensor.data_offsets;
    let available = limit - data_start;
    if begin > end || end > available {
        let problem = format!("data_offsets {begin} to {end}; the file has {available} bytes of data");
        return Err(ParamError::invalid(KIND, what(), problem));
    }
    let length = end - begin;
    if let Some(bits) = element_bits(&tensor.dtype) {
        let elements = tensor.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let expected = elements.and_then(|n| n.checked_mul(bits)).map(|b| b.div_ceil(8));
        if expected != Some(length) {
            let (dtype, rank) = (&tensor.dtype, tensor.shape.len());
            let expected =
                expected.map_or("more bytes than can be counted".to_owned(), |n| format!("{n} bytes"));
            let problem = format!("{dtype} of rank {rank} takes {expected}, but data_offsets give {length}");
            return Err(ParamError::invalid(KIND, what(), problem));
        }
    }
    let storage = Storage::Range { offset: data_start + begin, length };
    let tensor = Some(TensorInfo { dtype: tensor.dtype, shape: tensor.shape });
    Ok(Entry { name, storage, metadata: Bytes::new(), tensor })
}
