//! Scaled dot-product attention: `out = softmax(scale * q * kᵀ + mask) * v` for each head.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{DType, Exact, Op, TensorDesc, Tolerance, Values, blocks::BlockFormat, cached, rows::Rows};

/// What is added to the scores before the softmax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mask {
    /// Nothing.
    #[default]
    None,
    /// A tensor `[q_len, kv_len]` for all heads.
    Shared,
    /// A tensor `[batch, q_len, kv_len]`, one for each element of the batch ([`Attention::mask_batches`]).
    Batch,
    /// A tensor `[batch, heads, q_len, kv_len]`, too.
    Full,
}

/// Attention of `q` `[batch, heads, q_len, head_dim]` to `k` and `v` `[batch, kv_heads, capacity, head_dim]`, of which the
/// first `kv_len` rows of each head count, or as many as a tensor says, and no others are read; the result has the shape of `q`. Neighbouring query
/// heads share a key-value head (grouped-query attention). Sums are `f32`.
///
/// Order of what happens to a score, as in ONNX's Attention: scale, softcap, mask. A query that may attend to nothing
/// (all scores are -infinity, or there are no keys) gives zeros. Values must be finite also where their weight is zero;
/// queries, keys and masks may be anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attention {
    /// Number of sequences.
    #[serde(default = "one")]
    pub batch: Size,
    /// Query heads.
    pub heads: u64,
    /// Key-value heads; a divisor of `heads`. Absent: as many as query heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u64>,
    /// Queries of a head.
    pub q_len: Size,
    /// Keys of a head.
    pub kv_len: Size,
    /// Elements of a query, a key and a value; at most 256.
    pub head_dim: u64,
    /// Rows that the tensors of keys and values have for each head. Absent: `kv_len`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Size>,
    /// Type of all tensors.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Type of the result, if another: `f32`, for up to 8 queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<DType>,
    /// Whether query i attends to keys up to `kv_len - q_len + i` only: the queries are the last of the sequence.
    #[serde(default)]
    pub causal: bool,
    /// What is added to the scores.
    #[serde(default)]
    pub mask: Mask,
    /// How many elements of the batch the masks of `Batch` and `Full` are for: those behind have the same again, as windows of the next
    /// image have. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_batches: Option<Size>,
    /// Whether a tensor `[batch]` of `i32` says how many keys of each sequence count: `kv_len` at most. Goes with no mask.
    #[serde(default)]
    pub lengths: bool,
    /// Factor of the scores. Absent: `1 / sqrt(head_dim)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Exact<f64>>,
    /// Scaled scores become `softcap * tanh(score / softcap)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softcap: Option<Exact<f64>>,
    /// Where the rows of `q` lie, if not one behind the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q_rows: Option<Box<Rows>>,
    /// The same for `k`, whose rows have no capacity then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k_rows: Option<Box<Rows>>,
    /// The same for `v`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v_rows: Option<Box<Rows>>,
    /// Blocks that the keys are in, whose rows are words then ([`crate::cached`]); absent: they have the type of the queries, as
    /// the values. Queries are `f16` where either is in blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<BlockFormat>,
    /// The same for the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<BlockFormat>,
    /// The same for the result: another order of the same rows, such as that of tokens with all of their heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_rows: Option<Box<Rows>>,
}

fn one() -> Size {
    Size::constant(1)
}

fn f32() -> DType {
    DType::F32
}

impl Attention {
    /// Plain attention of one sequence.
    pub fn new(
        heads: u64,
        q_len: impl Into<Size>,
        kv_len: impl Into<Size>,
        head_dim: u64,
        dtype: DType,
    ) -> Self {
        Attention {
            batch: one(),
            heads,
            kv_heads: None,
            q_len: q_len.into(),
            kv_len: kv_len.into(),
            head_dim,
            capacity: None,
            dtype,
            out: None,
            causal: false,
            mask: Mask::None,
            mask_batches: None,
            lengths: false,
            scale: None,
            softcap: None,
            q_rows: None,
            k_rows: None,
            v_rows: None,
            keys: None,
            values: None,
            out_rows: None,
        }
    }

    /// Most queries whose results can have a type of their own.
    pub const FEW_QUERIES: u64 = 8;

    /// Type of the result.
    pub fn out(&self) -> DType {
        self.out.unwrap_or(self.dtype)
    }

    /// Shape of the queries and of the result.
    pub fn query_shape(&self) -> [Size; 4] {
        [self.batch, self.heads.into(), self.q_len, self.head_dim.into()]
    }

    /// Shape of the keys and values that count.
    pub fn key_shape(&self) -> [Size; 4] {
        [self.batch, self.kv_heads().into(), self.kv_len, self.head_dim.into()]
    }

    /// Whether keys or values are in blocks.
    pub fn has_blocks(&self) -> bool {
        self.keys.is_some() || self.values.is_some()
    }

    /// Type and length of the rows of keys and values.
    pub fn held_rows(&self) -> [(DType, u64); 2] {
        [self.keys, self.values].map(|format| cached::row(format, self.dtype, self.head_dim))
    }

    /// Where the rows of queries, keys and values lie: in elements, of blocks in words.
    pub fn rows(&self) -> [Rows; 3] {
        let queries = Rows::dense(self.batch, self.heads, self.q_len, self.head_dim);
        let [keys, values] =
            self.held_rows().map(|(_, row)| Rows::dense(self.batch, self.kv_heads(), self.capacity(), row));
        [(&self.q_rows, queries), (&self.k_rows, keys), (&self.v_rows, values)]
            .map(|(own, dense)| own.as_deref().copied().unwrap_or(dense))
    }

    /// Where the rows of the result lie.
    pub fn result_rows(&self) -> Rows {
        let dense = Rows::dense(self.batch, self.heads, self.q_len, self.head_dim);
        self.out_rows.as_deref().copied().unwrap_or(dense)
    }

    /// Key-value heads.
    pub fn kv_heads(&self) -> u64 {
        self.kv_heads.unwrap_or(self.heads)
    }

    /// Rows of each head in the tensors of keys and values.
    pub fn capacity(&self) -> Size {
        self.capacity.unwrap_or(self.kv_len)
    }

    /// Factor of the scores.
    pub fn scale(&self) -> f64 {
        self.scale.map_or_else(|| 1.0 / (self.head_dim.max(1) as f64).sqrt(), |scale| scale.0)
    }

    /// Keys that query `i` of a head attends to, of so many that count: those before this one.
    fn end(&self, keys: u64, i: u64) -> u64 {
        if self.causal { (keys + i + 1).saturating_sub(self.q_len.value()).min(keys) } else { keys }
    }

    /// Keys of a sequence that count. A length that is none is the longest.
    fn keys(&self, inputs: &[Values], b: u64) -> u64 {
        let all = self.kv_len.exact();
        if !self.lengths {
            return all;
        }
        u64::try_from(inputs[3].int(b as usize)).map_or(all, |keys| keys.min(all))
    }

    fn mask_dims(&self) -> Option<Vec<Size>> {
        match self.mask {
            Mask::None => None,
            Mask::Shared => Some(vec![self.q_len, self.kv_len]),
            Mask::Batch => Some(vec![self.mask_batches(), self.q_len, self.kv_len]),
            Mask::Full => Some(vec![self.mask_batches(), self.heads.into(), self.q_len, self.kv_len]),
        }
    }

    /// After how many elements of the batch masks repeat.
    pub fn mask_batches(&self) -> Size {
        self.mask_batches.unwrap_or(self.batch)
    }

    /// First element of the mask of a head, of an element of the batch before masks repeat.
    pub fn mask_start(&self, b: u64, h: u64) -> Size {
        let matrix = self.q_len * self.kv_len;
        match self.mask {
            Mask::None | Mask::Shared => Size::constant(0),
            Mask::Batch => matrix * b,
            Mask::Full => matrix * (b * self.heads + h),
        }
    }
}

impl Attention {
    /// The same of keys and values that are not in blocks.
    fn plain(&self, inputs: &[Values]) -> (Attention, Vec<Values>) {
        let mut inputs = inputs.to_vec();
        for (place, format) in [(1, self.keys), (2, self.values)] {
            if let Some(format) = format {
                inputs[place] = cached::decoded(format, &inputs[place], self.head_dim);
            }
        }
        (Attention { keys: None, values: None, ..self.clone() }, inputs)
    }

    fn check_mask(&self) -> Result<(), String> {
        if self.lengths && self.mask != Mask::None {
            return Err("lengths go with no mask".into());
        }
        let Some(batches) = self.mask_batches else { return Ok(()) };
        if !matches!(self.mask, Mask::Batch | Mask::Full) {
            return Err("mask_batches goes with the masks batch and full".into());
        }
        if batches == 0 || !self.batch.is_multiple_of(batches) {
            return Err(format!("a batch of {} is not evenly {batches} masks", self.batch));
        }
        Ok(())
    }

    /// What blocks ask for.
    fn check_blocks(&self) -> Result<(), String> {
        if !self.has_blocks() {
            return Ok(());
        }
        if self.dtype != DType::F16 {
            return Err(format!("keys and values in blocks go with queries of f16, not {}", self.dtype));
        }
        for (format, rows) in [(self.keys, &self.k_rows), (self.values, &self.v_rows)] {
            let Some(format) = format else { continue };
            cached::row_words(format, self.head_dim)?;
            if rows.is_some() {
                return Err("rows in blocks lie one behind the other".into());
            }
        }
        Ok(())
    }

    /// The scores of a query, before the softmax.
    fn scores(&self, inputs: &[Values], b: u64, h: u64, i: u64) -> Vec<f64> {
        let (d, kv_len) = (self.head_dim, self.kv_len.exact());
        let kv = h / (self.heads / self.kv_heads());
        let [q_rows, k_rows, _] = self.rows();
        let query = q_rows.at(b, h, i);
        let score = |j: u64| {
            let key = k_rows.at(b, kv, j);
            let terms =
                (0..d).map(|e| inputs[0].float((query + e) as usize) * inputs[1].float((key + e) as usize));
            let mut score = terms.sum::<f64>() * self.scale();
            if let Some(Exact(cap)) = self.softcap {
                score = cap * (score / cap).tanh();
            }
            if self.mask != Mask::None {
                let mask = self.mask_start(b % self.mask_batches().exact(), h).exact();
                score += inputs[3].float((mask + i * kv_len + j) as usize);
            }
            score
        };
        (0..self.end(self.keys(inputs, b), i)).map(score).collect()
    }

    /// One row of the result.
    fn row(&self, inputs: &[Values], b: u64, h: u64, i: u64) -> Vec<f64> {
        let scores = self.scores(inputs, b, h, i);
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // All weights are zero then, or NaN.
        let largest = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let kv = h / (self.heads / self.kv_heads());
        let [.., v_rows] = self.rows();
        let value = |j: usize, e: u64| inputs[2].float((v_rows.at(b, kv, j as u64) + e) as usize);
        let element = |e| {
            let total: f64 = weights.iter().enumerate().map(|(j, weight)| weight * value(j, e)).sum();
            if sum == 0.0 { 0.0 } else { self.out().round(total / sum) }
        };
        (0..self.head_dim).map(element).collect()
    }
}

impl Op for Attention {
    fn check(&self) -> Result<(), String> {
        let kv_heads = self.kv_heads();
        let few = self.q_len.is_constant() && self.q_len.exact() <= Attention::FEW_QUERIES;
        if self.out() != self.dtype && !(self.out() == DType::F32 && few) {
            return Err(format!(
                "attention of {} queries of {} does not make {}",
                self.q_len,
                self.dtype,
                self.out()
            ));
        }
        if !self.dtype.is_small_float() {
            return Err(format!("attention of {} is not defined; there are f32, f16, bf16", self.dtype));
        }
        if !(1..=256).contains(&self.head_dim) {
            return Err(format!("a head_dim of {} is not within 1 to 256", self.head_dim));
        }
        if kv_heads == 0 || !self.heads.is_multiple_of(kv_heads) {
            return Err(format!("{} heads cannot share {kv_heads} key-value heads evenly", self.heads));
        }
        self.check_mask()?;
        if self.capacity() < self.kv_len {
            return Err(format!("{} keys do not fit a capacity of {}", self.kv_len, self.capacity()));
        }
        self.check_blocks()?;
        let [q_rows, k_rows, v_rows] = self.rows();
        let queries = self.query_shape();
        let [keys, values] = self.held_rows().map(|(_, row)| {
            let [batch, heads, rows, _] = self.key_shape();
            [batch, heads, rows, row.into()]
        });
        for (name, rows, shape) in [
            ("q", q_rows, queries),
            ("k", k_rows, keys),
            ("v", v_rows, values),
            ("out", self.result_rows(), queries),
        ] {
            rows.check(shape).map_err(|reason| format!("rows of {name}: {reason}"))?;
        }
        if self.out_rows.as_ref().is_some_and(|rows| !rows.is_order(queries)) {
            return Err("rows of the result are an order of all of its rows".into());
        }
        let finite =
            self.scale().is_finite() && self.softcap.is_none_or(|Exact(cap)| cap.is_finite() && cap > 0.0);
        if finite { Ok(()) } else { Err("scale is finite, and softcap positive and finite".into()) }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let [(k_type, keys), (v_type, values)] = self.held_rows();
        let cache = |row: u64| [self.batch, self.kv_heads().into(), self.capacity(), row.into()];
        let mask = self.mask_dims().map(|dims| TensorDesc::new("mask", self.dtype, dims));
        let tensors = [
            ("q", self.dtype, self.query_shape(), &self.q_rows),
            ("k", k_type, cache(keys), &self.k_rows),
            ("v", v_type, cache(values), &self.v_rows),
        ];
        let [q, k, v] = tensors.map(|(name, dtype, dims, rows)| match rows {
            Some(rows) => TensorDesc::new(name, dtype, [rows.source]),
            None => TensorDesc::new(name, dtype, dims),
        });
        let lengths = self.lengths.then(|| TensorDesc::new("lengths", DType::I32, [self.batch]));
        [q, k, v].into_iter().chain(mask).chain(lengths).collect()
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.out(), self.query_shape())]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        [&mut self.dtype].into_iter().chain(&mut self.out).collect()
    }

    fn signature(&self) -> String {
        let held = if self.has_blocks() { "_blocks" } else { "" };
        if self.out() == self.dtype {
            format!("{}{held}", self.dtype)
        } else {
            format!("{}{held}_{}", self.dtype, self.out())
        }
    }

    fn flops(&self) -> f64 {
        let pairs: f64 = if self.causal {
            (0..self.q_len.value()).map(|i| self.end(self.kv_len.value(), i) as f64).sum()
        } else {
            self.q_len.as_f64() * self.kv_len.as_f64()
        };
        4.0 * self.batch.as_f64() * self.heads as f64 * pairs * self.head_dim as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        if self.has_blocks() {
            let (plain, inputs) = self.plain(inputs);
            return plain.reference(&inputs);
        }
        let heads = (0..self.batch.exact()).flat_map(|b| (0..self.heads).map(move |h| (b, h)));
        let rows = heads.flat_map(|(b, h)| (0..self.q_len.exact()).map(move |i| (b, h, i)));
        let (order, mut out) = (self.result_rows(), vec![0.0; self.outputs()[0].elements().exact_usize()]);
        for (b, h, i) in rows {
            let at = order.at(b, h, i) as usize;
            out[at..at + self.head_dim as usize].copy_from_slice(&self.row(inputs, b, h, i));
        }
        vec![Values::Float(out)]
    }

    /// When scores are off by at most s, weights are off by a factor of at most e^(2s) (numerator and denominator), so an
    /// average of values up to m is off by at most (e^(2s) - 1) * m. Scores are off by their sum's error (see
    /// [`Tolerance::of_sum`]), some roundings of themselves, and the error of `exp`, which Vulkan allows 3 + 2|x| units in
    /// the last place (Precision and Operation of SPIR-V Instructions); weights below e^-88 are zero. Kernels may round
    /// weights to the type of the tensors before they multiply. Words of blocks say nothing of their elements, which are taken
    /// for at most 1, as those of samples are.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let added = if self.mask == Mask::None { None } else { magnitudes.get(3) };
        let key = if self.keys.is_some() { 1.0 } else { magnitudes[1] };
        let value = if self.values.is_some() { 1.0 } else { magnitudes[2] };
        let mask = added.copied().unwrap_or(0.0);
        let product = magnitudes[0] * key * self.scale().abs();
        let sum = Tolerance::of_sum(self.head_dim, product, DType::F32, DType::F32).absolute;
        let cap = self.softcap.map_or(f64::INFINITY, |cap| cap.0);
        let largest = (product * self.head_dim as f64).min(cap) + mask;
        let roundings = 4.0 * largest + self.softcap.map_or(0.0, |cap| 8.0 * cap.0);
        let exponential = 3.0 + 2.0 * (2.0 * largest).min(88.0);
        let scores = sum + (roundings + exponential) * DType::F32.epsilon();
        let average = Tolerance::of_sum(self.kv_len, value, DType::F32, self.dtype);
        let weights = (2.0 * scores).exp_m1() + self.dtype.epsilon();
        Tolerance { absolute: average.absolute + weights * value, relative: average.relative }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_give_the_average_and_the_mask_leaves_keys_out() {
        let op = Attention::new(1, 1, 2, 2, DType::F32);
        let q = Values::Float(vec![1.0, 0.0]);
        let k = Values::Float(vec![2.0, 5.0, 2.0, -3.0]);
        let v = Values::Float(vec![1.0, 2.0, 3.0, 6.0]);
        assert_eq!(op.reference(&[q.clone(), k.clone(), v.clone()]), [Values::Float(vec![2.0, 4.0])]);
        let masked = Attention { mask: Mask::Shared, ..op };
        let mask = Values::Float(vec![f64::NEG_INFINITY, 0.5]);
        assert_eq!(masked.reference(&[q, k, v, mask]), [Values::Float(vec![3.0, 6.0])]);
    }

    #[test]
    fn causal_queries_are_the_last_of_the_sequence() {
        let op = Attention { causal: true, ..Attention::new(1, 3, 2, 1, DType::F32) };
        assert_eq!((op.end(2, 0), op.end(2, 1), op.end(2, 2)), (0, 1, 2));
        let ones = Values::Float(vec![0.0; 3]);
        let out = op.reference(&[ones.clone(), ones, Values::Float(vec![4.0, 8.0])]);
        assert_eq!(out, [Values::Float(vec![0.0, 4.0, 6.0])]);
        assert_eq!(op.flops(), 4.0 * 3.0);
    }

    #[test]
    fn heads_share_and_caches_have_rows_to_spare() {
        let op = Attention {
            kv_heads: Some(1),
            capacity: Some(3.into()),
            ..Attention::new(2, 1, 1, 1, DType::F32)
        };
        let q = Values::Float(vec![1.0, 2.0]);
        let cache = Values::Float(vec![7.0, f64::NAN, f64::NAN]);
        assert_eq!(op.reference(&[q, cache.clone(), cache]), [Values::Float(vec![7.0, 7.0])]);
    }

    #[test]
    fn what_does_not_go_together_is_told() {
        let op = Attention::new(6, 4, 4, 32, DType::F32);
        let error = |op: Attention| op.check().unwrap_err();
        assert!(error(Attention { kv_heads: Some(4), ..op.clone() }).contains("share 4"));
        assert!(error(Attention { capacity: Some(3.into()), ..op.clone() }).contains("capacity of 3"));
        assert!(error(Attention { head_dim: 300, ..op.clone() }).contains("300"));
        assert!(error(Attention { dtype: DType::I8, ..op.clone() }).contains("i8"));
        assert!(error(Attention { softcap: Some(Exact(0.0)), ..op }).contains("softcap"));
    }
}
