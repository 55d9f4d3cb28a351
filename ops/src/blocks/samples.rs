//! Random blocks for tests of kernels.

use super::BlockFormat;

/// Where a format has 16-bit floats, and what each is at most so that codes times scales, and offsets, make at most a half each.
fn scales(format: BlockFormat) -> &'static [(usize, f64)] {
    match format {
        BlockFormat::Q4_0 => &[(0, 8.0)],
        BlockFormat::Q4_1 => &[(0, 30.0), (2, 2.0)],
        BlockFormat::Q5_0 => &[(0, 16.0)],
        BlockFormat::Q5_1 => &[(0, 62.0), (2, 2.0)],
        BlockFormat::Q8_0 => &[(0, 128.0)],
        BlockFormat::Q2K => &[(80, 90.0), (82, 30.0)],
        BlockFormat::Q3K => &[(108, 128.0)],
        BlockFormat::Q4K => &[(0, 1890.0), (2, 126.0)],
        BlockFormat::Q5K => &[(0, 3906.0), (2, 126.0)],
        BlockFormat::Q6K => &[(208, 4096.0)],
        BlockFormat::Iq4Nl => &[(0, 127.0)],
        BlockFormat::Iq4Xs => &[(0, 4064.0)],
        BlockFormat::Iq2Xxs | BlockFormat::Iq2Xs | BlockFormat::Iq2S => &[(0, 167.0)],
        BlockFormat::Iq3Xxs => &[(0, 481.0)],
        BlockFormat::Iq3S => &[(0, 465.0)],
        BlockFormat::Iq1S => &[(0, 17.0)],
        BlockFormat::Tq1_0 => &[(52, 1.0)],
        BlockFormat::Tq2_0 => &[(64, 2.0)],
        BlockFormat::Q1_0 => &[(0, 1.0)],
        // The scales of these are no such floats, or lie in parts.
        BlockFormat::Mxfp4 | BlockFormat::Nvfp4 | BlockFormat::Iq1M => &[],
        // Floats are made otherwise.
        BlockFormat::F16 | BlockFormat::Bf16 => &[],
    }
}

/// Random blocks whose elements are at most 1, as bytes.
pub(crate) fn sample_blocks(format: BlockFormat, count: u64, random: &mut dyn FnMut() -> u64) -> Vec<i64> {
    let mut all = Vec::new();
    for _ in 0..count {
        let first = all.len();
        all.extend((0..format.bytes()).map(|_| (random() >> 56) as i64));
        let mut scale = |most: f64| half::f16::from_f64((0.5 + (random() >> 54) as f64 / 2048.0) / most);
        for (place, most) in scales(format) {
            let [low, high] = scale(*most).to_le_bytes();
            (all[first + place], all[first + place + 1]) = (low.into(), high.into());
        }
        match format {
            BlockFormat::Iq1M => {
                let bits = scale(17.0).to_bits();
                for part in 0..4 {
                    let byte = &mut all[first + 49 + 2 * part];
                    *byte = *byte & 15 | i64::from(bits >> (4 * part) & 15) << 4;
                }
            }
            BlockFormat::Mxfp4 => {
                // One in eight is so small that 16-bit floats hold but a few of its bits.
                let least = if random() >> 61 == 0 { 104 } else { 118 };
                all[first] = least + (random() >> 56) as i64 % 7;
            }
            // Up to 15/128 by codes of up to 6; some are the lowest floats, which have no first bit of their own.
            BlockFormat::Nvfp4 => all[first..first + 4].iter_mut().for_each(|byte| *byte &= 31),
            _ => {}
        }
    }
    all
}
