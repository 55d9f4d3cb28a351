//! Files of data by name that lie beside programs (`.ptd`, ExecuTorch's flat tensors): where in the file each one is.
//!
//! The format is that of ExecuTorch 1.5, `extension/flat_tensor/serialize`: a FlatBuffer with a header spliced in behind its
//! identifier, and segments behind it.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    PteError, Result,
    read_program::{each, text},
    schema as s,
};
use crate::flatbuffer::Reader;

/// Where the header is: behind the root offset and the identifier of the FlatBuffer.
const HEADER_AT: usize = 8;
const HEADER_MAGIC: &[u8; 4] = b"FH01";
/// Magic, length, offset and size of the FlatBuffer, offset and size of the segments.
const HEADER: usize = 40;

/// A file of data by name.
#[derive(Clone, Debug, Default)]
pub struct DataFile {
    /// The data: slices of the file.
    pub named: BTreeMap<String, Bytes>,
}

impl DataFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Says what of it is damaged, and how.
    pub fn parse(file: &Bytes) -> Result<DataFile> {
        let wrong = |problem: String| PteError::invalid("the header of a .ptd file", problem);
        let found = file.get(HEADER_AT..).and_then(<[u8]>::first_chunk::<HEADER>);
        let Some(header) = found.filter(|header| header.starts_with(HEADER_MAGIC)) else {
            return Err(wrong(format!("{} bytes without a header FH01 at byte {HEADER_AT}", file.len())));
        };
        let word = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("inside of the header"));
        let (base, size) = (word(24), word(32));
        let end = base.checked_add(size).filter(|end| *end <= file.len() as u64);
        let Some(end) = end else {
            return Err(wrong(format!(
                "{size} bytes of data at {base} end past the file's {}; it is cut short",
                file.len()
            )));
        };
        let flatbuffer = if base == 0 { file.len() } else { base as usize };
        let reader = Reader::new(&file[..flatbuffer], 0);
        let root = reader.root("FlatTensor", s::DATA_IDENTIFIER)?;
        let segments = each(&root, &s::flat_tensor::SEGMENTS, |t, i| {
            let (offset, size) = (t.scalar(&s::segment::OFFSET)?, t.scalar(&s::segment::SIZE)?);
            let start = base.checked_add(offset);
            let stop = start.and_then(|start| start.checked_add(size)).filter(|stop| *stop <= end);
            match (start, stop) {
                (Some(start), Some(stop)) => Ok(file.slice(start as usize..stop as usize)),
                _ => Err(PteError::invalid(
                    format!("FlatTensor.segments[{i}]"),
                    format!("{size} bytes at {base} + {offset} end past the file's data, which end at {end}"),
                )),
            }
        })?;
        let mut named = BTreeMap::new();
        let pairs = each(&root, &s::flat_tensor::NAMED_DATA, |t, i| {
            let index = t.scalar(&s::named::SEGMENT)?;
            let found = segments.get(index as usize).cloned().ok_or_else(|| {
                let problem = format!("asks for segment {index} of {}", segments.len());
                PteError::invalid(format!("FlatTensor.named_data[{i}]"), problem)
            })?;
            Ok((text(&t, &s::named::KEY)?, found))
        })?;
        for (key, data) in pairs {
            if named.insert(key.clone(), data).is_some() {
                return Err(PteError::invalid("FlatTensor.named_data", format!("'{key}' is there twice")));
            }
        }
        Ok(DataFile { named })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as ExecuTorch 1.5.1 wrote it for a linear layer `[3, 2]` without bias.
    const FILE: &[u8] = include_bytes!("../../tests/data/linear.ptd");

    #[test]
    fn data_have_names() {
        let file = DataFile::parse(&Bytes::from_static(FILE)).unwrap();
        let all: Vec<_> = file.named.iter().map(|(key, data)| (key.as_str(), data.len())).collect();
        assert_eq!(all, [("weight", 24)]);
        let first = f32::from_le_bytes(*file.named["weight"].first_chunk().unwrap());
        assert_eq!(first, 1.0);
    }

    #[test]
    fn damage_is_told() {
        for length in 0..FILE.len() {
            if let Ok(file) = DataFile::parse(&Bytes::from_static(&FILE[..length])) {
                assert!(file.named.values().all(|data| data.len() <= length));
            }
        }
        let mut file = FILE.to_vec();
        file[HEADER_AT + 32..HEADER_AT + 40].fill(0xFF);
        let error = DataFile::parse(&file.into()).unwrap_err().to_string();
        assert!(error.contains("cut short"), "{error}");
        assert!(DataFile::parse(&Bytes::from_static(b"ONNX")).unwrap_err().to_string().contains("FH01"));
    }
}
