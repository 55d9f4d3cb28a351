//! The zip dress of module files: stored entries with 64-bit sizes, so that any size takes the same path.

use bytes::Bytes;

use super::{VmfbError, container::SEGMENT_ALIGNMENT};

const VERSION_NEEDED: u16 = 45;
/// 1980-01-01, the first date of the format: files must not depend on when they were made.
const DATE: u16 = 0x21;
const ZIP64_ID: u16 = 1;
/// Extra-field id of padding; readers skip ids they do not know.
const PADDING_ID: u16 = 0xFECA;
const LOCAL_HEADER: usize = 30;
const LOCAL_ZIP64: usize = 20;
const MIN_PADDING: usize = 4;
/// Bytes that are read between two looks at whether to go on: milliseconds, unless a disk is slow.
const CHUNK: usize = 1 << 20;

/// An entry that has been placed.
struct Entry {
    name: String,
    crc: u32,
    length: u64,
    header_offset: u64,
}

/// Entries of a zip being written, in file order.
#[derive(Default)]
pub struct ZipEntries(Vec<Entry>);

/// Bytes from a local header's start to its data. Header and data both start at multiples of the segment alignment.
pub fn local_header_length(name: &str) -> usize {
    (LOCAL_HEADER + name.len() + LOCAL_ZIP64 + MIN_PADDING).next_multiple_of(SEGMENT_ALIGNMENT)
}

fn u16s(out: &mut Vec<u8>, values: &[u16]) {
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
}
fn u32s(out: &mut Vec<u8>, values: &[u32]) {
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
}
fn u64s(out: &mut Vec<u8>, values: &[u64]) {
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
}

impl ZipEntries {
    /// The local header, at a place in the file, of an entry. The data must follow right after it. All of it is read for its
    /// checksum, as long as the caller wants to go on.
    pub fn begin(
        &mut self,
        header_offset: u64,
        name: String,
        data: &[Bytes],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, VmfbError> {
        let out = &mut Vec::new();
        let length = data.iter().map(|d| d.len() as u64).sum();
        let crc = crc32(data, goes_on).ok_or(VmfbError::Stopped)?;
        let extra = local_header_length(&name) - LOCAL_HEADER - name.len();
        out.extend_from_slice(b"PK\x03\x04");
        u16s(out, &[VERSION_NEEDED, 0, 0, 0, DATE]);
        u32s(out, &[crc, u32::MAX, u32::MAX]);
        u16s(out, &[name.len() as u16, extra as u16]);
        out.extend_from_slice(name.as_bytes());
        u16s(out, &[ZIP64_ID, 16]);
        u64s(out, &[length, length]);
        let padding = extra - LOCAL_ZIP64 - MIN_PADDING;
        u16s(out, &[PADDING_ID, padding as u16]);
        out.resize(out.len() + padding, 0);
        self.0.push(Entry { name, crc, length, header_offset });
        Ok(std::mem::take(out))
    }

    /// The central directory, at a place in the file.
    pub fn finish(&self, start: u64) -> Vec<u8> {
        let out = &mut Vec::new();
        for e in &self.0 {
            out.extend_from_slice(b"PK\x01\x02");
            u16s(out, &[0x031E, VERSION_NEEDED, 0, 0, 0, DATE]);
            u32s(out, &[e.crc, u32::MAX, u32::MAX]);
            u16s(out, &[e.name.len() as u16, 28, 0, 0, 0]);
            u32s(out, &[0, u32::MAX]);
            out.extend_from_slice(e.name.as_bytes());
            u16s(out, &[ZIP64_ID, 24]);
            u64s(out, &[e.length, e.length, e.header_offset]);
        }
        let end = start + out.len() as u64;
        let count = self.0.len() as u64;
        out.extend_from_slice(b"PK\x06\x06");
        u64s(out, &[44]);
        u16s(out, &[VERSION_NEEDED, VERSION_NEEDED]);
        u32s(out, &[0, 0]);
        u64s(out, &[count, count, end - start, start]);
        out.extend_from_slice(b"PK\x06\x07");
        u32s(out, &[0]);
        u64s(out, &[end]);
        u32s(out, &[1]);
        out.extend_from_slice(b"PK\x05\x06");
        u16s(out, &[0, 0, u16::MAX, u16::MAX]);
        u32s(out, &[u32::MAX, u32::MAX]);
        u16s(out, &[0]);
        std::mem::take(out)
    }
}

/// CRC-32 as zip uses it (reflected polynomial 0xEDB88320); none if it is not to go on.
fn crc32(parts: &[Bytes], goes_on: &dyn Fn() -> bool) -> Option<u32> {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut i = 0;
        while i < 256 {
            let mut v = i as u32;
            let mut bit = 0;
            while bit < 8 {
                v = if v & 1 == 1 { v >> 1 ^ 0xEDB8_8320 } else { v >> 1 };
                bit += 1;
            }
            table[i] = v;
            i += 1;
        }
        table
    };
    let mut crc = u32::MAX;
    for chunk in parts.iter().flat_map(|part| part.chunks(CHUNK)) {
        if !goes_on() {
            return None;
        }
        crc = chunk.iter().fold(crc, |crc, b| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ b)]);
    }
    Some(!crc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_the_standard_check_string() {
        assert_eq!(crc32(&["12345".into(), "6789".into()], &|| true), Some(0xCBF4_3926));
    }

    #[test]
    fn large_data_are_not_read_to_the_end_when_nobody_wants_them() {
        let looks = std::cell::Cell::new(0);
        let twice = || looks.replace(looks.get() + 1) < 2;
        assert_eq!(crc32(&[vec![0; 4 * CHUNK].into()], &twice), None);
        assert_eq!(looks.get(), 3);
    }

    #[test]
    fn headers_end_where_they_say() {
        for name in ["a", "module.fb", &"n".repeat(60)] {
            let out = ZipEntries::default().begin(0, name.to_owned(), &["x".into()], &|| true).unwrap();
            assert_eq!(out.len(), local_header_length(name));
            assert_eq!(out.len() % SEGMENT_ALIGNMENT, 0);
        }
    }
}
