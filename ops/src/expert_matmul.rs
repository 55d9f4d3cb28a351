//! The product of activations and the weights of chosen experts: each row of the result is one of an expert of its own.
//!
//! Weights stay in the bytes of their file, in blocks or as floats; only those of chosen experts are read.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    blocks::{BlockFormat, CHUNK},
};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, blocks::sample_blocks};

/// How a row of weights lies in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RowLayout {
    /// Blocks with scales of their own, or 16-bit floats.
    Blocks(BlockFormat),
    /// Floats: `f32`, in rows of a multiple of 32.
    Floats(DType),
}

impl RowLayout {
    /// Bytes of a row of so many elements.
    ///
    /// # Errors
    /// Says what a row has to be.
    pub fn row_bytes(self, elements: u64) -> Result<u64, String> {
        match self {
            RowLayout::Blocks(format) => format.row_bytes(elements),
            RowLayout::Floats(DType::F32) => {
                let whole = elements.is_multiple_of(CHUNK);
                let bytes = elements.checked_mul(4).filter(|_| whole);
                bytes.ok_or_else(|| format!("rows of f32 are multiples of {CHUNK}, not {elements}"))
            }
            RowLayout::Floats(other) => Err(format!("weights of {other}; there are f32 and blocks")),
        }
    }

    /// The elements of a row.
    fn decode(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            RowLayout::Blocks(format) => format.decode(bytes),
            RowLayout::Floats(_) => {
                let floats = bytes.chunks_exact(4);
                floats.map(|own| f32::from_le_bytes([own[0], own[1], own[2], own[3]])).collect()
            }
        }
    }
}

/// Products of rows of activations and weights of `used` experts for each token:
/// `out[t * used + u, j] = sum over l of lhs[row, l] * weights[e, j, l]` with `e = experts[t * used + u] - first`. The row is the
/// token's, or one for each of its experts. Rows of experts that are not among those from `first` on are zeros. All else is `f32`. A
/// format's codebook is the last input.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertMatMul {
    /// Tokens.
    pub tokens: Size,
    /// Experts of each token.
    pub used: u64,
    /// Whether a token's experts have one row of activations, and not one each.
    #[serde(default)]
    pub shared: bool,
    /// Columns of the result; rows of an expert's weights.
    pub n: u64,
    /// Length of the sums; whole blocks.
    pub k: u64,
    /// Experts whose weights are there.
    pub experts: u64,
    /// The number of the first of them.
    #[serde(default)]
    pub first: u64,
    /// How weights lie in their bytes.
    pub format: RowLayout,
}

impl ExpertMatMul {
    /// Rows of the result up to which kernels compute with 32-bit floats; operands of more may be rounded to 16 bits.
    pub const EXACT_ROWS: u64 = 32;

    /// Rows of the result.
    pub fn rows(&self) -> Size {
        self.tokens * self.used
    }

    /// Neighbouring rows of the result that have a row of activations.
    pub fn sharing(&self) -> u64 {
        if self.shared { self.used } else { 1 }
    }
}

impl Op for ExpertMatMul {
    fn check(&self) -> Result<(), String> {
        let row = self.format.row_bytes(self.k)?;
        let weights = self.experts.checked_mul(self.n).and_then(|rows| rows.checked_mul(row));
        let last = self.first.checked_add(self.experts);
        match (weights, last) {
            (Some(_), Some(last)) if last <= 1 << 31 => Ok(()),
            _ => Err(format!("{} experts from {} on are too many", self.experts, self.first)),
        }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let row = self.format.row_bytes(self.k).unwrap_or(0);
        let left = if self.shared { self.tokens } else { self.rows() };
        let mut inputs = vec![
            TensorDesc::new("lhs", DType::F32, [left, self.k.into()]),
            TensorDesc::new("weights", DType::U8, [self.experts * self.n, row]),
            TensorDesc::new("experts", DType::I32, [self.rows()]),
        ];
        if let RowLayout::Blocks(format) = self.format {
            inputs.extend(format.codebook_operand());
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", DType::F32, [self.rows(), self.n.into()])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        Vec::new()
    }

    fn signature(&self) -> String {
        match self.format {
            RowLayout::Blocks(format) => format.to_string(),
            RowLayout::Floats(dtype) => dtype.to_string(),
        }
    }

    fn flops(&self) -> f64 {
        2.0 * self.rows().as_f64() * self.n as f64 * self.k as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let [m, n, k] = [self.rows().exact(), self.n, self.k].map(|d| d as usize);
        let row = self.format.row_bytes(self.k).unwrap_or(0) as usize;
        let lhs = inputs[0].floats();
        let mut out = vec![0.0; m * n];
        for i in 0..m {
            let expert = inputs[2].int(i).checked_sub(self.first as i64);
            let Some(expert) = expert.filter(|own| (0..self.experts as i64).contains(own)) else { continue };
            let left = &lhs[i / self.sharing() as usize * k..][..k];
            for j in 0..n {
                let at = (expert as usize * n + j) * row;
                let bytes: Vec<u8> = (at..at + row).map(|at| inputs[1].int(at) as u8).collect();
                let weights = self.format.decode(&bytes);
                let terms = left.iter().zip(&weights).map(|(x, w)| x * f64::from(*w));
                out[i * n + j] = DType::F32.round(terms.sum());
            }
        }
        vec![Values::Float(out)]
    }

    /// That of a sum of products of activations and weights of at most 1, as those of trained networks are; a weight is three
    /// roundings of its own. Both are halves where rows are many.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let sum = Tolerance::of_sum(self.k, magnitudes[0], DType::F32, DType::F32);
        let k = self.k as f64;
        let exact = self.rows().is_constant() && self.rows().exact() <= Self::EXACT_ROWS;
        let halves = if exact { 0.0 } else { 8.0 * k.sqrt() * DType::F16.epsilon() * magnitudes[0] };
        let weights = 3.0 * k * DType::F32.epsilon() * magnitudes[0] + halves;
        Tolerance { absolute: sum.absolute + weights, relative: sum.relative }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for ExpertMatMul {
    fn samples() -> Vec<ExpertMatMul> {
        // Tokens, experts of each, columns, blocks, experts that are there, the first of them.
        let shapes = [
            (1, 2, 5, 1, 4, 0),
            (3, 2, 33, 2, 3, 0),
            (1, 4, 70, 1, 6, 2),
            (40, 2, 35, 1, 3, 1),
            (180, 3, 66, 1, 2, 0),
            (0, 2, 3, 1, 2, 0),
        ];
        let formats =
            BlockFormat::ALL.into_iter().map(RowLayout::Blocks).chain([RowLayout::Floats(DType::F32)]);
        let mut samples = Vec::new();
        for (number, format) in formats.enumerate() {
            let block = match format {
                RowLayout::Blocks(format) => format.elements(),
                RowLayout::Floats(_) => CHUNK,
            };
            for (place, (tokens, used, n, blocks, experts, first)) in shapes.into_iter().enumerate() {
                let shared = (number + place) % 2 == 0;
                let (tokens, k) = (Size::from(tokens), blocks * block);
                samples.push(ExpertMatMul { tokens, used, shared, n, k, experts, first, format });
            }
        }
        samples
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        let dtype = match self.format {
            RowLayout::Blocks(format) => format.float(),
            RowLayout::Floats(dtype) => Some(dtype),
        };
        match (index, self.format, dtype) {
            (1, RowLayout::Blocks(format), None) => {
                let blocks = self.experts * self.n * (self.k / format.elements());
                Some(Values::Int(sample_blocks(format, blocks, random)))
            }
            (1, _, Some(dtype)) => {
                let bytes = (0..self.experts * self.n * self.k).flat_map(|_| {
                    let value = (random() >> 40) as f32 / (1 << 23) as f32 - 1.0;
                    match dtype {
                        DType::F16 => half::f16::from_f32(value).to_le_bytes().to_vec(),
                        DType::BF16 => half::bf16::from_f32(value).to_le_bytes().to_vec(),
                        _ => value.to_le_bytes().to_vec(),
                    }
                });
                Some(Values::Int(bytes.map(i64::from).collect()))
            }
            // Some experts are in none of the parts.
            (2, ..) => {
                let all = self.first + self.experts + 1;
                let of = |_| (random() >> 33) as i64 % all as i64;
                Some(Values::Int((0..self.rows().exact()).map(of).collect()))
            }
            (3, RowLayout::Blocks(format), _) => format.codebook_values(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(shared: bool) -> ExpertMatMul {
        let format = RowLayout::Floats(DType::F32);
        ExpertMatMul { tokens: 2.into(), used: 2, shared, n: 1, k: 32, experts: 2, first: 1, format }
    }

    #[test]
    fn rows_are_those_of_their_experts() {
        let mut weights = vec![0.0f32; 64];
        (weights[0], weights[32]) = (2.0, 3.0);
        let bytes = weights.iter().flat_map(|own| own.to_le_bytes()).map(i64::from).collect();
        let bytes = Values::Int(bytes);
        let experts = Values::Int(vec![2, 1, 0, 2]);
        let row = |first: f64| (0..32).map(move |l| if l == 0 { first } else { 1.0 });
        let lhs = Values::Float(row(5.0).chain(row(7.0)).collect());
        let made = op(true).reference(&[lhs, bytes.clone(), experts.clone()]);
        assert_eq!(made, [Values::Float(vec![15.0, 10.0, 0.0, 21.0])]);
        let lhs = Values::Float((0..4).flat_map(|i| row(f64::from(i))).collect());
        assert_eq!(op(false).reference(&[lhs, bytes, experts]), [Values::Float(vec![0.0, 2.0, 0.0, 9.0])]);
    }

    #[test]
    fn numbers_that_do_not_go_together_are_refused() {
        assert!(ExpertMatMul { k: 33, ..op(true) }.check().unwrap_err().contains("multiples of 32"));
        assert!(ExpertMatMul { experts: u64::MAX, ..op(true) }.check().is_err());
        let wrong = ExpertMatMul { format: RowLayout::Floats(DType::I32), ..op(true) };
        assert!(wrong.check().unwrap_err().contains("weights of i32"));
    }
}
