//! Softmax and its logarithm along axes of a tensor.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    lines::{self, Lines},
};

/// `exp(x - top) / sum(exp(x - top))` along the lines of a tensor of outer x length x inner elements, `top` being the
/// largest of a line. A line with NaN or +infinity, or with nothing but -infinity, becomes NaN, as the formula says.
///
/// A mask, of the same type, is added to `x` before. Mask row `l` belongs to `mask_heads` lines: the lines are
/// `outer / (mask_heads * mask_rows)` x `mask_heads` x `mask_rows`, the mask lacks the axis in the middle. For attention
/// these are batch, heads and queries.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Softmax {
    /// Product of the axes before.
    #[serde(default = "lines::one")]
    pub outer: Size,
    /// Elements whose results add up to 1.
    pub length: Size,
    /// Product of the axes behind; 1 with a mask.
    #[serde(default = "lines::one")]
    pub inner: Size,
    /// Whether the logarithm is wanted.
    #[serde(default)]
    pub log: bool,
    /// Neighbouring lines with mask rows of their own; 0 for no mask.
    #[serde(default)]
    pub mask_rows: Size,
    /// How many groups of `mask_rows` lines share the same rows of the mask.
    #[serde(default = "lines::one")]
    pub mask_heads: Size,
    /// Type of elements, mask and results: `f32`, `f16` or `bf16`.
    #[serde(default = "lines::f32")]
    pub dtype: DType,
}

impl Softmax {
    /// The lines that it works along.
    pub fn lines(&self) -> Lines {
        Lines { outer: self.outer, length: self.length, inner: self.inner }
    }

    fn mask_lines(&self) -> Size {
        self.outer / self.mask_heads.max(1)
    }
}

impl Op for Softmax {
    fn check(&self) -> Result<(), String> {
        if !self.dtype.is_small_float() {
            return Err("elements are f32, f16 or bf16".into());
        }
        if self.mask_rows == 0 {
            return Ok(());
        }
        let shared = self.mask_rows * self.mask_heads;
        if self.inner != 1 || shared == 0 || !self.outer.is_multiple_of(shared) {
            return Err("a mask needs inner = 1 and outer as a multiple of mask_rows * mask_heads".into());
        }
        Ok(())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let mut inputs = vec![TensorDesc::new("in", self.dtype, [self.outer, self.length, self.inner])];
        if self.mask_rows > 0 {
            inputs.push(TensorDesc::new("mask", self.dtype, [self.mask_lines(), self.length]));
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, [self.outer, self.length, self.inner])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        self.dtype.to_string()
    }

    fn flops(&self) -> f64 {
        4.0 * self.lines().elements().as_f64()
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let length = self.length.exact_usize();
        let (rows, heads) = (self.mask_rows.exact_usize(), self.mask_heads.exact_usize());
        let mut out = vec![0.0; self.lines().elements().exact_usize()];
        for (number, line) in self.lines().places().enumerate() {
            let mask = |j: usize| match rows {
                0 => 0.0,
                _ => inputs[1].float((number / (rows * heads) * rows + number % rows) * length + j),
            };
            let x: Vec<f64> = line.iter().enumerate().map(|(j, at)| inputs[0].float(*at) + mask(j)).collect();
            let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = x.iter().map(|v| (v - top).exp()).sum();
            for (v, at) in x.iter().zip(line) {
                // What has no logarithm of its sum has no softmax either.
                let value = if self.log { v - top - sum.ln() } else { (v - top).exp() / sum };
                out[at] = self.dtype.round(if sum.is_nan() { f64::NAN } else { value });
            }
        }
        vec![Values::Float(out)]
    }

    /// Exponents are at most two magnitudes of each input below the top and rounded once; `exp` is off by
    /// 3 + 2|x| units, a division by 2.5, `log` by 3 or 2^-21 (Vulkan's specification, "Precision of individual
    /// instructions"), and the sum, of positive terms, by a part of itself as [`Tolerance::of_sum`] says.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let (u, out) = (DType::F32.epsilon(), self.dtype);
        let exponent = 2.0 * magnitudes.iter().sum::<f64>();
        let sum = 8.0 * self.length.as_f64().max(1.0).sqrt();
        if self.log {
            let log = 2f64.powi(-21) + (3.0 + 3.0 * exponent + sum) * u;
            return Tolerance { absolute: log + out.min_normal(), relative: out.epsilon() + 3.0 * u };
        }
        Tolerance::of_value(6.0 + 3.0 * exponent + sum, DType::F32, out)
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Softmax {
    fn samples() -> Vec<Softmax> {
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for (index, l) in lines::shapes().enumerate() {
                let Lines { outer, length, inner } = l;
                let log = index % 3 == 2;
                samples.push(Softmax {
                    outer,
                    length,
                    inner,
                    log,
                    mask_rows: 0.into(),
                    mask_heads: 1.into(),
                    dtype,
                });
            }
            for (length, log) in [(24, false), (19, true), (20_000, false), (1024, true)] {
                let outer = 2 * 3 * 2;
                samples.push(Softmax {
                    outer: outer.into(),
                    length: length.into(),
                    inner: 1.into(),
                    log,
                    mask_rows: 2.into(),
                    mask_heads: 3.into(),
                    dtype,
                });
            }
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn softmax(log: bool, values: &[f64]) -> Vec<f64> {
        let length = values.len() as u64;
        let op = Softmax {
            outer: 1.into(),
            length: length.into(),
            inner: 1.into(),
            log,
            mask_rows: 0.into(),
            mask_heads: 1.into(),
            dtype: DType::F32,
        };
        op.reference(&[Values::Float(values.to_vec())])[0].floats()
    }

    #[test]
    fn the_reference_adds_up_to_one() {
        let p = softmax(false, &[1.0, 2.0, f64::NEG_INFINITY]);
        assert!((p[0] + p[1] - 1.0).abs() < 1e-6 && p[2] == 0.0 && p[1] > p[0]);
        let log = softmax(true, &[1.0, 2.0, f64::NEG_INFINITY]);
        assert!((log[0] - p[0].ln()).abs() < 1e-6 && log[2] == f64::NEG_INFINITY);
    }

    #[test]
    fn lines_without_a_sum_are_nan() {
        for bad in [[f64::NAN, 0.0], [f64::INFINITY, 0.0], [f64::NEG_INFINITY; 2]] {
            assert!(softmax(false, &bad).iter().all(|v| v.is_nan()), "{bad:?}");
        }
    }

    #[test]
    fn heads_share_the_rows_of_a_mask() {
        let op = Softmax {
            outer: 4.into(),
            length: 2.into(),
            inner: 1.into(),
            log: false,
            mask_rows: 2.into(),
            mask_heads: 2.into(),
            dtype: DType::F32,
        };
        let mask = vec![0.0, f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0];
        let out = op.reference(&[Values::Float(vec![0.5; 8]), Values::Float(mask)]);
        assert_eq!(out[0].floats(), [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
        assert!(Softmax { mask_heads: 3.into(), ..op }.check().is_err());
    }
}
