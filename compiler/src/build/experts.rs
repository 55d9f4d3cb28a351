//! Weights of experts, of which each token has a few: products with those that a router chose.

use bytes::Bytes;
use halite_ops::{
    DType, Operation,
    expert_matmul::{ExpertMatMul, RowLayout},
    expression::Function,
};
use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::TensorId;

/// A matrix of weights for each expert, in parts that devices can bind. Parts are whole experts.
#[derive(Clone, Debug)]
pub struct ExpertMatrices {
    layout: RowLayout,
    /// Parts with the first expert of each, and how many there are.
    parts: Vec<(TensorId, u64, u64)>,
    /// Rows of an expert's matrix.
    pub rows: u64,
    /// Elements of a row.
    pub length: u64,
}

impl Builder {
    /// The matrices of experts from their bytes, which stay where they are: `experts` times `rows` rows of `length` elements.
    ///
    /// # Errors
    /// The bytes are not as many as the sizes say, or no rows of the format.
    pub fn expert_matrices(
        &mut self,
        name: &str,
        layout: RowLayout,
        [experts, rows, length]: [u64; 3],
        bytes: &Bytes,
    ) -> Result<ExpertMatrices> {
        let wrong = |b: &Self, reason: String| b.invalid(format!("the weights '{name}': {reason}"));
        let row = layout.row_bytes(length).map_err(|reason| wrong(self, reason))?;
        let own = row
            .checked_mul(rows)
            .filter(|own| *own > 0)
            .ok_or_else(|| wrong(self, "they are none".into()))?;
        if experts == 0 || experts.checked_mul(own) != Some(bytes.len() as u64) {
            let reason = format!("{} bytes are not those of {experts} experts of {own}", bytes.len());
            return Err(wrong(self, reason));
        }
        let most = (self.graph.most_bound() / own).max(1);
        let mut parts = Vec::new();
        for first in (0..experts).step_by(most as usize) {
            let count = most.min(experts - first);
            let range = (first * own) as usize..((first + count) * own) as usize;
            let part = self.constant(name, DType::U8.into(), &[count * rows, row], bytes.slice(range))?;
            parts.push((part, first, count));
        }
        Ok(ExpertMatrices { layout, parts, rows, length })
    }

    /// Products of rows of activations and the weights of `chosen`, integers `[tokens, used]`: `f32[tokens * used, rows]`. `x` is
    /// `[tokens, length]`, a row for all experts of a token, or `[tokens * used, length]`, a row for each.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn expert_product(
        &mut self,
        x: TensorId,
        chosen: TensorId,
        matrices: &ExpertMatrices,
    ) -> Result<TensorId> {
        let wrong = |b: &Self| {
            let (rows, length) = (matrices.rows, matrices.length);
            b.invalid(format!("{} do not go with experts of {rows} x {length}", b.describe(&[x, chosen])))
        };
        let ([left, k], [tokens, used]) = (&self.sizes(x).to_vec()[..], &self.sizes(chosen).to_vec()[..])
        else {
            return Err(wrong(self));
        };
        let (left, tokens, used) = (*left, *tokens, used.exact());
        let shared = used != 1 && left == tokens;
        if *k != matrices.length || used == 0 || !(shared || left == tokens * used) {
            return Err(wrong(self));
        }
        let x = self.as_f32(x)?;
        let rows = tokens * used;
        let chosen = self.cast(chosen, DType::I32)?;
        let chosen = self.reshape_to(chosen, &[rows])?;
        let (n, k, format) = (matrices.rows, matrices.length, matrices.layout);
        let mut sum = None;
        for (part, first, experts) in matrices.parts.clone() {
            let own = ExpertMatMul { tokens, used, shared, n, k, experts, first, format };
            let dims = [rows, Size::from(n)];
            let made =
                self.kernel1(Operation::ExpertMatMul(own), &[x, part, chosen], DType::F32.into(), &dims)?;
            sum = Some(match sum {
                None => made,
                // Rows are zeros where their expert is in another part.
                Some(sum) => self.binary(Function::Add, sum, made)?,
            });
        }
        sum.ok_or_else(|| wrong(self))
    }
}
