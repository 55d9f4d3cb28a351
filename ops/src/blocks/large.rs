//! The elements of blocks of 256: chunks of 32 with scales that are packed themselves.

use super::parts::{NONLINEAR, half, halves};

/// Elements of a chunk, by number of the chunk and place in it.
fn each(out: &mut Vec<f32>, value: impl Fn(usize, usize) -> f32) {
    out.extend((0..256).map(|l| value(l / 32, l % 32)));
}

/// Q2_K: 16 bytes of scales and offsets, 64 of codes, scale, scale of offsets.
pub(super) fn q2(bytes: &[u8], out: &mut Vec<f32>) {
    let (scale, offset) = (half(bytes, 80), half(bytes, 82));
    each(out, |c, l| {
        let own = bytes[2 * c + l / 16];
        let code = (bytes[16 + 32 * (c / 4) + l] >> (2 * (c % 4))) & 3;
        scale * f32::from(own & 15) * f32::from(code) - offset * f32::from(own >> 4)
    });
}

/// Q3_K: 32 bytes of third bits, 64 of codes, 12 of scales, scale.
pub(super) fn q3(bytes: &[u8], out: &mut Vec<f32>) {
    let (scales, scale) = (&bytes[96..108], half(bytes, 108));
    each(out, |c, l| {
        let s = 2 * c + l / 16;
        let low = (scales[s % 8] >> (4 * (s / 8))) & 15;
        let high = (scales[8 + s % 4] >> (2 * (s / 4))) & 3;
        let own = f32::from(low | high << 4) - 32.0;
        let code = (bytes[32 + 32 * (c / 4) + l] >> (2 * (c % 4))) & 3;
        let third = if (bytes[l] >> c) & 1 == 1 { 0.0 } else { 4.0 };
        scale * own * (f32::from(code) - third)
    });
}

/// Q4_K and Q5_K: scale, scale of offsets, 12 bytes of scales and offsets; then fifth bits, if any, and codes.
pub(super) fn q4_q5(bytes: &[u8], fifths: Option<&[u8]>, codes: &[u8], out: &mut Vec<f32>) {
    let (scale, offset, packed) = (half(bytes, 0), half(bytes, 2), &bytes[4..16]);
    each(out, |c, l| {
        let (own, less) = match c {
            0..4 => (packed[c] & 63, packed[c + 4] & 63),
            _ => (packed[c + 4] & 15 | (packed[c - 4] >> 6) << 4, packed[c + 4] >> 4 | (packed[c] >> 6) << 4),
        };
        let fifth = fifths.map_or(0, |bits| ((bits[l] >> c) & 1) << 4);
        let code = (codes[32 * (c / 2) + l] >> (4 * (c % 2))) & 15 | fifth;
        scale * f32::from(own) * f32::from(code) - offset * f32::from(less)
    });
}

/// Q6_K: 128 bytes of lower bits, 64 of upper ones, 16 scales, scale.
pub(super) fn q6(bytes: &[u8], out: &mut Vec<f32>) {
    let scale = half(bytes, 208);
    each(out, |c, l| {
        let (h, j) = (c / 4, c % 4);
        let low = (bytes[64 * h + 32 * (j % 2) + l] >> (4 * (j / 2))) & 15;
        let high = (bytes[128 + 32 * h + l] >> (2 * j)) & 3;
        let own = bytes[192 + 2 * c + l / 16] as i8;
        scale * f32::from(own) * (f32::from(low | high << 4) - 32.0)
    });
}

/// IQ4_XS: scale, 16 upper bits of scales, 4 bytes of lower ones, codes.
pub(super) fn iq4(bytes: &[u8], out: &mut Vec<f32>) {
    let (scale, upper) = (half(bytes, 0), u16::from_le_bytes([bytes[2], bytes[3]]));
    for c in 0..8 {
        let low = (bytes[4 + c / 2] >> (4 * (c % 2))) & 15;
        let high = ((upper >> (2 * c)) & 3) as u8;
        let own = scale * (f32::from(low | high << 4) - 32.0);
        halves(&bytes[8 + 16 * c..], out, |code, _| own * f32::from(NONLINEAR[usize::from(code)]));
    }
}

/// TQ2_0: 64 bytes of codes, scale.
pub(super) fn ternary_pairs(bytes: &[u8], out: &mut Vec<f32>) {
    let scale = half(bytes, 64);
    each(out, |c, l| {
        let code = (bytes[32 * (c / 4) + l] >> (2 * (c % 4))) & 3;
        scale * (f32::from(code) - 1.0)
    });
}

/// TQ1_0: 48 bytes of five digits each and four of four, scale. A byte is a fraction of 256, whose first digits of three are codes:
/// those of 32 bytes are elements 32 apart, those of 16 bytes 16 apart, those of the last four 4 apart.
pub(super) fn ternary_powers(bytes: &[u8], out: &mut Vec<f32>) {
    let scale = half(bytes, 52);
    each(out, |c, l| {
        let (byte, digit) = match 32 * c + l {
            at @ 0..160 => (at % 32, at / 32),
            at @ 160..240 => (32 + at % 16, (at - 160) / 16),
            at => (48 + at % 4, (at - 240) / 4),
        };
        let rest = bytes[byte].wrapping_mul([1, 3, 9, 27, 81][digit]);
        scale * (f32::from((u16::from(rest) * 3) >> 8) - 1.0)
    });
}
