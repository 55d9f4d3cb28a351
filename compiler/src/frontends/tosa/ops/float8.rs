//! 8-bit floats, which graphs hold as their bits: to `f32`, exactly, and from it, rounded to nearest even.

use halite_formats::tosa::ElementType as Tosa;
use halite_ops::{
    DType,
    expression::{Expression, Function, Operand},
};

use super::{
    super::Result,
    values::{float, int, to},
};
use crate::{build::Builder, graph::TensorId};

/// The layout of an 8-bit float of the Open Compute Project's specification 1.0.
#[derive(Clone, Copy)]
pub(super) struct Float8 {
    /// Bits of the fraction.
    fraction: i64,
    /// What is added to exponents.
    bias: i64,
    /// The bits of what is too large: infinity, or NaN where there is no infinity.
    over: i64,
}

/// The bits of not-a-number, in both formats.
const NAN: i64 = 0x7F;

impl Float8 {
    /// The layout of a type, if it is one of these.
    pub(super) fn of(element: Tosa) -> Option<Float8> {
        match element {
            Tosa::F8E4M3 => Some(Float8 { fraction: 3, bias: 7, over: NAN }),
            Tosa::F8E5M2 => Some(Float8 { fraction: 2, bias: 15, over: 0x7C }),
            _ => None,
        }
    }

    /// The values as `f32`, which has all of them.
    pub(super) fn widen(self, b: &mut Builder, bits: TensorId) -> Result<TensorId> {
        b.map(&[bits], DType::F32, |p, x| self.value(p, x[0]))
    }

    fn value(self, p: &mut Expression, bits: Operand) -> Operand {
        let word = |value| int(value, DType::U32);
        let bits = to(p, DType::U32, bits);
        let magnitude = p.call(Function::And, &[bits, word(0x7F)]);
        let exponent = p.call(Function::Shr, &[magnitude, word(self.fraction)]);
        let part = p.call(Function::And, &[magnitude, word((1 << self.fraction) - 1)]);
        let normal = p.call(Function::Gt, &[exponent, word(0)]);
        let whole = p.call(Function::Or, &[part, word(1 << self.fraction)]);
        let digits = p.call(Function::Select, &[normal, whole, part]);
        // Powers of two as integers, of which floats are exact.
        let raised = p.call(Function::Max, &[exponent, word(1)]);
        let power = p.call(Function::Shl, &[word(1), raised]);
        let (digits, power) = (to(p, DType::F32, digits), to(p, DType::F32, power));
        let scale = float(2f64.powi(-(self.bias + self.fraction) as i32));
        let power = p.call(Function::Mul, &[power, scale]);
        let value = p.call(Function::Mul, &[digits, power]);
        let value = if self.over == NAN {
            value
        } else {
            let infinite = p.call(Function::Eq, &[magnitude, word(self.over)]);
            p.call(Function::Select, &[infinite, float(f64::INFINITY), value])
        };
        let is_nan = if self.over == NAN {
            p.call(Function::Eq, &[magnitude, word(NAN)])
        } else {
            p.call(Function::Gt, &[magnitude, word(self.over)])
        };
        let value = p.call(Function::Select, &[is_nan, float(f64::NAN), value]);
        let negative = p.call(Function::Gt, &[bits, word(0x7F)]);
        let negated = p.call(Function::Neg, &[value]);
        p.call(Function::Select, &[negative, negated, value])
    }

    /// The bits of the nearest values, ties to even. What is too large becomes infinity, or NaN (the mode of conversion
    /// that does not saturate).
    pub(super) fn narrow(self, b: &mut Builder, values: TensorId) -> Result<TensorId> {
        let values = b.as_f32(values)?;
        let dims = b.dims(values).to_vec();
        let bits = b.view(values, DType::U32.into(), &dims)?;
        b.map(&[values, bits], DType::U8, |p, x| self.bits(p, x[0], x[1]))
    }

    fn bits(self, p: &mut Expression, value: Operand, bits: Operand) -> Operand {
        let word = |value| int(value, DType::U32);
        let cut = 23 - self.fraction;
        let magnitude = p.call(Function::And, &[bits, word(0x7FFF_FFFF)]);
        let odd = p.call(Function::Shr, &[magnitude, word(cut)]);
        let odd = p.call(Function::And, &[odd, word(1)]);
        let half = p.call(Function::Add, &[odd, word((1 << (cut - 1)) - 1)]);
        let rounded = p.call(Function::Add, &[magnitude, half]);
        let rounded = p.call(Function::Shr, &[rounded, word(cut)]);
        let normal = p.call(Function::Sub, &[rounded, word((127 - self.bias) << self.fraction)]);
        // Below the normal values, multiples of the smallest one.
        let steps = p.call(Function::Abs, &[value]);
        let steps = p.call(Function::Mul, &[steps, float(2f64.powi((self.bias - 1 + self.fraction) as i32))]);
        let steps = p.call(Function::Round, &[steps]);
        let steps = to(p, DType::U32, steps);
        let small = p.call(Function::Lt, &[magnitude, word((128 - self.bias) << 23)]);
        let code = p.call(Function::Select, &[small, steps, normal]);
        let code = p.call(Function::Min, &[code, word(self.over)]);
        let is_nan = p.call(Function::Gt, &[magnitude, word(0x7F80_0000)]);
        let code = p.call(Function::Select, &[is_nan, word(NAN), code]);
        let sign = p.call(Function::Shr, &[bits, word(24)]);
        let sign = p.call(Function::And, &[sign, word(0x80)]);
        let code = p.call(Function::Or, &[code, sign]);
        to(p, DType::U8, code)
    }
}
