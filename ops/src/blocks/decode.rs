//! The elements of a block of 32, and of any block by its format.

use super::{
    BlockFormat, coded, large,
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
        BlockFormat::Iq2Xxs => coded::iq2_xxs(bytes, out),
        BlockFormat::Iq2Xs => coded::iq2_xs(bytes, out),
        BlockFormat::Iq2S => coded::iq2_s(bytes, out),
        BlockFormat::Iq3Xxs => coded::iq3_xxs(bytes, out),
        BlockFormat::Iq3S => coded::iq3_s(bytes, out),
        BlockFormat::Iq1S => coded::iq1_s(bytes, out),
        BlockFormat::Iq1M => coded::iq1_m(bytes, out),
        BlockFormat::Tq1_0 => large::ternary_powers(bytes, out),
        BlockFormat::Tq2_0 => large::ternary_pairs(bytes, out),
        BlockFormat::Nvfp4 => nvfp4(bytes, out),
        BlockFormat::Q1_0 => out.extend((0..128).map(|l| {
            let scale = half(bytes, 0);
            if bytes[2 + l / 8] >> (l % 8) & 1 == 1 { scale } else { -scale }
        })),
        BlockFormat::F16 => out.extend((0..32).map(|i| half(bytes, 2 * i))),
        BlockFormat::Bf16 => {
            let words = bytes.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]])) << 16);
            out.extend(words.map(f32::from_bits));
        }
    }
}

/// NVFP4: four scales, codes; of each 16 elements the lower halves of bytes are the first eight.
fn nvfp4(bytes: &[u8], out: &mut Vec<f32>) {
    for (own, codes) in bytes[..4].iter().zip(bytes[4..].chunks_exact(8)) {
        let scale = half_e4m3(*own);
        out.extend((0..16).map(|l| scale * f32::from(E2M1[usize::from(codes[l % 8] >> (4 * (l / 8)) & 15)])));
    }
}

/// Half of a positive float of 8 bits, E4M3, for codes stand for twice their values. The one that is no number is 0.
fn half_e4m3(byte: u8) -> f32 {
    if byte == 0x7F {
        return 0.0;
    }
    // Its bits in those of a float whose exponents are higher by 120. Multiplying puts that right, also for the lowest.
    f32::from_bits(u32::from(byte & 0x7F) << 20) * f32::from_bits((127 + 120 - 1) << 23)
}

/// The fifth bit of element `l`, in its place.
fn fifth(bits: &[u8], l: usize) -> u8 {
    ((bits[l / 8] >> (l % 8)) & 1) << 4
}

#[cfg(test)]
mod tests {
    use super::super::BlockFormat;

    /// FNV-1a of 64 bits over the elements of 64 blocks of bytes that a congruential generator makes, of which those of 16-bit floats at
    /// a place are numbers of moderate size.
    fn digest(format: BlockFormat, scale: Option<usize>) -> u64 {
        let mut state = 1u64;
        let bytes = (0..64 * format.bytes()).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        let mut bytes: Vec<u8> = bytes.collect();
        for block in bytes.chunks_exact_mut(format.bytes() as usize) {
            if let Some(place) = scale {
                block[place + 1] = block[place + 1] & 3 | 0x2C;
            } else if format == BlockFormat::Iq1M {
                block[55] = block[55] & 15 | 0x20;
            }
        }
        // Zeros have one sign.
        let elements = format.decode(&bytes).into_iter().map(|x| if x == 0.0 { 0.0 } else { x });
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        elements.flat_map(f32::to_le_bytes).fold(0xCBF2_9CE4_8422_2325, step)
    }

    /// What `gguf/quants.py` of the Python package gguf 0.19.0 makes of the same blocks, to the bit; for Q1_0, ggml's own function.
    #[test]
    fn blocks_are_what_ggml_makes_of_them() {
        let all = [
            (BlockFormat::Iq2Xxs, Some(0), 0x7E37_FD79_D7A5_C405),
            (BlockFormat::Iq2Xs, Some(0), 0x98D8_C978_F13F_347A),
            (BlockFormat::Iq2S, Some(0), 0xB187_3D7A_AB0F_8CB5),
            (BlockFormat::Iq3Xxs, Some(0), 0x2179_EEB2_9481_C834),
            (BlockFormat::Iq3S, Some(0), 0x44EC_0760_8F20_1039),
            (BlockFormat::Iq1S, Some(0), 0x702E_B4D4_7787_08FE),
            (BlockFormat::Iq1M, None, 0x6245_701C_C263_C755),
            (BlockFormat::Tq1_0, Some(52), 0x9910_B8FC_B441_2551),
            (BlockFormat::Tq2_0, Some(64), 0x2F5A_BD78_A2A9_CBB7),
            (BlockFormat::Nvfp4, None, 0xCA6C_5118_09C6_2E34),
            (BlockFormat::Q1_0, Some(0), 0xEBD9_F239_E8E0_B225),
        ];
        for (format, scale, wanted) in all {
            assert_eq!(digest(format, scale), wanted, "{format}");
        }
    }

    /// Whatever the bytes are, places are those of entries.
    #[test]
    fn no_bytes_reach_beyond_a_codebook() {
        for format in BlockFormat::ALL {
            for byte in [0, 0x55, 0x7F, 0x80, 0xAA, 0xFF] {
                let elements = format.decode(&vec![byte; format.bytes() as usize]);
                assert_eq!(elements.len() as u64, format.elements(), "{format}");
            }
        }
    }

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
