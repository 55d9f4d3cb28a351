//! The elements of blocks of 256 whose codes are places in a codebook: chunks of 32, which are four times eight elements.

use super::{
    codebooks::{IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS},
    parts::half,
};

/// What codes of two bits stand for.
const LEVELS: [f32; 4] = [8.0, 25.0, 43.0, 60.0];
/// What codes of IQ3_XXS stand for.
const EIGHT_LEVELS: [f32; 8] = [4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0];
/// What is added to, or taken from, codes of IQ1_S and IQ1_M.
const DELTA: f32 = 0.125;

/// The entry of a codebook at a place, which formats have no bits for beyond its end.
fn entry(book: &[u8], place: usize) -> u16 {
    u16::from_le_bytes([book[2 * place], book[2 * place + 1]])
}

fn word16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word32(bytes: &[u8], at: usize) -> u32 {
    u32::from(word16(bytes, at)) | u32::from(word16(bytes, at + 2)) << 16
}

/// Eight signs of seven bits: an even number of them are negative.
fn even_signs(bits: u32) -> u32 {
    let seven = bits & 127;
    seven | (seven.count_ones() & 1) << 7
}

/// Half a byte.
fn nibble(byte: u8, upper: usize) -> f32 {
    f32::from(byte >> (4 * upper) & 15)
}

/// Appends eight elements by an entry of eight codes.
fn eight(entry: u16, scale: f32, signs: u32, out: &mut Vec<f32>) {
    out.extend((0..8).map(|j| {
        let size = scale * LEVELS[usize::from(entry >> (2 * j) & 3)];
        if signs >> j & 1 == 1 { -size } else { size }
    }));
}

/// Appends eight elements by two entries of four codes each, and what a code stands for.
fn twice_four(entries: [u16; 2], signs: u32, out: &mut Vec<f32>, value: impl Fn(usize) -> f32) {
    out.extend((0..8).map(|j| {
        let size = value(usize::from(entries[j / 4] >> (4 * (j % 4)) & 7));
        if signs >> j & 1 == 1 { -size } else { size }
    }));
}

/// IQ2_XXS: scale; for each chunk four places, and a word of signs and a scale.
pub(super) fn iq2_xxs(bytes: &[u8], out: &mut Vec<f32>) {
    for own in bytes[2..].chunks_exact(8) {
        let word = word32(own, 4);
        let scale = half(bytes, 0) * (0.5 + (word >> 28) as f32) * 0.25;
        for (l, place) in own[..4].iter().enumerate() {
            eight(entry(&IQ2_XXS, usize::from(*place)), scale, even_signs(word >> (7 * l)), out);
        }
    }
}

/// IQ2_XS: scale, 32 places with signs, scales of 16 elements.
pub(super) fn iq2_xs(bytes: &[u8], out: &mut Vec<f32>) {
    for i in 0..32 {
        let word = word16(bytes, 2 + 2 * i);
        let scale = half(bytes, 0) * (0.5 + nibble(bytes[66 + i / 4], i / 2 % 2)) * 0.25;
        eight(entry(&IQ2_XS, usize::from(word & 511)), scale, even_signs(u32::from(word >> 9)), out);
    }
}

/// IQ2_S: scale, lower bits of 32 places, signs, upper bits, scales of 16 elements.
pub(super) fn iq2_s(bytes: &[u8], out: &mut Vec<f32>) {
    for i in 0..32 {
        let upper = usize::from(bytes[66 + i / 4] >> (2 * (i % 4)) & 3);
        let scale = half(bytes, 0) * (0.5 + nibble(bytes[74 + i / 4], i / 2 % 2)) * 0.25;
        let place = usize::from(bytes[2 + i]) | upper << 8;
        eight(entry(&IQ2_S, place), scale, u32::from(bytes[34 + i]), out);
    }
}

/// IQ3_XXS: scale, 64 places; for each chunk a word of signs and a scale.
pub(super) fn iq3_xxs(bytes: &[u8], out: &mut Vec<f32>) {
    for i in 0..32 {
        let word = word32(bytes, 66 + 4 * (i / 4));
        let scale = half(bytes, 0) * (0.5 + (word >> 28) as f32) * 0.5;
        let entries = [0, 1].map(|h| entry(&IQ3_XXS, usize::from(bytes[2 + 2 * i + h])));
        let signs = even_signs(word >> (7 * (i % 4)));
        twice_four(entries, signs, out, |code| scale * EIGHT_LEVELS[code]);
    }
}

/// IQ3_S: scale, lower bits of 64 places, their upper bits, signs, scales of chunks.
pub(super) fn iq3_s(bytes: &[u8], out: &mut Vec<f32>) {
    for i in 0..32 {
        let c = i / 4;
        let scale = half(bytes, 0) * (1.0 + 2.0 * nibble(bytes[106 + c / 2], c % 2));
        let entries = [2 * i, 2 * i + 1].map(|place| {
            let upper = usize::from(bytes[66 + c] >> (place % 8) & 1);
            entry(&IQ3_S, usize::from(bytes[2 + place]) | upper << 8)
        });
        twice_four(entries, u32::from(bytes[74 + i]), out, |code| scale * (2 * code + 1) as f32);
    }
}

/// Appends eight elements by an entry of codes of -1 to 1, to each of which the same is added.
fn shifted(entry: u16, scale: f32, negative: bool, out: &mut Vec<f32>) {
    let delta = if negative { -DELTA } else { DELTA };
    out.extend((0..8).map(|j| scale * (f32::from(entry >> (2 * j) & 3) - 1.0 + delta)));
}

/// IQ1_S: scale, lower bits of 32 places; for each chunk their upper bits, a scale, and a sign of what is added.
pub(super) fn iq1_s(bytes: &[u8], out: &mut Vec<f32>) {
    for i in 0..32 {
        let more = word16(bytes, 34 + 2 * (i / 4));
        let scale = half(bytes, 0) * f32::from(2 * (more >> 12 & 7) + 1);
        let place = usize::from(bytes[2 + i]) | usize::from(more >> (3 * (i % 4)) & 7) << 8;
        shifted(entry(&IQ1_S, place), scale, more >> 15 == 1, out);
    }
}

/// IQ1_M: lower bits of 32 places; half a byte for each of upper bits and the sign of what is added; scales of 16 elements, beside
/// which the block's own scale is in four parts.
pub(super) fn iq1_m(bytes: &[u8], out: &mut Vec<f32>) {
    let words = [48, 50, 52, 54].map(|at| word16(bytes, at));
    let scale = (0..4).fold(0, |bits, part| bits | words[part] >> 12 << (4 * part));
    let scale = half::f16::from_bits(scale).to_f32();
    for i in 0..32 {
        let more = bytes[32 + i / 2] >> (4 * (i % 2));
        let own = words[i / 8] >> (3 * (i / 2 % 4)) & 7;
        let place = usize::from(bytes[i]) | usize::from(more & 7) << 8;
        shifted(entry(&IQ1_S, place), scale * f32::from(2 * own + 1), more & 8 != 0, out);
    }
}
