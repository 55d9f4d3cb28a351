//! The graph of attention to keys that stand for groups of neighbours. A row is a sum of what the tokens of its group tell, by a softmax of
//! what they tell beside it, for each element. Caches hold what tokens tell, from which each call makes the rows.

use halite_ops::{
    DType,
    expression::{Expression, Function, Operand, Scalar},
    pad::Border,
    reduce::ReduceKind,
    scatters::Reduction,
};
use halite_sizes::Size;

use super::{
    Result,
    condensed::Condensed,
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

/// Rows of groups.
#[derive(Clone, Copy)]
struct Rows<'a> {
    /// What the names of the weights begin with that make them.
    part: &'a str,
    /// Tokens of a group.
    size: u64,
    /// Elements of a row.
    key: u64,
}

impl Rows<'_> {
    /// Elements of what a token tells of rows, and as many of how much that counts.
    fn told(&self) -> u64 {
        Condensed::parts(self.size) * self.key
    }
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
        let rows = own.group_of(layer).map(|size| Rows { part: "attn_compressor", size, key: heads.key });
        let told = match rows {
            Some(rows) => self.told(b, x, layer, rows)?,
            None => self.elements(b, k, 0, heads.value)?,
        };
        let [keys, told] = self.attended_to(b, Some([k, told]), layer, held.caches)?;
        let (short, index) = match rows {
            Some(rows) => self.groups(b, [x, told], layer, (held.index, rows), (row, low))?,
            None => (None, None),
        };
        let q = if self.place.is_some() { b.cast(q, DType::F16)? } else { q };
        let made = self.found(b, [q, keys], short, (layer, own))?;
        let made = self.shortened(b, made, layer, own)?;
        let caches = self.place.map(|_| [keys, told]);
        let index = index.filter(|_| self.place.is_some());
        Ok((made, Held { caches, index, ..Held::default() }))
    }

    /// Neighbouring elements of rows of heads.
    fn elements(&self, b: &mut Builder, x: TensorId, first: u64, count: u64) -> Result<TensorId> {
        let mut ranges: Vec<Range<Size>> = b.sizes(x).iter().copied().map(Range::all).collect();
        if let Some(last) = ranges.last_mut() {
            *last = Range { start: first.into(), step: 1, count: count.into() };
        }
        b.slice(x, &ranges)
    }

    /// Rows of heads, `[sequences, heads, len, key]`, whose last elements have their rotary embedding at these places, `i64[sequences, len]`.
    fn end_turned(&self, b: &mut Builder, x: TensorId, layer: u64, places: TensorId) -> Result<TensorId> {
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

    /// What new tokens tell of rows, and how much that counts, `[sequences, 1, len, 2 * told]`.
    fn told(&self, b: &mut Builder, x: TensorId, layer: u64, rows: Rows<'_>) -> Result<TensorId> {
        let dims = [rows.told(), self.hyper.width];
        let made = self.linear(b, x, layer, &format!("{}_kv", rows.part), dims)?;
        let counts = self.linear(b, x, layer, &format!("{}_gate", rows.part), dims)?;
        let both = b.concat(&[made, counts], 1)?;
        self.heads_first(b, both, [1, 2 * rows.told()])
    }

    /// The rows of a layer's groups with what is added to their scores, where there is room for a group, and what its indexer keeps of
    /// tokens, if it has one.
    fn groups(
        &self,
        b: &mut Builder,
        [x, told]: [TensorId; 2],
        layer: u64,
        (held, rows): (Option<TensorId>, Rows<'_>),
        (row, low): (u64, TensorId),
    ) -> Result<(Option<[TensorId; 2]>, Option<TensorId>)> {
        let count = self.keys.exact() / rows.size;
        let Some(indexer) = self.hyper.indexer_of(layer) else {
            return Ok((self.row_of_groups(b, told, layer, rows, None)?, None));
        };
        let own = Rows { part: "indexer_compressor", key: indexer.key, ..rows };
        let new = self.told(b, x, layer, own)?;
        let index = match (self.place, held) {
            (Some(place), Some(cache)) => b.append(new, cache, place.start)?,
            _ => new,
        };
        if count <= indexer.top_k {
            self.leave_chooser(layer);
            return Ok((self.row_of_groups(b, told, layer, rows, None)?, Some(index)));
        }
        let keys = self.group_rows(b, index, layer, own)?;
        let q = self.linear(b, low, layer, "indexer.attn_q_b", [indexer.heads * indexer.key, row])?;
        let q = self.heads_first(b, q, [indexer.heads, indexer.key])?;
        let q = self.end_turned(b, q, layer, self.positions)?;
        let weights = self.linear(b, x, layer, "indexer.proj", [indexer.heads, self.hyper.width])?;
        let weights = self.heads_first(b, weights, [indexer.heads, 1])?;
        let scores = self.pool_scores(b, [q, keys], Some(weights), (indexer, count))?;
        Ok((self.row_of_groups(b, told, layer, rows, Some((scores, indexer)))?, Some(index)))
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
    fn row_of_groups(
        &self,
        b: &mut Builder,
        told: TensorId,
        layer: u64,
        rows: Rows<'_>,
        liked: Option<(TensorId, &Indexer)>,
    ) -> Result<Option<[TensorId; 2]>> {
        let (one, count) = (Size::constant(1), self.keys.exact() / rows.size);
        if count == 0 {
            for part in ["ape", "norm"] {
                self.tensors.find(&self.name(layer, &format!("{}_{part}", rows.part), "weight"));
            }
            return Ok(None);
        }
        let made = self.group_rows(b, told, layer, rows)?;
        let places = b.reshape_to(self.positions, &[self.sequences, one, self.len, one])?;
        let numbers = b.count_from(0, count)?;
        let or_none = |p: &mut Expression, x: &[Operand], own: Operand| {
            let int = |value: u64| Operand::Constant(Scalar::Int(value as i64, DType::I64));
            let next = p.call(Function::Add, &[x[0], int(1)]);
            let ended = p.call(Function::Div, &[next, int(rows.size)]);
            let is_whole = p.call(Function::Lt, &[x[1], ended]);
            p.call(Function::Select, &[is_whole, own, float(f64::NEG_INFINITY)])
        };
        let Some((scores, indexer)) = liked else {
            let mask = b.map(&[places, numbers], DType::F32, |p, x| or_none(p, x, float(0.0)))?;
            return Ok(Some([made, mask]));
        };
        let scores = b.map(&[places, numbers, scores], DType::F32, |p, x| or_none(p, &x[..2], x[2]))?;
        let [_, best] = b.top_k(scores, 3, indexer.top_k, false)?;
        let dims = b.sizes(best).to_vec();
        let (none, zero) = (b.float(DType::F32, f64::NEG_INFINITY)?, b.float(DType::F32, 0.0)?);
        let none = b.expand_to(none, &[self.sequences, one, self.len, count.into()])?;
        let zeros = b.expand_to(zero, &dims)?;
        let chosen = b.scatter_elements([none, best, zeros], 3, Reduction::None)?;
        let mask = b.map(&[places, numbers, chosen], DType::F32, |p, x| or_none(p, &x[..2], x[2]))?;
        Ok(Some([made, mask]))
    }

    /// One row for each whole group of what all tokens told, `f32[sequences, 1, count, key]`.
    fn group_rows(&self, b: &mut Builder, told: TensorId, layer: u64, rows: Rows<'_>) -> Result<TensorId> {
        let (count, size, one) = (self.keys.exact() / rows.size, rows.size, Size::constant(1));
        let all = [self.sequences, one, (count * size).into(), (2 * rows.told()).into()];
        let told = b.slice(told, &all.map(Range::all))?;
        // Caches round what they hold.
        let told = b.cast(told, DType::F16)?;
        let told = b.as_f32(told)?;
        let told =
            b.reshape_to(told, &[self.sequences, count.into(), size.into(), (2 * rows.told()).into()])?;
        let name = self.name(layer, &format!("{}_ape", rows.part), "weight");
        let table = self.tensors.matrix(b, &name, [size, rows.told()])?;
        let places = b.count_from(0, size)?;
        let more = b.rows_by_index(&table, places)?;
        let more = b.reshape_to(more, &[one, one, size.into(), rows.told().into()])?;
        let counts = self.elements(b, told, rows.told(), rows.told())?;
        let counts = b.binary(Function::Add, counts, more)?;
        let own = rows.told() - rows.key;
        let (mut values, mut weights) =
            (self.elements(b, told, own, rows.key)?, self.elements(b, counts, own, rows.key)?);
        if own > 0 {
            // The group before has told of this row, too; before the first there is none.
            let earlier = |b: &mut Builder, x: TensorId, nothing: f64| {
                let first = self.elements(b, x, 0, rows.key)?;
                let moved = b.pad(first, &[(0, 0), (1, 0), (0, 0), (0, 0)], Border::Constant, nothing)?;
                let dims = [self.sequences, count.into(), size.into(), rows.key.into()];
                b.slice(moved, &dims.map(Range::all))
            };
            let (before, before_weights) = (earlier(b, told, 0.0)?, earlier(b, counts, f64::NEG_INFINITY)?);
            values = b.concat(&[before, values], 2)?;
            weights = b.concat(&[before_weights, weights], 2)?;
        }
        let weights = b.softmax(weights, 2, false)?;
        let made = b.binary(Function::Mul, values, weights)?;
        let made = b.reduce(ReduceKind::Sum, made, &[2], false)?;
        let made = self.row_norm(b, made, layer, &format!("{}_norm", rows.part), rows.key)?;
        let made = b.reshape_to(made, &[self.sequences, one, count.into(), rows.key.into()])?;
        let places = b.count_from(0, count)?;
        let size = Operand::Constant(Scalar::Int(size as i64, DType::I64));
        // Each is where the first of its group is.
        let places = b.map(&[places], DType::I64, |p, x| p.call(Function::Mul, &[x[0], size]))?;
        let places = b.reshape_to(places, &[one, count.into()])?;
        let places = b.expand_to(places, &[self.sequences, count.into()])?;
        self.end_turned(b, made, layer, places)
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
        let window = Some(own.window).filter(|window| self.keys > h.keys_before(*window) + 1);
        let mask = self.shared_mask(b, window, heads)?;
        let mut all = vec![(keys, mask)];
        all.extend(short.map(|[rows, mask]| (rows, mask)));
        let scores = Scores {
            scale: Some(h.scale_of(layer)),
            softcap: None,
            causal: false,
            lengths: None,
            keys: None,
            values: None,
        };
        let mut masked = Vec::new();
        for (keys, mask) in &all {
            masked.push(b.attention_scores([q, *keys], Some(*mask), scores)?.masked);
        }
        masked.push(self.sink_scores(b, layer, heads)?);
        let both = b.concat(&masked, 3)?;
        let weights = b.softmax(both, 3, false)?;
        let (mut first, mut sum) = (0, None);
        for (keys, _) in all {
            let count = b.sizes(keys)[2].exact();
            let own = self.elements(b, weights, first, count)?;
            let made = b.attend(own, keys)?;
            sum = Some(sum.map_or(Ok(made), |sum| b.binary(Function::Add, sum, made))?);
            first += count;
        }
        sum.ok_or_else(|| b.invalid("attention to nothing"))
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
