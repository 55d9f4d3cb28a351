//! Writing IREE parameter archives: one header, entries in the given order, data aligned.

use super::irpa::{ALIGNMENT, DATA_ENTRY, ENTRY_HEADER, HEADER, MAGIC, SPLAT_ENTRY, TYPE_DATA, TYPE_SPLAT};
use super::{Kind, ParamError, error::shorten};
use std::collections::HashSet;
use std::io;

/// Alignment of every parameter's data from the start of the file.
const DATA_ALIGNMENT: u64 = 64;
/// Files are whole pages long, so that they can be mapped.
const FILE_ALIGNMENT: u64 = 4096;

/// A parameter to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    /// Key; unique in the archive.
    pub name: &'a str,
    /// Opaque metadata; may be empty.
    pub metadata: &'a [u8],
    /// Its bytes.
    pub storage: NewStorage<'a>,
}

/// The bytes of a parameter to be written.
#[derive(Clone, Copy, Debug)]
pub enum NewStorage<'a> {
    /// Stored in the file.
    Data(&'a [u8]),
    /// A repeated pattern, without storage.
    Splat {
        /// 1, 2, 4, 8 or 16 bytes.
        pattern: &'a [u8],
        /// Bytes in all, a multiple of the pattern.
        length: u64,
    },
}

fn check(entries: &[NewEntry<'_>]) -> Result<(), ParamError> {
    let mut names = HashSet::new();
    for e in entries {
        if !names.insert(e.name) {
            return Err(ParamError::Duplicate { kind: Kind::Irpa, name: shorten(e.name) });
        }
        if let NewStorage::Splat { pattern, length } = e.storage
            && !(matches!(pattern.len(), 1 | 2 | 4 | 8 | 16) && length.is_multiple_of(pattern.len() as u64))
        {
            let problem = format!(
                "pattern of {} bytes for {length} bytes; it must be 1, 2, 4, 8 or 16 and divide the length",
                pattern.len()
            );
            return Err(ParamError::invalid(Kind::Irpa, format!("entry `{}`", shorten(e.name)), problem));
        }
    }
    Ok(())
}

/// Writes an archive. Deterministic; data is copied once, straight into `out`.
///
/// Bad entries and failures of `out` come back as `io::Error` (the former of kind `InvalidInput` with a
/// [`ParamError`] inside).
pub fn write_irpa(entries: &[NewEntry<'_>], out: &mut impl io::Write) -> io::Result<()> {
    check(entries).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
    let table_start = (HEADER as u64).next_multiple_of(ALIGNMENT);
    let (table, metadata, storage_length) = tables(entries);
    let metadata_start = table_start + table.len() as u64;
    let storage_start = (metadata_start + metadata.len() as u64).next_multiple_of(DATA_ALIGNMENT);
    let mut head = Vec::new();
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&[0; 4]);
    let fields = [
        HEADER as u64,
        0,
        0,
        entries.len() as u64,
        table_start,
        table.len() as u64,
        metadata_start,
        metadata.len() as u64,
        storage_start,
        storage_length,
    ];
    head.extend(fields.iter().flat_map(|v| v.to_le_bytes()));
    head.resize(table_start as usize, 0);
    head.extend_from_slice(&table);
    head.extend_from_slice(&metadata);
    let mut position = 0u64;
    write_at(out, &mut position, 0, &head)?;
    let mut offset = 0u64;
    for e in entries {
        if let NewStorage::Data(data) = e.storage {
            offset = offset.next_multiple_of(DATA_ALIGNMENT);
            write_at(out, &mut position, storage_start + offset, data)?;
            offset += data.len() as u64;
        }
    }
    let end = position.max(storage_start).next_multiple_of(FILE_ALIGNMENT);
    write_at(out, &mut position, end, &[])
}

/// Pads with zeros up to `start`, which is not behind and less than a page ahead, and writes the data.
fn write_at(out: &mut impl io::Write, position: &mut u64, start: u64, data: &[u8]) -> io::Result<()> {
    const ZEROS: [u8; FILE_ALIGNMENT as usize] = [0; FILE_ALIGNMENT as usize];
    out.write_all(&ZEROS[..(start - *position) as usize])?;
    out.write_all(data)?;
    *position = start + data.len() as u64;
    Ok(())
}

/// The entry table, the metadata segment, and the length of the storage segment.
fn tables(entries: &[NewEntry<'_>]) -> (Vec<u8>, Vec<u8>, u64) {
    let (mut table, mut metadata) = (Vec::new(), Vec::new());
    let mut storage_length = 0u64;
    for e in entries {
        table.resize(table.len().next_multiple_of(ALIGNMENT as usize), 0);
        let name = metadata.len() as u64;
        metadata.extend_from_slice(e.name.as_bytes());
        let note = if e.metadata.is_empty() { 0 } else { metadata.len() as u64 };
        metadata.extend_from_slice(e.metadata);
        let (size, entry_type, alignment) = match e.storage {
            NewStorage::Data(_) => (DATA_ENTRY, TYPE_DATA, DATA_ALIGNMENT),
            NewStorage::Splat { .. } => (SPLAT_ENTRY, TYPE_SPLAT, 0),
        };
        let start = table.len();
        table.extend_from_slice(&(size as u64).to_le_bytes());
        table.extend_from_slice(&entry_type.to_le_bytes());
        let lengths = (e.name.len() as u64, e.metadata.len() as u64);
        let fields = [0, name, lengths.0, note, lengths.1, alignment];
        table.extend(fields.iter().flat_map(|v: &u64| v.to_le_bytes()));
        debug_assert_eq!(table.len() - start, ENTRY_HEADER);
        match e.storage {
            NewStorage::Data(data) => {
                storage_length = storage_length.next_multiple_of(DATA_ALIGNMENT);
                table.extend([storage_length, data.len() as u64].iter().flat_map(|v| v.to_le_bytes()));
                storage_length += data.len() as u64;
            }
            NewStorage::Splat { pattern, length } => {
                table.extend_from_slice(&length.to_le_bytes());
                table.extend_from_slice(pattern);
                table.resize(start + SPLAT_ENTRY - 1, 0);
                table.push(pattern.len() as u8);
            }
        }
    }
    (table, metadata, storage_length)
}
