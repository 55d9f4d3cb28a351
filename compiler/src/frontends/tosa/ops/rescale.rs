//! RESCALE: integers by a multiplier and a shift, in every rounding.

use halite_formats::tosa::Rounding;
use halite_ops::{
    DType,
    expression::{Function, Operand},
};

use super::{
    super::{Result, element_of},
    call::Call,
    values::{int, saturated, saturated_from, scaled, scaled_deep, to},
};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

/// The attributes of RESCALE.
pub(super) struct Rescale {
    /// Whether multipliers are of 32 bits, not of 16.
    pub(super) scale32: bool,
    pub(super) rounding: Rounding,
    /// Whether each place of the last axis has a multiplier and a shift.
    pub(super) per_channel: bool,
    pub(super) input_unsigned: bool,
    pub(super) output_unsigned: bool,
    pub(super) input_zero: i64,
    pub(super) output_zero: i64,
}

/// `(x - input zero) * multiplier >> shift + output zero`, saturated. INEXACT rounds as SINGLE, which is always within its
/// bound.
pub(super) fn rescale(b: &mut Builder, call: &Call<'_>, with: &Rescale) -> Result<TensorId> {
    let stored = element_of(call.output().element).storage();
    let (from, to_type) = (element_of(call.element(0)).storage(), sign(stored, with.output_unsigned));
    let own = sign(from, with.input_unsigned);
    let dims = b.dims(call.inputs[0]).to_vec();
    let x = b.view(call.inputs[0], own.into(), &dims)?;
    let input_zero = unsigned(with.input_zero, own);
    let output_zero = unsigned(with.output_zero, to_type);
    let factors = Factors::new(b, call, with.per_channel)?;
    let mut ids = vec![x];
    ids.extend(factors.tensors());
    let twice = with.rounding == Rounding::Double && with.scale32;
    // 32 bits of a product are enough where all are rounded far above them: a fraction of the work.
    let narrow = from.size() < 4 || (from == DType::I32 && input_zero == 0);
    let deep = narrow && !twice && factors.least_shift(b).is_some_and(|least| least >= DEEP);
    let made = b.map(&ids, to_type, |p, inputs| {
        if deep {
            let word = to(p, DType::I32, inputs[0]);
            let value = p.call(Function::Sub, &[word, int(input_zero, DType::I32)]);
            let (multiplier, shift) = match factors {
                Factors::Known(multiplier, shift) => (int(multiplier, DType::I32), int(shift, DType::I32)),
                Factors::Tensors(..) => (inputs[1], to(p, DType::I32, inputs[2])),
            };
            let result = scaled_deep(p, value, multiplier, shift);
            return saturated_from(p, result, output_zero, DType::I32, to_type);
        }
        let wide = to(p, DType::I64, inputs[0]);
        let value = p.call(Function::Sub, &[wide, int(input_zero, DType::I64)]);
        let (multiplier, shift) = match factors {
            Factors::Known(multiplier, shift) => (int(multiplier, DType::I64), int(shift, DType::I64)),
            Factors::Tensors(..) => (to(p, DType::I64, inputs[1]), to(p, DType::I64, inputs[2])),
        };
        let result: Operand = scaled(p, value, multiplier, shift, twice);
        saturated(p, result, output_zero, to_type)
    })?;
    b.view(made, ElementType::Of(stored), &dims)
}

/// The least shift that rounds away the low word of a product, and with it all that the high word does not say.
const DEEP: i64 = 33;

/// The type with or without a sign.
fn sign(dtype: DType, unsigned: bool) -> DType {
    match (dtype, unsigned) {
        (DType::I8, true) => DType::U8,
        (DType::I16, true) => DType::U16,
        _ => dtype,
    }
}

/// A zero point that is stored as signed, as the type reads it.
fn unsigned(zero: i64, dtype: DType) -> i64 {
    match dtype {
        DType::U8 => zero & 0xFF,
        DType::U16 => zero & 0xFFFF,
        _ => zero,
    }
}

/// What values are multiplied with and shifted by.
enum Factors {
    /// One for all, that is known.
    Known(i64, i64),
    /// For each place of the last axis, or one that comes at run time.
    Tensors(TensorId, TensorId),
}

impl Factors {
    fn new(b: &mut Builder, call: &Call<'_>, per_channel: bool) -> Result<Self> {
        let [_, multiplier, shift] = *call.inputs else { unreachable!("the number of inputs was checked") };
        let count = b.tensor(multiplier).elements();
        let wants = if per_channel { b.dims(call.inputs[0]).last().copied().unwrap_or(1) } else { 1 };
        if count != wants || b.tensor(shift).elements() != wants {
            let what = b.describe(&[multiplier, shift]);
            return Err(b.invalid(format!("RESCALE by {what}; there is {wants} multiplier and shift")));
        }
        if let (1, Some(m), Some(s)) = (count, b.ints(multiplier), b.ints(shift)) {
            if !(0..=62).contains(&s[0]) {
                return Err(b.invalid(format!("RESCALE shifts by {}; there is 2 to 62", s[0])));
            }
            return Ok(Factors::Known(m[0], s[0]));
        }
        let shape: &[u64] = if count == 1 { &[] } else { &[count] };
        Ok(Factors::Tensors(b.reshape(multiplier, shape)?, b.reshape(shift, shape)?))
    }

    /// The least of the shifts, if these are known and none is beyond what the standard allows.
    fn least_shift(&self, b: &Builder) -> Option<i64> {
        match self {
            Factors::Known(_, shift) => Some(*shift),
            Factors::Tensors(_, shift) => {
                let all: Vec<i64> = b.ints(*shift)?;
                all.iter().all(|shift| *shift <= 62).then(|| all.iter().min().copied())?
            }
        }
    }

    fn tensors(&self) -> Vec<TensorId> {
        match self {
            Factors::Known(..) => Vec::new(),
            Factors::Tensors(multiplier, shift) => vec![*multiplier, *shift],
        }
    }
}
