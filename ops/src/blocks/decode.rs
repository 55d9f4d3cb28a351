//! The elements of a block of 32, and of any block by its format.

use super::{
    BlockFormat, large,
    parts::{NONLINEAR, half, halves},
};

/// Twice the values of E2M1 floats.
const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Appends the elements of a block, which has the format's bytes.
pub(super) fn block(format: BlockFormat, bytes: &[u8], out: &mut Vec<f32>) {
    match format {
        BlockFormat::Q4_0 => halves(&bytes[2..], out, |code, _| half(bytes, 0) * (f32::from(code) - 8.0)),
        BlockFormat::Q4_1 => {
            halves(&bytes[4..], out, |code, _| half(bytes, 0) * f32::from(code) + half(bytes, 2));
        }
        BlockFormat::Q5_0 => halves(&bytes[6..], out, |code, l| {
            half(bytes, 0) * (f32::from(code | fifth(&bytes[2..], l)) - 16.0)
        }),
        BlockFormat::Q5_1 => halves(&bytes[8..], out, |code, l| {
            half(bytes, 0) * f32::from(code | fifth(&bytes[4..], l)) + half(bytes, 2)
        }),
        BlockFormat::Q8_0 => out.extend(bytes[2..].iter().map(|b| half(bytes, 0) * f32::from(*b as i8))),
        BlockFormat::Iq4Nl => {
            halves(&bytes[2..], out, |code, _| half(bytes, 0) * f32::from(NONLINEAR[usize::from(code)]));
        }
        BlockFormat::Mxfp4 => {
            // 2 to the power of the byte less 128, by its bits: `exp2` promises no precision.
            let scale = f64::from_bits((u64::from(bytes[0]) + 1023 - 128) << 52) as f32;
            halves(&bytes[1..], out, |code, _| scale * f32::from(E2M1[usize::from(code)]));
        }
        BlockFormat::Q2K => large::q2(bytes, out),
        BlockFormat::Q3K => large::q3(bytes, out),
        BlockFormat::Q4K => large::q4_q5(bytes, None, &bytes[16..], out),
        BlockFormat::Q5K => large::q4_q5(bytes, Some(&bytes[16..48]), &bytes[48..], out),
        BlockFormat::Q6K => large::q6(bytes, out),
        BlockFormat::Iq4Xs => large::iq4(bytes, out),
        BlockFormat::F16 => out.extend((0..32).map(|i| half(bytes, 2 * i))),
        BlockFormat::Bf16 => {
            let words = bytes.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]])) << 16);
            out.extend(words.map(f32::from_bits));
        }
    }
}

/// The fifth bit of element `l`, in its place.
fn fifth(bits: &[u8], l: usize) -> u8 {
    ((bits[l / 8] >> (l % 8)) & 1) << 4
}

#[cfg(test)]
mod tests {
    use super::super::BlockFormat;

    /// A block of zeros with some bytes set.
    fn block(format: BlockFormat, set: &[(usize, u8)]) -> Vec<f32> {
        let mut bytes = vec![0; format.bytes() as usize];
        for (at, byte) in set {
            bytes[*at] = *byte;
        }
        format.decode(&bytes)
    }

    /// 1.0 as f16, at a place.
    fn one(at: usize) -> [(usize, u8); 2] {
        [(at, 0), (at + 1, 0x3C)]
    }

    #[test]
    fn every_block_has_its_elements() {
        for format in BlockFormat::ALL {
            assert_eq!(block(format, &[]).len() as u64, format.elements(), "{format}");
            assert_eq!(BlockFormat::named(format.ggml_name()), Some(format));
        }
    }

    #[test]
    fn codes_of_small_blocks_are_where_they_belong() {
        let got = block(BlockFormat::Q4_0, &[one(0).as_slice(), &[(2, 0x9F)]].concat());
        assert_eq!((got[0], got[16], got[1]), (7.0, 1.0, -8.0));
        let got = block(BlockFormat::Q5_1, &[one(0).as_slice(), &one(2), &[(6, 2), (8 + 1, 0x30)]].concat());
        assert_eq!((got[17], got[0]), (3.0 + 16.0 + 1.0, 1.0), "bit 17 of the fifth bits");
        let got = block(BlockFormat::Q8_0, &[one(0).as_slice(), &[(2 + 31, 0xFF)]].concat());
        assert_eq!(got[31], -1.0);
        let got = block(BlockFormat::Mxfp4, &[(0, 128), (1, 0x2F)]);
        assert_eq!((got[0], got[16]), (-12.0, 2.0));
        let got = block(BlockFormat::Iq4Nl, &[one(0).as_slice(), &[(2, 0xF0)]].concat());
        assert_eq!((got[0], got[16]), (-127.0, 113.0));
    }

    #[test]
    fn codes_of_large_blocks_are_where_they_belong() {
        // Chunk 5 of Q4_K: scale 3 (low bits in byte 9), offset 2 (high bits there), codes in the upper halves from 64 on.
        let got = block(
            BlockFormat::Q4K,
            &[one(0).as_slice(), &one(2), &[(4 + 9, 0x23), (16 + 64 + 7, 0x50)]].concat(),
        );
        assert_eq!((got[5 * 32 + 7], got[5 * 32]), (3.0 * 5.0 - 2.0, -2.0));
        // Chunk 6 of Q6_K: lower halves of 64 + l are chunk 4, upper ones chunk 6; its scale is at 12 and 13.
        let got = block(
            BlockFormat::Q6K,
            &[one(208).as_slice(), &[(64 + 20, 0x50), (128 + 32 + 20, 0x20), (192 + 13, 2)]].concat(),
        );
        assert_eq!(got[6 * 32 + 20], 2.0 * (5.0 + 32.0 - 32.0));
        // Chunk 3 of Q3_K: scale of its second half is number 7.
        let got = block(
            BlockFormat::Q3K,
            &[one(108).as_slice(), &[(16, 8), (32 + 16, 0xC0), (96 + 7, 0x01), (96 + 11, 0x08)]].concat(),
        );
        assert_eq!(got[3 * 32 + 16], f32::from(1 + 32i8 - 32) * 3.0);
        let got = block(
            BlockFormat::Q2K,
            &[one(80).as_slice(), &one(82), &[(11, 0x12), (16 + 32 + 16, 0x0C)]].concat(),
        );
        assert_eq!(got[5 * 32 + 16], 2.0 * 3.0 - 1.0);
        let got = block(
            BlockFormat::Iq4Xs,
            &[one(0).as_slice(), &[(3, 0x80), (4 + 3, 0x10), (8 + 7 * 16, 0x0F)]].concat(),
        );
        assert_eq!(got[7 * 32], f32::from(1 + 32i8 - 32) * 113.0);
    }
}
