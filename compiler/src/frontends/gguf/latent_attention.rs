//! The graph of latent attention: queries, keys and values of short rows, and values of what was attended to.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{Result, latent::Latent, layer::Call};
use crate::{build::Builder, graph::TensorId};

impl Call<'_> {
    /// Queries, keys and values of each head, `[sequences, heads, len, dim]`; keys and values of all heads in one where they are
    /// folded.
    pub fn latent_parts(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        latent: &Latent,
    ) -> Result<[TensorId; 3]> {
        let heads = self.hyper.heads_of(layer).count;
        let (rows, width) = (self.rows(), self.hyper.width);
        let q = self.latent_queries(b, x, layer, heads * latent.key())?;
        if latent.turned == 0 && latent.folded {
            return self.bare_parts(b, [x, q], layer, latent);
        }
        let q = b.reshape_to(q, &[rows * heads, latent.key().into()])?;
        let (bare, turned) =
            (self.columns(b, q, 0, latent.bare)?, self.columns(b, q, latent.bare, latent.turned)?);
        let turned = self.heads_first(b, turned, [heads, latent.turned])?;
        let turned = self.turned(b, turned, layer)?;
        let both = self.linear(b, x, layer, "attn_kv_a_mqa", [latent.rank + latent.turned, width])?;
        let low = self.columns(b, both, 0, latent.rank)?;
        let low = self.row_norm(b, low, layer, "attn_kv_a_norm", latent.rank)?;
        let place = self.columns(b, both, latent.rank, latent.turned)?;
        // Some models have a norm of what turns.
        let place = self.inner_norm(b, place, layer, "attn_k_norm", latent.turned)?;
        let place = self.heads_first(b, place, [1, latent.turned])?;
        let place = self.turned(b, place, layer)?;
        if latent.folded {
            let bare = self.by_head(b, bare, layer, "attn_k_b", [latent.rank, latent.bare])?;
            let bare = self.heads_first(b, bare, [heads, latent.rank])?;
            let low = self.heads_first(b, low, [1, latent.rank])?;
            return Ok([b.concat(&[bare, turned], 3)?, b.concat(&[low, place], 3)?, low]);
        }
        let own = latent.bare + latent.value;
        let made = self.linear(b, low, layer, "attn_kv_b", [heads * own, latent.rank])?;
        let made = b.reshape_to(made, &[rows * heads, own.into()])?;
        let (keys, values) =
            (self.columns(b, made, 0, latent.bare)?, self.columns(b, made, latent.bare, latent.value)?);
        let keys = self.heads_first(b, keys, [heads, latent.bare])?;
        let place = b.expand_to(place, &[self.sequences, heads.into(), self.len, latent.turned.into()])?;
        let bare = self.heads_first(b, bare, [heads, latent.bare])?;
        let values = self.heads_first(b, values, [heads, latent.value])?;
        Ok([b.concat(&[bare, turned], 3)?, b.concat(&[keys, place], 3)?, values])
    }

    /// The same of queries, where nothing turns.
    fn bare_parts(
        &self,
        b: &mut Builder,
        [x, q]: [TensorId; 2],
        layer: u64,
        latent: &Latent,
    ) -> Result<[TensorId; 3]> {
        let heads = self.hyper.heads_of(layer).count;
        let q = b.reshape_to(q, &[self.rows() * heads, latent.bare.into()])?;
        let q = self.by_head(b, q, layer, "attn_k_b", [latent.rank, latent.bare])?;
        let q = self.heads_first(b, q, [heads, latent.rank])?;
        let low = self.linear(b, x, layer, "attn_kv_a_mqa", [latent.rank, self.hyper.width])?;
        let low = self.row_norm(b, low, layer, "attn_kv_a_norm", latent.rank)?;
        let low = self.heads_first(b, low, [1, latent.rank])?;
        Ok([q, low, low])
    }

    /// Queries of all heads, which may be made of a short row as well.
    fn latent_queries(&self, b: &mut Builder, x: TensorId, layer: u64, all: u64) -> Result<TensorId> {
        match self.query_row(b, x, layer)? {
            Some((rank, low)) => self.linear(b, low, layer, "attn_q_b", [all, rank]),
            None => self.linear(b, x, layer, "attn_q", [all, self.hyper.width]),
        }
    }

    /// The short row that queries are made of, with its length, where they are: it is made once for a layer.
    pub fn query_row(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<Option<(u64, TensorId)>> {
        let Some(rank) = self.rows_of(layer, "attn_q_a") else { return Ok(None) };
        let known = self.query_row.borrow().filter(|(own, _)| *own == layer);
        if let Some((_, low)) = known {
            return Ok(Some((rank, low)));
        }
        let low = self.linear(b, x, layer, "attn_q_a", [rank, self.hyper.width])?;
        let low = self.row_norm(b, low, layer, "attn_q_a_norm", rank)?;
        *self.query_row.borrow_mut() = Some((layer, low));
        Ok(Some((rank, low)))
    }

    /// The values of heads, `[rows, heads * value]`, of what was attended to of the rows that they are made of.
    pub fn latent_values(
        &self,
        b: &mut Builder,
        attended: TensorId,
        layer: u64,
        latent: &Latent,
    ) -> Result<TensorId> {
        let heads = self.hyper.heads_of(layer).count;
        let x = b.reshape_to(attended, &[self.rows() * heads, latent.rank.into()])?;
        let made = self.by_head(b, x, layer, "attn_v_b", [latent.value, latent.rank])?;
        b.reshape_to(made, &[self.rows(), (heads * latent.value).into()])
    }

    /// Rows of heads, `[rows * heads, length]`, times the matrix of each head.
    fn by_head(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        [rows, length]: [u64; 2],
    ) -> Result<TensorId> {
        self.by_place(b, x, layer, part, [self.hyper.heads_of(layer).count, rows, length])
    }

    /// So many rows of each token, `[rows * count, length]`, times the matrix of their place: as if it were an expert that the row has
    /// chosen.
    pub fn by_place(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        [count, rows, length]: [u64; 3],
    ) -> Result<TensorId> {
        let name = self.name(layer, part, "weight");
        let matrices = self.tensors.expert_matrices(b, &name, [count, rows, length])?;
        let all = self.rows() * count;
        let places = b.line_of_places(DType::I32, all)?;
        let count = Operand::Constant(Scalar::Int(count as i64, DType::I32));
        let own = b.map(&[places], DType::I32, |p, x| p.call(Function::Mod, &[x[0], count]))?;
        let own = b.reshape_to(own, &[all, Size::constant(1)])?;
        b.expert_product(x, own, &matrices)
    }
}
