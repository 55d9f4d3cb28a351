//! The product of activations and weights in blocks: `out[i, j] = sum over l of lhs[i, l] * weight[j, l]`.
//!
//! Weights stay in the bytes of their file; see [`crate::blocks`]. `quant_matmul` is for codes with scales in a tensor of
//! their own.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{Activation, DType, Exact, Op, TensorDesc, Tolerance, Values, blocks::BlockFormat};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, blocks::sample_blocks};

/// Product of activations, m x k, and weights in blocks, n x k. All else is `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockMatMul {
    /// Rows of activations.
    pub m: Size,
    /// Columns of the result; rows of weights, of which there are twice as many with a gate.
    pub n: u64,
    /// Length of the sums; whole blocks.
    pub k: u64,
    /// How weights lie in their bytes.
    pub format: BlockFormat,
    /// What is added to the mean of a row's squares: rows are divided by its root, and multiplied by an input `[k]`.
    /// `None` where they are taken as they are. A format's codebook, `u16`, is before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norm: Option<Exact<f32>>,
    /// The function of a gate: the result is that of the product with the first n rows, times the product with the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Activation>,
    /// Whether there is an input `[n]` that is added to each row.
    #[serde(default)]
    pub bias: bool,
    /// Whether there is a last input like the result, which is added to it before the activation.
    #[serde(default)]
    pub residual: bool,
    /// What is applied to results.
    #[serde(default)]
    pub activation: Activation,
}

impl BlockMatMul {
    /// Most rows of activations that are normalized or have a gate: for more, norms and gates are operations of their own.
    pub const FEW_ROWS: u64 = 8;
    /// Most rows whose activations and weights kernels take as they are: of more, they may take 16-bit floats.
    pub const EXACT_ROWS: u64 = 2;

    /// A product without anything before or behind it.
    pub fn new(m: impl Into<Size>, n: u64, k: u64, format: BlockFormat) -> Self {
        let (bias, residual, activation) = (false, false, Activation::None);
        BlockMatMul { m: m.into(), n, k, format, norm: None, gate: None, bias, residual, activation }
    }

    /// Which input is the first behind the weights, and their codebook where they have one.
    pub fn behind_weights(&self) -> usize {
        2 + usize::from(self.format.codebook().is_some())
    }

    /// Rows of weights.
    pub fn weight_rows(&self) -> u64 {
        self.n.saturating_mul(1 + u64::from(self.gate.is_some()))
    }
}

impl Op for BlockMatMul {
    fn check(&self) -> Result<(), String> {
        let added = self.bias || self.residual || self.activation != Activation::None;
        if self.gate.is_some() && added {
            return Err("a product with a gate has no bias, residual or activation".into());
        }
        let few = self.m.is_constant() && self.m.exact() <= BlockMatMul::FEW_ROWS;
        if (self.norm.is_some() || self.gate.is_some()) && !few {
            return Err(format!("up to {} rows are normalized or have a gate", BlockMatMul::FEW_ROWS));
        }
        self.format.row_bytes(self.k).map(drop)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let (dtype, row) = self.format.row(self.k).unwrap_or((DType::U8, 0));
        let mut inputs = vec![
            TensorDesc::new("lhs", DType::F32, [self.m, self.k.into()]),
            TensorDesc::new("weights", dtype, [self.weight_rows(), row]),
        ];
        inputs.extend(self.format.codebook_operand());
        if self.norm.is_some() {
            inputs.push(TensorDesc::new("scale", DType::F32, [self.k]));
        }
        if self.bias {
            inputs.push(TensorDesc::new("bias", DType::F32, [self.n]));
        }
        if self.residual {
            inputs.push(TensorDesc { name: "residual", ..self.outputs().remove(0) });
        }
        inputs
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
        2.0 * self.m.as_f64() * self.weight_rows() as f64 * self.k as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let [m, n, k] = [self.m.exact(), self.n, self.k].map(|d| d as usize);
        let (_, row) = self.format.row(self.k).unwrap_or((DType::U8, 0));
        let mut lhs = inputs[0].floats();
        if let Some(epsilon) = self.norm {
            for line in lhs.chunks_exact_mut(k.max(1)) {
                let squares = line.iter().map(|x| x * x).sum::<f64>() / k as f64;
                let factor = (squares + f64::from(epsilon.0)).sqrt().recip();
                line.iter_mut()
                    .enumerate()
                    .for_each(|(l, x)| *x *= factor * inputs[self.behind_weights()].float(l));
            }
        }
        let product = |j: usize| -> Vec<f64> {
            let weights = self.format.values(&inputs[1], j as u64 * row, row);
            let each = |i: usize| lhs[i * k..][..k].iter().zip(&weights).map(|(x, w)| x * w).sum();
            (0..m).map(each).collect()
        };
        let bias = self.bias.then(|| &inputs[self.behind_weights() + usize::from(self.norm.is_some())]);
        let residual = inputs.last().filter(|_| self.residual);
        let mut out = vec![0.0; m * n];
        for j in 0..n {
            let sums = product(j);
            let gated = self.gate.map(|_| product(n + j));
            for (i, sum) in sums.into_iter().enumerate() {
                let added =
                    bias.map_or(0.0, |bias| bias.float(j)) + residual.map_or(0.0, |r| r.float(i * n + j));
                let done = match (self.gate, &gated) {
                    (Some(gate), Some(other)) => gate.apply(sum) * other[i],
                    _ => self.activation.apply(sum + added),
                };
                out[i * n + j] = DType::F32.round(done);
            }
        }
        vec![Values::Float(out)]
    }

    /// That of a sum of products of activations and weights of at most 1, as those of trained networks are; a weight is three
    /// roundings of its own. Kernels for more than [`BlockMatMul::EXACT_ROWS`] may round both operands to 16-bit floats: their errors are random, as those of
    /// sums are. A normalized row is at most the root of its length times its scale, and as exact as its factor.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let k = self.k as f64;
        let (largest, roundings) = match self.norm {
            Some(_) => (magnitudes[self.behind_weights()] * k.sqrt(), 6.0 + k.sqrt()),
            None => (magnitudes[0], 3.0),
        };
        let terms = self.k + u64::from(self.bias) + u64::from(self.residual);
        let sum = Tolerance::of_sum(terms, largest, DType::F32, DType::F32);
        let exact = self.m.is_constant() && self.m.exact() <= BlockMatMul::EXACT_ROWS;
        let halves = if exact { 0.0 } else { 8.0 * k.sqrt() * DType::F16.epsilon() * largest };
        let weights = roundings * k * DType::F32.epsilon() * largest + halves;
        let one = Tolerance { absolute: sum.absolute + weights, relative: sum.relative };
        match self.gate {
            // Either factor is at most a sum of k terms.
            Some(gate) => {
                let other = gate.after(one);
                let most = k * largest;
                Tolerance {
                    absolute: (one.absolute + other.absolute) * most.max(1.0),
                    relative: one.relative + other.relative,
                }
            }
            None => self.activation.after(one),
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for BlockMatMul {
    fn samples() -> Vec<BlockMatMul> {
        let shapes = [
            (1, 1, 1),
            // A row that many invocations share, and columns enough for several turns.
            (1, 5, 14),
            (1, 2300, 1),
            (1, 70, 2),
            (3, 33, 1),
            (8, 9, 3),
            (37, 45, 1),
            (65, 3, 2),
            (0, 3, 1),
            (2, 4, 0),
            // Several rows: of sums in many steps, and of more than eight.
            (5, 40, 18),
            (26, 37, 4),
        ];
        let each = |format: BlockFormat| {
            // Blocks of 32 in rows of several, which no subgroup divides.
            let blocks = if format.elements() < 256 { 5 } else { 1 };
            let of = move |(m, n, k): (u64, u64, u64)| {
                BlockMatMul::new(m, n, k * blocks * format.elements(), format)
            };
            let [one, three, many] = [(1, 34, 2), (3, 33, 1), (8, 20, 2)].map(of);
            let (norm, epsilon) = (Some(1e-5.into()), Some(0.25.into()));
            let more = [
                BlockMatMul { norm, bias: true, ..one.clone() },
                BlockMatMul { norm: epsilon, gate: Some(Activation::Silu), ..one.clone() },
                BlockMatMul { gate: Some(Activation::GeluTanh), ..three.clone() },
                BlockMatMul { bias: true, residual: true, activation: Activation::Relu, ..one },
                BlockMatMul { norm, residual: true, ..three },
                BlockMatMul {
                    m: 9.into(),
                    bias: true,
                    residual: true,
                    activation: Activation::Gelu,
                    ..many.clone()
                },
                BlockMatMul { norm, gate: Some(Activation::Silu), ..many },
            ];
            shapes.into_iter().map(of).chain(more)
        };
        BlockFormat::ALL.into_iter().flat_map(each).collect()
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        if index == 2 && self.format.codebook().is_some() {
            return self.format.codebook_values();
        }
        let blocks = self.weight_rows() * (self.k / self.format.elements());
        (index == 1 && self.format.float().is_none())
            .then(|| Values::Int(sample_blocks(self.format, blocks, random)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_multiplies_rows() {
        let op = BlockMatMul::new(1, 2, 32, BlockFormat::Q8_0);
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
        let op = BlockMatMul::new(1, 2, 32, BlockFormat::Q4K);
        assert!(op.check().unwrap_err().contains("multiples of 256"));
    }

    #[test]
    fn a_weight_with_one_wrong_bit_is_seen() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state
        };
        let in_blocks = |op: &BlockMatMul| op.m == 1 && op.n == 70 && op.format.float().is_none();
        for op in BlockMatMul::samples().into_iter().filter(in_blocks) {
            let Some(Values::Int(mut weights)) = op.sample_input(1, &mut random) else { panic!("blocks") };
            let lhs = Values::Float(vec![0.75; op.k as usize]);
            let right = op.reference(&[lhs.clone(), Values::Int(weights.clone())]);
            // The upper half of a byte in the middle of the codes of the first block.
            let place = match op.format {
                BlockFormat::Q2K => 40,
                // Entries of other places may have the same sum: the sign of what is added to each.
                BlockFormat::Iq1S => 35,
                // A byte has five digits, whose sum may stay: the sign of the scale.
                BlockFormat::Tq1_0 => 53,
                other => other.bytes() as usize / 2,
            };
            weights[place] ^= 0x80;
            let Values::Float(wrong) = &op.reference(&[lhs, Values::Int(weights)])[0] else {
                panic!("floats")
            };
            let tolerance = op.tolerance(&[0.75, 255.0]);
            assert!(!tolerance.accepts(wrong[0], right[0].float(0), DType::F32), "{op:?}");
        }
    }
}
