//! Models whose tokens have products beside those of the layers, one set for each adapter: a token of control in a text tells which, from
//! there on (IBM, Granite Switch).
//!
//! What tells it is one more head of attention behind the layers, whose keys and values come of tokens alone: those of control have the
//! largest scores, and their values are the numbers of adapters.

use halite_ops::{DType, expression::Function, pad::Border};
use halite_sizes::Size;

use super::{
    Result,
    adapters::Adapters,
    heads::Heads,
    hyper::Hyper,
    indexer::Chosen,
    layer::{Call, Held},
    steps::float,
};
use crate::{SourceLocation, build::Builder, graph::TensorId};

/// Tokens as they are embedded.
pub(super) fn embedded_as(b: &mut Builder, hyper: &Hyper, tokens: TensorId) -> Result<TensorId> {
    let Some(adapters) = &hyper.more.adapters else { return Ok(tokens) };
    let table =
        adapters.table(hyper.vocabulary, |token| token as i32, |place| adapters.tokens[place][1] as i32);
    let bytes: Vec<u8> = table.iter().flat_map(|token| token.to_le_bytes()).collect();
    let table = b.constant("substitutes", DType::I32.into(), &[hyper.vocabulary], bytes.into())?;
    b.gather(table, tokens, 0)
}

impl Call<'_> {
    /// The number of the adapter that each token is of control for, or 0, `f32[rows]`.
    pub fn own_adapters(&self, b: &mut Builder, tokens: TensorId) -> Result<Option<TensorId>> {
        let Some(adapters) = &self.hyper.more.adapters else { return Ok(None) };
        let table = adapters.table(self.hyper.vocabulary, |_| 0.0_f32, |place| (place + 1) as f32);
        let bytes: Vec<u8> = table.iter().flat_map(|number| number.to_le_bytes()).collect();
        let table = b.constant("adapters", DType::F32.into(), &[self.hyper.vocabulary], bytes.into())?;
        b.gather(table, tokens, 0).map(Some)
    }

    /// The states behind all layers of tokens that are `wanted`, and what layers keep, with the head that tells adapters behind them.
    pub fn switched_layers(
        &self,
        b: &mut Builder,
        x: TensorId,
        held: &[Held],
        wanted: Option<TensorId>,
    ) -> Result<(TensorId, Vec<Held>)> {
        let (Some((last, held)), Some(adapters)) = (held.split_last(), &self.hyper.more.adapters) else {
            return Err(b.invalid("no adapters"));
        };
        let kept = self.choose_adapters(b, adapters, last)?;
        let (x, mut layers) = self.one_by_one(x, held, |given| self.layer(b, given))?;
        layers.push(kept);
        Ok((wanted.map_or(Ok(x), |rows| b.gather(x, rows, 0))?, layers))
    }

    /// Finds the adapter of each token; gives what the head keeps that tells it.
    fn choose_adapters(&self, b: &mut Builder, adapters: &Adapters, held: &Held) -> Result<Held> {
        b.at(SourceLocation::new("adapters"));
        let (layer, one) = (self.hyper.layers, Size::constant(1));
        let Heads { key, value, .. } = self.hyper.heads_of(layer);
        let own = self.slots.ok_or_else(|| b.invalid("no adapters of tokens"))?;
        let own = b.reshape_to(own, &[self.sequences, one, self.len, one])?;
        // One element tells all; the others are 0.
        let lane = |b: &mut Builder, x: TensorId, length: u64| {
            let rest = length.saturating_sub(1) as i64;
            b.pad(x, &[(0, 0), (0, 0), (0, 0), (0, rest)], Border::Constant, 0.0)
        };
        let scores = b.map(&[own], DType::F32, |p, x| {
            let is_own = p.call(Function::Gt, &[x[0], float(0.0)]);
            p.call(Function::Select, &[is_own, float(adapters.gain), float(-adapters.gain)])
        })?;
        let ones = b.map(&[own], DType::F32, |p, x| {
            let zero = p.call(Function::Mul, &[x[0], float(0.0)]);
            p.call(Function::Add, &[zero, float(1.0)])
        })?;
        let (q, k, v) = (lane(b, ones, key)?, lane(b, scores, key)?, lane(b, own, value)?);
        let [keys, values] = self.attended_to(b, Some([k, v]), layer, held.caches)?;
        let q = if self.place.is_some() { b.cast(q, DType::F16)? } else { q };
        let made = self.attended(b, [q, keys, values], Chosen::All, layer)?;
        let made = b.as_f32(made)?;
        let made = b.reshape_to(made, &[self.rows(), value.into()])?;
        let made = self.columns(b, made, 0, 1)?;
        let most = adapters.count() as f64;
        let chosen = b.map(&[made], DType::F32, |p, x| {
            let above = p.call(Function::Max, &[x[0], float(0.0)]);
            let within = p.call(Function::Min, &[above, float(most)]);
            let more = p.call(Function::Add, &[within, float(0.5)]);
            p.call(Function::Floor, &[more])
        })?;
        *self.adapters.borrow_mut() = Some(b.cast(chosen, DType::I32)?);
        let caches = self.place.map(|_| [keys, values]);
        Ok(Held { caches, ..Held::default() })
    }

    /// Queries, keys and values of one product, with what adapters add to each.
    pub fn adapted(
        &self,
        b: &mut Builder,
        mut made: [TensorId; 3],
        x: TensorId,
        layer: u64,
        rows: [u64; 3],
    ) -> Result<[TensorId; 3]> {
        for ((own, part), rows) in made.iter_mut().zip(["attn_q", "attn_k", "attn_v"]).zip(rows) {
            *own = self.with_adapter(b, [*own, x], layer, part, [rows, self.hyper.width])?;
        }
        Ok(made)
    }

    /// What a product made, with what the adapter of each row adds to it, where there are adapters.
    pub fn with_adapter(
        &self,
        b: &mut Builder,
        [made, x]: [TensorId; 2],
        layer: u64,
        part: &str,
        [rows, length]: [u64; 2],
    ) -> Result<TensorId> {
        let (Some(adapters), Some(chosen)) = (&self.hyper.more.adapters, *self.adapters.borrow()) else {
            return Ok(made);
        };
        // Those of the model itself, which add nothing, are the first.
        let count = adapters.count() + 1;
        let mut product = |x: TensorId, end: &str, [rows, length]: [u64; 2]| {
            let name = self.name(layer, part, end);
            let matrices = self.tensors.expert_matrices(b, &name, [count, rows, length])?;
            b.expert_product(x, chosen, &matrices)
        };
        let low = product(x, "lora_a", [adapters.rank, length])?;
        let more = product(low, "lora_b", [rows, adapters.rank])?;
        b.binary(Function::Add, made, more)
    }
}
