//! The matrices of recurrent networks: floats, or bytes by which vectors are multiplied as bytes (`DynamicQuantizeLSTM` of
//! `com.microsoft`).

use halite_ops::expression::Function;

use super::{NodeView, Result, microsoft_quantized::to_float, quantize::dynamic_bytes};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

/// Scales of bytes, in the inputs of `DynamicQuantizeLSTM`; zero points are one input further.
const SCALES: [usize; 2] = [8, 10];

/// A matrix of a direction.
pub(super) struct Matrix {
    /// `[rows, columns]`; bytes are `[columns, rows]`.
    pub(super) values: TensorId,
    /// Scale and zero point of bytes: one, or one for each row.
    bytes: Option<(TensorId, Option<TensorId>)>,
}

/// Whether the node multiplies bytes.
pub(super) fn is_of_bytes(node: &NodeView<'_>) -> bool {
    SCALES.iter().any(|input| node.optional(*input).is_some())
}

impl Matrix {
    /// The matrix of a direction: the weights are input 1 of the node, those of the recurrence input 2.
    pub(super) fn of(
        b: &mut Builder,
        node: &NodeView<'_>,
        input: usize,
        direction: u64,
        [rows, columns]: [u64; 2],
    ) -> Result<Matrix> {
        let own = |b: &mut Builder, whole: TensorId| {
            let mut ranges: Vec<Range> = b.dims(whole).iter().map(|size| Range::all(*size)).collect();
            if let Some(first) = ranges.first_mut() {
                *first = Range { start: direction, step: 1, count: 1 };
            }
            b.slice(whole, &ranges)
        };
        let all = node.input(input)?;
        if !is_of_bytes(node) {
            let all = b.as_f32(all)?;
            let part = own(b, all)?;
            return Ok(Matrix { values: b.reshape(part, &[rows, columns])?, bytes: None });
        }
        let part = own(b, all)?;
        let values = b.reshape(part, &[columns, rows])?;
        let scale = SCALES[usize::from(input == 2)];
        let each = |b: &mut Builder, id: TensorId| {
            let part = own(b, id)?;
            match b.tensor(part).elements() {
                1 => b.reshape(part, &[]),
                count => b.reshape(part, &[count]),
            }
        };
        let zero = node.optional(scale + 1).map(|zero| each(b, zero)).transpose()?;
        Ok(Matrix { values, bytes: Some((each(b, node.input(scale)?)?, zero)) })
    }

    /// Vectors `[.., columns]` by the matrix: `[.., rows]`.
    pub(super) fn product(&self, b: &mut Builder, x: TensorId) -> Result<TensorId> {
        let Some((scale, zero)) = self.bytes else { return b.product(x, self.values, true) };
        let [x, x_scale, x_zero] = dynamic_bytes(b, x)?;
        let sums = b.product_of_bytes(x, Some(x_zero), self.values, zero)?;
        to_float(b, sums, [x_scale, scale], None)
    }

    /// The same, added to what is there.
    pub(super) fn product_and(&self, b: &mut Builder, x: TensorId, sum: TensorId) -> Result<TensorId> {
        let own = self.product(b, x)?;
        b.binary(Function::Add, sum, own)
    }
}
