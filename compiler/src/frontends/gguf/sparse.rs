//! The graph of attention to keys that an indexer chooses.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    norm::NormKind,
    reduce::ReduceKind,
    scatters::Reduction,
};
use halite_sizes::Size;

use super::{
    Result,
    family::Turn,
    file::missing,
    indexer::{Chosen, Indexer},
    layer::{Caches, Call},
};
use crate::{
    build::{Builder, Normalization, Range},
    graph::TensorId,
};

impl Call<'_> {
    /// The keys that a layer attends to, and the indexer's keys with those of the new tokens, where the layer has one.
    pub fn chosen_keys(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        held: Option<TensorId>,
    ) -> Result<(Chosen, Option<TensorId>)> {
        let Some(indexer) = &self.hyper.indexer else { return Ok((Chosen::All, None)) };
        if self.hyper.family.latent_windows && self.hyper.window_of(layer).is_some() {
            return Ok((Chosen::All, None));
        }
        let has_own = indexer.own[layer as usize];
        if let Some(pools) = indexer.pools.filter(|_| has_own) {
            let (chosen, index) = self.chosen_pools(b, (x, held), layer, (indexer, pools))?;
            *self.chosen.borrow_mut() = Some(chosen);
            return Ok((chosen, index));
        }
        if self.hyper.family.pools == Some(false) {
            self.leave_index(layer);
            return Ok((Chosen::All, None));
        }
        match indexer.blocks {
            Some(blocks) if has_own => return self.chosen_blocks(b, (x, held), layer, (indexer, blocks)),
            Some(_) => return Ok((Chosen::All, None)),
            None => {}
        }
        if !has_own {
            self.leave_index(layer);
            let known = *self.chosen.borrow();
            return Ok((known.ok_or_else(|| b.invalid("no layer before has an indexer"))?, None));
        }
        let new = self.index_keys(b, x, layer, indexer)?;
        let keys = match (self.place, held) {
            (Some(place), Some(cache)) => b.append(new, cache, place.start)?,
            _ => new,
        };
        let scores = self.index_scores(b, [x, keys], layer, indexer)?;
        let chosen = match self.keys.is_constant() && self.keys.value() <= indexer.top_k {
            true => Chosen::All,
            false => self.best_keys(b, scores, indexer)?,
        };
        *self.chosen.borrow_mut() = Some(chosen);
        Ok((chosen, Some(keys)))
    }

    /// Leaves the weights of a layer's indexer alone: some files have them where they are not needed.
    pub fn leave_index(&self, layer: u64) {
        let parts = ["proj", "attn_k", "attn_q_b", "k_norm", "q_proj", "k_proj", "q_norm"];
        let parts = parts.map(|part| format!("indexer.{part}")).into_iter();
        for part in parts.chain(["gate", "ape"].map(|part| format!("indexer_compressor_{part}"))) {
            self.tensors.find(&self.name(layer, &part, "weight"));
            self.tensors.find(&self.name(layer, &part, "bias"));
        }
    }

    /// Elements of the indexer's heads with their rotary embedding, `[sequences, heads, len, key]`.
    fn index_turned(&self, b: &mut Builder, x: TensorId, layer: u64, indexer: &Indexer) -> Result<TensorId> {
        let (Some(rope), Some(tables)) = (self.hyper.rope_of(layer), self.tables[0]) else { return Ok(x) };
        let interleaved = indexer.turn == Turn::Neighbours;
        if indexer.first == 0 {
            return b.rotary(x, self.positions, tables, rope.turned, interleaved);
        }
        let ranges = b.sizes(x).to_vec().into_iter().map(Range::all);
        let part = |b: &mut Builder, start: u64, count: u64| {
            let part = Range { start: start.into(), step: 1, count: count.into() };
            b.slice(x, &ranges.clone().take(3).chain([part]).collect::<Vec<_>>())
        };
        let (still, turned) = (part(b, 0, indexer.first)?, part(b, indexer.first, rope.turned)?);
        let turned = b.rotary(turned, self.positions, tables, rope.turned, interleaved)?;
        b.concat(&[still, turned], 3)
    }

    /// The indexer's keys of new tokens, `[sequences, 1, len, key]`.
    fn index_keys(&self, b: &mut Builder, x: TensorId, layer: u64, indexer: &Indexer) -> Result<TensorId> {
        let (key, name) = (indexer.key, "indexer.k_norm");
        let made = self.linear(b, x, layer, "indexer.attn_k", [key, self.hyper.width])?;
        let weight = self.name(layer, name, "weight");
        let scale = self.tensors.vector(b, &weight, key)?.ok_or_else(|| missing(&weight))?;
        let bias = self.tensors.vector(b, &self.name(layer, name, "bias"), key)?;
        let end = b.rank(made);
        let norm =
            Normalization { kind: NormKind::Group, first: end - 1, end, groups: 1, epsilon: indexer.epsilon };
        let made = b.normalize(made, Some(scale), bias, norm)?;
        let made = self.heads_first(b, made, [1, key])?;
        self.index_turned(b, made, layer, indexer)
    }

    /// How much a token likes each key, `f32[sequences, 1, len, keys]`: of all heads the products above 0, by weights of the token.
    /// Factors that all scores have are left out, as they change no order.
    fn index_scores(
        &self,
        b: &mut Builder,
        [x, keys]: [TensorId; 2],
        layer: u64,
        indexer: &Indexer,
    ) -> Result<TensorId> {
        let (heads, key, one) = (indexer.heads, indexer.key, Size::constant(1));
        let low = self.query_row(b, x, layer)?;
        let (row, low) = low.ok_or_else(|| missing(&self.name(layer, "attn_q_a", "weight")))?;
        let q = self.linear(b, low, layer, "indexer.attn_q_b", [heads * key, row])?;
        let q = self.heads_first(b, q, [heads, key])?;
        let q = self.index_turned(b, q, layer, indexer)?;
        let keys = b.as_f32(keys)?;
        let weights = self.linear(b, x, layer, "indexer.proj", [heads, self.hyper.width])?;
        let weights = self.heads_first(b, weights, [heads, 1])?;
        let zero = Operand::Constant(Scalar::Float(0.0));
        let each = if self.keys.is_constant() { heads * self.keys.value() } else { 1 };
        self.by_tokens(b, &[q, weights], each, |b, given, len| {
            let q = b.reshape_to(given[0], &[self.sequences, one, len * heads, key.into()])?;
            let products = b.product(q, keys, true)?;
            let products = b.reshape_to(products, &[self.sequences, heads.into(), len, self.keys])?;
            let liked = b.map(&[products, given[1]], DType::F32, |p, x| {
                let above = p.call(Function::Max, &[x[0], zero]);
                p.call(Function::Mul, &[above, x[1]])
            })?;
            b.reduce(ReduceKind::Sum, liked, &[1], true)
        })
    }

    /// The keys with the best scores of those before each token, by these scores.
    fn best_keys(&self, b: &mut Builder, scores: TensorId, indexer: &Indexer) -> Result<Chosen> {
        let (one, count) = (Size::constant(1), indexer.top_k);
        let band = self.shared_mask(b, None, 1)?;
        let scores = b.binary(Function::Add, scores, band)?;
        let [best, places] = b.top_k(scores, 3, count, false)?;
        let float = |value: f64| Operand::Constant(Scalar::Float(value));
        if self.len == 1 {
            // Of fewer keys than are wanted some are not before the token.
            let mask = b.map(&[best], DType::F32, |p, x| {
                let is_none = p.call(Function::Eq, &[x[0], float(f64::NEG_INFINITY)]);
                p.call(Function::Select, &[is_none, float(f64::NEG_INFINITY), float(0.0)])
            })?;
            let sequences = b.line_of_places(DType::I64, self.sequences)?;
            let sequences = b.reshape_to(sequences, &[self.sequences, one])?;
            let places = b.reshape_to(places, &[self.sequences, count.into()])?;
            let keys = Operand::Constant(Scalar::Int(self.keys.exact() as i64, DType::I64));
            let places = b.map(&[places, sequences], DType::I64, |p, x| {
                let first = p.call(Function::Mul, &[x[1], keys]);
                p.call(Function::Add, &[x[0], first])
            })?;
            let places = b.reshape_to(places, &[self.sequences * count])?;
            return Ok(Chosen::Listed { places, mask, count });
        }
        let dims = [self.sequences, one, self.len, self.keys];
        let nothing = b.float(DType::F32, f64::NEG_INFINITY)?;
        let nothing = b.expand_to(nothing, &dims)?;
        let zero = b.float(DType::F32, 0.0)?;
        let zeros = b.expand_to(zero, &[self.sequences, one, self.len, count.into()])?;
        let mask = b.scatter_elements([nothing, places, zeros], 3, Reduction::None)?;
        b.binary(Function::Add, mask, band).map(Chosen::Masked)
    }

    /// The keys and values that attention reads, and what is added to their scores, of all that there are.
    pub fn listed(
        &self,
        b: &mut Builder,
        [keys, values]: Caches,
        chosen: Chosen,
    ) -> Result<(Caches, Option<TensorId>)> {
        let (places, mask, count) = match chosen {
            Chosen::All => return Ok(([keys, values], None)),
            Chosen::Masked(mask) => return Ok(([keys, values], Some(mask))),
            Chosen::Listed { places, mask, count } => (places, mask, count),
        };
        let mut of = |x: TensorId| {
            let [sequences, _, all, dim] = b.four_dims(x)?;
            let rows = b.reshape_to(x, &[sequences * all, dim])?;
            let rows = b.gather(rows, places, 0)?;
            b.reshape_to(rows, &[sequences, Size::constant(1), count.into(), dim])
        };
        Ok(([of(keys)?, of(values)?], Some(mask)))
    }
}
