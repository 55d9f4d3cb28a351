//! The product of activations and quantized weights, whose scales hold for groups along the sums: `out[i, j] = sum over l
//! of lhs[i, l] * scale[j, l / group] * (weight[j, l] - zero[j, l / group])`.
//!
//! Weights are unsigned; without zero points, zero is the middle of their range (8 or 128), so that signed 8-bit weights
//! are those with the uppermost bit flipped. That and the layout are those of ONNX Runtime's `MatMulNBits`, except that
//! zero points take a byte each.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{Activation, DType, Op, TensorDesc, Tolerance, Values};

/// Elements along k that kernels take at a time; groups are whole chunks.
pub const CHUNK: u64 = 32;

/// Product of activations, m x k, and quantized weights, n x k. Sums are `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantMatMul {
    /// Rows of activations.
    pub m: Size,
    /// Columns of the result; rows of weights.
    pub n: u64,
    /// Length of the sums; a multiple of `group`.
    pub k: u64,
    /// Weights along k that share a scale; a multiple of 32.
    #[serde(default = "chunk")]
    pub group: u64,
    /// Bits of a weight, 4 or 8. Of two in a byte the first is in the lower bits.
    #[serde(default = "four")]
    pub bits: u32,
    /// Type of the activations: `f32`, `f16`, or `i8`, which come with an `f32` scale for each row.
    #[serde(default = "f16")]
    pub lhs: DType,
    /// Type of the scales, `f16` or `f32`.
    #[serde(default = "f16")]
    pub scales: DType,
    /// Type of the result: that of the activations, or `f32`.
    #[serde(default = "f16")]
    pub out: DType,
    /// Whether there is a zero point for each scale.
    #[serde(default)]
    pub zero_points: bool,
    /// Whether rows of `i8` activations have zero points, from -128 to 127, which come behind their scales.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lhs_zeros: bool,
    /// Whether a value for each column is added, of the result's type.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bias: bool,
    /// Whether a tensor like the result is added.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub residual: bool,
    /// What is applied to the result.
    #[serde(default, skip_serializing_if = "Activation::is_none")]
    pub activation: Activation,
}

fn chunk() -> u64 {
    CHUNK
}

fn four() -> u32 {
    4
}

fn f16() -> DType {
    DType::F16
}

impl QuantMatMul {
    /// The product of `m` rows of halves and weights, n x k, of 4 bits with a scale for each chunk, and nothing else.
    pub fn new(m: impl Into<Size>, [n, k]: [u64; 2]) -> Self {
        QuantMatMul {
            m: m.into(),
            n,
            k,
            group: CHUNK,
            bits: four(),
            lhs: f16(),
            scales: f16(),
            out: f16(),
            zero_points: false,
            lhs_zeros: false,
            bias: false,
            residual: false,
            activation: Activation::None,
        }
    }

    /// Which inputs are the scales and the zero points of rows of activations, if they have any.
    pub fn left_inputs(&self) -> [Option<usize>; 2] {
        let first = 3 + usize::from(self.zero_points);
        let rows = self.lhs == DType::I8;
        [rows.then_some(first), (rows && self.lhs_zeros).then_some(first + 1)]
    }

    /// Which inputs are added: the bias and the residual, if there are any.
    pub fn added_inputs(&self) -> [Option<usize>; 2] {
        let last = self.left_inputs().into_iter().flatten().last();
        let first = last.unwrap_or(2 + usize::from(self.zero_points)) + 1;
        [self.bias.then_some(first), self.residual.then_some(first + usize::from(self.bias))]
    }

    /// The weights less their zero points, with their scales, n x k.
    fn weights(&self, inputs: &[Values]) -> Vec<f64> {
        let [n, k, group] = [self.n, self.k, self.group].map(|d| d as usize);
        let number = |at: usize| match self.bits {
            4 => (inputs[1].int(at / 2) >> (4 * (at % 2))) & 15,
            _ => inputs[1].int(at),
        };
        let middle = 1i64 << (self.bits - 1);
        let weight = |at: usize| {
            let place = at / k * (k / group) + at % k / group;
            let zero = if self.zero_points { inputs[3].int(place) } else { middle };
            (number(at) - zero) as f64 * inputs[2].float(place)
        };
        (0..n * k).map(weight).collect()
    }
}

impl Op for QuantMatMul {
    fn check(&self) -> Result<(), String> {
        let in_out = [
            (DType::F32, DType::F32),
            (DType::F16, DType::F16),
            (DType::F16, DType::F32),
            (DType::I8, DType::F16),
            (DType::I8, DType::F32),
        ];
        if !in_out.contains(&(self.lhs, self.out)) {
            return Err(
                "activations and result are f32 and f32, f16 and f16 or f32, or i8 and f16 or f32".into()
            );
        }
        if !matches!(self.scales, DType::F16 | DType::F32) || !matches!(self.bits, 4 | 8) {
            return Err("scales are f16 or f32, and weights have 4 or 8 bits".into());
        }
        if self.lhs_zeros && self.lhs != DType::I8 {
            return Err("rows of i8 have zero points, others none".into());
        }
        let whole = self.group > 0 && self.group.is_multiple_of(CHUNK) && self.k.is_multiple_of(self.group);
        whole.then_some(()).ok_or_else(|| format!("k is a multiple of group, and group one of {CHUNK}"))
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let scales = [self.n, self.k / self.group.max(1)];
        let mut inputs = vec![
            TensorDesc::new("lhs", self.lhs, [self.m, self.k.into()]),
            TensorDesc::new("weights", DType::U8, [self.n, self.k * u64::from(self.bits) / 8]),
            TensorDesc::new("scales", self.scales, scales),
        ];
        if self.zero_points {
            inputs.push(TensorDesc::new("zero_points", DType::U8, scales));
        }
        if self.lhs == DType::I8 {
            inputs.push(TensorDesc::new("lhs_scales", DType::F32, [self.m]));
        }
        if self.lhs_zeros {
            inputs.push(TensorDesc::new("lhs_zeros", DType::I32, [self.m]));
        }
        if self.bias {
            inputs.push(TensorDesc::new("bias", self.out, [self.n]));
        }
        if self.residual {
            inputs.push(TensorDesc { name: "residual", ..self.outputs().remove(0) });
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.out, [self.m, self.n.into()])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.lhs, &mut self.scales, &mut self.out]
    }

    fn signature(&self) -> String {
        format!("{}xu{}_{}_{}", self.lhs, self.bits, self.scales, self.out)
    }

    fn flops(&self) -> f64 {
        2.0 * self.m.as_f64() * self.n as f64 * self.k as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let [m, n, k] = [self.m.exact(), self.n, self.k].map(|d| d as usize);
        let (left, right) = (inputs[0].floats(), self.weights(inputs));
        let [row_scales, row_zeros] = self.left_inputs();
        let row_scale = |i: usize| row_scales.map_or(1.0, |own| inputs[own].float(i));
        let row_zero = |i: usize| row_zeros.map_or(0.0, |own| inputs[own].int(i) as f64);
        let [bias, residual] = self.added_inputs();
        let added = |i: usize, j: usize| {
            bias.map_or(0.0, |own| inputs[own].float(j))
                + residual.map_or(0.0, |own| inputs[own].float(i * n + j))
        };
        let each = (0..m).flat_map(|i| (0..n).map(move |j| (i, j)));
        let sum = |(i, j): (usize, usize)| {
            let terms = left[i * k..][..k].iter().zip(&right[j * k..][..k]);
            let sum = terms.map(|(x, y)| (x - row_zero(i)) * y).sum::<f64>() * row_scale(i);
            self.out.round(self.activation.apply(sum + added(i, j)))
        };
        vec![Values::Float(each.map(sum).collect())]
    }

    /// That of a sum of products of activations and weights less zero points, with their scales.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let most = if self.zero_points { (1u32 << self.bits) - 1 } else { 1 << (self.bits - 1) };
        let [row_scale, row_zero] = self.left_inputs().map(|own| own.map(|own| magnitudes[own]));
        let left = magnitudes[0] + row_zero.unwrap_or(0.0);
        let product = left * row_scale.unwrap_or(1.0) * f64::from(most) * magnitudes[2];
        let added = self.added_inputs().into_iter().flatten().map(|own| magnitudes[own]);
        let terms = self.k + u64::from(self.bias) + u64::from(self.residual);
        let largest = added.fold(product, f64::max);
        self.activation.after(Tolerance::of_sum(terms, largest, DType::F32, self.out))
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for QuantMatMul {
    fn samples() -> Vec<QuantMatMul> {
        let types = [
            (DType::F32, DType::F32),
            (DType::F16, DType::F16),
            (DType::F16, DType::F32),
            (DType::I8, DType::F16),
            (DType::I8, DType::F32),
        ];
        // m, n, k, group, bits
        let shapes = [(1, 1, 32, 32, 4), (1, 70, 256, 64, 8), (3, 33, 384, 128, 4), (8, 9, 96, 32, 8)];
        let more = [
            (37, 45, 128, 64, 4),
            (65, 3, 64, 32, 8),
            (1, 67, 320, 64, 4),
            (2, 4, 0, 32, 4),
            (0, 3, 32, 32, 8),
            (9, 21, 1312, 32, 4),
            (17, 12, 1152, 128, 8),
        ];
        let mut samples = Vec::new();
        for (lhs, out) in types {
            for (index, (m, n, k, group, bits)) in shapes.into_iter().chain(more).enumerate() {
                let scales = if index % 2 == 0 { DType::F16 } else { DType::F32 };
                let zero_points = index % 3 != 0;
                samples.push(QuantMatMul {
                    m: Size::from(m),
                    n,
                    k,
                    group,
                    bits,
                    lhs,
                    scales,
                    out,
                    zero_points,
                    lhs_zeros: lhs == DType::I8 && index % 4 < 2,
                    bias: index % 4 == 1,
                    residual: index % 5 == 2 || index % 4 == 1 && n > 8,
                    activation: [Activation::None, Activation::Silu, Activation::None, Activation::Relu]
                        [index % 4],
                });
            }
        }
        samples
    }

    /// Scales that make weights at most 1, and rows of 8-bit activations too.
    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        let tensor = self.inputs().into_iter().nth(index)?;
        let count = 0..tensor.elements().exact();
        let mut scale = |bits: u32| {
            let fraction = 0.5 + (random() >> 54) as f64 / 2048.0;
            tensor.dtype.round(fraction / f64::from(1u32 << bits))
        };
        match tensor.name {
            "scales" => Some(Values::Float(count.map(|_| scale(self.bits)).collect())),
            "lhs_scales" => Some(Values::Float(count.map(|_| scale(7)).collect())),
            "lhs_zeros" => Some(Values::Int(count.map(|_| (random() >> 56) as i8 as i64).collect())),
            "zero_points" => {
                Some(Values::Int(count.map(|_| (random() >> (64 - self.bits)) as i64).collect()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_takes_nibbles_from_the_lower_one_on() {
        let op =
            QuantMatMul::samples().into_iter().find(|op| op.m == 1 && op.n == 1 && op.bits == 4).unwrap();
        let op = QuantMatMul { lhs: DType::F32, out: DType::F32, zero_points: false, ..op };
        let mut lhs = vec![0.0; 32];
        (lhs[0], lhs[1]) = (1.0, 10.0);
        let mut weights = vec![0x88; 16];
        weights[0] = 0x9A;
        let inputs = [Values::Float(lhs), Values::Int(weights), Values::Float(vec![0.5])];
        assert_eq!(op.reference(&inputs), [Values::Float(vec![6.0])], "0.5 * (1 * (10 - 8) + 10 * (9 - 8))");
    }

    #[test]
    fn groups_are_whole_chunks() {
        let op = QuantMatMul::samples().remove(0);
        assert!(QuantMatMul { group: 16, k: 64, ..op.clone() }.check().is_err());
        assert!(QuantMatMul { group: 64, k: 96, ..op.clone() }.check().is_err());
        assert!(QuantMatMul { group: 0, ..op }.check().is_err());
    }

    #[test]
    fn a_weight_with_one_wrong_bit_is_seen() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state
        };
        for op in QuantMatMul::samples().into_iter().filter(|op| op.m * op.k > 0) {
            // Functions make one of what is far below 0.
            let op = QuantMatMul { activation: Activation::None, ..op };
            let any = |tensor: &TensorDesc, random: &mut dyn FnMut() -> u64| match tensor.dtype {
                DType::I8 => Values::Int(
                    (0..tensor.elements().exact()).map(|_| (random() >> 56) as i8 as i64).collect(),
                ),
                DType::U8 => {
                    Values::Int((0..tensor.elements().exact()).map(|_| (random() >> 56) as i64).collect())
                }
                dtype => {
                    let mut unit = || dtype.round((random() >> 33) as f64 / f64::from(1u32 << 30) - 1.0);
                    Values::Float((0..tensor.elements().exact()).map(|_| unit()).collect())
                }
            };
            let of = |(index, tensor): (usize, &TensorDesc)| {
                op.sample_input(index, &mut random).unwrap_or_else(|| any(tensor, &mut random))
            };
            let mut inputs: Vec<Values> = op.inputs().iter().enumerate().map(of).collect();
            // The activation that the wrong weight is multiplied with, far from its row's zero point.
            let zero = op.left_inputs()[1].map_or(0, |place| inputs[place].int(0));
            match &mut inputs[0] {
                Values::Int(lhs) => lhs[0] = if zero > 0 { -100 } else { 100 },
                Values::Float(lhs) => lhs[0] = 0.75,
            }
            let magnitudes: Vec<f64> = inputs.iter().map(Values::magnitude).collect();
            let right = op.reference(&inputs);
            let Values::Int(weights) = &mut inputs[1] else { panic!("weights are integers") };
            weights[0] ^= 1 << (op.bits - 1);
            let Values::Float(wrong) = &op.reference(&inputs)[0] else { panic!("results are floats") };
            let tolerance = op.tolerance(&magnitudes);
            let accepted = |(wrong, i): (&f64, usize)| tolerance.accepts(*wrong, right[0].float(i), op.out);
            assert!(!wrong.iter().zip(0..).all(accepted), "{op:?}");
        }
    }
}
