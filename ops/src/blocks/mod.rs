//! Formats of weights in blocks: neighbouring elements of a row with scales of their own, as GGUF files hold them.
//!
//! A block is a few bytes that stand for 32 to 256 elements: scales and offsets, and a code of 1 to 8 bits for each element, or the place
//! of the codes of several in a codebook.
//! What the bytes mean is that of ggml's documented blocks; [`BlockFormat::decode`] is it in full.

mod codebooks;
mod coded;
mod decode;
mod large;
mod parts;
#[cfg(any(test, feature = "testing"))]
mod samples;

use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
pub(crate) use samples::sample_blocks;

use crate::{DType, TensorDesc, Values};

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
    /// 256 levels of three by places of 8 bits for each eight, with signs of which every eighth follows; scales of 4 bits for each 32.
    Iq2Xxs,
    /// 256 levels of three by places of 9 bits for each eight, with signs as before; scales of 4 bits for each 16.
    Iq2Xs,
    /// 256 levels of three by places of 10 bits for each eight, with signs; scales of 4 bits for each 16.
    Iq2S,
    /// 256 levels of eight by places of 8 bits for each four, with signs of which every eighth follows; scales of 4 bits for each 32.
    Iq3Xxs,
    /// 256 levels of eight by places of 9 bits for each four, with signs; scales of 4 bits for each 32.
    Iq3S,
    /// 256 numbers of -1 to 1 by places of 11 bits for each eight; scales of 3 bits and an eighth, added or taken away, for each 32.
    Iq1S,
    /// 256 numbers of -1 to 1 by places of 11 bits and an eighth, added or taken away, for each eight; scales of 3 bits for each 16.
    Iq1M,
    /// 256 numbers of -1 to 1, up to five of them in a byte, with a scale.
    Tq1_0,
    /// 256 codes of 2 bits less 1, with a scale.
    Tq2_0,
    /// 64 floats of 4 bits (E2M1) with a float of 8 bits (E4M3) for each 16.
    Nvfp4,
    /// 128 signs of a scale.
    Q1_0,
    /// 32 plain floats of 16 bits.
    F16,
    /// 32 plain floats of 16 bits, the upper halves of `f32`.
    Bf16,
}

impl BlockFormat {
    /// All of them.
    pub const ALL: [BlockFormat; 26] = [
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
        BlockFormat::Iq2Xxs,
        BlockFormat::Iq2Xs,
        BlockFormat::Iq2S,
        BlockFormat::Iq3Xxs,
        BlockFormat::Iq3S,
        BlockFormat::Iq1S,
        BlockFormat::Iq1M,
        BlockFormat::Tq1_0,
        BlockFormat::Tq2_0,
        BlockFormat::Nvfp4,
        BlockFormat::Q1_0,
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
            BlockFormat::Iq2Xxs => "IQ2_XXS",
            BlockFormat::Iq2Xs => "IQ2_XS",
            BlockFormat::Iq2S => "IQ2_S",
            BlockFormat::Iq3Xxs => "IQ3_XXS",
            BlockFormat::Iq3S => "IQ3_S",
            BlockFormat::Iq1S => "IQ1_S",
            BlockFormat::Iq1M => "IQ1_M",
            BlockFormat::Tq1_0 => "TQ1_0",
            BlockFormat::Tq2_0 => "TQ2_0",
            BlockFormat::Nvfp4 => "NVFP4",
            BlockFormat::Q1_0 => "Q1_0",
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

    /// Elements of a block: whole chunks.
    pub fn elements(self) -> u64 {
        match self {
            BlockFormat::Q4_0
            | BlockFormat::Q4_1
            | BlockFormat::Q5_0
            | BlockFormat::Q5_1
            | BlockFormat::Q8_0
            | BlockFormat::Iq4Nl
            | BlockFormat::Mxfp4
            | BlockFormat::F16
            | BlockFormat::Bf16 => CHUNK,
            BlockFormat::Nvfp4 => 64,
            BlockFormat::Q1_0 => 128,
            _ => 256,
        }
    }

    /// The codebook whose places are a block's codes, if it has such: entries of 16 bits, which have the codes of eight elements, two
    /// bits each, or of four elements, four bits each.
    pub fn codebook(self) -> Option<&'static [u8]> {
        Some(match self {
            BlockFormat::Iq2Xxs => &codebooks::IQ2_XXS,
            BlockFormat::Iq2Xs => &codebooks::IQ2_XS,
            BlockFormat::Iq2S => &codebooks::IQ2_S,
            BlockFormat::Iq3Xxs => &codebooks::IQ3_XXS,
            BlockFormat::Iq3S => &codebooks::IQ3_S,
            BlockFormat::Iq1S | BlockFormat::Iq1M => &codebooks::IQ1_S,
            _ => return None,
        })
    }

    /// The codebook as an operand of operations, which is behind the weights.
    pub(crate) fn codebook_operand(self) -> Option<TensorDesc> {
        self.codebook().map(|book| TensorDesc::new("codebook", DType::U16, [book.len() as u64 / 2]))
    }

    /// The elements of the codebook's operand.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn codebook_values(self) -> Option<Values> {
        let entries = |book: &[u8]| {
            book.chunks_exact(2).map(|own| u16::from_le_bytes([own[0], own[1]]).into()).collect()
        };
        self.codebook().map(|book| Values::Int(entries(book)))
    }

    /// Bytes of a block.
    pub fn bytes(self) -> u64 {
        match self {
            BlockFormat::Q4_0 | BlockFormat::Iq4Nl | BlockFormat::Q1_0 => 18,
            BlockFormat::Q4_1 => 20,
            BlockFormat::Q5_0 => 22,
            BlockFormat::Q5_1 => 24,
            BlockFormat::Q8_0 => 34,
            BlockFormat::Q2K => 84,
            BlockFormat::Q3K | BlockFormat::Iq3S => 110,
            BlockFormat::Q4K => 144,
            BlockFormat::Q5K => 176,
            BlockFormat::Q6K => 210,
            BlockFormat::Iq4Xs => 136,
            BlockFormat::Mxfp4 => 17,
            BlockFormat::Iq2Xxs | BlockFormat::Tq2_0 => 66,
            BlockFormat::Iq2Xs => 74,
            BlockFormat::Iq2S => 82,
            BlockFormat::Iq3Xxs => 98,
            BlockFormat::Iq1S => 50,
            BlockFormat::Iq1M => 56,
            BlockFormat::Tq1_0 => 54,
            BlockFormat::Nvfp4 => 36,
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
            BlockFormat::Iq2Xxs => "iq2xxs",
            BlockFormat::Iq2Xs => "iq2xs",
            BlockFormat::Iq2S => "iq2s",
            BlockFormat::Iq3Xxs => "iq3xxs",
            BlockFormat::Iq3S => "iq3s",
            BlockFormat::Iq1S => "iq1s",
            BlockFormat::Iq1M => "iq1m",
            BlockFormat::Tq1_0 => "tq1_0",
            BlockFormat::Tq2_0 => "tq2_0",
            BlockFormat::Nvfp4 => "nvfp4",
            BlockFormat::Q1_0 => "q1_0",
            BlockFormat::F16 => "f16",
            BlockFormat::Bf16 => "bf16",
        })
    }
}
