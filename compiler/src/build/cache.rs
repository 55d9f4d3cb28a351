//! Caches of keys and values: appending to them, and attention to as many of their rows as count.

use halite_ops::{
    DType, Operation,
    blocks::BlockFormat,
    cached,
    expression::{Function, Operand, Scalar},
    kv_append::KvAppend,
};
use halite_sizes::Size;

use super::{Builder, Result, Scores, types::FLOATS};
use crate::graph::TensorId;

impl Builder {
    /// Rows `[batch, heads, len, dim]` written into a cache `[batch, heads, capacity, dim]`: from row `starts[batch]` on for each
    /// sequence. Rows that would lie behind its end are left out.
    ///
    /// # Errors
    /// The sizes do not go together, or the elements are no floats.
    pub fn append(&mut self, rows: TensorId, cache: TensorId, starts: TensorId) -> Result<TensorId> {
        let (own, dims) = (self.sizes(rows).to_vec(), self.sizes(cache).to_vec());
        let wrong = |b: &Self| {
            b.invalid(format!("{} does not go into {}", b.describe(&[rows]), b.describe(&[cache])))
        };
        let ([batch, kv_heads, len, head_dim], [b_c, h_c, capacity, d_c]) = (&own[..], &dims[..]) else {
            return Err(wrong(self));
        };
        if [batch, kv_heads, head_dim] != [b_c, h_c, d_c] || self.tensor(starts).count() != *batch {
            return Err(wrong(self));
        }
        let (batch, len, capacity) = (*batch, *len, *capacity);
        let (kv_heads, head_dim) = (kv_heads.exact(), head_dim.exact());
        let element = self.element(cache);
        let held = self.in_type_of(cache, FLOATS, "a cache of keys and values")?;
        let dtype = self.element(held).storage();
        // Kernels round rows on their way into a cache of 16-bit floats.
        let rounded = dtype == DType::F16 && self.element(rows) == DType::F32.into();
        let (rows, given) = if rounded { (rows, DType::F32) } else { (self.cast(rows, dtype)?, dtype) };
        let starts = self.cast(starts, DType::I32)?;
        let append = KvAppend {
            batch,
            starts: true,
            rows: given,
            ..KvAppend::new(kv_heads, len, capacity, head_dim, dtype)
        };
        let made = self.kernel1(Operation::KvAppend(append), &[rows, held, starts], dtype.into(), &dims)?;
        self.cast(made, element)
    }

    /// Rows `[batch, heads, len, dim]` written into a cache `[batch, heads, capacity, words]` as blocks of a format
    /// ([`halite_ops::cached`]), from row `starts[batch]` on for each sequence.
    ///
    /// # Errors
    /// The sizes do not go together, caches have no such format, or rows are no whole blocks of it.
    pub fn append_in_blocks(
        &mut self,
        rows: TensorId,
        cache: TensorId,
        starts: TensorId,
        format: BlockFormat,
    ) -> Result<TensorId> {
        let (own, dims) = (self.sizes(rows).to_vec(), self.sizes(cache).to_vec());
        let ([batch, kv_heads, len, head_dim], [b_c, h_c, capacity, words]) = (&own[..], &dims[..]) else {
            return Err(self.invalid(format!("no caches: {}", self.describe(&[rows, cache]))));
        };
        let whole = cached::row_words(format, head_dim.exact()).map_err(|reason| self.invalid(reason))?;
        let fits = [batch, kv_heads] == [b_c, h_c] && *words == whole;
        if !fits || self.tensor(starts).count() != *batch || self.element(cache) != DType::U32.into() {
            let what = self.describe(&[rows, cache]);
            return Err(self.invalid(format!("{what}: no rows for a cache in {format}")));
        }
        let append = KvAppend {
            batch: *batch,
            starts: true,
            rows: DType::F32,
            blocks: Some(format),
            ..KvAppend::new(kv_heads.exact(), *len, *capacity, head_dim.exact(), DType::U32)
        };
        let (rows, starts) = (self.as_f32(rows)?, self.cast(starts, DType::I32)?);
        self.kernel1(Operation::KvAppend(append), &[rows, cache, starts], DType::U32.into(), &dims)
    }

    /// What is added to the scores of `[batch, heads, queries, keys]` so that the first `lengths[batch]` keys of a sequence count,
    /// and where `causal` those up to each query, which are the last of them: `[batch, 1, queries or 1, keys]`.
    ///
    /// # Errors
    /// It is too large.
    pub(super) fn mask_of_lengths(
        &mut self,
        lengths: TensorId,
        [batch, queries, keys]: [Size; 3],
        causal: bool,
    ) -> Result<TensorId> {
        let lengths = self.cast(lengths, DType::I64)?;
        let one = Size::constant(1);
        let lengths = self.reshape_to(lengths, &[batch, one, one, one])?;
        // The last key that counts: for the last query the last of all.
        let rows = if causal { queries } else { one };
        let places = self.count_from(-rows, rows)?;
        let rows = self.reshape_to(places, &[rows, one])?;
        let last = self.binary(Function::Add, lengths, rows)?;
        self.band_around(last, keys, None, Some(0))
    }

    /// The mask and the scores where kernels cannot take lengths beside a mask: lengths as a part of it.
    pub(super) fn lengths_as_mask(
        &mut self,
        mask: Option<TensorId>,
        scores: Scores,
        sizes: [Size; 3],
    ) -> Result<(Option<TensorId>, Scores)> {
        let Some(lengths) = scores.lengths else { return Ok((mask, scores)) };
        let own = self.mask_of_lengths(lengths, sizes, scores.causal)?;
        let mask = match mask {
            Some(mask) => {
                let mask = self.as_f32(mask)?;
                self.binary(Function::Add, own, mask)?
            }
            None => own,
        };
        Ok((Some(mask), Scores { lengths: None, causal: false, ..scores }))
    }

    /// The larger of `x` and a number, of integers.
    ///
    /// # Errors
    /// It is no integer tensor.
    pub fn at_least(&mut self, x: TensorId, number: i64) -> Result<TensorId> {
        let x = self.cast(x, DType::I64)?;
        let number = Operand::Constant(Scalar::Int(number, DType::I64));
        self.map(&[x], DType::I64, |p, x| p.call(Function::Max, &[x[0], number]))
    }

    /// `x + number`, of integers.
    ///
    /// # Errors
    /// It is no integer tensor.
    pub fn plus(&mut self, x: TensorId, number: i64) -> Result<TensorId> {
        let x = self.cast(x, DType::I64)?;
        let number = Operand::Constant(Scalar::Int(number, DType::I64));
        self.map(&[x], DType::I64, |p, x| p.call(Function::Add, &[x[0], number]))
    }
}
