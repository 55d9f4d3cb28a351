//! The file around a program: the extended header, where the FlatBuffer ends, where segments begin.

use super::{PteError, Result};
use std::ops::Range;

/// Where the extended header is: behind the root offset and the identifier of the FlatBuffer.
const HEADER_AT: usize = 8;
const HEADER_MAGIC: &[u8; 4] = b"eh00";
/// Magic, length, program size, segment base.
const HEADER_LEAST: u32 = 24;

/// Where the parts of a program's file are, in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    /// Bytes of the FlatBuffer, which begins with the file.
    pub(super) program: usize,
    /// What offsets of segments count from; none when the file says that it has no segments.
    pub(super) segments: Option<u64>,
    /// Bytes of the file.
    pub(super) length: usize,
}

impl Container {
    /// Finds the parts.
    pub(super) fn parse(file: &[u8]) -> Result<Self> {
        let length = file.len();
        let Some(header) = file.get(HEADER_AT..).filter(|rest| rest.starts_with(HEADER_MAGIC)) else {
            return Ok(Container { program: length, segments: None, length });
        };
        let cut = || {
            PteError::container(format!(
                "the extended header at offset {HEADER_AT} takes {HEADER_LEAST} bytes, the file ends at {length}"
            ))
        };
        let said = u32::from_le_bytes(*header.get(4..).and_then(<[u8]>::first_chunk).ok_or_else(cut)?);
        if said < HEADER_LEAST {
            return Err(PteError::container(format!(
                "the extended header at offset {HEADER_AT} says that it has {said} bytes, at least {HEADER_LEAST} are needed"
            )));
        }
        let word = |at: usize| header.get(at..).and_then(<[u8]>::first_chunk).map(|b| u64::from_le_bytes(*b));
        let (size, base) = (word(8).ok_or_else(cut)?, word(16).ok_or_else(cut)?);
        let program = usize::try_from(size).ok().filter(|size| *size <= length).ok_or_else(|| {
            PteError::container(format!(
                "the extended header says that the program has {size} bytes, but the file has {length}; it is cut short"
            ))
        })?;
        Ok(Container { program, segments: (base != 0).then_some(base), length })
    }

    /// Where in the file a segment is.
    pub(super) fn segment(&self, index: usize, offset: u64, size: u64) -> Result<Range<usize>> {
        let place = || format!("Program.segments[{index}]");
        // A program without data has an empty segment of constants, and no base.
        if size == 0 {
            return Ok(0..0);
        }
        let Some(base) = self.segments else {
            return Err(PteError::invalid(place(), "the file's header says that there are no segments"));
        };
        let start = base.checked_add(offset);
        let end = start.and_then(|start| start.checked_add(size));
        match (start, end) {
            (Some(start), Some(end)) if end <= self.length as u64 => Ok(start as usize..end as usize),
            _ => {
                let length = self.length;
                Err(PteError::invalid(
                    place(),
                    format!(
                        "{size} bytes at {base} + {offset} end past the file's {length} bytes; it is cut short"
                    ),
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(size: u64, base: u64) -> Vec<u8> {
        let mut file = b"\x20\0\0\0ET12eh00\x18\0\0\0".to_vec();
        file.extend(size.to_le_bytes());
        file.extend(base.to_le_bytes());
        file.resize(64, 0);
        file
    }

    #[test]
    fn parts_lie_inside_of_the_file() {
        let parsed = Container::parse(&header(40, 48)).unwrap();
        assert_eq!((parsed.program, parsed.segment(0, 8, 8)), (40, Ok(56..64)));
        assert!(parsed.segment(0, 8, 9).is_err() && parsed.segment(0, u64::MAX, 2).is_err());
        assert!(Container::parse(&header(65, 0)).is_err());
        assert!(Container::parse(&header(40, 0)[..30]).is_err());
        let plain = Container::parse(&[0; 20]).unwrap();
        assert_eq!(plain.program, 20);
        assert!(plain.segment(0, 0, 0) == Ok(0..0) && plain.segment(0, 0, 1).is_err());
    }
}
