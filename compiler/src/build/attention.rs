//! Scaled dot-product attention and rotary position embedding.

use halite_ops::{
    DType, Operation, Values,
    attention::{Attention, Mask},
    blocks::BlockFormat,
    cached,
    expression::{Function, Operand, Scalar},
    pad::Border,
    reduce::ReduceKind,
    rotary::{Positions, Rotary},
};
use halite_sizes::Size;

use super::{Builder, Range, Result, types::FLOATS};
use crate::graph::TensorId;

/// Most elements of a head that kernels take.
pub const MOST_ATTENDED: u64 = 256;

/// What is done with the scores of attention.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scores {
    /// Their factor. Absent: one by the root of the size of a head.
    pub scale: Option<f64>,
    /// Scaled scores become `softcap * tanh(score / softcap)`.
    pub softcap: Option<f64>,
    /// Whether query i attends to keys up to `keys - queries + i` only.
    pub causal: bool,
    /// How many keys of each sequence count, integers `[batch]`; causal queries are the last of them. Absent: all.
    pub lengths: Option<TensorId>,
    /// Blocks that the keys are in, as [`Builder::append_in_blocks`] writes them; absent: plain elements.
    pub keys: Option<BlockFormat>,
    /// The same for the values.
    pub values: Option<BlockFormat>,
}

/// From here on a cap bends no score by more than `f32` has digits for, while `tanh` of what is divided by it would lose them all.
const NO_CAP: f64 = 1e6;

impl Scores {
    /// Whether keys or values are in blocks.
    fn has_blocks(&self) -> bool {
        self.keys.is_some() || self.values.is_some()
    }

    /// The cap, where it does anything.
    fn bend(&self) -> Option<f64> {
        self.softcap.filter(|cap| *cap < NO_CAP)
    }
}

/// The scores of attention in all their stages, `[batch, heads, queries, keys]`, as `f32`.
#[derive(Clone, Copy, Debug)]
pub struct Stages {
    /// Products of queries and keys, scaled.
    pub products: TensorId,
    /// The same after the softcap.
    pub capped: TensorId,
    /// The same with the mask.
    pub masked: TensorId,
    /// After the softmax; zeros for a query that may attend to nothing.
    pub weights: TensorId,
}

/// Sizes of attention.
struct Sizes {
    batch: Size,
    heads: u64,
    kv_heads: u64,
    queries: Size,
    keys: Size,
    dim: u64,
    value_dim: u64,
}

impl Builder {
    /// Attention of queries `[batch, heads, queries, dim]` to keys `[batch, kv heads, keys, dim]` and values `[batch, kv
    /// heads, keys, value dim]`; neighbouring heads share those of keys. `mask`, which is broadcast to `[batch, heads,
    /// queries, keys]`, is added to the scores. A query that may attend to nothing gives zeros. Where keys or values are in blocks,
    /// their heads have the size of the queries'.
    ///
    /// # Errors
    /// The sizes do not go together, or the elements are no floats; heads are too large for kernels, and in blocks.
    pub fn attention(
        &mut self,
        [q, k, v]: [TensorId; 3],
        mask: Option<TensorId>,
        scores: Scores,
    ) -> Result<TensorId> {
        let sizes = self.attention_sizes([q, k, v], scores)?;
        let dim = sizes.dim.max(sizes.value_dim);
        let by_kernel = (1..=MOST_ATTENDED).contains(&dim);
        self.check_blocks(&sizes, scores)?;
        let (mask, scores) = match by_kernel && mask.is_none() {
            true => (mask, scores),
            false => self.lengths_as_mask(mask, scores, [sizes.batch, sizes.queries, sizes.keys])?,
        };
        let element = self.element(q);
        let q = if scores.has_blocks() { self.cast(q, DType::F16)? } else { q };
        let q = self.in_type_of(q, FLOATS, "attention")?;
        let dtype = self.element(q).storage();
        let mut plain = |x: TensorId, format: Option<BlockFormat>| match format {
            None => self.cast(x, dtype),
            Some(_) => Ok(x),
        };
        let (k, v) = (plain(k, scores.keys)?, plain(v, scores.values)?);
        if !by_kernel {
            let stages = self.attention_scores([q, k], mask, scores)?;
            let made = self.attend(stages.weights, v)?;
            return self.cast(made, element);
        }
        let made = self.attention_by_kernel([q, k, v], mask, scores, &sizes)?;
        self.cast(made, element)
    }

    /// What blocks ask for.
    fn check_blocks(&self, sizes: &Sizes, scores: Scores) -> Result<()> {
        let (keys, values) = (sizes.dim, sizes.value_dim);
        if !scores.has_blocks() || (keys == values && (1..=MOST_ATTENDED).contains(&keys)) {
            return Ok(());
        }
        Err(self.unsupported(format!(
            "caches in blocks for heads of {keys} elements a key and {values} a value: there are kernels for keys and values of \
             one size, up to {MOST_ATTENDED}"
        )))
    }

    /// The same of queries, keys and values of the types that kernels take, by one of these.
    fn attention_by_kernel(
        &mut self,
        [q, k, v]: [TensorId; 3],
        mask: Option<TensorId>,
        scores: Scores,
        sizes: &Sizes,
    ) -> Result<TensorId> {
        let (dtype, dim) = (self.element(q).storage(), sizes.dim.max(sizes.value_dim));
        let (mask, kind, mask_batches) = self.attention_mask(mask, sizes, dtype)?;
        // Kernels have one size for keys and values: zeros fill the smaller.
        let wide = |b: &mut Self, x: TensorId, own: u64| {
            if own == dim {
                return Ok(x);
            }
            let behind = (dim - own) as i64;
            b.pad(x, &[(0, 0), (0, 0), (0, 0), (0, behind)], Border::Constant, 0.0)
        };
        let (q, k, v) =
            (wide(self, q, sizes.dim)?, wide(self, k, sizes.dim)?, wide(self, v, sizes.value_dim)?);
        let made = Attention {
            batch: sizes.batch,
            kv_heads: (sizes.kv_heads != sizes.heads).then_some(sizes.kv_heads),
            causal: scores.causal,
            mask: kind,
            mask_batches,
            lengths: scores.lengths.is_some(),
            scale: Some(scores.scale.unwrap_or_else(|| default_scale(sizes.dim)).into()),
            softcap: scores.bend().map(Into::into),
            keys: scores.keys,
            values: scores.values,
            ..Attention::new(sizes.heads, sizes.queries, sizes.keys, dim, dtype)
        };
        let dims = [sizes.batch, sizes.heads.into(), sizes.queries, dim.into()];
        let lengths = scores.lengths.map(|lengths| self.cast(lengths, DType::I32)).transpose()?;
        let inputs: Vec<_> = [q, k, v].into_iter().chain(mask).chain(lengths).collect();
        let made = self.kernel1(Operation::Attention(made), &inputs, dtype.into(), &dims)?;
        let part = Range::all(Size::from(sizes.value_dim));
        let ranges = [Range::all(dims[0]), Range::all(dims[1]), Range::all(dims[2]), part];
        self.slice(made, &ranges)
    }

    fn attention_sizes(&self, [q, k, v]: [TensorId; 3], scores: Scores) -> Result<Sizes> {
        let wrong = || self.invalid(format!("no attention of {}", self.describe(&[q, k, v])));
        let ([batch, heads, queries, dim], [b_k, kv_heads, keys, d_k], [b_v, h_v, l_v, value_dim]) =
            (self.four_dims(q)?, self.four_dims(k)?, self.four_dims(v)?);
        // Of rows in blocks there are words, as many as for a query's elements.
        let elements = |format: Option<BlockFormat>, row: Size| match format {
            Some(format) if cached::row_words(format, dim.exact()).is_ok_and(|words| row == words) => dim,
            _ => row,
        };
        let (d_k, value_dim) = (elements(scores.keys, d_k), elements(scores.values, value_dim));
        let pairs = [(batch, b_v), (kv_heads, h_v), (keys, l_v), (batch, b_k), (dim, d_k)];
        let same = pairs.into_iter().all(|(own, other)| own.agrees(other));
        let [heads, kv_heads, dim, value_dim] = [heads, kv_heads, dim, value_dim].map(Size::exact);
        if !same || kv_heads == 0 || heads % kv_heads != 0 {
            return Err(wrong());
        }
        Ok(Sizes { batch, heads, kv_heads, queries, keys, dim, value_dim })
    }

    pub(crate) fn four_dims(&self, id: TensorId) -> Result<[Size; 4]> {
        let dims = self.sizes(id);
        dims.try_into().map_err(|_| self.invalid(format!("{} has no four dimensions", self.describe(&[id]))))
    }

    /// A mask in a form that kernels take.
    fn attention_mask(
        &mut self,
        mask: Option<TensorId>,
        sizes: &Sizes,
        dtype: DType,
    ) -> Result<(Option<TensorId>, Mask, Option<Size>)> {
        let Some(mask) = mask else { return Ok((None, Mask::None, None)) };
        let own = self.sizes(mask).to_vec();
        let one = Size::constant(1);
        let lead = own.len().saturating_sub(2);
        let mut outer = vec![one; 2usize.saturating_sub(lead)];
        outer.extend(&own[..lead]);
        let kind = match outer[..] {
            [batch, heads] if batch == 1 && heads == 1 => Mask::Shared,
            [_, heads] if heads == 1 => Mask::Batch,
            _ => Mask::Full,
        };
        // Of all elements of the batch, heads alone may differ.
        let batches = if kind == Mask::Full && outer[0] == 1 { one } else { sizes.batch };
        let matrix = [sizes.queries, sizes.keys];
        let dims = match kind {
            Mask::Shared | Mask::None => matrix.to_vec(),
            Mask::Batch => [&[sizes.batch, one], &matrix[..]].concat(),
            Mask::Full => [&[batches, sizes.heads.into()], &matrix[..]].concat(),
        };
        let mask = match kind {
            Mask::Shared => self.reshape_to(mask, &own[own.len() - own.len().min(2)..])?,
            _ => mask,
        };
        let mask = self.expand_to(mask, &dims)?;
        Ok((Some(self.cast(mask, dtype)?), kind, (batches != sizes.batch).then_some(batches)))
    }

    /// The scores of attention, for those who want to see them or have heads that are too large for kernels.
    ///
    /// # Errors
    /// As [`Builder::attention`].
    pub fn attention_scores(
        &mut self,
        [q, k]: [TensorId; 2],
        mask: Option<TensorId>,
        scores: Scores,
    ) -> Result<Stages> {
        let Sizes { batch, heads, kv_heads, queries, keys, dim, .. } =
            self.attention_sizes([q, k, k], scores)?;
        let (mask, scores) = self.lengths_as_mask(mask, scores, [batch, queries, keys])?;
        let (q, k) = (self.as_f32(q)?, self.as_f32(k)?);
        let group = heads / kv_heads;
        let q = self.reshape_to(q, &[batch, kv_heads.into(), queries * group, dim.into()])?;
        let products = self.product(q, k, true)?;
        let products = self.reshape_to(products, &[batch, heads.into(), queries, keys])?;
        let scale = scores.scale.unwrap_or_else(|| default_scale(dim));
        let float = |value: f64| Operand::Constant(Scalar::Float(f64::from(value as f32)));
        let products =
            self.map(&[products], DType::F32, |p, x| p.call(Function::Mul, &[x[0], float(scale)]))?;
        let capped = match scores.bend() {
            None => products,
            Some(cap) => self.map(&[products], DType::F32, |p, x| {
                let part = p.call(Function::Div, &[x[0], float(cap)]);
                let bent = p.call(Function::Tanh, &[part]);
                p.call(Function::Mul, &[bent, float(cap)])
            })?,
        };
        let mut masked = capped;
        if let Some(mask) = mask {
            let mask = self.as_f32(mask)?;
            masked = self.binary(Function::Add, masked, mask)?;
        }
        if scores.causal {
            let causal = self.band(queries, keys, keys - queries, None, Some(0))?;
            masked = self.binary(Function::Add, masked, causal)?;
        }
        let weights = self.softmax(masked, 3, false)?;
        // A row of nothing but -infinity has no softmax.
        let largest = self.reduce(ReduceKind::Max, masked, &[3], true)?;
        let weights = self.map(&[weights, largest], DType::F32, |p, x| {
            let none = p.call(Function::Eq, &[x[1], float(f64::NEG_INFINITY)]);
            p.call(Function::Select, &[none, float(0.0), x[0]])
        })?;
        Ok(Stages { products, capped, masked, weights })
    }

    /// Values `[batch, kv heads, keys, value dim]` by their weights `[batch, heads, queries, keys]`.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn attend(&mut self, weights: TensorId, v: TensorId) -> Result<TensorId> {
        let [batch, heads, queries, keys] = self.four_dims(weights)?;
        let [_, kv_heads, _, dim] = self.four_dims(v)?;
        let group = heads / kv_heads.max(1);
        let weights = self.reshape_to(weights, &[batch, kv_heads, group * queries, keys])?;
        let v = self.as_f32(v)?;
        let made = self.matmul(weights, v)?;
        self.reshape_to(made, &[batch, heads, queries, dim])
    }

    /// A mask `[queries, keys]` of `f32`: 0 where key j is within `left` before and `right` behind `i + offset`, -infinity
    /// elsewhere; no limit where there is none.
    ///
    /// # Errors
    /// It is too large.
    pub fn band(
        &mut self,
        queries: Size,
        keys: Size,
        offset: Size,
        left: Option<i64>,
        right: Option<i64>,
    ) -> Result<TensorId> {
        let rows = self.count_from(offset, queries)?;
        let rows = self.reshape_to(rows, &[queries, 1.into()])?;
        self.band_around(rows, keys, left, right)
    }

    /// The same around places that a tensor, whose last dimension is 1, gives for each query.
    ///
    /// # Errors
    /// It is too large.
    pub fn band_around(
        &mut self,
        places: TensorId,
        keys: Size,
        left: Option<i64>,
        right: Option<i64>,
    ) -> Result<TensorId> {
        let columns = self.count_from(0, keys)?;
        self.band_of(places, columns, left, right)
    }

    /// The same for keys at places of their own, a list of integers.
    ///
    /// # Errors
    /// It is too large.
    pub fn band_of(
        &mut self,
        places: TensorId,
        keys: TensorId,
        left: Option<i64>,
        right: Option<i64>,
    ) -> Result<TensorId> {
        let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I64));
        let float = |value: f64| Operand::Constant(Scalar::Float(value));
        self.map(&[places, keys], DType::F32, |p, x| {
            let ahead = p.call(Function::Sub, &[x[1], x[0]]);
            let mut inside = Operand::Constant(Scalar::Bool(true));
            if let Some(right) = right {
                inside = p.call(Function::Le, &[ahead, int(right)]);
            }
            if let Some(left) = left {
                let near = p.call(Function::Ge, &[ahead, int(left.saturating_neg())]);
                inside = p.call(Function::And, &[inside, near]);
            }
            p.call(Function::Select, &[inside, float(0.0), float(f64::NEG_INFINITY)])
        })
    }

    /// `count` numbers, `i64`, from the first on.
    ///
    /// # Errors
    /// There are too many.
    pub fn count_from(&mut self, first: impl Into<Size>, count: impl Into<Size>) -> Result<TensorId> {
        let (first, count) = (first.into(), count.into());
        if !first.is_constant() || !count.is_constant() {
            let line = self.line_of_places(DType::I64, count)?;
            let first = self.computed(DType::I64, &[], vec![first])?;
            return self.binary(Function::Add, line, first);
        }
        let (first, count) = (first.signed_value(), count.value());
        self.countable(count)?;
        let numbers = (0..count as i64).map(|i| first.saturating_add(i)).collect();
        self.values(DType::I64, &[count], &Values::Int(numbers))
    }

    /// Rotary position embedding of `[batch, heads, len, dim]`, of which the first `turned` elements are turned: by row
    /// `positions[batch, len]` of the tables `[rows, turned / 2]` of cosines and sines.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn rotary(
        &mut self,
        x: TensorId,
        positions: TensorId,
        [cosines, sines]: [TensorId; 2],
        turned: u64,
        interleaved: bool,
    ) -> Result<TensorId> {
        let [batch, heads, len, head_dim] = self.four_dims(x)?;
        let (heads, head_dim) = (heads.exact(), head_dim.exact());
        let tables = self.sizes(cosines).first().copied().unwrap_or(1.into());
        let table = [tables, Size::from(turned / 2)];
        let fits = [cosines, sines].iter().all(|id| self.sizes(*id) == table);
        if !fits || self.tensor(positions).count() != batch * len {
            let what = self.describe(&[x, positions, cosines, sines]);
            return Err(self.invalid(format!("no rotary embedding: {what}")));
        }
        let element = self.element(x);
        let own = self.in_type_of(x, FLOATS, "rotary embedding")?;
        let dtype = self.element(own).storage();
        let positions = self.cast(positions, DType::I64)?;
        let (cosines, sines) = (self.cast(cosines, dtype)?, self.cast(sines, dtype)?);
        let made = Rotary {
            batch,
            rotary_dim: Some(turned),
            interleaved,
            positions: Positions::I64,
            tables: Some(tables),
            ..Rotary::new(heads, len, head_dim, dtype)
        };
        let dims = [batch, heads.into(), len, head_dim.into()];
        let inputs = [own, positions, cosines, sines];
        let made = self.kernel1(Operation::Rotary(made), &inputs, dtype.into(), &dims)?;
        self.cast(made, element)
    }
}

fn default_scale(dim: u64) -> f64 {
    1.0 / (dim.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_that_are_far_away_do_nothing() {
        let bend = |softcap| Scores { softcap, ..Scores::default() }.bend();
        assert_eq!((bend(None), bend(Some(50.0))), (None, Some(50.0)));
        // `tanh(score / 1e9)` would keep two digits of a score.
        assert_eq!(bend(Some(1e9)), None);
    }
}
