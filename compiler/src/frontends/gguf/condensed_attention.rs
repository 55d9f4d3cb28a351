//! The graph of attention to keys that stand for groups of neighbours: a window of keys beside the rows of groups, which
//! `condensed_rows` makes.

use halite_ops::{
    DType,
    expression::{Expression, Function, Operand, Scalar},
    scatters::Reduction,
};
use halite_sizes::Size;

use super::{
    Result,
    condensed::Condensed,
    condensed_rows::Rows,
    family::Turn,
    file::{invalid, missing},
    indexer::Indexer,
    layer::{Call, Held},
    steps::float,
};
use crate::{
    build::{Builder, Range, Scores},
    graph::TensorId,
};

/// Rows of groups that a layer attends to, and what it keeps beside the caches of tokens' keys.
#[derive(Default)]
struct Groups {
    /// The rows, with what is added to their scores.
    attended: Option<[TensorId; 2]>,
    /// What its indexer keeps of tokens.
    index: Option<TensorId>,
    /// The caches of rows: its own, and those of its indexer.
    groups: Vec<TensorId>,
}

impl Call<'_> {
    /// Attention of new tokens to a window of keys and to rows of groups; gives what the layer keeps, too. `x` has its norm already.
    pub fn condensed_attention(
        &self,
        b: &mut Builder,
        (x, layer): (TensorId, u64),
        held: &Held,
        own: &Condensed,
    ) -> Result<(TensorId, Held)> {
        let heads = self.hyper.heads_of(layer);
        let low = self.query_row(b, x, layer)?;
        let (row, low) = low.ok_or_else(|| missing(&self.name(layer, "attn_q_a", "weight")))?;
        let q = self.linear(b, low, layer, "attn_q_b", [heads.count * heads.key, row])?;
        let q = b.reshape_to(q, &[self.rows(), heads.count.into(), heads.key.into()])?;
        let q = self.norm(b, q, None, None)?;
        let q = self.heads_first(b, q, [heads.count, heads.key])?;
        let q = self.end_turned(b, q, layer, self.positions)?;
        let k = self.linear(b, x, layer, "attn_kv", [heads.key, self.hyper.width])?;
        let k = self.row_norm(b, k, layer, "attn_kv_a_norm", heads.key)?;
        let k = self.heads_first(b, k, [1, heads.key])?;
        let k = self.end_turned(b, k, layer, self.positions)?;
        let format = self.place.and(self.held.values);
        let rows =
            own.group_of(layer).map(|size| Rows { part: "attn_compressor", size, key: heads.key, format });
        let told = match rows {
            Some(rows) => self.told(b, x, layer, rows)?,
            None => self.elements(b, k, 0, heads.value)?,
        };
        let [keys, told] = self.attended_to(b, Some([k, told]), layer, held.caches)?;
        let groups = match rows {
            Some(rows) => self.groups(b, [x, told], layer, (held, rows), (row, low))?,
            None => Groups::default(),
        };
        let q = if self.place.is_some() { b.cast(q, DType::F16)? } else { q };
        let made = self.found(b, [q, keys], groups.attended, (layer, own))?;
        let made = self.shortened(b, made, layer, own)?;
        if self.place.is_none() {
            return Ok((made, Held::default()));
        }
        let Groups { index, groups, .. } = groups;
        Ok((made, Held { caches: Some([keys, told]), index, groups, ..Held::default() }))
    }

    /// Rows of heads, `[sequences, heads, len, key]`, whose last elements have their rotary embedding at these places, `i64[sequences, len]`.
    pub fn end_turned(&self, b: &mut Builder, x: TensorId, layer: u64, places: TensorId) -> Result<TensorId> {
        let tables = self.tables[usize::from(self.hyper.window_of(layer).is_some())];
        let (Some(rope), Some(tables)) = (self.hyper.rope_of(layer), tables) else { return Ok(x) };
        let key = b.sizes(x)[3].exact();
        let still = key.checked_sub(rope.turned).ok_or_else(|| {
            invalid(format!("rotary embedding turns {} of {key} elements of a key", rope.turned))
        })?;
        let is_neighbour = self.hyper.turn == Turn::Neighbours;
        if still == 0 {
            return b.rotary(x, places, tables, rope.turned, is_neighbour);
        }
        let (first, last) = (self.elements(b, x, 0, still)?, self.elements(b, x, still, rope.turned)?);
        let last = b.rotary(last, places, tables, rope.turned, is_neighbour)?;
        b.concat(&[first, last], 3)
    }

    /// The same turned back. Of each pair the second element changes its sign, before and behind.
    fn end_turned_back(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let key = b.sizes(x)[3].exact();
        let turned = self.hyper.rope_of(layer).map_or(0, |rope| rope.turned.min(key));
        let is_second = |place: u64| match (self.hyper.turn, place.checked_sub(key - turned)) {
            (_, None) => false,
            (Turn::Neighbours, Some(place)) => place % 2 == 1,
            (_, Some(place)) => place >= turned / 2,
        };
        let signs = (0..key).map(|place| if is_second(place) { -1.0f32 } else { 1.0 });
        let bytes: Vec<u8> = signs.flat_map(f32::to_le_bytes).collect();
        let signs = b.constant("signs", DType::F32.into(), &[key], bytes.into())?;
        let x = b.binary(Function::Mul, x, signs)?;
        let x = self.end_turned(b, x, layer, self.positions)?;
        b.binary(Function::Mul, x, signs)
    }

    /// The rows of a layer's groups, and what it and its indexer keep.
    fn groups(
        &self,
        b: &mut Builder,
        [x, told]: [TensorId; 2],
        layer: u64,
        (held, rows): (&Held, Rows<'_>),
        (row, low): (u64, TensorId),
    ) -> Result<Groups> {
        let count = self.keys.exact() / rows.size;
        let kept = |place: usize| held.groups.get(place).copied();
        let Some(indexer) = self.hyper.indexer_of(layer) else {
            return self.attended_groups(b, (told, kept(0)), layer, rows, None);
        };
        let own = Rows { part: "indexer_compressor", key: indexer.key, format: None, ..rows };
        let new = self.told(b, x, layer, own)?;
        let index = match (self.place, held.index) {
            (Some(place), Some(cache)) => b.append(new, cache, place.start)?,
            _ => new,
        };
        if count <= indexer.top_k {
            self.leave_chooser(layer);
            let mut made = self.attended_groups(b, (told, kept(0)), layer, rows, None)?;
            made.index = Some(index);
            made.groups.extend(kept(1));
            return Ok(made);
        }
        let keys = self.condensed_rows(b, (index, kept(1)), layer, own)?;
        let q = self.linear(b, low, layer, "indexer.attn_q_b", [indexer.heads * indexer.key, row])?;
        let q = self.heads_first(b, q, [indexer.heads, indexer.key])?;
        let q = self.end_turned(b, q, layer, self.positions)?;
        let weights = self.linear(b, x, layer, "indexer.proj", [indexer.heads, self.hyper.width])?;
        let weights = self.heads_first(b, weights, [indexer.heads, 1])?;
        let compared = b.as_f32(keys.rows)?;
        let scores = self.pool_scores(b, [q, compared], Some(weights), (indexer, count))?;
        let mut made = self.attended_groups(b, (told, kept(0)), layer, rows, Some((scores, indexer)))?;
        made.index = Some(index);
        made.groups.extend(keys.cache);
        Ok(made)
    }

    /// Leaves weights of a layer's indexer alone that choose among groups, where all are attended to.
    fn leave_chooser(&self, layer: u64) {
        for part in ["indexer.attn_q_b", "indexer.proj", "indexer_compressor_ape", "indexer_compressor_norm"]
        {
            self.tensors.find(&self.name(layer, part, "weight"));
        }
    }

    /// Rows of groups with what is added to their scores, if there is room for a group: all that ended are attended to, or those that
    /// are liked most.
    fn attended_groups(
        &self,
        b: &mut Builder,
        (told, held): (TensorId, Option<TensorId>),
        layer: u64,
        rows: Rows<'_>,
        liked: Option<(TensorId, &Indexer)>,
    ) -> Result<Groups> {
        let (one, count) = (Size::constant(1), self.keys.exact() / rows.size);
        if count == 0 {
            for part in ["ape", "norm"] {
                self.tensors.find(&self.name(layer, &format!("{}_{part}", rows.part), "weight"));
            }
            return Ok(Groups { groups: held.into_iter().collect(), ..Groups::default() });
        }
        let made = self.condensed_rows(b, (told, held), layer, rows)?;
        let places = b.reshape_to(self.positions, &[self.sequences, one, self.len, one])?;
        let numbers = b.count_from(0, count)?;
        let or_none = |p: &mut Expression, x: &[Operand], own: Operand| {
            let int = |value: u64| Operand::Constant(Scalar::Int(value as i64, DType::I64));
            let next = p.call(Function::Add, &[x[0], int(1)]);
            let ended = p.call(Function::Div, &[next, int(rows.size)]);
            let is_whole = p.call(Function::Lt, &[x[1], ended]);
            p.call(Function::Select, &[is_whole, own, float(f64::NEG_INFINITY)])
        };
        let groups = made.cache.into_iter().collect();
        let Some((scores, indexer)) = liked else {
            let mask = b.map(&[places, numbers], DType::F32, |p, x| or_none(p, x, float(0.0)))?;
            return Ok(Groups { attended: Some([made.rows, mask]), index: None, groups });
        };
        let scores = b.map(&[places, numbers, scores], DType::F32, |p, x| or_none(p, &x[..2], x[2]))?;
        let [liked, best] = b.top_k(scores, 3, indexer.top_k, false)?;
        if self.len == 1 {
            let attended = self.chosen_rows(b, [liked, best], made.rows, (rows, indexer))?;
            return Ok(Groups { attended: Some(attended), index: None, groups });
        }
        let dims = b.sizes(best).to_vec();
        let (none, zero) = (b.float(DType::F32, f64::NEG_INFINITY)?, b.float(DType::F32, 0.0)?);
        let none = b.expand_to(none, &[self.sequences, one, self.len, count.into()])?;
        let zeros = b.expand_to(zero, &dims)?;
        let chosen = b.scatter_elements([none, best, zeros], 3, Reduction::None)?;
        let mask = b.map(&[places, numbers, chosen], DType::F32, |p, x| or_none(p, &x[..2], x[2]))?;
        Ok(Groups { attended: Some([made.rows, mask]), index: None, groups })
    }

    /// Rows that one token of each sequence likes most, by their scores and numbers, with what is added to their scores.
    fn chosen_rows(
        &self,
        b: &mut Builder,
        [liked, best]: [TensorId; 2],
        made: TensorId,
        (rows, indexer): (Rows<'_>, &Indexer),
    ) -> Result<[TensorId; 2]> {
        // Of fewer groups than are wanted some did not end.
        let mask = b.map(&[liked], DType::F32, |p, x| {
            let is_none = p.call(Function::Eq, &[x[0], float(f64::NEG_INFINITY)]);
            p.call(Function::Select, &[is_none, float(f64::NEG_INFINITY), float(0.0)])
        })?;
        let best = b.reshape_to(best, &[self.sequences, indexer.top_k.into()])?;
        let best = b.cast(best, DType::I64)?;
        let chosen = self.rows_at(b, (made, None, rows.key), best)?;
        Ok([chosen, mask])
    }

    /// What queries find among keys of the window and rows of groups, `f32[sequences, heads, len, key]`, which are values as well.
    fn found(
        &self,
        b: &mut Builder,
        [q, keys]: [TensorId; 2],
        short: Option<[TensorId; 2]>,
        (layer, own): (u64, &Condensed),
    ) -> Result<TensorId> {
        let (h, heads) = (self.hyper, self.hyper.heads_of(layer).count);
        let format = self.place.and(self.held.keys);
        let key = h.heads_of(layer).key;
        let [keys, mask] = self.keys_in_window(b, (keys, format), (own.window, key), heads)?;
        let all: Vec<[TensorId; 2]> = [[keys, mask]].into_iter().chain(short).collect();
        let scores = Scores {
            scale: Some(h.scale_of(layer)),
            softcap: None,
            causal: false,
            lengths: None,
            keys: None,
            values: None,
        };
        let sinks = self.sink_scores(b, layer, heads)?;
        let given: Vec<TensorId> = [q, sinks].into_iter().chain(all.iter().map(|[_, mask]| *mask)).collect();
        let counts = all.iter().map(|[keys, _]| b.sizes(*keys)[2].exact());
        let each = heads * counts.sum::<u64>();
        self.by_tokens(b, &given, each, |b, given, _| {
            let all = all.iter().zip(&given[2..]).map(|([keys, _], mask)| [*keys, *mask]);
            found_by(b, [given[0], given[1]], &all.collect::<Vec<_>>(), scores)
        })
    }

    /// A number of each head that takes part in the softmax, `f32[sequences, heads, len, 1]`.
    fn sink_scores(&self, b: &mut Builder, layer: u64, heads: u64) -> Result<TensorId> {
        let name = self.name(layer, "attn_sinks", "weight");
        let sinks = self.tensors.vector(b, &name, heads)?.ok_or_else(|| missing(&name))?;
        let one = Size::constant(1);
        let sinks = b.reshape_to(sinks, &[one, heads.into(), one, one])?;
        b.expand_to(sinks, &[self.sequences, heads.into(), self.len, one])
    }

    /// What was found, turned back from its place, as rows of the model: each group of heads makes a shorter row, and all of these a state.
    fn shortened(&self, b: &mut Builder, x: TensorId, layer: u64, own: &Condensed) -> Result<TensorId> {
        let heads = self.hyper.heads_of(layer);
        let x = self.end_turned_back(b, x, layer)?;
        let x = b.transpose(x, &[0, 2, 1, 3])?;
        let length = heads.count / own.outputs * heads.key;
        let x = b.reshape_to(x, &[self.rows() * own.outputs, length.into()])?;
        let made = self.by_place(b, x, layer, "attn_output_a", [own.outputs, own.rank, length])?;
        let inner = own.outputs * own.rank;
        let made = b.reshape_to(made, &[self.rows(), inner.into()])?;
        self.linear(b, made, layer, "attn_output_b", [self.hyper.width, inner])
    }
}

/// What queries, with numbers that take part in the softmax, find among keys, which are values as well, with what is added to their scores.
fn found_by(
    b: &mut Builder,
    [q, sinks]: [TensorId; 2],
    all: &[[TensorId; 2]],
    scores: Scores,
) -> Result<TensorId> {
    let mut masked = Vec::new();
    for [keys, mask] in all {
        masked.push(b.attention_scores([q, *keys], Some(*mask), scores)?.masked);
    }
    masked.push(sinks);
    let both = b.concat(&masked, 3)?;
    let weights = b.softmax(both, 3, false)?;
    let (mut first, mut sum) = (0, None);
    for [keys, _] in all {
        let count = b.sizes(*keys)[2].exact();
        let mut ranges: Vec<Range<Size>> = b.sizes(weights).iter().copied().map(Range::all).collect();
        ranges[3] = Range { start: first.into(), step: 1, count: count.into() };
        let own = b.slice(weights, &ranges)?;
        let made = b.attend(own, *keys)?;
        sum = Some(sum.map_or(Ok(made), |sum| b.binary(Function::Add, sum, made))?);
        first += count;
    }
    sum.ok_or_else(|| b.invalid("attention to nothing"))
}
