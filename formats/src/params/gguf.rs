//! GGUF files as parameter archives: their tensors.

use super::{Entry, Kind, ParamError, Storage, TensorInfo};
use crate::gguf::{Gguf, GgufError, Tensor};
use bytes::Bytes;

pub(super) const MAGIC: &[u8; 4] = b"GGUF";

pub(super) fn read(file: &Bytes) -> Result<Vec<Entry>, ParamError> {
    let entry = |tensor: Tensor| Entry {
        name: tensor.name,
        storage: Storage::Range { offset: tensor.offset, length: tensor.length },
        metadata: Bytes::new(),
        tensor: Some(TensorInfo { dtype: tensor.element.name.to_owned(), shape: tensor.dims }),
    };
    Ok(Gguf::read(file).map_err(error)?.tensors.into_iter().map(entry).collect())
}

fn error(error: GgufError) -> ParamError {
    let kind = Kind::Gguf;
    match error {
        GgufError::Version { found, supported } => ParamError::Version { kind, found, supported },
        GgufError::Invalid { what, problem } => ParamError::invalid(kind, what, problem),
        GgufError::OutOfRange { what, offset, length, limit } => {
            ParamError::OutOfRange { kind, what, offset, length, limit }
        }
    }
}
