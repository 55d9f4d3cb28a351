//! Quantization by scales and zero points, for tensors, axes and blocks.

use halite_ops::{
    DType,
    expression::{Function, Node, Operand, Scalar, Type},
};

use halite_sizes::Size;

use super::{Builder, Range, Result};
use crate::graph::{ElementType, TensorId};

impl Builder {
    /// `round(x / scale) + zero`, ties to even, as far as the type `to` reaches: an integer type of 8 or 16 bits. Scale and
    /// zero point are broadcast.
    ///
    /// # Errors
    /// The type is another one.
    pub fn quantize(
        &mut self,
        x: TensorId,
        scale: TensorId,
        zero: Option<TensorId>,
        to: DType,
    ) -> Result<TensorId> {
        let Some((least, most)) = range(to) else {
            return Err(self.unsupported(format!("quantization to {to}; there is i8, u8, i16 and u16")));
        };
        let (x, scale) = (self.as_f32(x)?, self.as_f32(scale)?);
        let zero = match zero {
            Some(zero) => zero,
            None => self.float(to, 0.0)?,
        };
        let number = |value: i64| Operand::Constant(Scalar::Float(value as f64));
        self.map(&[x, scale, zero], to, |p, x| {
            if to.size() == 1 {
                let to = Some(Type::Of(to));
                return p.push(Node { function: Function::Quantize, to, operands: x.to_vec() });
            }
            let part = p.call(Function::Div, &x[..2]);
            let whole = p.call(Function::Round, &[part]);
            let zero = p.cast(Type::Of(DType::F32), x[2]);
            let sum = p.call(Function::Add, &[whole, zero]);
            let kept = p.call(Function::Clip, &[sum, number(least), number(most)]);
            p.cast(Type::Of(to), kept)
        })
    }

    /// `(x - zero) * scale` as `to`, a float type. Scale and zero point are broadcast.
    ///
    /// # Errors
    /// The elements are no integers of up to 32 bits, nor `f32`, which holds small floats.
    pub fn dequantize(
        &mut self,
        x: TensorId,
        scale: TensorId,
        zero: Option<TensorId>,
        to: ElementType,
    ) -> Result<TensorId> {
        let element = self.element(x);
        if element == ElementType::Of(DType::F32) {
            let made = match zero {
                Some(zero) => self.binary(Function::Sub, x, zero)?,
                None => x,
            };
            let scale = self.as_f32(scale)?;
            let made = self.binary(Function::Mul, made, scale)?;
            return self.cast(made, to);
        }
        let narrow = element.storage().size() <= 2 || element.storage() == DType::I32;
        if element.is_float() || !narrow {
            return Err(
                self.unsupported(format!("dequantization of {element}; there is i8, u8, i16, u16 and i32"))
            );
        }
        let zero = match zero {
            Some(zero) => zero,
            None => self.float(element, 0.0)?,
        };
        let scale = self.as_f32(scale)?;
        let made = self.map(&[x, scale, zero], DType::F32, |p, x| {
            let wide = |p: &mut halite_ops::expression::Expression, x| match element.storage() {
                DType::I8 | DType::U8 | DType::I32 => x,
                _ => p.cast(Type::Of(DType::I32), x),
            };
            let (value, zero) = (wide(p, x[0]), wide(p, x[2]));
            p.call(Function::Dequantize, &[value, x[1], zero])
        })?;
        self.cast(made, to)
    }

    /// A scale or zero point in a form that is broadcast to a tensor of `dims`: one for all, one for each place of an axis, or
    /// one for each block of `block` places of it.
    ///
    /// # Errors
    /// There are not as many as that takes.
    pub fn quantization(
        &mut self,
        value: TensorId,
        dims: &[Size],
        axis: usize,
        block: u64,
    ) -> Result<TensorId> {
        let own = self.dims(value).to_vec();
        if own.iter().all(|size| *size == 1) && block == 0 {
            return self.reshape(value, &[]);
        }
        let fits = |size: &u64| axis < dims.len() && *size == dims[axis].exact();
        if let ([size], 0) = (&own[..], block)
            && fits(size)
        {
            let mut shape = vec![1; dims.len()];
            shape[axis] = *size;
            return self.reshape(value, &shape);
        }
        let dims: Vec<u64> = dims.iter().map(|size| size.exact()).collect();
        let blocks = |d: usize| if d == axis { dims[d].div_ceil(block.max(1)) } else { dims[d] };
        if block == 0
            || own.len() != dims.len()
            || axis >= dims.len()
            || (0..own.len()).any(|d| own[d] != blocks(d))
        {
            let what = self.describe(&[value]);
            return Err(
                self.invalid(format!("{what} is no scale or zero point for {dims:?} along axis {axis}"))
            );
        }
        let mut apart = own.clone();
        apart.insert(axis + 1, 1);
        let apart = self.reshape(value, &apart)?;
        let mut wide = own.clone();
        wide.insert(axis + 1, block);
        let wide = self.expand(apart, &wide)?;
        let mut joined = own.clone();
        joined[axis] *= block;
        let joined = self.reshape(wide, &joined)?;
        let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
        ranges[axis].count = dims[axis];
        self.slice(joined, &ranges)
    }
}

/// What an integer type of 8 or 16 bits reaches over.
fn range(dtype: DType) -> Option<(i64, i64)> {
    match dtype.name() {
        "i8" => Some((-128, 127)),
        "u8" => Some((0, 255)),
        "i16" => Some((-32768, 32767)),
        "u16" => Some((0, 65535)),
        _ => None,
    }
}
