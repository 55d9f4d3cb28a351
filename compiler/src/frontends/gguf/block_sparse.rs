//! The graph of attention to blocks of keys that an indexer chooses (MiniMax, MiniMax-M3): each head of keys has a head of the indexer, and
//! its queries read the blocks with the keys that this likes most, and those around the token.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    pad::Border,
    reduce::ReduceKind,
    scatters::Reduction,
};
use halite_sizes::Size;

use super::{
    Result,
    indexer::{Blocks, Chosen, Indexer},
    layer::Call,
    steps::float,
};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

impl Call<'_> {
    /// The indexer's keys of new tokens, `[sequences, 1, len, key]`, or its queries, `[sequences, heads, len, key]`.
    fn block_part(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        (part, heads, key): (&str, u64, u64),
    ) -> Result<TensorId> {
        let name = format!("indexer.{part}");
        let made = self.linear(b, x, layer, &format!("{name}_proj"), [heads * key, self.hyper.width])?;
        let made = self.heads(b, made, layer, [heads, key], Some(&format!("{name}_norm")))?;
        self.turned(b, made, layer)
    }

    /// The keys that a layer attends to, and the indexer's keys with those of the new tokens.
    pub fn chosen_blocks(
        &self,
        b: &mut Builder,
        (x, held): (TensorId, Option<TensorId>),
        layer: u64,
        (indexer, blocks): (&Indexer, Blocks),
    ) -> Result<(Chosen, Option<TensorId>)> {
        let new = self.block_part(b, x, layer, ("k", 1, indexer.key))?;
        let keys = match (self.place, held) {
            (Some(place), Some(cache)) => b.append(new, cache, place.start)?,
            _ => new,
        };
        let queries = self.block_part(b, x, layer, ("q", indexer.heads, indexer.key))?;
        let most = indexer.top_k * blocks.size;
        if self.keys.is_constant() && self.keys.value() <= most {
            return Ok((Chosen::All, Some(keys)));
        }
        let mask = self.mask_of_blocks(b, [queries, keys], (indexer, blocks))?;
        Ok((Chosen::Masked(mask), Some(keys)))
    }

    /// What is added to scores so that heads read the chosen blocks, `f32[sequences, heads, len, keys]`.
    fn mask_of_blocks(
        &self,
        b: &mut Builder,
        [queries, keys]: [TensorId; 2],
        (indexer, blocks): (&Indexer, Blocks),
    ) -> Result<TensorId> {
        let (heads, one, all) = (Size::from(indexer.heads), Size::constant(1), self.keys.exact());
        let (sequences, len, size) = (self.sequences, self.len, blocks.size);
        let count = all.div_ceil(size);
        let flat = b.reshape_to(queries, &[sequences, one, len * heads, indexer.key.into()])?;
        let keys = b.as_f32(keys)?;
        let scores = b.product(flat, keys, true)?;
        let scores = b.reshape_to(scores, &[sequences, heads, len, all.into()])?;
        let band = self.shared_mask(b, None, 1)?;
        let scores = b.binary(Function::Add, scores, band)?;
        let rest = (count * size - all) as i64;
        let scores =
            b.pad(scores, &[(0, 0), (0, 0), (0, 0), (0, rest)], Border::Constant, f64::NEG_INFINITY)?;
        let scores = b.reshape_to(scores, &[sequences, heads, len, count.into(), size.into()])?;
        let scores = b.reduce(ReduceKind::Max, scores, &[4], false)?;
        let scores = self.with_local(b, scores, blocks, count)?;
        let [_, places] = b.top_k(scores, 3, indexer.top_k.min(count), false)?;
        let nothing = b.float(DType::F32, f64::NEG_INFINITY)?;
        let nothing = b.expand_to(nothing, &[sequences, heads, len, count.into()])?;
        let zero = b.float(DType::F32, 0.0)?;
        let dims = b.sizes(places).to_vec();
        let zeros = b.expand_to(zero, &dims)?;
        let chosen = b.scatter_elements([nothing, places, zeros], 3, Reduction::None)?;
        // Each block stands for its keys, and each head of the indexer for those that share a head of keys.
        let chosen = b.reshape_to(chosen, &[sequences, heads, len, count.into(), one])?;
        let chosen = b.expand_to(chosen, &[sequences, heads, len, count.into(), size.into()])?;
        let chosen = b.reshape_to(chosen, &[sequences, heads, len, (count * size).into()])?;
        let ranges = [sequences, heads, len, all.into()].map(Range::all);
        let chosen = b.slice(chosen, &ranges)?;
        let mask = b.binary(Function::Add, chosen, band)?;
        let mask = b.reshape_to(mask, &[sequences, heads, one, len, all.into()])?;
        let each = self.hyper.attends[0].heads.count / indexer.heads;
        let mask = b.expand_to(mask, &[sequences, heads, each.into(), len, all.into()])?;
        b.reshape_to(mask, &[sequences, heads * each, len, all.into()])
    }

    /// Scores of blocks, `[sequences, heads, len, count]`, of which those of the last few up to the token's own are above all others.
    fn with_local(&self, b: &mut Builder, scores: TensorId, blocks: Blocks, count: u64) -> Result<TensorId> {
        let one = Size::constant(1);
        let places = b.reshape_to(self.positions, &[self.sequences, one, self.len, one])?;
        let numbers = b.count_from(0, count)?;
        let int = |value: u64| Operand::Constant(Scalar::Int(value as i64, DType::I64));
        b.map(&[scores, places, numbers], DType::F32, |p, x| {
            let own = p.call(Function::Div, &[x[1], int(blocks.size)]);
            let before = p.call(Function::Sub, &[own, x[2]]);
            let is_near = p.call(Function::Lt, &[before, int(blocks.local)]);
            let is_before = p.call(Function::Ge, &[before, int(0)]);
            let is_local = p.call(Function::And, &[is_near, is_before]);
            p.call(Function::Select, &[is_local, float(f64::INFINITY), x[0]])
        })
    }
}
