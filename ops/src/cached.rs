//! Rows of caches in blocks: keys and values with codes of 8 or 4 bits and a scale for every 32 elements.
//!
//! A row is 32-bit words: first its scales, `f16`, two in a word, the first in the lower half; then the codes of its elements, in
//! their order, the first in the lowest bits. Values are those of ggml's blocks of the same name. Unlike these, a row is whole
//! words, which kernels read: with an odd number of blocks it is two bytes longer.

use half::f16;

use crate::{DType, Values, blocks::BlockFormat};

/// Elements that share a scale.
pub const BLOCK: u64 = 32;

/// The formats that caches can have.
pub const FORMATS: [BlockFormat; 2] = [BlockFormat::Q8_0, BlockFormat::Q4_0];

/// Bits of a code.
///
/// # Errors
/// Caches have no such format.
pub fn bits(format: BlockFormat) -> Result<u32, String> {
    match format {
        BlockFormat::Q8_0 => Ok(8),
        BlockFormat::Q4_0 => Ok(4),
        _ => {
            let known = FORMATS.map(|known| known.to_string()).join(", ");
            Err(format!("caches in blocks are {known}, not {format}"))
        }
    }
}

/// Words of a row of so many elements.
///
/// # Errors
/// Caches have no such format, or rows are no whole blocks of it.
pub fn row_words(format: BlockFormat, elements: u64) -> Result<u64, String> {
    let bits = u64::from(bits(format)?);
    if elements == 0 || !elements.is_multiple_of(BLOCK) {
        return Err(format!(
            "rows of {elements} elements are no blocks of {BLOCK}, as a cache in {format} has them"
        ));
    }
    Ok(scale_words(elements) + elements / 32 * bits)
}

/// Words of a row's scales.
pub fn scale_words(elements: u64) -> u64 {
    (elements / BLOCK).div_ceil(2)
}

/// The words of a row. Each scale is made of the block's largest element, as ggml makes it.
pub fn encode(format: BlockFormat, row: &[f64]) -> Vec<u32> {
    let four = format == BlockFormat::Q4_0;
    let (mut scales, mut codes) = (vec![0u32; scale_words(row.len() as u64) as usize], Vec::new());
    for (place, block) in row.chunks(BLOCK as usize).enumerate() {
        let largest = block.iter().fold(0f32, |most, x| {
            let x = *x as f32;
            if x.abs() > most.abs() { x } else { most }
        });
        let scale = if four { largest / -8.0 } else { largest.abs() / 127.0 };
        let factor = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        scales[place / 2] |= u32::from(f16::from_f32(scale).to_bits()) << (16 * (place % 2));
        let code = |x: &f64| {
            let x = *x as f32 * factor;
            match four {
                true => (x + 8.5).clamp(0.0, 15.0) as u32,
                false => x.round_ties_even().clamp(-127.0, 127.0) as i32 as u32 & 0xFF,
            }
        };
        let (each, width) = if four { (8, 4) } else { (4, 8) };
        let word = |part: &[f64]| {
            part.iter().enumerate().fold(0, |word, (place, x)| word | code(x) << (place * width))
        };
        codes.extend(block.chunks(each).map(word));
    }
    scales.into_iter().chain(codes).collect()
}

/// The elements of a row of so many from its words.
pub fn decode(format: BlockFormat, words: &[u32], elements: u64) -> Vec<f64> {
    let codes = scale_words(elements) as usize;
    let one = |place: usize| {
        let block = place / BLOCK as usize;
        let scale = f16::from_bits((words[block / 2] >> (16 * (block % 2))) as u16).to_f64();
        let code = match format {
            BlockFormat::Q4_0 => f64::from(words[codes + place / 8] >> (4 * (place % 8)) & 15) - 8.0,
            _ => f64::from((words[codes + place / 4] >> (8 * (place % 4))) as u8 as i8),
        };
        scale * code
    };
    (0..elements as usize).map(one).collect()
}

/// The elements of all rows of a tensor of words.
pub(crate) fn decoded(format: BlockFormat, words: &Values, elements: u64) -> Values {
    let row = row_words(format, elements).unwrap_or(1) as usize;
    let words: Vec<u32> = (0..words.len()).map(|at| words.int(at) as u32).collect();
    Values::Float(words.chunks_exact(row).flat_map(|row| decode(format, row, elements)).collect())
}

/// Type and length of the rows of a cache, whose plain elements have this type.
pub(crate) fn row(format: Option<BlockFormat>, plain: DType, elements: u64) -> (DType, u64) {
    match format {
        None => (plain, elements),
        Some(format) => (DType::U32, row_words(format, elements).unwrap_or(0)),
    }
}

/// Rows for tests, whose elements are at most 1.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn sample_rows(
    format: BlockFormat,
    (rows, elements): (u64, u64),
    random: &mut dyn FnMut() -> u64,
) -> Values {
    let mut unit = |_| (random() >> 32) as f64 / f64::from(1u32 << 31) - 1.0;
    let mut words = Vec::new();
    for _ in 0..rows {
        let row: Vec<f64> = (0..elements).map(&mut unit).collect();
        words.extend(encode(format, &row).into_iter().map(i64::from));
    }
    Values::Int(words)
}

/// Elements for tests whose codes do not depend on how divisions are rounded: whole numbers of scales that 16 bits hold, of which
/// each block has the largest.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn sample_elements(format: BlockFormat, count: u64, random: &mut dyn FnMut() -> u64) -> Values {
    let most = if format == BlockFormat::Q4_0 { 8 } else { 127 };
    let mut all = Vec::new();
    for _ in 0..count / BLOCK {
        let scale = f16::from_f64(0.25 + (random() >> 54) as f64 / 512.0).to_f64();
        let largest = (random() % BLOCK) as usize;
        let sign = if random() & 1 << 40 == 0 { 1.0 } else { -1.0 };
        let mut code = || (random() >> 33) as i64 % (2 * most - 1) - (most - 1);
        let codes = (0..BLOCK as usize).map(|place| match place == largest {
            true => sign * most as f64,
            false => code() as f64,
        });
        // A block of zeros has no scale.
        let scale = if all.len() as u64 % (7 * BLOCK) == 3 * BLOCK { 0.0 } else { scale };
        all.extend(codes.map(|code| code * scale));
    }
    Values::Float(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_near_what_they_were_made_of() {
        let row: Vec<f64> = (0..96).map(|i| (f64::from(i) * 0.37).sin() * f64::from(1 + i / 32)).collect();
        for (format, words, part) in [(BlockFormat::Q8_0, 2 + 24, 127.0), (BlockFormat::Q4_0, 2 + 12, 8.0)] {
            assert_eq!(row_words(format, 96), Ok(words));
            let made = encode(format, &row);
            assert_eq!(made.len() as u64, words);
            let back = decode(format, &made, 96);
            for (block, (own, back)) in row.chunks(32).zip(back.chunks(32)).enumerate() {
                let most = (block + 1) as f64 / part;
                assert!(own.iter().zip(back).all(|(a, b)| (a - b).abs() <= most * 1.01), "{format} {block}");
            }
        }
    }

    #[test]
    fn codes_of_samples_are_exact() {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state
        };
        for format in FORMATS {
            let row = sample_elements(format, 320, &mut random).floats();
            let back = decode(format, &encode(format, &row), 320);
            assert_eq!(row, back, "{format}");
        }
    }

    #[test]
    fn what_is_no_row_is_told() {
        assert!(row_words(BlockFormat::Q8_0, 80).unwrap_err().contains("80 elements"));
        assert!(row_words(BlockFormat::Q4K, 256).unwrap_err().contains("q8_0, q4_0"));
    }
}
