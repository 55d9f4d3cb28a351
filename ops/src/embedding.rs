//! The look-up of rows in a table of quantized weights. `gather` looks up rows of tables that are not quantized.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    gather::i32,
    moves::{check_index_type, in_range},
};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, moves::sample_indices};

/// Groups are multiples of this, as in `quant_matmul`, which multiplies with the same tables.
const CHUNK: u64 = 32;

/// `out[j, l] = scale[r, l / group] * (weight[r, l] - zero[r, l / group])` with `r = indices[j]`. Weights are unsigned, of
/// two in a byte the first in the lower bits; without zero points, zero is the middle of their range (8 or 128): the layout
/// of `quant_matmul`. Indices below 0 count from the end; a row for an index out of range is zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Rows of the table.
    pub rows: u64,
    /// Elements of a row; a multiple of `group`.
    pub width: u64,
    /// Number of indices.
    pub indices: Size,
    /// Weights along a row that share a scale; a multiple of 32.
    #[serde(default = "chunk")]
    pub group: u64,
    /// Bits of a weight, 4 or 8.
    #[serde(default = "four")]
    pub bits: u32,
    /// Type of the scales, `f16` or `f32`.
    #[serde(default = "f16")]
    pub scales: DType,
    /// Whether there is a zero point, of a byte, for each scale.
    #[serde(default)]
    pub zero_points: bool,
    /// Type of the result: `f32`, `f16` or `bf16`.
    #[serde(default = "f16")]
    pub out: DType,
    /// Type of the indices: `i32` or `i64`.
    #[serde(default = "i32")]
    pub index: DType,
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

impl Op for Embedding {
    fn check(&self) -> Result<(), String> {
        check_index_type(self.index)?;
        if !matches!(self.scales, DType::F16 | DType::F32) || !matches!(self.bits, 4 | 8) {
            return Err("scales are f16 or f32, and weights have 4 or 8 bits".into());
        }
        if !self.out.is_small_float() {
            return Err(format!("the result is f32, f16 or bf16, not {}", self.out));
        }
        let whole =
            self.group > 0 && self.group.is_multiple_of(CHUNK) && self.width.is_multiple_of(self.group);
        whole.then_some(()).ok_or_else(|| format!("width is a multiple of group, and group one of {CHUNK}"))
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let scales = [self.rows, self.width / self.group.max(1)];
        let mut inputs = vec![
            TensorDesc::new("weights", DType::U8, [self.rows, self.width * u64::from(self.bits) / 8]),
            TensorDesc::new("scales", self.scales, scales),
            TensorDesc::new("indices", self.index, [self.indices]),
        ];
        if self.zero_points {
            inputs.push(TensorDesc::new("zero_points", DType::U8, scales));
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.out, [self.indices, self.width.into()])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.scales, &mut self.out, &mut self.index]
    }

    fn signature(&self) -> String {
        format!("{}_{}", self.out, self.index)
    }

    fn flops(&self) -> f64 {
        2.0 * self.indices.as_f64() * self.width as f64
    }

    /// A kernel multiplies in f32 and rounds the product, so the reference does.
    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let middle = 1 << (self.bits - 1);
        let value = |row: u64, l: u64| {
            let at = (row * self.width + l) as usize;
            let weight = match self.bits {
                4 => (inputs[0].int(at / 2) >> (4 * (at % 2))) & 15,
                _ => inputs[0].int(at),
            };
            let place = at / self.group as usize;
            let zero = if self.zero_points { inputs[3].int(place) } else { middle };
            self.out.round(DType::F32.round((weight - zero) as f64 * inputs[1].float(place)))
        };
        let rows = (0..self.indices.exact()).map(|j| in_range(inputs[2].int(j as usize), self.rows));
        let all = rows.flat_map(|row| (0..self.width).map(move |l| (row, l)));
        vec![Values::Float(all.map(|(row, l)| row.map_or(0.0, |row| value(row, l))).collect())]
    }

    /// One product of exact factors, rounded as the reference's; a scale that a device takes for 0 makes at most 255 times
    /// itself of difference, because zero points have 8 bits.
    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        let lost = 255.0 * self.scales.min_normal();
        Tolerance { absolute: lost + self.out.min_normal(), relative: 0.0 }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Embedding {
    fn samples() -> Vec<Embedding> {
        let shapes =
            [(1, 32, 1, 32), (50, 128, 33, 64), (7, 96, 130, 32), (9, 256, 0, 128), (100, 160, 17, 160)];
        let mut samples = Vec::new();
        for out in [DType::F32, DType::F16, DType::BF16] {
            for (index, scales) in [(DType::I32, DType::F16), (DType::I64, DType::F32)] {
                for (n, (rows, width, indices, group)) in shapes.into_iter().enumerate() {
                    let (bits, zero_points) = (if n % 2 == 0 { 4 } else { 8 }, n % 3 != 0);
                    let op = Embedding {
                        rows,
                        width,
                        indices: indices.into(),
                        group,
                        bits,
                        scales,
                        zero_points,
                        out,
                        index,
                    };
                    samples.push(op.clone());
                    samples.push(Embedding { bits: 12 - bits, zero_points: !zero_points, ..op });
                }
            }
        }
        samples
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        (index == 2).then(|| sample_indices(self.indices.exact(), self.rows, self.index, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_scales_weights() {
        let op = Embedding {
            rows: 2,
            width: 32,
            indices: 2.into(),
            group: 32,
            bits: 4,
            scales: DType::F16,
            zero_points: false,
            out: DType::F32,
            index: DType::I32,
        };
        let weights = Values::Int((0..32).map(|byte| if byte < 16 { 0x98 } else { 0x0f }).collect());
        let inputs = [weights, Values::Float(vec![0.5, 2.0]), Values::Int(vec![-1, 0])];
        let out = op.reference(&inputs)[0].floats();
        assert_eq!((&out[..3], &out[32..35]), (&[14.0, -16.0, 14.0][..], &[0.0, 0.5, 0.0][..]));
    }
}
