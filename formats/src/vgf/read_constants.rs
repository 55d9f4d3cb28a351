//! Reading a file's constants: a table of offsets, or in files of version 0.3 a FlatBuffer.

use bytes::Bytes;

use super::container::Section;
use super::model::Constant;
use super::tables::{each, index};
use super::{Result, VgfError, schema as s};
use crate::flatbuffer::Reader;

/// How a table of offsets begins.
const TAG: &[u8; 8] = b"CONST00\0";
/// Bytes of the tag and the number of entries.
const HEAD: usize = 16;
/// Bytes of an entry: resource, sparse axis, size, offset.
const ENTRY: usize = 24;

/// Reads the section with all constants.
pub(super) fn all(file: &Bytes, section: &Section, resources: usize) -> Result<Vec<Constant>> {
    if section.range.is_empty() {
        return Ok(Vec::new());
    }
    let data = file.slice(section.range.clone());
    match data.starts_with(TAG) {
        true => table(&data, resources),
        false => flatbuffer(&data, section, resources),
    }
}

fn table(data: &Bytes, resources: usize) -> Result<Vec<Constant>> {
    let cut = |what: &str| {
        VgfError::invalid("constants", format!("{what} end past the section's {} bytes", data.len()))
    };
    let count: Option<&[u8; 8]> = data.get(8..).and_then(<[u8]>::first_chunk);
    let count = u64::from_le_bytes(*count.ok_or_else(|| cut("tag and count"))?);
    let payload = usize::try_from(count).ok().and_then(|count| count.checked_mul(ENTRY)?.checked_add(HEAD));
    let entries = payload.and_then(|payload| data.get(HEAD..payload));
    let (Some(entries), Some(payload)) = (entries, payload) else {
        return Err(cut(&format!("{count} entries of {ENTRY} bytes")));
    };
    let (entries, _) = entries.as_chunks::<ENTRY>();
    let read = |(i, entry): (usize, &[u8; ENTRY])| {
        let half = |at: usize| u32::from_le_bytes(*entry[at..].first_chunk().expect("an entry has 24 bytes"));
        let word = |at: usize| u64::from_le_bytes(*entry[at..].first_chunk().expect("an entry has 24 bytes"));
        let place = || format!("constants[{i}]");
        let (size, offset) = (word(8), word(16));
        let start = (payload as u64).checked_add(offset);
        let end = start.and_then(|start| start.checked_add(size)).filter(|end| *end <= data.len() as u64);
        let (Some(start), Some(end)) = (start, end) else {
            return Err(cut(&format!("the {size} bytes of constant {i} at offset {offset} of the data")));
        };
        Ok(Constant {
            resource: index(half(0), resources, "resource", place)?,
            sparse_axis: axis(i64::from(half(4) as i32), i)?,
            data: data.slice(start as usize..end as usize),
        })
    };
    entries.iter().enumerate().map(read).collect()
}

fn flatbuffer(data: &Bytes, section: &Section, resources: usize) -> Result<Vec<Constant>> {
    let reader = Reader::new(data, section.range.start);
    let root = reader.root_unnamed("ConstantSection")?;
    each(&root, &s::constant_section::DATA, |t, i| {
        let place = || format!("ConstantSection.data[{i}]");
        let resource = t.scalar(&s::constant::RESOURCE)?;
        Ok(Constant {
            resource: index(resource, resources, "resource", place)?,
            sparse_axis: axis(t.scalar(&s::constant::SPARSITY)?, i)?,
            data: t.range(&s::constant::RAW)?.map(|range| data.slice(range)).unwrap_or_default(),
        })
    })
}

/// The axis of a hint; -1 is none.
fn axis(number: i64, i: usize) -> Result<Option<u32>> {
    match number {
        -1 => Ok(None),
        _ => u32::try_from(number).map(Some).map_err(|_| {
            VgfError::invalid(
                format!("constants[{i}]"),
                format!("the sparse axis {number}; it is a number from 0, or -1 for none"),
            )
        }),
    }
}
