//! Formats of weights in blocks: neighbouring elements of a row with scales of their own, as GGUF files hold them.
//!
//! A block is a few bytes that stand for 32 or 256 elements: scales and offsets, and a code of 2 to 8 bits for each element.
//! What the bytes mean is that of ggml's documented blocks; [`BlockFormat::decode`] is it in full.

mod decode;
mod large;
mod parts;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{DType, Values};

/// Elements that share codes and scales within a block, and that kernels take at a time.
pub const CHUNK: u64 = 32;

/// How the elements of a block lie in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockFormat {
    /// 32 codes of 4 bits less 8, with a scale.
    Q4_0,
    /// 32 codes of 4 bits, with a scale and an offset.
    Q4_1,
    /// 32 codes of 5 bits less 16, with a scale.
    Q5_0,
    /// 32 codes of 5 bits, with a scale and an offset.
    Q5_1,
    /// 32 signed bytes with a scale.
    Q8_0,
    /// 256 codes of 2 bits; scales and offsets of 4 bits for each 16.
    #[serde(rename = "q2_k")]
    Q2K,
    /// 256 codes of 3 bits; scales of 6 bits for each 16.
    #[serde(rename = "q3_k")]
    Q3K,
    /// 256 codes of 4 bits; scales and offsets of 6 bits for each 32.
    #[serde(rename = "q4_k")]
    Q4K,
    /// 256 codes of 5 bits; scales and offsets of 6 bits for each 32.
    #[serde(rename = "q5_k")]
    Q5K,
    /// 256 codes of 6 bits; scales of 8 bits for each 16.
    #[serde(rename = "q6_k")]
    Q6K,
    /// 32 places of 4 bits in a table of 16 values, with a scale.
    Iq4Nl,
    /// 256 places of 4 bits in a table of 16 values; scales of 6 bits for each 32.
    Iq4Xs,
    /// 32 floats of 4 bits (E2M1) with a power of two.
    Mxfp4,
    /// 32 plain floats of 16 bits.
    F16,
    /// 32 plain floats of 16 bits, the upper halves of `f32`.
    Bf16,
}

impl BlockFormat {
    /// All of them.
    pub const ALL: [BlockFormat; 15] = [
        BlockFormat::Q4_0,
        BlockFormat::Q4_1,
        BlockFormat::Q5_0,
        BlockFormat::Q5_1,
        BlockFormat::Q8_0,
        BlockFormat::Q2K,
        BlockFormat::Q3K,
        BlockFormat::Q4K,
        BlockFormat::Q5K,
        BlockFormat::Q6K,
        BlockFormat::Iq4Nl,
        BlockFormat::Iq4Xs,
        BlockFormat::Mxfp4,
        BlockFormat::F16,
        BlockFormat::Bf16,
    ];

    /// The format that GGUF files call so, in upper case.
    pub fn named(name: &str) -> Option<BlockFormat> {
        BlockFormat::ALL.into_iter().find(|format| format.ggml_name() == name)
    }

    /// What GGUF files call it.
    pub fn ggml_name(self) -> &'static str {
        match self {
            BlockFormat::Q4_0 => "Q4_0",
            BlockFormat::Q4_1 => "Q4_1",
            BlockFormat::Q5_0 => "Q5_0",
            BlockFormat::Q5_1 => "Q5_1",
            BlockFormat::Q8_0 => "Q8_0",
            BlockFormat::Q2K => "Q2_K",
            BlockFormat::Q3K => "Q3_K",
            BlockFormat::Q4K => "Q4_K",
            BlockFormat::Q5K => "Q5_K",
            BlockFormat::Q6K => "Q6_K",
            BlockFormat::Iq4Nl => "IQ4_NL",
            BlockFormat::Iq4Xs => "IQ4_XS",
            BlockFormat::Mxfp4 => "MXFP4",
            BlockFormat::F16 => "F16",
            BlockFormat::Bf16 => "BF16",
        }
    }

    /// The type of weights that are plain floats: their tensors have this type, those of all others bytes.
    pub fn float(self) -> Option<DType> {
        match self {
            BlockFormat::F16 => Some(DType::F16),
            BlockFormat::Bf16 => Some(DType::BF16),
            _ => None,
        }
    }

    /// The format of plain floats of a type, if kernels read them as they read blocks.
    pub fn of_floats(dtype: DType) -> Option<BlockFormat> {
        BlockFormat::ALL.into_iter().find(|format| format.float() == Some(dtype))
    }

    /// A matrix of weights as a tensor: its type, and the length of a row of so many elements.
    ///
    /// # Errors
    /// Says what a row has to be.
    pub fn row(self, elements: u64) -> Result<(DType, u64), String> {
        let bytes = self.row_bytes(elements)?;
        Ok(self.float().map_or((DType::U8, bytes), |dtype| (dtype, elements)))
    }

    /// The elements of rows of such a tensor, from the element `first` on.
    pub(crate) fn values(self, weights: &Values, first: u64, count: u64) -> Vec<f64> {
        let range = first as usize..(first + count) as usize;
        if self.float().is_some() {
            return range.map(|at| weights.float(at)).collect();
        }
        let bytes: Vec<u8> = range.map(|at| weights.int(at) as u8).collect();
        self.decode(&bytes).into_iter().map(f64::from).collect()
    }

    /// Elements of a block: 32 or 256.
    pub fn elements(self) -> u64 {
        match self {
            BlockFormat::Q2K
            | BlockFormat::Q3K
            | BlockFormat::Q4K
            | BlockFormat::Q5K
            | BlockFormat::Q6K
            | BlockFormat::Iq4Xs => 256,
            _ => CHUNK,
        }
    }

    /// Bytes of a block.
    pub fn bytes(self) -> u64 {
        match self {
            BlockFormat::Q4_0 | BlockFormat::Iq4Nl => 18,
            BlockFormat::Q4_1 => 20,
            BlockFormat::Q5_0 => 22,
            BlockFormat::Q5_1 => 24,
            BlockFormat::Q8_0 => 34,
            BlockFormat::Q2K => 84,
            BlockFormat::Q3K => 110,
            BlockFormat::Q4K => 144,
            BlockFormat::Q5K => 176,
            BlockFormat::Q6K => 210,
            BlockFormat::Iq4Xs => 136,
            BlockFormat::Mxfp4 => 17,
            BlockFormat::F16 | BlockFormat::Bf16 => 64,
        }
    }

    /// Bytes of a row of so many elements; the reason when they are no whole blocks.
    ///
    /// # Errors
    /// Says what a row has to be.
    pub fn row_bytes(self, elements: u64) -> Result<u64, String> {
        let whole = elements.is_multiple_of(self.elements());
        let bytes = (elements / self.elements()).checked_mul(self.bytes()).filter(|_| whole);
        bytes.ok_or_else(|| format!("rows of {self} are multiples of {}, not {elements}", self.elements()))
    }

    /// The elements of whole blocks.
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let mut all = Vec::with_capacity(bytes.len() / self.bytes() as usize * self.elements() as usize);
        for block in bytes.chunks_exact(self.bytes() as usize) {
            decode::block(self, block, &mut all);
        }
        all
    }
}

impl fmt::Display for BlockFormat {
    /// As users write it: `q4_k`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlockFormat::Q4_0 => "q4_0",
            BlockFormat::Q4_1 => "q4_1",
            BlockFormat::Q5_0 => "q5_0",
            BlockFormat::Q5_1 => "q5_1",
            BlockFormat::Q8_0 => "q8_0",
            BlockFormat::Q2K => "q2_k",
            BlockFormat::Q3K => "q3_k",
            BlockFormat::Q4K => "q4_k",
            BlockFormat::Q5K => "q5_k",
            BlockFormat::Q6K => "q6_k",
            BlockFormat::Iq4Nl => "iq4nl",
            BlockFormat::Iq4Xs => "iq4xs",
            BlockFormat::Mxfp4 => "mxfp4",
            BlockFormat::F16 => "f16",
            BlockFormat::Bf16 => "bf16",
        })
    }
}

/// Random blocks whose elements are at most 1, as bytes.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn sample_blocks(format: BlockFormat, count: u64, random: &mut dyn FnMut() -> u64) -> Vec<i64> {
    // Where 16-bit floats stand, and what each is at most so that codes times scales, and offsets, make at most a half each.
    let (scales, exponent): (&[(usize, f64)], Option<usize>) = match format {
        BlockFormat::Q4_0 => (&[(0, 8.0)], None),
        BlockFormat::Q4_1 => (&[(0, 30.0), (2, 2.0)], None),
        BlockFormat::Q5_0 => (&[(0, 16.0)], None),
        BlockFormat::Q5_1 => (&[(0, 62.0), (2, 2.0)], None),
        BlockFormat::Q8_0 => (&[(0, 128.0)], None),
        BlockFormat::Q2K => (&[(80, 90.0), (82, 30.0)], None),
        BlockFormat::Q3K => (&[(108, 128.0)], None),
        BlockFormat::Q4K => (&[(0, 1890.0), (2, 126.0)], None),
        BlockFormat::Q5K => (&[(0, 3906.0), (2, 126.0)], None),
        BlockFormat::Q6K => (&[(208, 4096.0)], None),
        BlockFormat::Iq4Nl => (&[(0, 127.0)], None),
        BlockFormat::Iq4Xs => (&[(0, 4064.0)], None),
        BlockFormat::Mxfp4 => (&[], Some(0)),
        // Floats are made otherwise.
        BlockFormat::F16 | BlockFormat::Bf16 => (&[], None),
    };
    let mut all = Vec::new();
    for _ in 0..count {
        let first = all.len();
        all.extend((0..format.bytes()).map(|_| (random() >> 56) as i64));
        for (place, most) in scales {
            let fraction = 0.5 + (random() >> 54) as f64 / 2048.0;
            let [low, high] = half::f16::from_f64(fraction / most).to_le_bytes();
            (all[first + place], all[first + place + 1]) = (low.into(), high.into());
        }
        if let Some(place) = exponent {
            // One in eight is so small that 16-bit floats hold but a few of its bits.
            let least = if random() >> 61 == 0 { 104 } else { 118 };
            all[first + place] = least + (random() >> 56) as i64 % 7;
        }
    }
    all
}
