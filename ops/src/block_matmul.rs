//! The product of activations and weights in blocks: `out[i, j] = sum over l of lhs[i, l] * weight[j, l]`.
//!
//! Weights stay in the bytes of their file; see [`crate::blocks`]. `quant_matmul` is for codes with scales in a tensor of
//! their own.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{DType, Op, TensorDesc, Tolerance, Values, blocks::BlockFormat};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, blocks::sample_blocks};

/// Product of activations, m x k, and weights in blocks, n x k. All else is `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockMatMul {
    /// Rows of activations.
    pub m: Size,
    /// Columns of the result; rows of weights.
    pub n: u64,
    /// Length of the sums; whole blocks.
    pub k: u64,
    /// How weights lie in their bytes.
    pub format: BlockFormat,
}

impl Op for BlockMatMul {
    fn check(&self) -> Result<(), String> {
        self.format.row_bytes(self.k).map(drop)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let row = self.format.row_bytes(self.k).unwrap_or(0);
        vec![
            TensorDesc::new("lhs", DType::F32, [self.m, self.k.into()]),
            TensorDesc::new("weights", DType::U8, [self.n, row]),
        ]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", DType::F32, [self.m, self.n.into()])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        Vec::new()
    }

    fn signature(&self) -> String {
        self.format.to_string()
    }

    fn flops(&self) -> f64 {
        2.0 * self.m.as_f64() * self.n as f64 * self.k as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let [m, n, k] = [self.m.exact(), self.n, self.k].map(|d| d as usize);
        let row = self.format.row_bytes(self.k).unwrap_or(0) as usize;
        let (lhs, mut out) = (inputs[0].floats(), vec![0.0; m * n]);
        for j in 0..n {
            let bytes: Vec<u8> = (j * row..(j + 1) * row).map(|at| inputs[1].int(at) as u8).collect();
            let weights = self.format.decode(&bytes);
            for i in 0..m {
                let terms = lhs[i * k..][..k].iter().zip(&weights).map(|(x, w)| x * f64::from(*w));
                out[i * n + j] = DType::F32.round(terms.sum());
            }
        }
        vec![Values::Float(out)]
    }

    /// That of a sum of products of activations and weights of at most 1, as those of trained networks are; a weight is three
    /// roundings of its own.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let sum = Tolerance::of_sum(self.k, magnitudes[0], DType::F32, DType::F32);
        let weights = 3.0 * self.k as f64 * DType::F32.epsilon() * magnitudes[0];
        Tolerance { absolute: sum.absolute + weights, relative: sum.relative }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for BlockMatMul {
    fn samples() -> Vec<BlockMatMul> {
        let shapes =
            [(1, 1, 1), (1, 70, 2), (3, 33, 1), (8, 9, 3), (37, 45, 1), (65, 3, 2), (0, 3, 1), (2, 4, 0)];
        let each = |format: BlockFormat| {
            // Blocks of 32 in rows of several, which no subgroup divides.
            let blocks = if format.elements() == 32 { 5 } else { 1 };
            let of = move |(m, n, k): (u64, u64, u64)| BlockMatMul {
                m: m.into(),
                n,
                k: k * blocks * format.elements(),
                format,
            };
            shapes.into_iter().map(of)
        };
        BlockFormat::ALL.into_iter().flat_map(each).collect()
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        let blocks = self.n * (self.k / self.format.elements());
        (index == 1).then(|| Values::Int(sample_blocks(self.format, blocks, random)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_multiplies_rows() {
        let op = BlockMatMul { m: 1.into(), n: 2, k: 32, format: BlockFormat::Q8_0 };
        let mut weights = vec![0; 68];
        // Scale 0.5; codes 4 and -2.
        (weights[1], weights[2], weights[33]) = (0x38, 4, 0xFE);
        let mut lhs = vec![0.0; 32];
        (lhs[0], lhs[31]) = (1.0, 3.0);
        let inputs = [Values::Float(lhs), Values::Int(weights)];
        assert_eq!(op.reference(&inputs), [Values::Float(vec![2.0 - 3.0, 0.0])]);
    }

    #[test]
    fn sums_are_of_whole_blocks() {
        let op = BlockMatMul { m: 1.into(), n: 2, k: 32, format: BlockFormat::Q4K };
        assert!(op.check().unwrap_err().contains("multiples of 256"));
    }

    #[test]
    fn a_weight_with_one_wrong_bit_is_seen() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state
        };
        for op in BlockMatMul::samples().into_iter().filter(|op| op.m == 1 && op.n == 70) {
            let Some(Values::Int(mut weights)) = op.sample_input(1, &mut random) else { panic!("blocks") };
            let lhs = Values::Float(vec![0.75; op.k as usize]);
            let right = op.reference(&[lhs.clone(), Values::Int(weights.clone())]);
            // The upper half of a byte in the middle of the codes of the first block.
            let place = if op.format == BlockFormat::Q2K { 40 } else { op.format.bytes() as usize / 2 };
            weights[place] ^= 0x80;
            let Values::Float(wrong) = &op.reference(&[lhs, Values::Int(weights)])[0] else {
                panic!("floats")
            };
            let tolerance = op.tolerance(&[0.75, 255.0]);
            assert!(!tolerance.accepts(wrong[0], right[0].float(0), DType::F32), "{op:?}");
        }
    }
}
