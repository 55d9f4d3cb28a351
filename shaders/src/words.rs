//! SPIR-V as bytes that compress to half of what its words do: most operands are ids that were made shortly before, so they are
//! written as distances. `build.rs` uses this file, too.
#![allow(dead_code, reason = "build.rs packs, the library unpacks")]

/// Words before the first instruction.
const HEADER: usize = 5;

/// Distances from here on are no shorter than the word itself.
const MOST_DISTANCE: u32 = 1 << 20;

/// Opcodes whose third word is no new id: OpName, OpMemberName, OpFunction, OpStore, OpDecorate, OpMemberDecorate, OpLoopMerge,
/// OpSelectionMerge. A guess that is wrong costs bytes, and nothing else.
const WITHOUT_RESULT: [u32; 8] = [5, 6, 54, 62, 71, 72, 246, 247];

/// Packs a module: the number of bytes of opcodes and lengths, these, and the operands; all numbers in groups of seven bits. `None`
/// where instructions do not fill the module.
pub fn pack(words: &[u32]) -> Option<Vec<u8>> {
    let (mut heads, mut operands) = (Vec::new(), Vec::new());
    let (header, mut rest) = words.split_at_checked(HEADER)?;
    header.iter().for_each(|word| put(&mut heads, u64::from(*word)));
    let mut last = 0_u32;
    while let Some(head) = rest.first() {
        let (opcode, length) = (head & 0xFFFF, (head >> 16) as usize);
        let (instruction, behind) = rest.split_at_checked(length).filter(|_| length > 0)?;
        put(&mut heads, u64::from(opcode));
        put(&mut heads, length as u64);
        for word in &instruction[1..] {
            let distance = word.wrapping_sub(last).cast_signed();
            let distance = ((distance << 1) ^ (distance >> 31)).cast_unsigned();
            let is_near = distance < MOST_DISTANCE && u64::from(distance) < 2 * u64::from(*word);
            put(&mut operands, if is_near { u64::from(distance) << 1 } else { u64::from(*word) << 1 | 1 });
        }
        last = next(last, opcode, instruction.get(2));
        rest = behind;
    }
    let mut all = Vec::new();
    put(&mut all, heads.len() as u64);
    Some([all, heads, operands].concat())
}

/// The bytes of a module, so many, of what [`pack`] made. `None` where it did not.
pub fn unpack(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut bytes = packed;
    let heads = usize::try_from(take(&mut bytes)?).ok()?;
    let (mut heads, mut operands) = bytes.split_at_checked(heads)?;
    let mut all = vec![0; size];
    let mut places = all.chunks_exact_mut(4);
    let mut write = |word: u32| places.next().map(|place| place.copy_from_slice(&word.to_le_bytes()));
    for _ in 0..HEADER {
        write(take(&mut heads)? as u32)?;
    }
    let mut last = 0_u32;
    while !heads.is_empty() {
        let (opcode, length) = (take(&mut heads)? as u32, take(&mut heads)? as u32);
        write(length << 16 | opcode)?;
        let mut result = None;
        for place in 1..length {
            let operand = take(&mut operands)?;
            let number = (operand >> 1) as u32;
            let distance = (number >> 1) ^ (number & 1).wrapping_neg();
            let word = if operand & 1 == 1 { number } else { last.wrapping_add(distance) };
            if place == 2 {
                result = Some(word);
            }
            write(word)?;
        }
        last = next(last, opcode, result.as_ref());
    }
    (places.len() == 0 && operands.is_empty()).then_some(all)
}

/// The id that the next operands are told from.
fn next(last: u32, opcode: u32, third: Option<&u32>) -> u32 {
    third.copied().filter(|_| !WITHOUT_RESULT.contains(&opcode)).unwrap_or(last)
}

/// Writes a number in groups of seven bits.
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number that [`put`] wrote, from the front.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    match *bytes {
        [first @ ..=0x7F, rest @ ..] => {
            *bytes = rest;
            Some(u64::from(*first))
        }
        _ => take_long(bytes),
    }
}

fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let header = [0x0723_0203, 0x0001_0300, 0, 100, 0];
        let instructions =
            [3 << 16 | 61, 7, 8, 5 << 16 | 128, 7, 9, 8, u32::MAX, 1 << 16 | 253, 3 << 16 | 62, 9, 1 << 30];
        let words = [&header[..], &instructions].concat();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let packed = pack(&words).unwrap();
        assert_eq!(unpack(&packed, bytes.len()).as_ref(), Some(&bytes));
        for end in 0..packed.len() {
            assert_eq!(unpack(&packed[..end], bytes.len()), None, "{end}");
        }
        assert_eq!(unpack(&packed, bytes.len() - 4), None);
        assert_eq!(unpack(&packed, bytes.len() + 4), None);
        assert_eq!(pack(&header[..4]), None);
        assert_eq!(pack(&[&header[..], &[0]].concat()), None);
        assert_eq!(pack(&[&header[..], &[2 << 16 | 61]].concat()), None);
    }
}
