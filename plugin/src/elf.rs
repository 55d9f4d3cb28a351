//! One question about ELF files: is all there that their headers speak of?
//!
//! The system maps a library before it looks at it closely; touching a page behind the end of a file that was cut off
//! ends the process. So files that are too short are found here. Offsets are those of the ELF specification.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
};

use halite_hal::{Result, Status, bail, status};

/// Bytes of the larger file header.
const HEADER: usize = 64;
/// Program headers beyond this are no library of this world.
const MAX_SEGMENTS: u64 = 1 << 12;
const PT_LOAD: u32 = 1;

/// Where a file header of one class has its fields: (offset, bytes).
struct Layout {
    word: usize,
    segments: usize,
    sections: usize,
    segment_size: usize,
    in_segment_offset: usize,
    in_segment_length: usize,
}

const CLASS_32: Layout = Layout {
    word: 4,
    segments: 28,
    sections: 32,
    segment_size: 42,
    in_segment_offset: 4,
    in_segment_length: 16,
};
const CLASS_64: Layout = Layout {
    word: 8,
    segments: 32,
    sections: 40,
    segment_size: 54,
    in_segment_offset: 8,
    in_segment_length: 32,
};

/// INCOMPATIBLE when the file is no ELF file, or ends before something that its headers speak of.
pub(super) fn check_complete(mut file: File, length: u64) -> Result<()> {
    let mut header = [0; HEADER];
    let read = read_at(&mut file, 0, &mut header, length)?;
    let header = &header[..read];
    if !header.starts_with(b"\x7FELF") {
        bail!(Incompatible, "it is no shared library: an ELF file begins otherwise");
    }
    let (layout, big) = match (header.get(4), header.get(5)) {
        (Some(1), Some(1)) => (CLASS_32, false),
        (Some(1), Some(2)) => (CLASS_32, true),
        (Some(2), Some(1)) => (CLASS_64, false),
        (Some(2), Some(2)) => (CLASS_64, true),
        _ => bail!(Incompatible, "its ELF header is damaged or cut off"),
    };
    let field = |at: usize, bytes: usize| number(header, at, bytes, big).ok_or_else(cut_off);
    let segments = field(layout.segments, layout.word)?;
    let sections = field(layout.sections, layout.word)?;
    let (segment_size, segment_count) = (field(layout.segment_size, 2)?, field(layout.segment_size + 2, 2)?);
    let (section_size, section_count) =
        (field(layout.segment_size + 4, 2)?, field(layout.segment_size + 6, 2)?);
    check_end(sections, section_size * section_count, length)?;
    check_end(segments, segment_size * segment_count, length)?;
    if segment_count > MAX_SEGMENTS || segment_size < layout.in_segment_length as u64 + 8 {
        bail!(Incompatible, "its ELF header is damaged: {segment_count} segments of {segment_size} bytes");
    }
    let mut table = vec![0; (segment_size * segment_count) as usize];
    read_at(&mut file, segments, &mut table, length)?;
    for segment in table.chunks_exact(segment_size as usize) {
        let field = |at, bytes| number(segment, at, bytes, big).ok_or_else(cut_off);
        if field(0, 4)? == u64::from(PT_LOAD) {
            let offset = field(layout.in_segment_offset, layout.word)?;
            check_end(offset, field(layout.in_segment_length, layout.word)?, length)?;
        }
    }
    Ok(())
}

fn check_end(offset: u64, bytes: u64, length: u64) -> Result<()> {
    match offset.checked_add(bytes) {
        Some(end) if end <= length => Ok(()),
        _ => Err(cut_off().annotate(format!("{bytes} bytes at {offset} are not in a file of {length}"))),
    }
}

fn cut_off() -> Status {
    status!(
        Incompatible,
        "the file is cut off: parts that its ELF headers speak of are missing; copy it again"
    )
}

fn number(bytes: &[u8], at: usize, count: usize, big: bool) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(count)?)?;
    let fold = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
    Some(if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
}

/// Reads what is there of `target.len()` bytes; tells how many.
fn read_at(file: &mut File, offset: u64, target: &mut [u8], length: u64) -> Result<usize> {
    let there = length.saturating_sub(offset).min(target.len() as u64) as usize;
    let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut target[..there]));
    read.map(|()| there).map_err(|e| status!(Unavailable, "cannot read it: {e}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn check(bytes: &[u8]) -> Result<()> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        check_complete(file, bytes.len() as u64)
    }

    #[test]
    fn this_program_is_complete_and_every_cut_is_found() {
        let path = std::env::current_exe().unwrap();
        let whole = std::fs::read(&path).unwrap();
        if !whole.starts_with(b"\x7FELF") {
            eprintln!("SKIPPED: programs are no ELF files here");
            return;
        }
        check_complete(File::open(&path).unwrap(), whole.len() as u64).unwrap();
        let length = whole.len();
        for cut in [0, 1, 4, 5, 6, 40, 63, 64, 100, 4096, length / 3, length / 2, length - 1] {
            let refused = check(&whole[..cut]).unwrap_err();
            assert_eq!(refused.code(), halite_hal::Code::Incompatible, "cut at {cut}: {refused}");
        }
    }

    #[test]
    fn other_files_are_told_apart() {
        for text in [&b"hello"[..], b"", b"#!/bin/sh\n", &[0; 200]] {
            assert!(check(text).unwrap_err().message().contains("no shared library"));
        }
        let mut odd = vec![0; 200];
        odd[..4].copy_from_slice(b"\x7FELF");
        assert!(check(&odd).unwrap_err().message().contains("damaged"));
        odd[4] = 2;
        odd[5] = 1;
        odd[32..40].fill(0xFF);
        odd[54..58].fill(0xFF);
        assert!(check(&odd).unwrap_err().message().contains("cut off"));
    }
}
