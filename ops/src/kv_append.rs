//! The writing of new rows of keys or values into a cache.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    blocks::BlockFormat,
    cached,
    rotary::{Positions, Rotary},
};

/// Rows `[batch, kv_heads, len, head_dim]` become rows `start`, `start + 1`, … of each head of a cache
/// `[batch, kv_heads, capacity, head_dim]`; the others come from the cache as it was. Rows that would lie behind its end
/// are left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvAppend {
    /// Number of sequences.
    #[serde(default = "one")]
    pub batch: Size,
    /// Key-value heads.
    pub kv_heads: u64,
    /// New rows of a head.
    pub len: Size,
    /// Rows of a head in the cache.
    pub capacity: Size,
    /// Elements of a row.
    pub head_dim: u64,
    /// Type of the new rows.
    #[serde(default = "f32")]
    pub rows: DType,
    /// Type of the cache: that of the rows, or `f16` for rows of `f32`; `u32` for blocks.
    #[serde(default = "f32")]
    pub cache: DType,
    /// Blocks of the cache, whose rows are words then ([`crate::cached`]); rows of `f32` become these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<BlockFormat>,
    /// Where the first new row goes.
    #[serde(default)]
    pub start: Size,
    /// Whether a tensor `[batch]` of `i32` says where, for each sequence.
    #[serde(default)]
    pub starts: bool,
    /// Whether new rows are `[batch, len, kv_heads, head_dim]`, as projections make them.
    #[serde(default)]
    pub seq_first: bool,
    /// Rotary embedding of the new rows before they are written. Its positions, `[batch, len]` of `i64`, and its tables of cosines
    /// and sines are the last inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turned: Option<Turns>,
    /// Whether the output is the cache itself, of which the new rows are written and the others left as they are (the reference
    /// has zeros there). Without, the cache is an input and the output another buffer.
    #[serde(default)]
    pub in_place: bool,
}

/// Rotary embedding by tables. As a list: the elements of a row that are turned, 1 for pairs of neighbours and else 0, the rows of
/// the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Size>", into = "Vec<Size>")]
pub struct Turns {
    /// Elements of a row that are turned, the first.
    pub rotary_dim: u64,
    /// Whether pairs are neighbours.
    pub interleaved: bool,
    /// Rows of the tables.
    pub tables: Size,
}

impl Turns {
    /// Those of an embedding with tensors of positions and tables.
    pub fn of(rotary: &Rotary) -> Option<Turns> {
        let tables =
            rotary.tables.filter(|_| rotary.positions == Positions::I64 && rotary.out() == rotary.dtype)?;
        Some(Turns { rotary_dim: 2 * rotary.pairs(), interleaved: rotary.interleaved, tables })
    }
}

impl From<Turns> for Vec<Size> {
    fn from(turns: Turns) -> Self {
        vec![turns.rotary_dim.into(), u64::from(turns.interleaved).into(), turns.tables]
    }
}

impl TryFrom<Vec<Size>> for Turns {
    type Error = String;

    fn try_from(list: Vec<Size>) -> Result<Self, String> {
        let flag = |size: Size| if size == 0 { Some(false) } else { (size == 1).then_some(true) };
        match list[..] {
            [dim, pairs, tables] if dim.is_constant() && dim >= 0 => match flag(pairs) {
                Some(interleaved) => Ok(Turns { rotary_dim: dim.exact(), interleaved, tables }),
                None => Err(format!("{pairs} is neither 0 nor 1, for pairs of neighbours")),
            },
            _ => Err(format!("{} numbers; there are three: rotary_dim, 0 or 1, rows of tables", list.len())),
        }
    }
}

fn one() -> Size {
    1.into()
}

fn f32() -> DType {
    DType::F32
}

impl KvAppend {
    /// One sequence's new rows of a type, at the beginning of another buffer.
    pub fn new(
        kv_heads: u64,
        len: impl Into<Size>,
        capacity: impl Into<Size>,
        head_dim: u64,
        dtype: DType,
    ) -> Self {
        KvAppend {
            batch: 1.into(),
            kv_heads,
            len: len.into(),
            capacity: capacity.into(),
            head_dim,
            rows: dtype,
            cache: dtype,
            blocks: None,
            start: 0.into(),
            starts: false,
            seq_first: false,
            turned: None,
            in_place: false,
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl KvAppend {
    /// Those of a cache in blocks: rows of whole blocks, an odd number of them too.
    fn samples_in_blocks(format: BlockFormat) -> Vec<KvAppend> {
        let of = |kv_heads: u64, len: u64, capacity: u64, head_dim: u64| {
            let op = KvAppend::new(kv_heads, len, capacity, head_dim, DType::F32);
            KvAppend { cache: DType::U32, blocks: Some(format), ..op }
        };
        vec![
            KvAppend { start: 5.into(), ..of(2, 1, 9, 32) },
            KvAppend { start: 2.into(), seq_first: true, ..of(3, 4, 6, 96) },
            KvAppend { batch: 3.into(), starts: true, ..of(2, 3, 10, 64) },
            KvAppend { batch: 2.into(), in_place: true, start: 3.into(), ..of(2, 2, 9, 160) },
            KvAppend {
                batch: 2.into(),
                in_place: true,
                start: 2.into(),
                seq_first: true,
                ..of(3, 3, 7, 256)
            },
            KvAppend { batch: 3.into(), in_place: true, starts: true, ..of(2, 3, 10, 128) },
            of(2, 0, 4, 64),
            of(2, 0, 0, 32),
        ]
    }

    fn samples_of(rows: DType, cache: DType) -> Vec<KvAppend> {
        let of = |kv_heads: u64, len: u64, capacity: u64, head_dim: u64| {
            let op = KvAppend::new(kv_heads, len, capacity, head_dim, rows);
            KvAppend { cache, ..op }
        };
        let turned = |op: KvAppend, interleaved: bool| {
            let rotary_dim = op.head_dim / 4 * 2;
            KvAppend { turned: Some(Turns { rotary_dim, interleaved, tables: 20.into() }), ..op }
        };
        vec![
            turned(KvAppend { batch: 2.into(), in_place: true, starts: true, ..of(2, 1, 9, 32) }, false),
            turned(KvAppend { in_place: true, start: 3.into(), ..of(3, 4, 9, 10) }, true),
            turned(KvAppend { batch: 2.into(), starts: true, ..of(2, 3, 7, 8) }, true),
            KvAppend { start: 5.into(), ..of(2, 1, 9, 32) },
            KvAppend { start: 2.into(), seq_first: true, ..of(3, 4, 6, 5) },
            KvAppend { batch: 3.into(), starts: true, ..of(2, 3, 10, 8) },
            KvAppend { batch: 2.into(), in_place: true, ..of(2, 7, 7, 6) },
            KvAppend { batch: 2.into(), in_place: true, seq_first: true, ..of(3, 5, 5, 3) },
            KvAppend { batch: 2.into(), in_place: true, start: 3.into(), ..of(2, 2, 9, 8) },
            KvAppend { batch: 2.into(), in_place: true, start: 2.into(), seq_first: true, ..of(3, 3, 7, 5) },
            KvAppend { batch: 3.into(), in_place: true, starts: true, ..of(2, 3, 10, 8) },
            of(2, 0, 4, 4),
            of(2, 0, 0, 4),
        ]
    }
}

impl KvAppend {
    /// Where the tensor of starts is among the inputs.
    pub fn starts_index(&self) -> usize {
        if self.in_place { 1 } else { 2 }
    }

    /// The first of the inputs of rotary embedding.
    pub fn turns_index(&self) -> usize {
        self.starts_index() + usize::from(self.starts)
    }

    /// What turns the new rows.
    pub fn rotary(&self) -> Option<Rotary> {
        let Turns { rotary_dim, interleaved, tables } = self.turned?;
        Some(Rotary {
            batch: self.batch,
            rotary_dim: Some(rotary_dim),
            interleaved,
            positions: Positions::I64,
            tables: Some(tables),
            ..Rotary::new(self.kv_heads, self.len, self.head_dim, self.rows)
        })
    }

    /// Type and length of the rows of the cache.
    pub fn cache_row(&self) -> (DType, u64) {
        cached::row(self.blocks, self.cache, self.head_dim)
    }

    /// A row of the cache.
    fn held(&self, row: &[f64]) -> Vec<f64> {
        match self.blocks {
            None => row.iter().map(|x| self.cache.round(*x)).collect(),
            Some(format) => cached::encode(format, row).into_iter().map(f64::from).collect(),
        }
    }

    /// The new rows as they are written.
    fn new_rows(&self, inputs: &[Values]) -> Vec<f64> {
        let Some(own) = self.rotary() else { return inputs[0].floats() };
        let of = [&inputs[..1], &inputs[self.turns_index()..]].concat();
        own.reference(&of).first().map(Values::floats).unwrap_or_default()
    }
}

impl Op for KvAppend {
    fn check(&self) -> Result<(), String> {
        if let Some(format) = self.blocks {
            cached::row_words(format, self.head_dim)?;
            if self.turned.is_some() {
                return Err("rows that become blocks are not turned".into());
            }
        }
        let rounded = self.rows == DType::F32
            && self.cache == if self.blocks.is_some() { DType::U32 } else { DType::F16 };
        if !self.rows.is_small_float() || (self.rows != self.cache && !rounded) {
            return Err(format!("rows of {} do not go into a cache of {}", self.rows, self.cache));
        }
        if let Some(own) = self.rotary() {
            own.check()?;
            if self.seq_first {
                return Err("rows that are turned lie head after head".into());
            }
        }
        if self.head_dim == 0 {
            return Err("rows have at least one element".into());
        }
        if !self.starts && self.len + self.start > self.capacity {
            return Err(format!("{} rows from {} on do not fit {}", self.len, self.start, self.capacity));
        }
        Ok(())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let heads = Size::from(self.kv_heads);
        let dims = if self.seq_first { [self.len, heads] } else { [heads, self.len] };
        let rows = [self.batch, dims[0], dims[1], self.head_dim.into()];
        let rows = TensorDesc::new("rows", self.rows, rows);
        let cache = [self.batch, heads, self.capacity, self.cache_row().1.into()];
        let cache = (!self.in_place).then(|| TensorDesc::new("cache", self.cache, cache));
        let starts = self.starts.then(|| TensorDesc::new("starts", DType::I32, [self.batch]));
        let turns = self.rotary().into_iter().flat_map(|own| own.inputs().into_iter().skip(1));
        [rows].into_iter().chain(cache).chain(starts).chain(turns).collect()
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        let heads = Size::from(self.kv_heads);
        let dims = [self.batch, heads, self.capacity, self.cache_row().1.into()];
        vec![TensorDesc::new("cache", self.cache, dims)]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.rows, &mut self.cache]
    }

    fn signature(&self) -> String {
        let held = self.blocks.map_or_else(|| self.cache.to_string(), |format| format.to_string());
        format!("{}{}_{held}", if self.turned.is_some() { "turned_" } else { "" }, self.rows)
    }

    fn flops(&self) -> f64 {
        self.rotary().map_or(0.0, |own| own.flops())
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.reference_over(inputs, &[Values::Float(vec![0.0; self.outputs()[0].elements().exact_usize()])])
    }

    fn updates(&self, _output: usize) -> bool {
        self.in_place
    }

    fn reference_over(&self, inputs: &[Values], before: &[Values]) -> Vec<Values> {
        let (dim, [batch, len, capacity]) =
            (self.head_dim, [self.batch, self.len, self.capacity].map(Size::exact));
        let mut cache = if self.in_place { &before[0] } else { &inputs[1] }.floats();
        let rows = self.new_rows(inputs);
        for (b, h) in (0..batch).flat_map(|b| (0..self.kv_heads).map(move |h| (b, h))) {
            let start = if self.starts {
                inputs[self.starts_index()].int(b as usize)
            } else {
                self.start.exact_signed()
            };
            let Ok(start) = u64::try_from(start) else { continue };
            for i in (0..len).filter(|i| start + i < capacity) {
                let from = if self.seq_first {
                    (b * len + i) * self.kv_heads + h
                } else {
                    (b * self.kv_heads + h) * len + i
                };
                let to = (b * self.kv_heads + h) * capacity + start + i;
                let held = self.held(&rows[(from * dim) as usize..][..dim as usize]);
                cache[to as usize * held.len()..][..held.len()].copy_from_slice(&held);
            }
        }
        match self.blocks {
            Some(_) => vec![Values::Int(cache.into_iter().map(|word| word as i64).collect())],
            None => vec![Values::Float(cache)],
        }
    }

    /// The same values, or the nearest of the cache's type.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        // Codes are: samples have none that roundings decide.
        let rounded = match self.rows == self.cache || self.blocks.is_some() {
            true => Tolerance::EXACT,
            false => Tolerance { absolute: self.cache.min_normal(), relative: self.cache.epsilon() },
        };
        let Some(own) = self.rotary() else { return rounded };
        let of = [&magnitudes[..1], &magnitudes[self.turns_index()..]].concat();
        let turned = own.tolerance(&of);
        Tolerance {
            absolute: rounded.absolute + turned.absolute,
            relative: rounded.relative + turned.relative,
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for KvAppend {
    fn samples() -> Vec<KvAppend> {
        let types = [
            (DType::F32, DType::F32),
            (DType::F16, DType::F16),
            (DType::BF16, DType::BF16),
            (DType::F32, DType::F16),
        ];
        let plain = types.into_iter().flat_map(|(rows, cache)| KvAppend::samples_of(rows, cache));
        plain.chain(cached::FORMATS.into_iter().flat_map(KvAppend::samples_in_blocks)).collect()
    }

    /// Starts in the cache, near its end too, and one that is none.
    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        if let Some(own) = self.rotary().filter(|_| index >= self.turns_index()) {
            return own.sample_input(1 + index - self.turns_index(), random);
        }
        if let Some(format) = self.blocks.filter(|_| index == 0) {
            let count = self.inputs()[0].elements().exact();
            return Some(cached::sample_elements(format, count, random));
        }
        if !self.starts || index != self.starts_index() {
            return None;
        }
        let mut start = |b| if b == 1 { -1 } else { (random() % self.capacity.exact().max(1)) as i64 };
        Some(Values::Int((0..self.batch.exact()).map(&mut start).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_where_they_belong() {
        let op = KvAppend { start: 1.into(), ..KvAppend::new(2, 1, 2, 1, DType::F32) };
        let inputs = [Values::Float(vec![8.0, 9.0]), Values::Float(vec![1.0, 2.0, 3.0, 4.0])];
        assert_eq!(op.reference(&inputs), [Values::Float(vec![1.0, 8.0, 3.0, 9.0])]);
        assert!(KvAppend { start: 2.into(), ..op.clone() }.check().unwrap_err().contains("do not fit 2"));
        let starts = KvAppend { starts: true, ..op };
        let [rows, cache] = inputs;
        assert_eq!(starts.reference(&[rows, cache.clone(), Values::Int(vec![7])]), [cache]);
    }
}
