//! Products of rows of 8-bit codes, with scales and zero points of their own, with weights that stay packed.

use halite_ops::{DType, Values, expression::Function as F};

use super::{Builder, QuantWeights, Result};
use crate::graph::TensorId;

/// Rows that are quantized.
#[derive(Clone, Copy, Debug)]
pub struct QuantRows {
    /// `i8[…, length]`.
    pub codes: TensorId,
    /// Floats, as many as rows.
    pub scales: TensorId,
    /// As many as rows, of any type.
    pub zeros: Option<TensorId>,
}

impl Builder {
    /// Rows of codes times the weights, with scales and zero points of both, as `f32`: `[…, length]` to `[…, rows]`. Products
    /// are summed as integers within chunks of 32.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn quant_product_of_rows(&mut self, left: &QuantRows, weights: &QuantWeights) -> Result<TensorId> {
        weights.check(self)?;
        let (count, result) = self.rows_of(left.codes, weights)?;
        let each = |b: &mut Self, id: TensorId| {
            let id = b.as_f32(id)?;
            b.reshape_to(id, &[count, 1.into()])
        };
        let scales = each(self, left.scales)?;
        let chunks = weights.in_chunks(self)?;
        // What fills up rows is 0, and no zero point.
        if let (Some(chunks), Some(zeros)) =
            (chunks.filter(|chunks| chunks.length == weights.length), left.zeros)
            && let Some(zeros) = self.whole_zeros(zeros)?
        {
            let rows = Some((scales, Some(zeros)));
            let made = self.packed_product(left.codes, rows, count, weights.length, &chunks, DType::F32)?;
            return self.reshape_to(made, &result);
        }
        let zeros = left.zeros.map(|zeros| each(self, zeros)).transpose()?;
        let Some(chunks) = chunks else {
            let codes = self.reshape_to(left.codes, &[count, weights.length.into()])?;
            let lhs = self.dequantize_affine(codes, scales, zeros, DType::F32.into())?;
            let right = self.dequantized(weights)?;
            let made = self.product(lhs, right, true)?;
            return self.reshape_to(made, &result);
        };
        let mut made = self.packed_product(
            left.codes,
            Some((scales, None)),
            count,
            weights.length,
            &chunks,
            DType::F32,
        )?;
        if let Some(zeros) = zeros {
            // The sum of s (q - z) w is that of s q w, less s z times the sum of w, which is the product of a row of ones.
            let one = self.float(DType::I8, 1.0)?;
            let ones = self.expand(one, &[1, weights.length])?;
            let unit = self.values(DType::F32, &[1, 1], &Values::Float(vec![1.0]))?;
            let sums =
                self.packed_product(ones, Some((unit, None)), 1.into(), weights.length, &chunks, DType::F32)?;
            made = self.map(&[made, scales, zeros, sums], DType::F32, |p, x| {
                let offset = p.call(F::Mul, &x[1..3]);
                let offset = p.call(F::Mul, &[offset, x[3]]);
                p.call(F::Sub, &[x[0], offset])
            })?;
        }
        self.reshape_to(made, &result)
    }
}
