//! Caches of keys and values: appending to them, and attention to as many of their rows as count.

use halite_ops::{
    DType, Operation,
    blocks::BlockFormat,
    cached,
    expression::{Expression, Function, Operand, Scalar, Type},
    kv_append::KvAppend,
};
use halite_sizes::Size;

use super::{Builder, Range, Result, Scores, types::FLOATS};
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

    /// Elements `f32[rows, elements]` of rows of a cache in blocks, `u32[rows, words]`.
    ///
    /// # Errors
    /// Caches have no such format, or rows are no whole blocks of it.
    pub fn from_blocks(&mut self, rows: TensorId, format: BlockFormat, elements: u64) -> Result<TensorId> {
        let (words, bits) = (cached::row_words(format, elements), cached::bits(format));
        let (words, bits) =
            (words.map_err(|reason| self.invalid(reason))?, bits.map_err(|reason| self.invalid(reason))?);
        let ([count, own], element) =
            (self.sizes(rows)[..].try_into().unwrap_or([Size::constant(0); 2]), self.element(rows));
        if own != words || element != DType::U32.into() {
            return Err(self
                .invalid(format!("{}: no rows of {elements} elements in {format}", self.describe(&[rows]))));
        }
        let (scales, blocks) = (cached::scale_words(elements), elements / cached::BLOCK);
        let part = |first: u64, words: u64| Range { start: first.into(), step: 1, count: Size::from(words) };
        let codes = self.slice(rows, &[Range::all(count), part(scales, words - scales)])?;
        let codes = self.parts_of_words(codes, bits)?;
        let codes = self.map(&[codes], DType::F32, |p, x| {
            let code = p.cast(Type::Of(DType::F32), x[0]);
            signed(p, code, format)
        })?;
        let codes = self.reshape_to(codes, &[count, blocks.into(), cached::BLOCK.into()])?;
        let scales = self.slice(rows, &[Range::all(count), part(0, scales)])?;
        let scales = self.parts_of_words(scales, 16)?;
        let scales = self.slice(scales, &[Range::all(count), part(0, blocks)])?;
        let scales = self.map(&[scales], DType::F32, |p, x| half(p, x[0]))?;
        let scales = self.reshape_to(scales, &[count, blocks.into(), 1.into()])?;
        let made = self.binary(Function::Mul, codes, scales)?;
        self.reshape_to(made, &[count, elements.into()])
    }

    /// Parts of so many bits of words `u32[rows, words]`, the lowest first.
    fn parts_of_words(&mut self, words: TensorId, bits: u32) -> Result<TensorId> {
        let (dims, parts) = (self.sizes(words).to_vec(), u64::from(32 / bits));
        let shifts: Vec<u8> = (0..32).step_by(bits as usize).flat_map(u32::to_le_bytes).collect();
        let shifts = self.constant("shifts", DType::U32.into(), &[parts], shifts.into())?;
        let words = self.reshape_to(words, &[dims[0], dims[1], 1.into()])?;
        let mask = Operand::Constant(Scalar::Int((1 << bits) - 1, DType::U32));
        let made = self.map(&[words, shifts], DType::U32, |p, x| {
            let part = p.call(Function::Shr, x);
            p.call(Function::And, &[part, mask])
        })?;
        self.reshape_to(made, &[dims[0], dims[1] * parts])
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

/// The number that a code is.
fn signed(p: &mut Expression, code: Operand, format: BlockFormat) -> Operand {
    let float = |value: f64| Operand::Constant(Scalar::Float(value));
    if format == BlockFormat::Q4_0 {
        return p.call(Function::Sub, &[code, float(8.0)]);
    }
    let is_negative = p.call(Function::Gt, &[code, float(127.0)]);
    let below = p.call(Function::Sub, &[code, float(256.0)]);
    p.call(Function::Select, &[is_negative, below, code])
}

/// The number that 16 bits are as a float, which is finite.
fn half(p: &mut Expression, bits: Operand) -> Operand {
    let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::U32));
    let float = |value: f64| Operand::Constant(Scalar::Float(value));
    let exponent = p.call(Function::Shr, &[bits, int(10)]);
    let exponent = p.call(Function::And, &[exponent, int(31)]);
    let mantissa = p.call(Function::And, &[bits, int(1023)]);
    // Without an exponent there is no leading one, and the numbers are as far apart as those of the next.
    let is_small = p.call(Function::Eq, &[exponent, int(0)]);
    let leading = p.call(Function::Select, &[is_small, int(0), int(1024)]);
    let exponent = p.call(Function::Max, &[exponent, int(1)]);
    let power = p.call(Function::Shl, &[int(1), exponent]);
    let power = p.cast(Type::Of(DType::F32), power);
    let whole = p.call(Function::Add, &[leading, mantissa]);
    let whole = p.cast(Type::Of(DType::F32), whole);
    let size = p.call(Function::Mul, &[whole, power]);
    let size = p.call(Function::Mul, &[size, float((-25f64).exp2())]);
    let sign = p.call(Function::Shr, &[bits, int(15)]);
    let is_negative = p.call(Function::Gt, &[sign, int(0)]);
    let other = p.call(Function::Neg, &[size]);
    p.call(Function::Select, &[is_negative, other, size])
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Values, blocks::BlockFormat, cached};

    use crate::build::Builder;

    #[test]
    fn elements_of_blocks_are_those_that_caches_hold() {
        // Blocks of large and small numbers, of zeros, and with scales that 16 bits hold without a leading one.
        let row: Vec<f64> = (0..96u32)
            .map(|at| (f64::from(at * 37 % 61) - 30.0) * [3e3, 0.0, 1e-5][at as usize / 32])
            .collect();
        let other: Vec<f64> = row.iter().map(|x| -x / 7.0).collect();
        for format in cached::FORMATS {
            let words: Vec<u32> = [&row, &other].iter().flat_map(|row| cached::encode(format, row)).collect();
            let length = words.len() as u64 / 2;
            let mut b = Builder::new();
            let input = b.input("words", DType::U32.into(), &[2, length]).unwrap();
            let made = b.from_blocks(input, format, 96).unwrap();
            assert!(b.from_blocks(input, format, 64).is_err(), "rows of another length");
            assert!(b.from_blocks(input, BlockFormat::Q5_0, 96).is_err(), "caches have no such blocks");
            assert!(b.from_blocks(made, format, 96).is_err(), "no words");
            b.output("elements", made);
            let given = Values::Int(words.iter().map(|word| i64::from(*word)).collect());
            let found = b.finish().unwrap().evaluate(&[given]).unwrap().remove(0).floats();
            let wanted: Vec<f64> =
                words.chunks(length as usize).flat_map(|row| cached::decode(format, row, 96)).collect();
            assert_eq!(found, wanted, "{format}");
        }
    }
}
