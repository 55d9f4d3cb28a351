//! Rows that stand for groups of neighbouring tokens. A row is a sum of what the tokens of its group tell, by a softmax of what they tell
//! beside it, for each element. Caches hold what tokens tell, and the rows: a call makes those of the groups that its tokens are in, and
//! the last of these anew in the next, unless its group has ended.

use halite_ops::{
    DType,
    blocks::BlockFormat,
    expression::{Function, Operand, Scalar},
    pad::Border,
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{Result, condensed::Condensed, layer::Call, pieces::some_tokens, steps::float};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

/// Most numbers, of 4 bytes, that tokens are compared with at a time: half of what each Vulkan device can bind.
const MOST_COMPARED: u64 = 1 << 24;

/// Rows of groups.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// What the names of the weights begin with that make them.
    pub part: &'a str,
    /// Tokens of a group.
    pub size: u64,
    /// Elements of a row.
    pub key: u64,
    /// How caches hold what tokens tell.
    pub format: Option<BlockFormat>,
}

/// Rows of the groups that there is room for.
#[derive(Clone, Copy)]
pub(super) struct Made {
    /// `[sequences, 1, groups, key]`.
    pub rows: TensorId,
    /// The cache that they are in, `f16[sequences, 1, context, elements]`.
    pub cache: Option<TensorId>,
}

impl Rows<'_> {
    /// Elements of what a token tells of rows, and as many of how much that counts.
    pub fn told(&self) -> u64 {
        Condensed::parts(self.size) * self.key
    }

    /// Groups in front of a row's own that it is made of, too.
    fn lead(&self) -> u64 {
        Condensed::parts(self.size) - 1
    }
}

fn int(value: u64) -> Operand {
    Operand::Constant(Scalar::Int(value as i64, DType::I64))
}

impl Call<'_> {
    /// Neighbouring elements of rows of heads.
    pub fn elements(&self, b: &mut Builder, x: TensorId, first: u64, count: u64) -> Result<TensorId> {
        let mut ranges: Vec<Range<Size>> = b.sizes(x).iter().copied().map(Range::all).collect();
        if let Some(last) = ranges.last_mut() {
            *last = Range { start: first.into(), step: 1, count: count.into() };
        }
        b.slice(x, &ranges)
    }

    /// What new tokens tell of rows, and how much that counts, `[sequences, 1, len, 2 * told]`.
    pub fn told(&self, b: &mut Builder, x: TensorId, layer: u64, rows: Rows<'_>) -> Result<TensorId> {
        let dims = [rows.told(), self.hyper.width];
        let made = self.linear(b, x, layer, &format!("{}_kv", rows.part), dims)?;
        let counts = self.linear(b, x, layer, &format!("{}_gate", rows.part), dims)?;
        let both = b.concat(&[made, counts], 1)?;
        self.heads_first(b, both, [1, 2 * rows.told()])
    }

    /// Rows of a cache, `[sequences, 1, all, elements]`, at places of each sequence, `i64[sequences, count]`, as `[sequences, 1, count,
    /// elements]`. Places outside of the cache are those at its ends.
    pub fn rows_at(
        &self,
        b: &mut Builder,
        (cache, format, elements): (TensorId, Option<BlockFormat>, u64),
        places: TensorId,
    ) -> Result<TensorId> {
        let [sequences, _, all, row] = b.four_dims(cache)?;
        let (count, one) = (b.sizes(places)[1], Size::constant(1));
        let line = b.line_of_places(DType::I64, sequences)?;
        let line = b.reshape_to(line, &[sequences, one])?;
        let (each, last) = (int(all.exact()), int(all.exact() - 1));
        let places = b.map(&[places, line], DType::I64, |p, x| {
            let own = p.call(Function::Clip, &[x[0], int(0), last]);
            let first = p.call(Function::Mul, &[x[1], each]);
            p.call(Function::Add, &[own, first])
        })?;
        let places = b.reshape_to(places, &[sequences * count])?;
        let rows = b.reshape_to(cache, &[sequences * all, row])?;
        let mut rows = b.gather(rows, places, 0)?;
        if let Some(format) = format {
            rows = b.from_blocks(rows, format, elements)?;
        }
        b.reshape_to(rows, &[sequences, one, count, elements.into()])
    }

    /// The rows of all groups that there is room for, one at least, with those of what tokens told of which a cache has the rest: `told` is
    /// that of all tokens.
    pub fn condensed_rows(
        &self,
        b: &mut Builder,
        (told, held): (TensorId, Option<TensorId>),
        layer: u64,
        rows: Rows<'_>,
    ) -> Result<Made> {
        let (count, one) = (self.keys.exact() / rows.size, Size::constant(1));
        let (Some(place), Some(cache)) = (self.place, held) else {
            let made = self.rows_of_text(b, told, layer, rows)?;
            return Ok(Made { rows: made, cache: None });
        };
        let start = b.reshape_to(place.start, &[self.sequences, one])?;
        let start = b.cast(start, DType::I64)?;
        let new = self.len.div_ceil(rows.size);
        let line = b.count_from(0, new)?;
        let numbers = b.map(&[start, line], DType::I64, |p, x| {
            let first = p.call(Function::Div, &[x[0], int(rows.size)]);
            p.call(Function::Add, &[first, x[1]])
        })?;
        let line = b.count_from(0, (new + rows.lead()) * rows.size)?;
        let tokens = b.map(&[start, line], DType::I64, |p, x| {
            let first = p.call(Function::Div, &[x[0], int(rows.size)]);
            let first = p.call(Function::Sub, &[first, int(rows.lead())]);
            let first = p.call(Function::Mul, &[first, int(rows.size)]);
            p.call(Function::Add, &[first, x[1]])
        })?;
        let read = self.rows_at(b, (told, rows.format, 2 * rows.told()), tokens)?;
        let dims = [self.sequences, new + rows.lead(), rows.size.into(), (2 * rows.told()).into()];
        let read = b.as_f32(read)?;
        let read = b.reshape_to(read, &dims)?;
        let made = self.made_rows(b, [read, numbers], layer, rows)?;
        let first = b.map(&[start], DType::I64, |p, x| p.call(Function::Div, &[x[0], int(rows.size)]))?;
        let first = b.reshape_to(first, &[self.sequences])?;
        let cache = self.with_rows(b, [made, cache, first], rows)?;
        let all = self.whole_groups(b, cache, rows)?;
        let all = self.elements(b, all, 0, rows.key)?;
        debug_assert_eq!(b.sizes(all)[2], Size::from(count));
        Ok(Made { rows: all, cache: Some(cache) })
    }

    /// The groups of a cache with room for `[sequences, 1, context, elements]`, as rows.
    fn whole_groups(&self, b: &mut Builder, cache: TensorId, rows: Rows<'_>) -> Result<TensorId> {
        let [sequences, one, context, part] = b.four_dims(cache)?;
        let count = context.exact() / rows.size;
        let ranges = [sequences, one, Size::from(count * rows.size), part].map(Range::all);
        let whole = if context == count * rows.size { cache } else { b.slice(cache, &ranges)? };
        b.reshape_to(whole, &[sequences, one, count.into(), part * rows.size])
    }

    /// A cache of rows with these from the `first` group of each sequence on, `i64[sequences]`.
    fn with_rows(
        &self,
        b: &mut Builder,
        [made, cache, first]: [TensorId; 3],
        rows: Rows<'_>,
    ) -> Result<TensorId> {
        let [sequences, one, context, part] = b.four_dims(cache)?;
        let count = context.exact() / rows.size;
        let rest = (part.exact() * rows.size - rows.key) as i64;
        let made = match rest {
            0 => made,
            _ => b.pad(made, &[(0, 0), (0, 0), (0, 0), (0, rest)], Border::Constant, 0.0)?,
        };
        let whole = self.whole_groups(b, cache, rows)?;
        let first = b.cast(first, DType::I32)?;
        let whole = b.append(made, whole, first)?;
        let own = Size::from(count * rows.size);
        let whole = b.reshape_to(whole, &[sequences, one, own, part])?;
        if context == own {
            return Ok(whole);
        }
        // Tokens behind the last group.
        let behind = Range { start: own, step: 1, count: context - own };
        let behind = b.slice(cache, &[Range::all(sequences), Range::all(one), behind, Range::all(part)])?;
        b.concat(&[whole, behind], 2)
    }

    /// The rows of a text all of whose tokens are new.
    fn rows_of_text(&self, b: &mut Builder, told: TensorId, layer: u64, rows: Rows<'_>) -> Result<TensorId> {
        let (count, size, one) = (self.keys.exact() / rows.size, rows.size, Size::constant(1));
        let all = [self.sequences, one, (count * size).into(), (2 * rows.told()).into()];
        let told = b.slice(told, &all.map(Range::all))?;
        // As caches round it.
        let told = b.cast(told, DType::F16)?;
        let told = b.as_f32(told)?;
        let dims = [self.sequences, count.into(), size.into(), (2 * rows.told()).into()];
        let told = b.reshape_to(told, &dims)?;
        let lead = rows.lead() as i64;
        let told = b.pad(told, &[(0, 0), (lead, 0), (0, 0), (0, 0)], Border::Constant, 0.0)?;
        let numbers = b.count_from(0, count)?;
        let numbers = b.reshape_to(numbers, &[one, count.into()])?;
        let numbers = b.expand_to(numbers, &[self.sequences, count.into()])?;
        let made = self.made_rows(b, [told, numbers], layer, rows)?;
        b.cast(made, DType::F16)
    }

    /// One row for each of some groups, `f32[sequences, 1, count, key]`, of these numbers, `i64[sequences, count]`, of what their tokens
    /// told, `f32[sequences, count, size, 2 * told]`, perhaps behind a group in front.
    fn made_rows(
        &self,
        b: &mut Builder,
        [told, numbers]: [TensorId; 2],
        layer: u64,
        rows: Rows<'_>,
    ) -> Result<TensorId> {
        let (count, size, one) = (b.sizes(numbers)[1], rows.size, Size::constant(1));
        let name = self.name(layer, &format!("{}_ape", rows.part), "weight");
        let table = self.tensors.matrix(b, &name, [size, rows.told()])?;
        let places = b.count_from(0, size)?;
        let more = b.rows_by_index(&table, places)?;
        let more = b.reshape_to(more, &[one, one, size.into(), rows.told().into()])?;
        let counts = self.elements(b, told, rows.told(), rows.told())?;
        let counts = b.binary(Function::Add, counts, more)?;
        let part = |b: &mut Builder, x: TensorId, group: u64, element: u64| {
            let all = [Range::all(self.sequences), Range { start: group.into(), step: 1, count }];
            let own = Range { start: element.into(), step: 1, count: Size::from(rows.key) };
            b.slice(x, &[all[0], all[1], Range::all(size.into()), own])
        };
        let (lead, own) = (rows.lead(), rows.told() - rows.key);
        let (mut values, mut weights) = (part(b, told, lead, own)?, part(b, counts, lead, own)?);
        if lead > 0 {
            // The group before has told of this row, too; before the first there is none.
            let (before, counts) = (part(b, told, 0, 0)?, part(b, counts, 0, 0)?);
            let numbers = b.reshape_to(numbers, &[self.sequences, count, one, one])?;
            let counts = b.map(&[counts, numbers], DType::F32, |p, x| {
                let is_first = p.call(Function::Le, &[x[1], int(0)]);
                p.call(Function::Select, &[is_first, float(f64::NEG_INFINITY), x[0]])
            })?;
            values = b.concat(&[before, values], 2)?;
            weights = b.concat(&[counts, weights], 2)?;
        }
        let weights = b.softmax(weights, 2, false)?;
        let made = b.binary(Function::Mul, values, weights)?;
        let made = b.reduce(ReduceKind::Sum, made, &[2], false)?;
        let made = self.row_norm(b, made, layer, &format!("{}_norm", rows.part), rows.key)?;
        let made = b.reshape_to(made, &[self.sequences, one, count, rows.key.into()])?;
        // Each is where the first of its group is.
        let last = int(self.keys.exact() - 1);
        let places = b.map(&[numbers], DType::I64, |p, x| {
            let place = p.call(Function::Mul, &[x[0], int(size)]);
            p.call(Function::Min, &[place, last])
        })?;
        self.end_turned(b, made, layer, places)
    }

    /// What is made of tensors `[sequences, …, len, …]` of the new tokens, `[sequences, …, len, …]`, where `each` numbers of a token are
    /// compared at a time: of some tokens after the other, where those of all would be very many.
    pub fn by_tokens(
        &self,
        b: &mut Builder,
        given: &[TensorId],
        each: u64,
        make: impl Fn(&mut Builder, &[TensorId], Size) -> Result<TensorId>,
    ) -> Result<TensorId> {
        let all = self.sequences.exact().saturating_mul(each).max(1);
        let most = (MOST_COMPARED / all).max(1);
        if self.len <= most {
            return make(b, given, self.len);
        }
        let (len, mut made) = (self.len.exact(), Vec::new());
        for first in (0..len).step_by(most as usize) {
            let count = most.min(len - first);
            let own: Vec<TensorId> =
                given.iter().map(|x| some_tokens(b, *x, first, count)).collect::<Result<_>>()?;
            made.push(make(b, &own, count.into())?);
        }
        b.concat(&made, 2)
    }

    /// The keys of a window before and at the new tokens, with what is added to their scores, `f32[sequences, 1, len, keys]`: of caches
    /// those that one of these tokens attends to, where there are more.
    pub fn keys_in_window(
        &self,
        b: &mut Builder,
        (keys, format): (TensorId, Option<BlockFormat>),
        (window, key): (u64, u64),
        heads: u64,
    ) -> Result<[TensorId; 2]> {
        let (before, one) = (self.hyper.keys_before(window), Size::constant(1));
        let place = self.place.filter(|_| format.is_some() || self.keys > self.len + before);
        let Some(place) = place else {
            let window = Some(window).filter(|_| self.keys > before + 1);
            return Ok([keys, self.shared_mask(b, window, heads)?]);
        };
        let start = b.reshape_to(place.start, &[self.sequences, one])?;
        let start = b.cast(start, DType::I64)?;
        let count = self.len + before;
        let line = b.count_from(0, count)?;
        let places = b.map(&[start, line], DType::I64, |p, x| {
            let place = p.call(Function::Add, x);
            p.call(Function::Sub, &[place, int(before)])
        })?;
        let read = self.rows_at(b, (keys, format, key), places)?;
        let places = b.reshape_to(places, &[self.sequences, one, one, count])?;
        let own = b.reshape_to(self.positions, &[self.sequences, one, self.len, one])?;
        let mask = b.map(&[own, places], DType::F32, |p, x| {
            let behind = p.call(Function::Sub, &[x[0], x[1]]);
            let is_before = p.call(Function::Ge, &[behind, int(0)]);
            let is_near = p.call(Function::Le, &[behind, int(before)]);
            let is_there = p.call(Function::Ge, &[x[1], int(0)]);
            let inside = p.call(Function::And, &[is_before, is_near]);
            let inside = p.call(Function::And, &[inside, is_there]);
            p.call(Function::Select, &[inside, float(0.0), float(f64::NEG_INFINITY)])
        })?;
        Ok([read, mask])
    }
}
