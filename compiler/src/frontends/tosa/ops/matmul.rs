//! MATMUL in all types.

use halite_formats::tosa::ElementType as Tosa;
use halite_ops::DType;

use super::{
    super::Result,
    call::Call,
    cast::{computable, stored},
    conv::{bytes_of_i16, joined},
    values::zero_point,
};
use crate::{build::Builder, graph::TensorId};

/// Most terms of a sum of products of two `u8` that 32 bits hold.
const MOST_TERMS: u64 = (1 << 31) / (255 * 255);

/// MATMUL: of i8 less zero points as i32, of i16 as i48; of floats with sums of `f32`.
pub(super) fn matmul(b: &mut Builder, call: &Call<'_>, zeros: [i64; 2]) -> Result<TensorId> {
    let ([batch, _, length], [other, terms, _]) = (call.dims(b, 0)?, call.dims(b, 1)?);
    if batch != other || length != terms {
        let what = b.describe(call.inputs);
        return Err(b.invalid(format!("MATMUL of {what}")));
    }
    let [left, right] = [call.inputs[0], call.inputs[1]];
    match call.element(0) {
        Tosa::I8 => {
            let [a_zero, b_zero] = zeros.map(|zero| zero_point(b, zero));
            b.product_of_bytes(left, a_zero?, right, b_zero?)
        }
        Tosa::I16 => of_i16(b, [left, right], terms),
        element => {
            // The result of two `f16` may be wider than they are.
            let out = call.output().element;
            let narrow = element == Tosa::F16 && out == Tosa::F16;
            let [left, right] = [left, right].map(|tensor| computable(b, element, tensor));
            let kept = if narrow { DType::F16 } else { DType::F32 };
            let (left, right) = (b.cast(left?, kept)?, b.cast(right?, kept)?);
            let made = b.matmul(left, right)?;
            stored(b, out, made)
        }
    }
}

/// As four products of bytes.
fn of_i16(b: &mut Builder, [left, right]: [TensorId; 2], terms: u64) -> Result<TensorId> {
    if terms > MOST_TERMS {
        return Err(b.unsupported(format!(
            "MATMUL of i16 with {terms} terms in a sum; there are {MOST_TERMS} at most: split the product"
        )));
    }
    let (left, right) = (bytes_of_i16(b, left)?, bytes_of_i16(b, right)?);
    let mut parts = Vec::new();
    for (x, shift) in left.into_iter().zip([8, 0]) {
        for (y, more) in right.into_iter().zip([8, 0]) {
            parts.push((b.product_of_bytes(x, None, y, None)?, shift + more));
        }
    }
    joined(b, &parts, None)
}
