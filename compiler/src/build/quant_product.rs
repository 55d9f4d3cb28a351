//! Products with weights that are quantized in groups along the sums, and stay packed: of floats, and of rows of 8-bit codes.

use bytes::Bytes;
use halite_ops::{
    DType, Operation, Values,
    embedding::Embedding,
    expression::{Function as F, Operand, Scalar},
    pad::Border,
    quant_matmul::{CHUNK, QuantMatMul},
};
use halite_sizes::Size;

use super::{Builder, Range, Result};
use crate::graph::{ElementType, TensorId, elements};

/// A matrix of weights, a row for each column of a product. Codes are unsigned, and the middle of their range stands for 0
/// where there are no zero points.
#[derive(Clone, Copy, Debug)]
pub struct QuantWeights {
    /// `u8[rows, length * bits / 8]`; of several in a byte the first is in the lowest bits.
    pub packed: TensorId,
    /// Bits of a code: 4 or 8.
    pub bits: u32,
    /// Codes of a row.
    pub length: u64,
    /// Floats, `[rows, length / group]`.
    pub scales: TensorId,
    /// `u8`, like the scales.
    pub zeros: Option<TensorId>,
    /// Codes of a row that share a scale; the last ones of a row may be fewer.
    pub group: u64,
}

impl QuantWeights {
    fn rows(&self, b: &Builder) -> u64 {
        b.dims(self.packed).first().copied().unwrap_or(0)
    }

    pub(super) fn check(&self, b: &Builder) -> Result<()> {
        let (rows, groups) = (self.rows(b), self.length.div_ceil(self.group.max(1)));
        let packed = self.length.checked_mul(self.bits.into()).map(|bits| vec![rows, bits.div_ceil(8)]);
        let others = [Some(self.scales), self.zeros];
        let wrong = !matches!(self.bits, 4 | 8)
            || self.group == 0
            || b.element(self.packed) != ElementType::Of(DType::U8)
            || Some(b.dims(self.packed)) != packed.as_deref()
            || others.iter().flatten().any(|id| b.dims(*id) != [rows, groups]);
        if wrong {
            let what = b.describe(&[self.packed, self.scales]);
            return Err(b.invalid(format!(
                "{what} are no weights of {} bits with scales for groups of {} of {}",
                self.bits, self.group, self.length
            )));
        }
        Ok(())
    }

    /// The weights as a kernel takes them: whole groups, of whole chunks. None where groups are no chunks.
    pub(super) fn in_chunks(&self, b: &mut Builder) -> Result<Option<QuantWeights>> {
        let mut made = *self;
        let groups = self.length.div_ceil(self.group);
        if groups <= 1 {
            made.group = self.length.next_multiple_of(CHUNK);
        } else if !self.group.is_multiple_of(CHUNK) {
            return Ok(None);
        }
        made.length = made.group.saturating_mul(groups);
        // What is added is multiplied by zeros.
        let more = made.length * u64::from(self.bits) / 8 - b.dims(self.packed)[1];
        made.packed = b.pad(self.packed, &[(0, 0), (0, more as i64)], Border::Constant, 0.0)?;
        Ok(Some(made))
    }
}

impl Builder {
    /// Weights of `i8[rows, length]` with a scale for each row, or for each group of `length / groups` of it.
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn weights_of_bytes(&mut self, codes: TensorId, scales: TensorId) -> Result<QuantWeights> {
        let [rows, length] = *self.dims(codes) else {
            let what = self.describe(&[codes]);
            return Err(self.invalid(format!("{what} is no matrix of weights")));
        };
        if self.element(codes) != ElementType::Of(DType::I8) {
            let what = self.describe(&[codes]);
            return Err(self.unsupported(format!("weights of {what}; there is i8")));
        }
        let groups = self.tensor(scales).elements() / rows.max(1);
        let scales = self.reshape(scales, &[rows, groups])?;
        let bytes = self.view(codes, DType::U8.into(), &[rows, length])?;
        let packed = self.each_byte(
            bytes,
            |byte| byte ^ 0x80,
            |p, x| p.call(F::Xor, &[x, Operand::Constant(Scalar::Int(0x80, DType::U8))]),
        )?;
        let group = length.div_ceil(groups.max(1)).max(1);
        let made = QuantWeights { packed, bits: 8, length, scales, zeros: None, group };
        made.check(self)?;
        Ok(made)
    }

    /// Remembers that floats are `(code - zero) * scale` of known `i8` codes, `[rows, length]`, with scales and zero points of
    /// rows or groups of them, so that products with them can take the codes. Does nothing where they are no such weights.
    pub fn remember_codes(
        &mut self,
        floats: TensorId,
        codes: TensorId,
        scales: TensorId,
        zeros: Option<TensorId>,
    ) {
        let known = |id: TensorId| self.tensor(id).constant.is_some();
        let all = known(codes) && known(scales) && zeros.is_none_or(known);
        let bytes = self.element(codes) == ElementType::Of(DType::I8);
        let [rows, length] = *self.dims(codes) else { return };
        let groups = self.tensor(scales).elements().checked_div(rows).unwrap_or(0);
        let of_rows = groups > 0 && self.dims(scales).first() == Some(&rows) && length.is_multiple_of(groups);
        let chunks = groups == 1 || of_rows && (length / groups).is_multiple_of(CHUNK);
        if all && bytes && of_rows && chunks && self.dims(floats) == [rows, length] {
            self.codes.insert(floats, (codes, scales, zeros));
        }
    }

    /// The weights that floats are made of, if they were remembered and there are such weights.
    ///
    /// # Errors
    /// The constants that they need are too many.
    pub fn remembered_codes(&mut self, floats: TensorId) -> Result<Option<QuantWeights>> {
        let Some((codes, scales, zeros)) = self.codes.get(&floats).copied() else { return Ok(None) };
        let made = self.weights_of_bytes(codes, scales)?;
        let shape = self.dims(made.scales).to_vec();
        let zeros = match zeros.and_then(|zeros| self.known(zeros)) {
            None => None,
            Some(Values::Int(zeros)) if zeros.iter().all(|zero| *zero == 0) => None,
            // Codes without a sign have their zero points higher.
            Some(Values::Int(zeros))
                if zeros.len() as u64 == elements(&shape)
                    && zeros.iter().all(|zero| (-128..=127).contains(zero)) =>
            {
                let moved = zeros.iter().map(|zero| zero + 128).collect();
                Some(self.values(DType::U8, &shape, &Values::Int(moved))?)
            }
            Some(_) => return Ok(None),
        };
        Ok(Some(QuantWeights { zeros, ..made }))
    }

    /// Bytes with their halves in the other order.
    ///
    /// # Errors
    /// The elements are no `u8`.
    pub fn swap_nibbles(&mut self, bytes: TensorId) -> Result<TensorId> {
        self.each_byte(
            bytes,
            |byte| byte.rotate_left(4),
            |p, x| {
                let four = Operand::Constant(Scalar::Int(4, DType::U8));
                let (high, low) = (p.call(F::Shl, &[x, four]), p.call(F::Shr, &[x, four]));
                p.call(F::Or, &[high, low])
            },
        )
    }

    /// A function of each byte: at once where they are known, whatever their number, so that only the result is kept.
    fn each_byte(
        &mut self,
        bytes: TensorId,
        host: impl Fn(u8) -> u8,
        device: impl FnOnce(&mut halite_ops::expression::Expression, Operand) -> Operand,
    ) -> Result<TensorId> {
        let Some(known) = self.tensor(bytes).constant.clone() else {
            return self.map(&[bytes], DType::U8, |p, x| device(p, x[0]));
        };
        let (name, dims) = (self.tensor(bytes).name.clone(), self.dims(bytes).to_vec());
        let made: Bytes = known.iter().map(|byte| host(*byte)).collect::<Vec<u8>>().into();
        self.constant(&name, DType::U8.into(), &dims, made)
    }

    /// The halves of bytes, the lower first: twice as many in the last dimension.
    ///
    /// # Errors
    /// The elements are no `u8`.
    pub fn nibbles(&mut self, bytes: TensorId) -> Result<TensorId> {
        self.bits_apart(bytes, 4)
    }

    /// The parts of bytes of so many bits, the lowest first: more of them in the last dimension.
    ///
    /// # Errors
    /// The elements are no `u8`.
    pub fn bits_apart(&mut self, bytes: TensorId, bits: u32) -> Result<TensorId> {
        let mut dims = self.dims(bytes).to_vec();
        dims.push(1);
        let column = self.reshape(bytes, &dims)?;
        let places: Vec<i64> = (0..8 / bits).map(|place| i64::from(place * bits)).collect();
        let shifts = self.values(DType::U8, &[places.len() as u64], &Values::Int(places.clone()))?;
        let low = Operand::Constant(Scalar::Int((1 << bits) - 1, DType::U8));
        let apart = self.map(&[column, shifts], DType::U8, |p, x| {
            let shifted = p.call(F::Shr, x);
            p.call(F::And, &[shifted, low])
        })?;
        dims.pop();
        if let Some(last) = dims.last_mut() {
            *last = last.saturating_mul(places.len() as u64);
        }
        self.reshape(apart, &dims)
    }

    /// The weights as `f32[rows, length]`.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn dequantized(&mut self, weights: &QuantWeights) -> Result<TensorId> {
        weights.check(self)?;
        let rows = weights.rows(self);
        let codes = if weights.bits == 4 { self.nibbles(weights.packed)? } else { weights.packed };
        let (groups, group) = (weights.length.div_ceil(weights.group), weights.group);
        let more = groups.saturating_mul(group) as i64 - self.dims(codes)[1] as i64;
        let codes = self.pad(codes, &[(0, 0), (0, more)], Border::Constant, 0.0)?;
        let codes = self.reshape(codes, &[rows, groups, group])?;
        let scales = self.reshape(weights.scales, &[rows, groups, 1])?;
        let zeros = match weights.zeros {
            Some(zeros) => self.reshape(zeros, &[rows, groups, 1])?,
            None => self.values(DType::U8, &[], &Values::Int(vec![1 << (weights.bits - 1)]))?,
        };
        let made = self.dequantize_affine(codes, scales, Some(zeros), DType::F32.into())?;
        let made = self.reshape(made, &[rows, groups * group])?;
        self.slice(made, &[Range::all(rows), Range { start: 0, step: 1, count: weights.length }])
    }

    /// `x` times the weights, each a column: `[…, length]` to `[…, rows]`, in the type of `x`.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn quant_product(&mut self, x: TensorId, weights: &QuantWeights) -> Result<TensorId> {
        weights.check(self)?;
        let element = self.element(x);
        let half = element == ElementType::Of(DType::F16);
        let lhs = if half { x } else { self.as_f32(x)? };
        let (count, result) = self.rows_of(x, weights)?;
        let made = match weights.in_chunks(self)? {
            Some(chunks) => {
                let dtype = if half { DType::F16 } else { DType::F32 };
                self.packed_product(lhs, None, count, weights.length, &chunks, dtype)?
            }
            None => {
                let (lhs, right) = (self.as_f32(lhs)?, self.dequantized(weights)?);
                let lhs = self.reshape_to(lhs, &[count, weights.length.into()])?;
                self.product(lhs, right, true)?
            }
        };
        let made = self.reshape_to(made, &result)?;
        self.cast(made, element)
    }

    /// The number of rows of a tensor, and the dimensions of their product.
    pub(super) fn rows_of(&self, x: TensorId, weights: &QuantWeights) -> Result<(Size, Vec<Size>)> {
        let mut dims = self.sizes(x).to_vec();
        match dims.last_mut() {
            Some(last) if *last == weights.length => *last = weights.rows(self).into(),
            _ => {
                let what = self.describe(&[x]);
                return Err(self.invalid(format!("{what} has no rows of {}", weights.length)));
            }
        }
        Ok((dims[..dims.len() - 1].iter().product(), dims))
    }

    /// The product that a kernel computes, `[count, rows]`, of rows of `length`.
    pub(super) fn packed_product(
        &mut self,
        lhs: TensorId,
        row_scales: Option<(TensorId, Option<TensorId>)>,
        count: Size,
        length: u64,
        weights: &QuantWeights,
        out: DType,
    ) -> Result<TensorId> {
        let lhs = self.reshape_to(lhs, &[count, length.into()])?;
        let more = (weights.length - length) as i64;
        let lhs = self.pad(lhs, &[(0, 0), (0, more)], Border::Constant, 0.0)?;
        let (row_scales, row_zeros) =
            row_scales.map_or((None, None), |(scales, zeros)| (Some(scales), zeros));
        let each = |b: &mut Self, id| b.reshape_to(id, &[count]);
        let row_scales = row_scales.map(|id| each(self, id)).transpose()?;
        let row_zeros = row_zeros.map(|id| each(self, id)).transpose()?;
        let own = self.element(weights.scales).storage();
        let scales = if own == DType::F16 { own } else { DType::F32 };
        let scale = self.cast(weights.scales, scales)?;
        let n = weights.rows(self);
        let operation = Operation::QuantMatMul(QuantMatMul {
            group: weights.group,
            bits: weights.bits,
            lhs: self.element(lhs).storage(),
            scales,
            out,
            zero_points: weights.zeros.is_some(),
            lhs_zeros: row_zeros.is_some(),
            ..QuantMatMul::new(count, [n, weights.length])
        });
        let inputs = [lhs, weights.packed, scale].into_iter().chain(weights.zeros);
        let inputs = inputs.chain(row_scales).chain(row_zeros);
        let inputs: Vec<TensorId> = inputs.collect();
        self.kernel1(operation, &inputs, out.into(), &[count, n.into()])
    }

    /// Rows of a table of weights by index, as `to`, a float type: the dimensions of the indices and a row.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn quant_rows(
        &mut self,
        weights: &QuantWeights,
        indices: TensorId,
        to: ElementType,
    ) -> Result<TensorId> {
        weights.check(self)?;
        let dims: Vec<Size> = self.sizes(indices).iter().copied().chain([weights.length.into()]).collect();
        let whole = weights.group.is_multiple_of(CHUNK) && weights.length.is_multiple_of(weights.group);
        if whole {
            let made = self.embedded(weights, indices)?;
            let made = self.reshape_to(made, &dims)?;
            return self.cast(made, to);
        }
        let picked = QuantWeights {
            packed: self.picked(weights.packed, indices)?,
            scales: self.picked(weights.scales, indices)?,
            zeros: weights.zeros.map(|zeros| self.picked(zeros, indices)).transpose()?,
            ..*weights
        };
        let made = self.dequantized(&picked)?;
        let made = self.reshape_to(made, &dims)?;
        self.cast(made, to)
    }

    /// Rows that a kernel looks up, as `f32[indices, length]`.
    fn embedded(&mut self, weights: &QuantWeights, indices: TensorId) -> Result<TensorId> {
        let count = self.tensor(indices).count();
        let flat = self.reshape_to(indices, &[count])?;
        let flat = match self.element(flat) {
            ElementType::Of(DType::I32 | DType::I64) => flat,
            _ => self.cast(flat, DType::I32)?,
        };
        let own = self.element(weights.scales).storage();
        let scales = if own == DType::F16 { own } else { DType::F32 };
        let scale = self.cast(weights.scales, scales)?;
        let operation = Operation::Embedding(Embedding {
            rows: weights.rows(self),
            width: weights.length,
            indices: count,
            group: weights.group,
            bits: weights.bits,
            scales,
            zero_points: weights.zeros.is_some(),
            out: DType::F32,
            index: self.element(flat).storage(),
        });
        let inputs: Vec<_> = [weights.packed, scale, flat].into_iter().chain(weights.zeros).collect();
        self.kernel1(operation, &inputs, DType::F32.into(), &[count, weights.length.into()])
    }

    /// Rows of a matrix by index, as a matrix.
    fn picked(&mut self, matrix: TensorId, indices: TensorId) -> Result<TensorId> {
        let count = self.tensor(indices).count();
        let flat = self.reshape_to(indices, &[count])?;
        self.gather(matrix, flat, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::QuantRows;
    use super::*;

    /// Weights of two rows in groups of 4 or more, with what they stand for.
    fn weights(b: &mut Builder, length: u64, group: u64) -> (QuantWeights, Vec<f64>) {
        let groups = length.div_ceil(group);
        let code = |i: u64| (i * 7 + i / 5) % 16;
        let scale = |row: u64, g: u64| 0.25 * (1 + row + g % 3) as f64;
        let bytes = (0..length).map(|i| (code(2 * i) | code(2 * i + 1) << 4) as i64).collect();
        let packed = b.values(DType::U8, &[2, length / 2], &Values::Int(bytes)).unwrap();
        let all = (0..2 * groups).map(|i| scale(i / groups, i % groups)).collect();
        let scales = b.values(DType::F32, &[2, groups], &Values::Float(all)).unwrap();
        let each = (0..2 * length).map(|i| {
            let (row, column) = (i / length, i % length);
            (code(i) as f64 - 8.0) * scale(row, column / group)
        });
        (QuantWeights { packed, bits: 4, length, scales, zeros: None, group }, each.collect())
    }

    fn product(x: &[f64], w: &[f64]) -> Vec<f64> {
        w.chunks(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
    }

    #[test]
    fn groups_of_any_size_are_multiplied() {
        for (length, group) in [(64, 32), (32, 8), (20, 20), (96, 96)] {
            let mut b = Builder::new();
            let (weights, plain) = weights(&mut b, length, group);
            let row: Vec<f64> = (0..length).map(|i| (i % 9) as f64 - 4.0).collect();
            let x = b.values(DType::F32, &[1, length], &Values::Float(row.clone())).unwrap();
            let made = b.quant_product(x, &weights).unwrap();
            assert_eq!(b.floats(made).unwrap(), product(&row, &plain), "{length} in {group}");

            let codes: Vec<i64> = (0..length as i64).map(|i| i % 9 - 2).collect();
            let codes = b.values(DType::I8, &[1, length], &Values::Int(codes)).unwrap();
            let half = b.values(DType::F32, &[1], &Values::Float(vec![0.5])).unwrap();
            let two = b.values(DType::I8, &[1], &Values::Int(vec![2])).unwrap();
            let rows = QuantRows { codes, scales: half, zeros: Some(two) };
            let made = b.quant_product_of_rows(&rows, &weights).unwrap();
            let halves: Vec<f64> = row.iter().map(|x| x / 2.0).collect();
            assert_eq!(b.floats(made).unwrap(), product(&halves, &plain), "{length} in {group}");

            let index = b.values(DType::I32, &[], &Values::Int(vec![1])).unwrap();
            let made = b.quant_rows(&weights, index, DType::F32.into()).unwrap();
            assert_eq!(b.floats(made).unwrap(), plain[length as usize..], "{length} in {group}");
        }
    }

    #[test]
    fn codes_of_weights_are_remembered() {
        let mut b = Builder::new();
        let codes = b.values(DType::I8, &[2, 2], &Values::Int(vec![1, -2, 3, 4])).unwrap();
        let scales = b.values(DType::F32, &[2, 1], &Values::Float(vec![0.5, 2.0])).unwrap();
        let zeros = b.values(DType::I32, &[2, 1], &Values::Int(vec![0, -1])).unwrap();
        let floats = b.dequantize_affine(codes, scales, Some(zeros), DType::F32.into()).unwrap();
        assert!(b.remembered_codes(floats).unwrap().is_none());
        b.remember_codes(floats, codes, scales, Some(zeros));
        let weights = b.remembered_codes(floats).unwrap().unwrap();
        let x = b.values(DType::F32, &[1, 2], &Values::Float(vec![1.0, 10.0])).unwrap();
        let made = b.quant_product(x, &weights).unwrap();
        assert_eq!(b.floats(made).unwrap(), [0.5 - 10.0, 8.0 + 100.0]);
        let unknown = b.input("x", DType::I8.into(), &[2, 2]).unwrap();
        b.remember_codes(floats, unknown, scales, None);
        let turned = b.reshape(scales, &[1, 2]).unwrap();
        let other = b.dequantize_affine(codes, turned, None, DType::F32.into()).unwrap();
        b.remember_codes(other, codes, turned, None);
        assert!(b.remembered_codes(other).unwrap().is_none(), "scales of columns");
    }

    #[test]
    fn bytes_become_weights_without_a_sign() {
        let mut b = Builder::new();
        let codes = b.values(DType::I8, &[1, 3], &Values::Int(vec![-128, 0, 127])).unwrap();
        let scales = b.values(DType::F32, &[1], &Values::Float(vec![2.0])).unwrap();
        let weights = b.weights_of_bytes(codes, scales).unwrap();
        assert_eq!(b.ints(weights.packed).unwrap(), [0, 128, 255]);
        let plain = b.dequantized(&weights).unwrap();
        assert_eq!(b.floats(plain).unwrap(), [-256.0, 0.0, 254.0]);
        let swapped = b.swap_nibbles(weights.packed).unwrap();
        assert_eq!(b.ints(swapped).unwrap(), [0, 8, 255]);
    }
}
