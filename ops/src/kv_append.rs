//! The writing of new rows of keys or values into a cache.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{DType, Op, TensorDesc, Tolerance, Values};

/// Rows `[batch, kv_heads, len, head_dim]` become rows `start`, `start + 1`, … of each head of a cache
/// `[batch, kv_heads, capacity, head_dim]`; the others come from the cache as it was. Rows that would lie behind its end
/// are left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvAppend {
    /// Number of sequences.
    #[serde(default = "one")]
    pub batch: u64,
    /// Key-value heads.
    pub kv_heads: u64,
    /// New rows of a head.
    pub len: Size,
    /// Rows of a head in the cache.
    pub capacity: u64,
    /// Elements of a row.
    pub head_dim: u64,
    /// Type of the new rows.
    #[serde(default = "f32")]
    pub rows: DType,
    /// Type of the cache: that of the rows, or `f16` for rows of `f32`.
    #[serde(default = "f32")]
    pub cache: DType,
    /// Where the first new row goes.
    #[serde(default)]
    pub start: u64,
    /// Whether a tensor `[batch]` of `i32` says where, for each sequence.
    #[serde(default)]
    pub starts: bool,
    /// Whether new rows are `[batch, len, kv_heads, head_dim]`, as projections make them.
    #[serde(default)]
    pub seq_first: bool,
    /// Whether the output is the cache itself, of which the new rows are written and the others left as they are (the reference
    /// has zeros there). Without, the cache is an input and the output another buffer.
    #[serde(default)]
    pub in_place: bool,
}

fn one() -> u64 {
    1
}

fn f32() -> DType {
    DType::F32
}

impl KvAppend {
    /// One sequence's new rows of a type, at the beginning of another buffer.
    pub fn new(kv_heads: u64, len: impl Into<Size>, capacity: u64, head_dim: u64, dtype: DType) -> Self {
        KvAppend {
            batch: 1,
            kv_heads,
            len: len.into(),
            capacity,
            head_dim,
            rows: dtype,
            cache: dtype,
            start: 0,
            starts: false,
            seq_first: false,
            in_place: false,
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl KvAppend {
    fn samples_of(rows: DType, cache: DType) -> Vec<KvAppend> {
        let of = |kv_heads, len, capacity, head_dim| {
            let op = KvAppend::new(kv_heads, len, capacity, head_dim, rows);
            KvAppend { cache, ..op }
        };
        vec![
            KvAppend { start: 5, ..of(2, 1, 9, 32) },
            KvAppend { start: 2, seq_first: true, ..of(3, 4, 6, 5) },
            KvAppend { batch: 3, starts: true, ..of(2, 3, 10, 8) },
            KvAppend { batch: 2, in_place: true, ..of(2, 7, 7, 6) },
            KvAppend { batch: 2, in_place: true, seq_first: true, ..of(3, 5, 5, 3) },
            KvAppend { batch: 2, in_place: true, start: 3, ..of(2, 2, 9, 8) },
            KvAppend { batch: 2, in_place: true, start: 2, seq_first: true, ..of(3, 3, 7, 5) },
            KvAppend { batch: 3, in_place: true, starts: true, ..of(2, 3, 10, 8) },
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
}

impl Op for KvAppend {
    fn check(&self) -> Result<(), String> {
        let rounded = self.rows == DType::F32 && self.cache == DType::F16;
        if !self.rows.is_small_float() || (self.rows != self.cache && !rounded) {
            return Err(format!("rows of {} do not go into a cache of {}", self.rows, self.cache));
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
        let rows = [self.batch.into(), dims[0], dims[1], self.head_dim.into()];
        let rows = TensorDesc::new("rows", self.rows, rows);
        let cache = [self.batch, self.kv_heads, self.capacity, self.head_dim];
        let cache = (!self.in_place).then(|| TensorDesc::new("cache", self.cache, cache));
        let starts = self.starts.then(|| TensorDesc::new("starts", DType::I32, [self.batch]));
        [rows].into_iter().chain(cache).chain(starts).collect()
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        let dims = [self.batch, self.kv_heads, self.capacity, self.head_dim];
        vec![TensorDesc::new("cache", self.cache, dims)]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.rows, &mut self.cache]
    }

    fn signature(&self) -> String {
        format!("{}_{}", self.rows, self.cache)
    }

    fn flops(&self) -> f64 {
        0.0
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.reference_over(inputs, &[Values::Float(vec![0.0; self.outputs()[0].elements().exact_usize()])])
    }

    fn updates(&self, _output: usize) -> bool {
        self.in_place
    }

    fn reference_over(&self, inputs: &[Values], before: &[Values]) -> Vec<Values> {
        let (dim, len) = (self.head_dim, self.len.exact());
        let mut cache = if self.in_place { &before[0] } else { &inputs[1] }.floats();
        for (b, h) in (0..self.batch).flat_map(|b| (0..self.kv_heads).map(move |h| (b, h))) {
            let start =
                if self.starts { inputs[self.starts_index()].int(b as usize) } else { self.start as i64 };
            let Ok(start) = u64::try_from(start) else { continue };
            for i in (0..len).filter(|i| start + i < self.capacity) {
                let from = if self.seq_first {
                    (b * len + i) * self.kv_heads + h
                } else {
                    (b * self.kv_heads + h) * len + i
                };
                let to = (b * self.kv_heads + h) * self.capacity + start + i;
                for e in 0..dim {
                    let value = inputs[0].float((from * dim + e) as usize);
                    cache[(to * dim + e) as usize] = self.cache.round(value);
                }
            }
        }
        vec![Values::Float(cache)]
    }

    /// The same values, or the nearest of the cache's type.
    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        if self.rows == self.cache {
            return Tolerance::EXACT;
        }
        Tolerance { absolute: self.cache.min_normal(), relative: self.cache.epsilon() }
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
        types.into_iter().flat_map(|(rows, cache)| KvAppend::samples_of(rows, cache)).collect()
    }

    /// Starts in the cache, near its end too, and one that is none.
    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        if !self.starts || index != self.starts_index() {
            return None;
        }
        let mut start = |b| if b == 1 { -1 } else { (random() % self.capacity.max(1)) as i64 };
        Some(Values::Int((0..self.batch).map(&mut start).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_where_they_belong() {
        let op = KvAppend { start: 1, ..KvAppend::new(2, 1, 2, 1, DType::F32) };
        let inputs = [Values::Float(vec![8.0, 9.0]), Values::Float(vec![1.0, 2.0, 3.0, 4.0])];
        assert_eq!(op.reference(&inputs), [Values::Float(vec![1.0, 8.0, 3.0, 9.0])]);
        assert!(KvAppend { start: 2, ..op.clone() }.check().unwrap_err().contains("do not fit 2"));
        let starts = KvAppend { starts: true, ..op };
        let [rows, cache] = inputs;
        assert_eq!(starts.reference(&[rows, cache.clone(), Values::Int(vec![7])]), [cache]);
    }
}
