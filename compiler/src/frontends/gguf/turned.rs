//! Rows before products with folded weights, and products of weights as files have them.

use super::{Result, file::Tensors};
use crate::{build::Builder, graph::TensorId};

impl Tensors<'_> {
    /// Rows of a product with weights: turned, where these are folded.
    pub fn turned(&self, b: &mut Builder, x: TensorId, name: &str) -> Result<TensorId> {
        let Some(folds) = self.folds().filter(|folds| folds.is_before(name)) else { return Ok(x) };
        let grouped = folds.is_grouped(name);
        self.note_turned(name);
        if let Some(known) = self.known_turned(x, grouped) {
            return Ok(known);
        }
        let own = if grouped { folds.in_groups(b, x)? } else { x };
        let own = b.as_f32(own)?;
        let made = folds.signed(b, own, name)?;
        let made = folds.multiplied(b, made)?;
        self.keep_turned(x, grouped, made);
        Ok(made)
    }

    /// Rows of a table that were looked up: turned back, where it is folded.
    pub fn turned_back(&self, b: &mut Builder, rows: TensorId, name: &str) -> Result<TensorId> {
        let Some(folds) = self.folds().filter(|folds| folds.is_table(name)) else { return Ok(rows) };
        self.note_turned(name);
        let made = folds.multiplied(b, rows)?;
        folds.signed(b, made, name)
    }

    /// A product of rows with a matrix of weights.
    pub fn product(&self, b: &mut Builder, x: TensorId, name: &str, dims: [u64; 2]) -> Result<TensorId> {
        let weights = self.matrix(b, name, dims)?;
        let x = self.turned(b, x, name)?;
        b.row_product(x, &weights)
    }
}
