//! Reading IREE parameter archives (`.irpa`): packed little-endian structs, linked headers, three segments each.

use super::{Entry, Kind, ParamError, Storage, error::shorten, within};
use bytes::Bytes;

type Result<T> = std::result::Result<T, ParamError>;

pub(super) const MAGIC: &[u8; 4] = b"IRPA";
/// Bytes of a header, version 0.
pub(super) const HEADER: usize = 88;
/// Bytes common to all entries: u64 size, u32 type, u64 flags, (u64 offset, u64 length) of name and of metadata,
/// u64 minimum alignment.
pub(super) const ENTRY_HEADER: usize = 60;
/// An entry with a splat: u64 length, 16 bytes of pattern, u8 pattern length.
pub(super) const SPLAT_ENTRY: usize = ENTRY_HEADER + 25;
/// An entry with data: u64 offset and u64 length in the storage segment.
pub(super) const DATA_ENTRY: usize = ENTRY_HEADER + 16;
/// Alignment of headers, and of entries in their table.
pub(super) const ALIGNMENT: u64 = 16;
pub(super) const TYPE_SKIP: u32 = 0;
pub(super) const TYPE_SPLAT: u32 = 1;
pub(super) const TYPE_DATA: u32 = 2;
const TYPE_EXTERNAL: u32 = 3;
const KIND: Kind = Kind::Irpa;

/// A range of the file that has been checked against it.
#[derive(Clone, Copy)]
struct Segment {
    start: u64,
    length: u64,
}

impl Segment {
    /// A part of the segment, in file offsets.
    fn part(&self, offset: u64, length: u64, what: impl FnOnce() -> String) -> Result<Segment> {
        if offset.checked_add(length).is_some_and(|end| end <= self.length) {
            // Cannot overflow: the segment lies within the file.
            return Ok(Segment { start: self.start + offset, length });
        }
        Err(ParamError::OutOfRange { kind: KIND, what: what(), offset, length, limit: self.length })
    }

    fn bytes(&self, file: &Bytes) -> Bytes {
        file.slice(self.start as usize..(self.start + self.length) as usize)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

struct Parser<'a> {
    file: &'a Bytes,
    entries: Vec<Entry>,
    /// Bytes of entries and names that may still be visited. Headers may share segments, but only damaged or hostile
    /// files do so enough to exceed the file's own size.
    budget: u64,
}

pub(super) fn read(file: &Bytes) -> Result<Vec<Entry>> {
    let mut parser = Parser { file, entries: Vec::new(), budget: file.len() as u64 };
    let mut base = 0u64;
    loop {
        let next = parser.header(base)?;
        if next == 0 {
            return Ok(parser.entries);
        }
        // Offsets only lead forward, so the chain ends.
        let target = base.checked_add(next).filter(|t| t.is_multiple_of(ALIGNMENT));
        base = target.ok_or_else(|| {
            let problem =
                format!("next header {next} bytes after {base}; it must be a multiple of {ALIGNMENT}");
            ParamError::invalid(KIND, "header", problem)
        })?;
    }
}

impl Parser<'_> {
    /// Reads one archive and returns how far the next is, 0 at the end.
    fn header(&mut self, base: u64) -> Result<u64> {
        let what = || "header".to_owned();
        let start = within(KIND, self.file.len(), what, Some(base), HEADER as u64)?;
        let header = Segment { start, length: HEADER as u64 }.bytes(self.file);
        if !header.starts_with(MAGIC) {
            let problem = format!("magic \"{}\" at {base}, expected \"IRPA\"", header[..4].escape_ascii());
            return Err(ParamError::invalid(KIND, "header", problem));
        }
        let (major, minor) = (u32_at(&header, 4) as u16, u32_at(&header, 4) >> 16);
        if major != 0 {
            let (found, supported) = (format!("{major}.{minor}"), "version 0 is");
            return Err(ParamError::Version { kind: KIND, found, supported });
        }
        let size = u64_at(&header, 8);
        if size < HEADER as u64 {
            let problem = format!("header of {size} bytes at {base}, at least {HEADER} needed");
            return Err(ParamError::invalid(KIND, "header", problem));
        }
        let segment = |at: usize, name: &str| {
            let (offset, length) = (u64_at(&header, at), u64_at(&header, at + 8));
            // Nothing is read from an empty segment, wherever it says it is.
            let offset = if length == 0 { Some(0) } else { base.checked_add(offset) };
            let start = within(KIND, self.file.len(), || format!("{name} segment"), offset, length)?;
            Ok(Segment { start, length })
        };
        let (table, metadata, storage) =
            (segment(40, "entry")?, segment(56, "metadata")?, segment(72, "storage")?);
        self.entries(u64_at(&header, 32), table, metadata, storage)?;
        Ok(u64_at(&header, 16))
    }

    fn entries(&mut self, count: u64, table: Segment, metadata: Segment, storage: Segment) -> Result<()> {
        let mut offset = 0u64;
        for index in 0..count {
            let what = || format!("entry {index} of {count}");
            let header = table.part(offset, ENTRY_HEADER as u64, what)?.bytes(self.file);
            let size = u64_at(&header, 0);
            if size < ENTRY_HEADER as u64 {
                let problem = format!("{size} bytes, at least {ENTRY_HEADER} needed");
                return Err(ParamError::invalid(KIND, what(), problem));
            }
            let entry = table.part(offset, size, what)?.bytes(self.file);
            let name_length = u64_at(&entry, 28);
            self.spend(size.saturating_add(name_length), what)?;
            self.entry(&entry, metadata, storage, what)?;
            // The last entry needs no padding behind it.
            offset = (offset + size).next_multiple_of(ALIGNMENT);
        }
        Ok(())
    }

    fn spend(&mut self, bytes: u64, what: impl FnOnce() -> String) -> Result<()> {
        self.budget = self.budget.checked_sub(bytes).ok_or_else(|| {
            let problem =
                "entries and names together are longer than the file; they overlap, which no tool writes";
            ParamError::invalid(KIND, what(), problem)
        })?;
        Ok(())
    }

    fn entry(
        &mut self,
        entry: &[u8],
        metadata: Segment,
        storage: Segment,
        what: impl Fn() -> String,
    ) -> Result<()> {
        let entry_type = u32_at(entry, 8);
        if entry_type == TYPE_SKIP {
            return Ok(());
        }
        let name = metadata.part(u64_at(entry, 20), u64_at(entry, 28), || format!("name of {}", what()))?;
        let name = String::from_utf8(name.bytes(self.file).to_vec())
            .map_err(|_| ParamError::invalid(KIND, what(), "its name is not UTF-8"))?;
        let what = || format!("{} (`{}`)", what(), shorten(&name));
        let note =
            metadata.part(u64_at(entry, 36), u64_at(entry, 44), || format!("metadata of {}", what()))?;
        let (needed, known) = match entry_type {
            TYPE_SPLAT => (SPLAT_ENTRY, true),
            TYPE_DATA => (DATA_ENTRY, true),
            _ => (ENTRY_HEADER, false),
        };
        if !known || entry.len() < needed {
            let problem = match entry_type {
                TYPE_EXTERNAL => {
                    "its data is in another file, which is not supported; convert the archive".to_owned()
                }
                _ if known => format!("{} bytes, {needed} needed for its type", entry.len()),
                _ => format!("entry type {entry_type}; 0 (skip), 1 (splat) and 2 (data) are supported"),
            };
            return Err(ParamError::invalid(KIND, what(), problem));
        }
        let storage = if entry_type == TYPE_SPLAT {
            splat(entry, what)?
        } else {
            let (offset, length) = (u64_at(entry, ENTRY_HEADER), u64_at(entry, ENTRY_HEADER + 8));
            let part = storage.part(offset, length, || format!("data of {}", what()))?;
            Storage::Range { offset: part.start, length }
        };
        self.entries.push(Entry { name, storage, metadata: note.bytes(self.file), tensor: None });
        Ok(())
    }
}

fn splat(entry: &[u8], what: impl Fn() -> String) -> Result<Storage> {
    let length = u64_at(entry, ENTRY_HEADER);
    let pattern_length = entry[SPLAT_ENTRY - 1];
    if !matches!(pattern_length, 1 | 2 | 4 | 8 | 16) || !length.is_multiple_of(u64::from(pattern_length)) {
        let problem = format!(
            "pattern of {pattern_length} bytes for {length} bytes; it must be 1, 2, 4, 8 or 16 and divide the length"
        );
        return Err(ParamError::invalid(KIND, what(), problem));
    }
    let pattern = &entry[ENTRY_HEADER + 8..][..usize::from(pattern_length)];
    Ok(Storage::Splat { pattern: Bytes::copy_from_slice(pattern), length })
}
