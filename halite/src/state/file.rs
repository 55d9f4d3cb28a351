//! State as bytes: a safetensors file (huggingface.co/docs/safetensors) with a tensor for each name.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use halite_formats::params::{self, Kind, Storage};
use serde_json::json;

use super::State;
use crate::{ElementType, Error, ErrorKind, Result, Tensor, options::Limits};

/// Names of types in such files.
const TYPES: &[(&str, &[ElementType])] = &[
    ("BOOL", &[ElementType::I1]),
    ("U8", &[ElementType::UI8]),
    ("I8", &[ElementType::I8, ElementType::SI8]),
    ("U16", &[ElementType::UI16]),
    ("I16", &[ElementType::I16, ElementType::SI16]),
    ("F16", &[ElementType::F16]),
    ("BF16", &[ElementType::BF16]),
    ("U32", &[ElementType::UI32]),
    ("I32", &[ElementType::I32, ElementType::SI32]),
    ("F32", &[ElementType::F32]),
    ("U64", &[ElementType::UI64]),
    ("I64", &[ElementType::I64, ElementType::SI64]),
    ("F64", &[ElementType::F64]),
];

/// Where the tensors of a file begin: a multiple of this.
const ALIGNMENT: usize = 8;

impl State {
    /// The state as bytes, which [`State::load`] takes: a safetensors file with the tensors by their names. Tensors that are not
    /// there yet are left out.
    ///
    /// # Errors
    /// The device fails, or an element type has no name in such files.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        self.settle(&Limits::default())?;
        let (mut header, mut data) = (BTreeMap::new(), Vec::new());
        for kept in &self.tensors {
            let Some(tensor) = kept.dense(&self.device)?.or_else(|| kept.first.clone()) else { continue };
            let (dtype, _) =
                TYPES.iter().find(|(_, types)| types.contains(&tensor.element_type())).ok_or_else(|| {
                    Error::invalid(format!(
                        "the state '{}' of {} cannot be saved",
                        kept.name,
                        tensor.element_type()
                    ))
                })?;
            let start = data.len();
            data.extend_from_slice(&tensor.to_bytes()?);
            let entry = json!({"dtype": dtype, "shape": tensor.shape(), "data_offsets": [start, data.len()]});
            header.insert(kept.name.clone(), entry);
        }
        let about = json!({"format": "halite.state", "function": self.function.name()});
        header.insert("__metadata__".to_owned(), about);
        let mut header = serde_json::to_vec(&header)
            .map_err(|e| Error::new(ErrorKind::Other, format!("writing the state: {e}")))?;
        header.resize(header.len().next_multiple_of(ALIGNMENT), b' ');
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header);
        file.extend(data);
        Ok(file)
    }

    /// Takes a state that [`State::save`] gave, from the same function. Tensors that the file lacks begin anew. Where it does not
    /// fit, nothing is changed.
    ///
    /// # Errors
    /// The bytes are no safetensors file, a tensor has another type or shape than the state, or is none of its.
    pub fn load(&mut self, file: impl Into<Bytes>) -> Result<()> {
        let file: Bytes = file.into();
        self.settle(&Limits::default())?;
        let archive = params::read_as(Kind::Safetensors, file.clone())
            .map_err(|e| Error::new(ErrorKind::InvalidInput, format!("this is no saved state: {e}")))?;
        let mut loaded: HashMap<usize, Tensor> = HashMap::new();
        for entry in &archive.entries {
            let place = self.place(&entry.name)?;
            let tensor = self.read(place, entry, &file)?;
            self.check(place, &tensor)?;
            loaded.insert(place, tensor.copied_on(&self.device)?);
        }
        for (place, kept) in self.tensors.iter_mut().enumerate() {
            kept.put(loaded.remove(&place));
        }
        Ok(())
    }

    /// A tensor of a file, as the type of the state where several have the same name.
    fn read(&self, place: usize, entry: &params::Entry, file: &Bytes) -> Result<Tensor> {
        let wrong = |what: String| Error::invalid(format!("the saved state '{}' {what}", entry.name));
        let (Some(info), Storage::Range { offset, length }) = (&entry.tensor, &entry.storage) else {
            return Err(wrong("has no type".to_owned()));
        };
        let types = TYPES.iter().find(|(name, _)| *name == info.dtype).map(|(_, types)| *types);
        let types = types.ok_or_else(|| wrong(format!("is of the unknown type {}", info.dtype)))?;
        let element = self.tensors[place].element.filter(|own| types.contains(own)).unwrap_or(types[0]);
        let shape: Option<Vec<usize>> = info.shape.iter().map(|size| usize::try_from(*size).ok()).collect();
        let shape = shape.ok_or_else(|| wrong("is too large".to_owned()))?;
        let end = offset.saturating_add(*length);
        let range = usize::try_from(*offset).ok().zip(usize::try_from(end).ok());
        let bytes = range.filter(|(_, end)| *end <= file.len()).map(|(start, end)| file.slice(start..end));
        Tensor::from_bytes(element, shape, bytes.ok_or_else(|| wrong("lies outside of the file".to_owned()))?)
    }
}
