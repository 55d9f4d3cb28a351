//! SPIR-V that stands for much: types of types, constants of constants that double, in the modules of sound files.

use super::damaged::{SPIRV, instructions, put, word};
use crate::noise::Noise;

/// Instructions that are put in, at most.
const MOST: u64 = 6000;
/// `OpTypeArray`, `OpTypeStruct`, `OpTypeRuntimeArray`, `OpTypePointer`, `OpTypeVector`, `OpTypeFunction`.
const TYPES: [u32; 6] = [28, 30, 29, 32, 23, 33];
/// `OpConstantComposite`, `OpSpecConstantComposite`, `OpSpecConstantOp`, `OpConstantNull`, `OpGraphConstantARM`.
const CONSTANTS: [u32; 5] = [44, 51, 52, 46, 4181];

fn instruction(code: u32, operands: &[u32]) -> Vec<u32> {
    let mut words = vec![(operands.len() as u32 + 1) << 16 | code];
    words.extend(operands);
    words
}

/// A line of types or constants, each made of the one before.
fn line(noise: &mut Noise, [kind, from]: [u32; 2], bound: &mut u32) -> Vec<u32> {
    let is_type = noise.once_in(2);
    let mut last = from;
    let mut words = Vec::new();
    for _ in 0..noise.size(MOST) {
        let id = *bound;
        *bound = bound.wrapping_add(1);
        let code = if is_type { *noise.pick(&TYPES) } else { *noise.pick(&CONSTANTS) };
        words.extend(match code {
            28 => instruction(code, &[id, last, kind]),
            30 => instruction(code, &vec![last; 2 + noise.size(300) as usize]),
            29 => instruction(code, &[id, last]),
            32 => instruction(code, &[id, noise.below(13) as u32, last]),
            23 => instruction(code, &[id, last, noise.below(20) as u32]),
            33 => instruction(code, &[id, last, last, last]),
            44 | 51 => instruction(code, &[kind, id, last, last]),
            // An operation of any number, of what came before.
            52 => instruction(code, &[kind, id, noise.size(400) as u32, last, last]),
            46 => instruction(code, &[kind, id]),
            _ => instruction(code, &[kind, id, noise.next() as u32]),
        });
        last = id;
    }
    words
}

/// `OpNop`, which stands by itself.
const NOTHING: u32 = 1 << 16;

/// A file in whose SPIR-V lines of types and constants stand where other instructions were: what is around it stays right.
pub fn grown(noise: &mut Noise, sound: &[u8]) -> Vec<u8> {
    let mut file = sound.to_vec();
    let modules = modules(&file);
    if modules.is_empty() {
        return super::damaged::bytes(noise, sound);
    }
    let module = *noise.pick(&modules);
    let mut bound = word(&file, module + 12);
    let all = instructions(&file, module);
    // Behind a type or a constant, whose number is its first or its second word.
    let code = |at: usize| word(&file, at) & 0xFFFF;
    let known: Vec<_> = all.iter().filter(|at| (19..53).contains(&code(at.start))).cloned().collect();
    let Some(end) = all.last().map(|last| last.end).filter(|_| !known.is_empty()) else { return file };
    let (one, other) = (noise.pick(&known).clone(), noise.pick(&known).clone());
    let id = |at: usize| word(&file, at + if code(at) < 41 { 4 } else { 8 });
    let pair = [id(one.start), id(other.start)];
    let mut at = one.end.max(other.end);
    // Some of what was there stays behind it.
    let end = if noise.once_in(2) { end } else { at + noise.below(end - at + 1) / 4 * 4 };
    for word in line(noise, pair, &mut bound) {
        if at + 4 > end {
            break;
        }
        put(&mut file, at, word);
        at += 4;
    }
    while at + 4 <= end && !all.iter().any(|one| one.start == at) {
        put(&mut file, at, NOTHING);
        at += 4;
    }
    put(&mut file, module + 12, bound);
    file
}

/// Where SPIR-V begins.
fn modules(file: &[u8]) -> Vec<usize> {
    (0..file.len().saturating_sub(24)).step_by(4).filter(|at| file[*at..].starts_with(&SPIRV)).collect()
}

/// A file in whose SPIR-V operands are others: its length stays, so that what is around it stays right.
pub fn operands(noise: &mut Noise, sound: &[u8]) -> Vec<u8> {
    let mut file = sound.to_vec();
    let modules = modules(&file);
    if modules.is_empty() {
        return super::damaged::bytes(noise, sound);
    }
    for _ in 0..noise.between(1, 8) {
        let all = instructions(&file, *noise.pick(&modules));
        if all.is_empty() {
            break;
        }
        let one = noise.pick(&all).clone();
        let at = one.start + 4 * noise.below(one.len() / 4);
        let other = noise.pick(&all).start + 4;
        let new = match noise.below(4) {
            0 => word(&file, other),
            1 => noise.size(u32::MAX.into()) as u32,
            2 => word(&file, at).wrapping_add(noise.size(3) as u32),
            _ => word(&file, at) ^ 1 << noise.below(32),
        };
        put(&mut file, at, new);
    }
    file
}
