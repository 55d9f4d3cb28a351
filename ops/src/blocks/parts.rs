//! What blocks of several formats have in common: 16-bit floats, halves of bytes, a table of values.

use half::f16;

/// The values that IQ4_NL and IQ4_XS look codes up in.
pub(super) const NONLINEAR: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// 16 bytes with the codes of 32 elements: the lower halves are the first 16.
pub(super) fn halves(codes: &[u8], out: &mut Vec<f32>, value: impl Fn(u8, usize) -> f32) {
    out.extend((0..32).map(|l| value((codes[l % 16] >> (4 * (l / 16))) & 15, l)));
}

/// The 16-bit float at a place.
pub(super) fn half(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}
