//! Damaged files: sound ones with bytes changed, and with the tables, vectors and offsets of their FlatBuffers changed so that few
//! bytes say much.

use super::flat::Layout;
use crate::noise::Noise;

/// Numbers that lengths, offsets and counts do badly with.
const EXTREMES: [u32; 14] = [
    0,
    1,
    3,
    0x7F,
    0xFF,
    0xFFFF,
    0x1_0000,
    0x10_0000,
    0x7FFF_FFF0,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFF8,
    u32::MAX - 3,
    u32::MAX,
];
/// Most bytes that are put in.
const MOST_NEW: u64 = 1 << 16;

/// Bytes that a repeated instruction takes, at most.
const MOST_REPEATED: usize = 1 << 20;

/// A file with its bytes changed in a few places.
pub fn bytes(noise: &mut Noise, sound: &[u8]) -> Vec<u8> {
    let mut file = sound.to_vec();
    for _ in 0..noise.between(1, 4) {
        change(noise, &mut file);
    }
    file
}

fn change(noise: &mut Noise, file: &mut Vec<u8>) {
    if file.is_empty() {
        return;
    }
    let at = noise.below(file.len());
    // Most of what is read is in front.
    let at = if noise.once_in(2) { at % 512.min(file.len()) } else { at };
    let end = (at + noise.size(256) as usize + 1).min(file.len());
    match noise.below(8) {
        0 => file.truncate(at),
        1 => file[at] ^= 1 << noise.below(8),
        2 => file[at] = noise.next() as u8,
        3 => put(file, at & !3, *noise.pick(&EXTREMES)),
        4 => file[at..end].fill(if noise.once_in(2) { 0 } else { 0xFF }),
        5 => {
            let from = noise.below(file.len() - (end - at) + 1);
            file.copy_within(from..from + (end - at), at);
        }
        6 => {
            let count = noise.size(MOST_NEW) as usize;
            let value = noise.next() as u8;
            file.splice(at..at, std::iter::repeat_n(value, count));
        }
        _ => {
            let number = word(file, at & !3).wrapping_add((noise.size(64) as u32).wrapping_sub(32));
            put(file, at & !3, number);
        }
    }
}

/// A file with SPIR-V in it whose instructions are changed: repeated, moved, with other operands and lengths.
pub fn words(noise: &mut Noise, sound: &[u8]) -> Vec<u8> {
    let mut file = sound.to_vec();
    let Some(module) = file.windows(4).step_by(4).position(|word| word == SPIRV).map(|at| 4 * at) else {
        return bytes(noise, sound);
    };
    for _ in 0..noise.between(1, 6) {
        let all = instructions(&file, module);
        if all.is_empty() {
            break;
        }
        let (from, to) = (noise.pick(&all).clone(), noise.pick(&all).clone());
        let operand = from.start + 4 * noise.below(from.len() / 4);
        match noise.below(6) {
            0 => put(&mut file, operand, *noise.pick(&EXTREMES)),
            1 => {
                // A neighbour's id, or an id's neighbour.
                let number = word(&file, operand).wrapping_add(noise.size(8) as u32).wrapping_sub(4);
                put(&mut file, operand, number);
            }
            2 => {
                let times = (noise.size(2000) as usize).min(MOST_REPEATED / from.len());
                let one = file[from].repeat(times);
                file.splice(to.end..to.end, one);
            }
            3 => {
                let one = file[from.clone()].to_vec();
                file.splice(to, one);
            }
            4 => drop(file.drain(from)),
            _ => put(&mut file, module + 12, noise.size(u32::MAX.into()) as u32),
        }
    }
    file
}

/// How SPIR-V begins, in the bytes of a file.
pub(super) const SPIRV: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// Where instructions are: each says its words in the upper half of its first.
pub(super) fn instructions(file: &[u8], module: usize) -> Vec<std::ops::Range<usize>> {
    let (mut all, mut at) = (Vec::new(), module + 20);
    while at + 4 <= file.len() {
        let end = at + 4 * (word(file, at) >> 16) as usize;
        if end == at || end > file.len() {
            break;
        }
        all.push(at..end);
        at = end;
    }
    all
}

/// A file whose FlatBuffer is changed in a few places: each change is one that the format has words for.
pub fn tables(noise: &mut Noise, sound: &[u8]) -> Vec<u8> {
    let layout = Layout::of(sound);
    let mut file = sound.to_vec();
    if layout.fields.is_empty() {
        return bytes(noise, sound);
    }
    for _ in 0..noise.between(1, 6) {
        let field = *noise.pick(&layout.fields);
        match noise.below(7) {
            0 => put(&mut file, field, *noise.pick(&EXTREMES)),
            // Another table or vector in place of this one: what was read once is read many times, or is its own part.
            1 => lead(&mut file, field, *noise.pick(&layout.targets)),
            2 => {
                let vector = *noise.pick(&layout.targets);
                let length = word(&file, vector);
                let lengths = [length.wrapping_mul(2), length.wrapping_add(1), *noise.pick(&EXTREMES)];
                put(&mut file, vector, *noise.pick(&lengths));
            }
            3 => many(noise, &mut file, field, &layout),
            4 => same(noise, &mut file, &layout),
            5 => {
                let entry = *noise.pick(&layout.entries);
                let value = noise.size(64) as u32 & !1;
                put_half(&mut file, entry, value as u16);
            }
            _ => {
                let number = word(&file, field).wrapping_add(noise.size(16) as u32);
                put(&mut file, field, number);
            }
        }
    }
    file
}

/// A new vector behind the file, whose elements are all the same table, in place of what a field leads to.
fn many(noise: &mut Noise, file: &mut Vec<u8>, field: usize, layout: &Layout) {
    let target = *noise.pick(&layout.targets);
    let count = noise.size(MOST_NEW / 4) as u32;
    file.resize(file.len().next_multiple_of(4), 0);
    let vector = file.len();
    file.extend(count.to_le_bytes());
    for index in 0..count as usize {
        // Offsets lead forward only: these wrap around, which readers that add 32-bit numbers would follow.
        let place = vector + 4 + 4 * index;
        file.extend((target as u32).wrapping_sub(place as u32).to_le_bytes());
    }
    lead(file, field, vector);
}

/// All elements of a vector lead to what its last one leads to.
fn same(noise: &mut Noise, file: &mut [u8], layout: &Layout) {
    let vector = *noise.pick(&layout.targets);
    let count = (word(file, vector) as usize).min(file.len() / 4);
    let last = vector + 4 * count;
    let target = last.wrapping_add(word(file, last) as usize);
    for place in (vector + 4..last).step_by(4) {
        lead(file, place, target);
    }
}

/// Lets the offset at a place lead to another.
fn lead(file: &mut [u8], place: usize, target: usize) {
    put(file, place, (target as u32).wrapping_sub(place as u32));
}

pub(super) fn word(file: &[u8], at: usize) -> u32 {
    let bytes = file.get(at..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

pub(super) fn put(file: &mut [u8], at: usize, value: u32) {
    if let Some(bytes) = file.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>()) {
        *bytes = value.to_le_bytes();
    }
}

fn put_half(file: &mut [u8], at: usize, value: u16) {
    if let Some(bytes) = file.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        *bytes = value.to_le_bytes();
    }
}
