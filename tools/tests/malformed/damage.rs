//! Damage to the bytes of a module file.

use std::ops::Range;

use crate::{base::Base, noise::Noise, structure};

/// Values that length, offset and count fields do badly with.
const EXTREMES: &[u32] =
    &[0, 1, 3, 0x7F, 0xFF, 0xFFFF, 0x1_0000, 0x7FFF_FFF0, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFF8, u32::MAX];
/// Where the words of a SPIR-V module begin to be instructions.
const SPIRV_HEADER: usize = 20;
const OP_EXECUTION_MODE: u32 = 16;
const OP_CONSTANT: u32 = 43;

/// What is done to a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Truncated,
    ContainerBytes,
    FlatbufferBit,
    FlatbufferBytes,
    FlatbufferField,
    BytecodeBit,
    BytecodeBytes,
    BytecodeWord,
    ExecutableBit,
    ExecutableField,
    ShaderBit,
    ShaderWord,
    ShaderConstant,
    ShaderZeroed,
    DataBytes,
    Zeroed,
    ModuleStructure,
    ExecutableStructure,
}

impl Kind {
    pub const ALL: &'static [Kind] = &[
        Kind::Truncated,
        Kind::ContainerBytes,
        Kind::FlatbufferBit,
        Kind::FlatbufferBytes,
        Kind::FlatbufferField,
        Kind::BytecodeBit,
        Kind::BytecodeBytes,
        Kind::BytecodeWord,
        Kind::ExecutableBit,
        Kind::ExecutableField,
        Kind::ShaderBit,
        Kind::ShaderWord,
        Kind::ShaderConstant,
        Kind::ShaderZeroed,
        Kind::DataBytes,
        Kind::Zeroed,
        Kind::ModuleStructure,
        Kind::ExecutableStructure,
    ];
}

/// Damages a module. `None` when it lacks the part, or when chance changed nothing.
pub fn apply(kind: Kind, base: &Base, noise: &mut Noise) -> Option<Vec<u8>> {
    let (parts, mut file) = (&base.parts, base.file.to_vec());
    match kind {
        Kind::Truncated => file.truncate(truncation(base, noise)),
        Kind::ContainerBytes => scribble(&mut file, &parts.container, noise),
        Kind::FlatbufferBit => flip(&mut file, table_byte(base, noise), noise),
        Kind::FlatbufferBytes => {
            let at = table_byte(base, noise);
            scribble(&mut file, &(at..parts.flatbuffer.end.min(at + 32)), noise);
        }
        Kind::FlatbufferField => extreme(&mut file, table_byte(base, noise), noise),
        Kind::BytecodeBit => flip(&mut file, inside(&parts.bytecode, noise)?, noise),
        Kind::BytecodeBytes => scribble(&mut file, &parts.bytecode, noise),
        Kind::BytecodeWord => extreme(&mut file, inside(&parts.bytecode, noise)?, noise),
        Kind::ExecutableBit => flip(&mut file, executable_byte(base, noise)?, noise),
        Kind::ExecutableField => extreme(&mut file, executable_byte(base, noise)?, noise),
        Kind::ShaderBit => {
            let at = inside(one(&parts.shaders, noise)?, noise)?;
            flip(&mut file, at, noise);
        }
        Kind::ShaderWord => shader_word(&mut file, one(&parts.shaders, noise)?, noise)?,
        Kind::ShaderConstant => shader_constant(&mut file, one(&parts.shaders, noise)?, noise)?,
        Kind::ShaderZeroed => zero(&mut file, one(&parts.shaders, noise)?, noise)?,
        Kind::DataBytes => scribble(&mut file, one(&parts.data, noise)?, noise),
        Kind::Zeroed => zero(&mut file, &(0..base.file.len()), noise)?,
        Kind::ModuleStructure => file = structure::module(&base.file, noise)?,
        Kind::ExecutableStructure => file = structure::executable(&base.file, noise)?,
    }
    (file != base.file).then_some(file)
}

fn one<'a>(ranges: &'a [Range<usize>], noise: &mut Noise) -> Option<&'a Range<usize>> {
    (!ranges.is_empty()).then(|| noise.pick(ranges))
}

fn inside(range: &Range<usize>, noise: &mut Noise) -> Option<usize> {
    (!range.is_empty()).then(|| range.start + noise.below(range.len()))
}

/// A new length: anywhere, or at the edge of a part.
fn truncation(base: &Base, noise: &mut Noise) -> usize {
    let parts = &base.parts;
    let mut edges = vec![0, 1, parts.container.end, parts.flatbuffer.end, parts.bytecode.start];
    edges.extend(parts.executables.iter().chain(&parts.shaders).chain(&parts.data).map(|r| r.end));
    match noise.below(3) {
        0 => (noise.pick(&edges) + noise.below(3)).saturating_sub(1),
        _ => noise.below(base.file.len()),
    }
}

/// A byte of the FlatBuffer that is not bytecode: tables, vtables, strings, small data.
fn table_byte(base: &Base, noise: &mut Noise) -> usize {
    loop {
        let at = inside(&base.parts.flatbuffer, noise).expect("a FlatBuffer is not empty");
        if !base.parts.bytecode.contains(&at) {
            return at;
        }
    }
}

/// A byte of an executable that is not SPIR-V: header, tables, names.
fn executable_byte(base: &Base, noise: &mut Noise) -> Option<usize> {
    let range = one(&base.parts.executables, noise)?;
    if noise.below(4) == 0 {
        return inside(&(range.start..range.start + 64), noise);
    }
    (0..1000)
        .filter_map(|_| inside(range, noise))
        .find(|at| !base.parts.shaders.iter().any(|shader| shader.contains(at)))
}

fn flip(file: &mut [u8], at: usize, noise: &mut Noise) {
    file[at] ^= 1 << noise.below(8);
}

/// Up to 16 random bytes within a range.
fn scribble(file: &mut [u8], range: &Range<usize>, noise: &mut Noise) {
    let Some(start) = inside(range, noise) else { return };
    let end = range.end.min(start + 1 + noise.below(16));
    file[start..end].iter_mut().for_each(|b| *b = noise.next() as u8);
}

/// An extreme value in an aligned field of 2, 4 or 8 bytes.
fn extreme(file: &mut [u8], at: usize, noise: &mut Noise) {
    let width = *noise.pick(&[2usize, 4, 4, 4, 8]);
    let start = (at / width * width).min(file.len() - width);
    let value = *noise.pick(EXTREMES);
    let high = if value > 0xFFFF { value } else { 0 };
    let bytes = (u64::from(high) << 32 | u64::from(value)).to_le_bytes();
    file[start..start + width].copy_from_slice(&bytes[..width]);
}

fn zero(file: &mut [u8], range: &Range<usize>, noise: &mut Noise) -> Option<()> {
    let start = inside(range, noise)?;
    let end = range.end.min(start + 1 + noise.below(256));
    file[start..end].fill(0);
    Some(())
}

/// Another word of the same shader, or an extreme value, in place of a word.
fn shader_word(file: &mut [u8], range: &Range<usize>, noise: &mut Noise) -> Option<()> {
    let words = range.len() / 4;
    let (to, from) = (range.start + noise.below(words) * 4, range.start + noise.below(words) * 4);
    match noise.below(2) {
        0 => file.copy_within(from..from + 4, to),
        _ => file[to..to + 4].copy_from_slice(&noise.pick(EXTREMES).to_le_bytes()),
    }
    Some(())
}

/// Another value for a constant or a workgroup size: the shader stays valid, its meaning does not.
fn shader_constant(file: &mut [u8], range: &Range<usize>, noise: &mut Noise) -> Option<()> {
    let literals = literals(&file[range.clone()]);
    let at = range.start + *one_of(&literals, noise)?;
    let old = word(file, at);
    let choices =
        [old ^ 1, old.wrapping_add(1), old.wrapping_mul(2), old.wrapping_neg(), *noise.pick(EXTREMES)];
    file[at..at + 4].copy_from_slice(&noise.pick(&choices).to_le_bytes());
    Some(())
}

fn one_of<'a, T>(from: &'a [T], noise: &mut Noise) -> Option<&'a T> {
    (!from.is_empty()).then(|| noise.pick(from))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("the range has four bytes"))
}

/// Offsets of the literals of constants and execution modes.
fn literals(shader: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = SPIRV_HEADER;
    while at + 4 <= shader.len() {
        let (op, length) = (word(shader, at) & 0xFFFF, (word(shader, at) >> 16) as usize * 4);
        if matches!(op, OP_CONSTANT | OP_EXECUTION_MODE) {
            found.extend((at + 12..at + length).step_by(4));
        }
        at += length.max(4);
    }
    found
}
