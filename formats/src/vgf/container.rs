//! The header of a file: its version, and where its sections lie.

use super::{Result, VgfError};
use std::ops::Range;

/// Bytes of the header; sections lie behind it.
const HEADER_BYTES: usize = 128;
/// How files begin.
const MAGIC: &[u8; 4] = b"VGF1";
/// How early files begin.
const OLD_MAGIC: [u8; 4] = [0xC3, 0xD2, 0xE1, 0xF0];
/// Where the version stands: major, minor, patch, a byte each.
const VERSION_AT: usize = 8;
/// Minor versions that are known.
const MINORS: std::ops::RangeInclusive<u8> = 3..=5;
/// Where the offset of a section stands, with its size behind it.
const SECTIONS: [(&str, usize); 4] =
    [("module table", 16), ("sequence table", 32), ("resource table", 48), ("constants", 64)];

/// Whether a file begins like a VGF.
pub fn is_vgf(start: &[u8]) -> bool {
    start.starts_with(MAGIC) || start.starts_with(&OLD_MAGIC)
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it is called in messages.
    pub name: &'static str,
    /// Where in the file it is, in bytes.
    pub range: Range<usize>,
}

/// The header, checked against the file's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) version: [u8; 3],
    /// In the order of [`SECTIONS`].
    pub(super) sections: [Section; 4],
}

impl Container {
    /// Reads the header.
    pub(super) fn parse(file: &[u8]) -> Result<Self> {
        if !is_vgf(file) {
            let found = file[..file.len().min(4)].escape_ascii();
            return Err(VgfError::container(format!("it begins with '{found}', not with VGF1")));
        }
        if file.len() < HEADER_BYTES {
            return Err(VgfError::container(format!(
                "the header takes {HEADER_BYTES} bytes, the file has {}",
                file.len()
            )));
        }
        let version = [file[VERSION_AT], file[VERSION_AT + 1], file[VERSION_AT + 2]];
        let [major, minor, patch] = version;
        if major != 0 || !MINORS.contains(&minor) {
            return Err(VgfError::container(format!("its version is {major}.{minor}.{patch}")));
        }
        let section = |i: usize| section(file, SECTIONS[i]);
        Ok(Container { version, sections: [section(0)?, section(1)?, section(2)?, section(3)?] })
    }
}

/// Where a section lies.
fn section(file: &[u8], (name, at): (&'static str, usize)) -> Result<Section> {
    let word = |at: usize| {
        u64::from_le_bytes(*file[at..].first_chunk().expect("the header's numbers lie inside of it"))
    };
    let (offset, size) = (word(at), word(at + 8));
    let end = offset.checked_add(size).filter(|end| *end <= file.len() as u64);
    match end {
        _ if size == 0 => Ok(Section { name, range: 0..0 }),
        Some(end) if offset >= HEADER_BYTES as u64 => {
            Ok(Section { name, range: offset as usize..end as usize })
        }
        _ => Err(VgfError::container(format!(
            "the {name} has {size} bytes at offset {offset}; the file has {} and its header {HEADER_BYTES}",
            file.len()
        ))),
    }
}
