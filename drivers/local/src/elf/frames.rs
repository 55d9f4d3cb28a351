//! Where functions begin and end, as far as the file's table for unwinding (`.eh_frame`) says: a pointer into the middle of a
//! function is damage. Format: Linux Standard Base, "Exception Frames".

use std::ops::Range;

/// Fields of the ELF header: the section headers, the size and number of them, which one holds their names.
const SECTIONS: [usize; 4] = [0x28, 0x3A, 0x3C, 0x3E];
const SECTION_HEADER_SIZE: usize = 64;
const NAME: &[u8] = b".eh_frame\0";
/// Addresses are numbers of 4 bytes, from their own place on; the same with 8 bytes.
const RELATIVE: [u8; 3] = [0x1B, 0x1C, 0x10];

/// Address ranges of the functions that the table has, in its order. Empty without a table, and where it is written in a way that
/// compilers of embedded code do not use: nothing is known of functions then.
pub(super) fn functions(file: &[u8]) -> Vec<Range<u64>> {
    table(file).and_then(|(address, bytes)| entries(address, bytes)).unwrap_or_default()
}

/// The table's address in the image, and its bytes.
fn table(file: &[u8]) -> Option<(u64, &[u8])> {
    let [headers, size, count, names] = SECTIONS;
    let start = usize::try_from(u64_at(file, headers)?).ok()?;
    if usize::from(u16_at(file, size)?) != SECTION_HEADER_SIZE {
        return None;
    }
    let header = |index: u16| {
        let at = start.checked_add(usize::from(index) * SECTION_HEADER_SIZE)?;
        file.get(at..at.checked_add(SECTION_HEADER_SIZE)?)
    };
    let contents = |header: &[u8]| {
        let (from, length) = (u64_at(header, 24)?, u64_at(header, 32)?);
        file.get(usize::try_from(from).ok()?..usize::try_from(from.checked_add(length)?).ok()?)
    };
    let names = contents(header(u16_at(file, names)?)?)?;
    for index in 0..u16_at(file, count)? {
        let header = header(index)?;
        let name = usize::try_from(u32_at(header, 0)?).ok()?;
        if names.get(name..).is_some_and(|rest| rest.starts_with(NAME)) {
            return Some((u64_at(header, 16)?, contents(header)?));
        }
    }
    None
}

/// The functions of a table at an address; `None` where it is not understood.
fn entries(address: u64, bytes: &[u8]) -> Option<Vec<Range<u64>>> {
    let (mut functions, mut at, mut encoding) = (Vec::new(), 0usize, None);
    while let Some(length) = u32_at(bytes, at).filter(|length| *length > 0) {
        let (id_at, end) = (at + 4, (at + 4).checked_add(length as usize)?);
        let entry = bytes.get(..end)?;
        if u32_at(entry, id_at)? == 0 {
            // What follows is written as this common part says: compilers put it in front of those that share it.
            encoding = Some(address_encoding(&entry[id_at + 4..])?);
        } else {
            functions.push(function(address, entry, id_at + 4, encoding?)?);
        }
        at = end;
    }
    Some(functions)
}

/// How addresses are written, in a common part behind its id: `R` of its augmentation.
fn address_encoding(part: &[u8]) -> Option<u8> {
    let letters = part.get(1..)?.split(|byte| *byte == 0).next()?;
    let mut at = 2 + letters.len();
    // Two factors and a register, numbers with as many bytes as they need, and the length of what follows.
    for _ in 0..4 {
        at += part.get(at..)?.iter().position(|byte| byte & 0x80 == 0)? + 1;
    }
    match letters {
        b"zR" => part.get(at).copied().filter(|encoding| RELATIVE.contains(encoding)),
        _ => None,
    }
}

fn function(address: u64, entry: &[u8], at: usize, encoding: u8) -> Option<Range<u64>> {
    let place = address.checked_add(at as u64)?;
    let (distance, length) = match encoding == RELATIVE[0] {
        true => (i64::from(u32_at(entry, at)? as i32), u64::from(u32_at(entry, at + 4)?)),
        false => (u64_at(entry, at)? as i64, u64_at(entry, at + 8)?),
    };
    let start = place.checked_add_signed(distance)?;
    Some(start..start.checked_add(length)?)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_library_are_known() {
        let module = include_bytes!("../../tests/data/add_x86_64.vmfb");
        let at = module.windows(4).position(|w| w == b"\x7fELF").unwrap();
        let file = &module[at..];
        assert_eq!(functions(file), [0x1440..0x166D, 0x1670..0x1681]);
        // However it is cut or damaged, it is read without harm.
        for length in 0..file.len().min(4096) {
            functions(&file[..length]);
            let mut damaged = file[..4096.min(file.len())].to_vec();
            damaged[length] ^= 0xFF;
            functions(&damaged);
        }
    }
}
