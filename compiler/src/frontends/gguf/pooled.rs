//! The graph of attention to groups of neighbouring keys, of which an indexer compares one key each (Qwen4's sparse attention, GLM-5-Next):
//! tokens attend to the groups that it likes most, of those that ended before them, and to the keys behind the last of these.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    norm::NormKind,
    pad::Border,
    reduce::ReduceKind,
    scatters::Reduction,
};
use halite_sizes::Size;

use super::{
    Result,
    family::Turn,
    file::missing,
    indexer::{Chosen, Indexer, Pools},
    layer::Call,
    steps::float,
};
use crate::{
    build::{Builder, Normalization, Range},
    graph::TensorId,
};

fn int(value: u64) -> Operand {
    Operand::Constant(Scalar::Int(value as i64, DType::I64))
}

impl Call<'_> {
    /// The keys that a layer attends to, and what its indexer keeps of tokens with those of the new ones.
    pub fn chosen_pools(
        &self,
        b: &mut Builder,
        (x, held): (TensorId, Option<TensorId>),
        layer: u64,
        (indexer, pools): (&Indexer, Pools),
    ) -> Result<(Chosen, Option<TensorId>)> {
        let new = match pools.weighed {
            true => self.weighed_rows(b, x, layer, indexer)?,
            false => self.linear(b, x, layer, "indexer.k_proj", [indexer.key, self.hyper.width])?,
        };
        let new = self.heads_first(b, new, [1, indexer.held()])?;
        let rows = match (self.place, held) {
            (Some(place), Some(cache)) => b.append(new, cache, place.start)?,
            _ => new,
        };
        let (queries, weights) = self.pool_queries(b, x, layer, (indexer, pools))?;
        if self.keys.is_constant() && self.keys.value() <= indexer.top_k {
            self.leave_index(layer);
            return Ok((Chosen::All, Some(rows)));
        }
        let count = self.keys.exact().div_ceil(pools.size);
        let keys = self.pooled_keys(b, rows, layer, (indexer, pools, count))?;
        let scores = self.pool_scores(b, [queries, keys], weights, (indexer, count))?;
        let mask = self.mask_of_pools(b, scores, (indexer, pools, count))?;
        Ok((Chosen::Masked(mask), Some(rows)))
    }

    /// Keys with the numbers that weigh them, `[rows, 2 * key]`.
    fn weighed_rows(&self, b: &mut Builder, x: TensorId, layer: u64, indexer: &Indexer) -> Result<TensorId> {
        let (key, width) = (indexer.key, self.hyper.width);
        let made = self.linear(b, x, layer, "indexer.attn_k", [key, width])?;
        let name = self.name(layer, "indexer.k_norm", "weight");
        let scale = self.tensors.vector(b, &name, key)?.ok_or_else(|| missing(&name))?;
        let bias = self.tensors.vector(b, &self.name(layer, "indexer.k_norm", "bias"), key)?;
        let norm =
            Normalization { kind: NormKind::Group, first: 1, end: 2, groups: 1, epsilon: indexer.epsilon };
        let keys = b.normalize(made, Some(scale), bias, norm)?;
        let weights = self.linear(b, x, layer, "indexer_compressor_gate", [key, width])?;
        b.concat(&[keys, weights], 1)
    }

    /// The indexer's queries, `[sequences, heads, len, key]`, and how much each counts, where they do not count the same.
    fn pool_queries(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        (indexer, pools): (&Indexer, Pools),
    ) -> Result<(TensorId, Option<TensorId>)> {
        let (heads, key, width) = (indexer.heads, indexer.key, self.hyper.width);
        if pools.weighed {
            let low = self.query_row(b, x, layer)?;
            let (row, low) = low.ok_or_else(|| missing(&self.name(layer, "attn_q_a", "weight")))?;
            let q = self.linear(b, low, layer, "indexer.attn_q_b", [heads * key, row])?;
            let weights = self.linear(b, x, layer, "indexer.proj", [heads, width])?;
            let weights = self.heads_first(b, weights, [heads, 1])?;
            return Ok((self.heads_first(b, q, [heads, key])?, Some(weights)));
        }
        let q = self.linear(b, x, layer, "indexer.q_proj", [heads * key, width])?;
        let q = self.heads(b, q, layer, [heads, key], Some("indexer.q_norm"))?;
        Ok((self.turned(b, q, layer)?, None))
    }

    /// One key for each group, `f32[sequences, 1, count, key]`.
    fn pooled_keys(
        &self,
        b: &mut Builder,
        rows: TensorId,
        layer: u64,
        (indexer, pools, count): (&Indexer, Pools, u64),
    ) -> Result<TensorId> {
        let (size, key, one) = (pools.size, indexer.key, Size::constant(1));
        let rest = (count * size - self.keys.exact()) as i64;
        // Keys are compared as caches hold them.
        let rows = b.cast(rows, DType::F16)?;
        let rows = b.as_f32(rows)?;
        let rows = b.pad(rows, &[(0, 0), (0, 0), (0, rest), (0, 0)], Border::Constant, 0.0)?;
        let rows = b.reshape_to(rows, &[self.sequences, count.into(), size.into(), indexer.held().into()])?;
        if pools.weighed {
            let part = |b: &mut Builder, first: u64| {
                let all = [self.sequences, count.into(), size.into()].map(Range::all);
                let part = Range { start: first.into(), step: 1, count: key.into() };
                b.slice(rows, &all.into_iter().chain([part]).collect::<Vec<_>>())
            };
            let (keys, weights) = (part(b, 0)?, part(b, key)?);
            let name = self.name(layer, "indexer_compressor_ape", "weight");
            let table = self.tensors.matrix(b, &name, [size, key])?;
            let all = b.count_from(0, size)?;
            let places = b.rows_by_index(&table, all)?;
            let places = b.reshape_to(places, &[one, one, size.into(), key.into()])?;
            let weights = b.binary(Function::Add, weights, places)?;
            let weights = b.softmax(weights, 2, false)?;
            let made = b.binary(Function::Mul, keys, weights)?;
            let made = b.reduce(ReduceKind::Sum, made, &[2], false)?;
            return b.reshape_to(made, &[self.sequences, one, count.into(), key.into()]);
        }
        let made = b.reduce(ReduceKind::Mean, rows, &[2], false)?;
        let made = self.row_norm(b, made, layer, "indexer.k_norm", key)?;
        let made = b.reshape_to(made, &[self.sequences, one, count.into(), key.into()])?;
        // Each is where the first of its group is.
        let (Some(rope), Some(tables)) = (self.hyper.rope_of(layer), self.tables[0]) else { return Ok(made) };
        let places = b.count_from(0, count)?;
        let places = b.map(&[places], DType::I64, |p, x| p.call(Function::Mul, &[x[0], int(size)]))?;
        let places = b.reshape_to(places, &[one, count.into()])?;
        let places = b.expand_to(places, &[self.sequences, count.into()])?;
        b.rotary(made, places, tables, rope.turned, self.hyper.turn == Turn::Neighbours)
    }

    /// How much a token likes each group, `f32[sequences, 1, len, count]`. Factors that all scores have are left out.
    pub fn pool_scores(
        &self,
        b: &mut Builder,
        [queries, keys]: [TensorId; 2],
        weights: Option<TensorId>,
        (indexer, count): (&Indexer, u64),
    ) -> Result<TensorId> {
        let each = indexer.heads * count;
        let given: Vec<TensorId> = [queries].into_iter().chain(weights).collect();
        self.by_tokens(b, &given, each, |b, given, len| {
            self.scores_of_pools(b, [given[0], keys], given.get(1).copied(), (indexer, count, len))
        })
    }

    /// The same of so many of the new tokens.
    fn scores_of_pools(
        &self,
        b: &mut Builder,
        [queries, keys]: [TensorId; 2],
        weights: Option<TensorId>,
        (indexer, count, len): (&Indexer, u64, Size),
    ) -> Result<TensorId> {
        let (heads, one) = (Size::from(indexer.heads), Size::constant(1));
        let flat = b.reshape_to(queries, &[self.sequences, one, len * heads, indexer.key.into()])?;
        let products = b.product(flat, keys, true)?;
        let products = b.reshape_to(products, &[self.sequences, heads, len, count.into()])?;
        let inputs: Vec<TensorId> = [products].into_iter().chain(weights).collect();
        let liked = b.map(&inputs, DType::F32, |p, x| {
            let above = p.call(Function::Max, &[x[0], float(0.0)]);
            x.get(1).map_or(above, |weight| p.call(Function::Mul, &[above, *weight]))
        })?;
        b.reduce(ReduceKind::Sum, liked, &[1], true)
    }

    /// What is added to scores so that tokens attend to the chosen groups and to the keys behind the last that ended,
    /// `f32[sequences, 1, len, keys]`.
    fn mask_of_pools(
        &self,
        b: &mut Builder,
        scores: TensorId,
        (indexer, pools, count): (&Indexer, Pools, u64),
    ) -> Result<TensorId> {
        let (size, one, all) = (pools.size, Size::constant(1), self.keys.exact());
        let (sequences, len) = (self.sequences, self.len);
        let places = b.reshape_to(self.positions, &[sequences, one, len, one])?;
        let ended = |p: &mut halite_ops::expression::Expression, place: Operand| {
            let next = p.call(Function::Add, &[place, int(1)]);
            p.call(Function::Div, &[next, int(size)])
        };
        let numbers = b.count_from(0, count)?;
        let scores = b.map(&[scores, places, numbers], DType::F32, |p, x| {
            let ended = ended(p, x[1]);
            let is_whole = p.call(Function::Lt, &[x[2], ended]);
            p.call(Function::Select, &[is_whole, x[0], float(f64::NEG_INFINITY)])
        })?;
        let [_, best] = b.top_k(scores, 3, (indexer.top_k / size).min(count), false)?;
        let dims = b.sizes(best).to_vec();
        let (zero, one_float) = (b.float(DType::F32, 0.0)?, b.float(DType::F32, 1.0)?);
        let nothing = b.expand_to(zero, &[sequences, one, len, count.into()])?;
        let ones = b.expand_to(one_float, &dims)?;
        let chosen = b.scatter_elements([nothing, best, ones], 3, Reduction::None)?;
        // Each group stands for its keys.
        let chosen = b.reshape_to(chosen, &[sequences, len, count.into(), one])?;
        let chosen = b.expand_to(chosen, &[sequences, len, count.into(), size.into()])?;
        let chosen = b.reshape_to(chosen, &[sequences, one, len, (count * size).into()])?;
        let chosen = b.slice(chosen, &[sequences, one, len, all.into()].map(Range::all))?;
        let keys = b.count_from(0, all)?;
        b.map(&[chosen, places, keys], DType::F32, |p, x| {
            let ended = ended(p, x[1]);
            let first = p.call(Function::Mul, &[ended, int(size)]);
            let is_early = p.call(Function::Lt, &[x[2], first]);
            let is_before = p.call(Function::Le, &[x[2], x[1]]);
            let is_chosen = p.call(Function::Gt, &[x[0], float(0.0)]);
            let [none, all] = [float(f64::NEG_INFINITY), float(0.0)];
            let behind = p.call(Function::Select, &[is_before, all, none]);
            let before = p.call(Function::Select, &[is_chosen, all, none]);
            p.call(Function::Select, &[is_early, before, behind])
        })
    }
}
