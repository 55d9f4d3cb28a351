//! The file around a module's FlatBuffer: zip prefix, size prefix, where external data begins.

use super::VmfbError;
use bytes::Bytes;
use std::ops::Range;

/// Alignment of external segments from the start of the file.
pub const SEGMENT_ALIGNMENT: usize = 64;
const ZIP_MAGIC: &[u8; 4] = b"PK\x03\x04";
const ZIP_HEADER: usize = 30;
const SIZE_PREFIX: usize = 4;
const MIN_FLATBUFFER: usize = 16;

/// Where the parts of a module file are, in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The FlatBuffer, without its size prefix.
    pub flatbuffer: Range<usize>,
    /// What external data offsets count from. May lie past the end when there is no external data.
    pub rodata_base: usize,
}

fn problem(text: String) -> VmfbError {
    VmfbError::Container { problem: text }
}

impl Container {
    /// Finds the parts. Of a zip, only the first local header is looked at, as the original runtime does.
    pub fn parse(file: &[u8]) -> Result<Self, VmfbError> {
        let base = zip_prefix(file)?;
        let rest = file
            .get(base..)
            .ok_or_else(|| problem(format!("zip header ends at {base}, the file at {}", file.len())))?;
        let Some(prefix) = rest.first_chunk().filter(|_| rest.len() >= MIN_FLATBUFFER) else {
            let have = rest.len();
            return Err(problem(format!("{have} bytes at offset {base}, at least {MIN_FLATBUFFER} needed")));
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        let available = rest.len() - SIZE_PREFIX;
        if length > available {
            return Err(problem(format!(
                "size prefix at offset {base} says {length} bytes, but {available} follow"
            )));
        }
        let start = base + SIZE_PREFIX;
        let rodata_base = (start + length).next_multiple_of(SEGMENT_ALIGNMENT);
        Ok(Container { flatbuffer: start..start + length, rodata_base })
    }

    /// An external segment as a slice of the file.
    pub fn external(&self, file: &Bytes, offset: u64, length: u64) -> Option<Bytes> {
        let start = (self.rodata_base as u64).checked_add(offset)?;
        let end = start.checked_add(length)?;
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        (end <= file.len()).then(|| file.slice(start..end))
    }
}

/// Length of the zip local header that a polyglot file starts with; 0 without one.
fn zip_prefix(file: &[u8]) -> Result<usize, VmfbError> {
    if !file.starts_with(ZIP_MAGIC) {
        return Ok(0);
    }
    let header = file
        .first_chunk::<ZIP_HEADER>()
        .ok_or_else(|| problem(format!("zip header of {ZIP_HEADER} bytes in a file of {}", file.len())))?;
    let field = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    Ok(ZIP_HEADER + field(26) + field(28))
}
