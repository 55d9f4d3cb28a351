//! FFT2D and RFFT2D as products with matrices of cosines and sines, one axis after the other. Long axes are taken apart (`fft_long`).

use halite_ops::{DType, Values, expression::Function};

use super::{super::Result, call::Call, fft_long, fft_turn::Turn, rules};
use crate::{
    build::{Builder, Range},
    graph::{ElementType, TensorId},
};

/// FFT2D: the real and the imaginary part of the sums of `x * exp(-i angle)`, or of `exp(i angle)` of the inverse, which is
/// not divided.
pub(super) fn fft2d(b: &mut Builder, call: &Call<'_>, inverse: bool) -> Result<Vec<TensorId>> {
    let [batch, height, width] = sizes(b, call)?;
    if b.dims(call.inputs[1]) != [batch, height, width] {
        let what = b.describe(call.inputs);
        return Err(b.invalid(format!("FFT2D of {what}")));
    }
    if height.max(width) > fft_long::MOST_AT_ONCE {
        let [real, imaginary] = [call.inputs[0], call.inputs[1]];
        return Ok(fft_long::planes(b, [real, imaginary], [batch, height, width], inverse)?.to_vec());
    }
    let both = b.concat(call.inputs, 2)?;
    let turn = Turn::new(width, width, inverse);
    let matrix = turn.beside(b, true)?;
    let lines = b.matmul(both, matrix)?;
    columns(b, lines, [batch, height, width], inverse)
}

/// RFFT2D: of real elements, of which the first half of the columns says all.
pub(super) fn rfft2d(b: &mut Builder, call: &Call<'_>) -> Result<Vec<TensorId>> {
    let [batch, height, width] = sizes(b, call)?;
    let half = width / 2 + 1;
    let mut made = if height.max(width) > fft_long::MOST_AT_ONCE {
        let zero = b.float(DType::F32, 0.0)?;
        let nothing = b.expand(zero, &[batch, height, width])?;
        let made = fft_long::planes(b, [call.inputs[0], nothing], [batch, height, width], false)?;
        let some = Range { start: 0, step: 1, count: half };
        let kept = made.map(|part| b.slice(part, &[Range::all(batch), Range::all(height), some]));
        kept.into_iter().collect::<Result<Vec<_>>>()?
    } else {
        let matrix = Turn::new(width, half, false).beside(b, false)?;
        let lines = b.matmul(call.inputs[0], matrix)?;
        columns(b, lines, [batch, height, half], false)?
    };
    made[1] = real_corners(b, made[1], [height, width])?;
    Ok(made)
}

/// Zeros where all angles are multiples of half a turn, so that the specification leaves every term out: also of infinite
/// ones, whose products with 0 are no numbers.
fn real_corners(b: &mut Builder, imaginary: TensorId, [height, width]: [u64; 2]) -> Result<TensorId> {
    let half = width / 2 + 1;
    let turns = |count: u64, size: u64| {
        Values::Int((0..count).map(|place| i64::from((2 * place).is_multiple_of(size))).collect())
    };
    let rows = b.values(ElementType::Bool, &[height, 1], &turns(height, height))?;
    let columns = b.values(ElementType::Bool, &[half], &turns(half, width))?;
    let corners = b.binary(Function::And, rows, columns)?;
    let zero = b.float(DType::F32, 0.0)?;
    b.select(corners, zero, imaginary)
}

/// The sizes, which are powers of two within the level's bound.
fn sizes(b: &Builder, call: &Call<'_>) -> Result<[u64; 3]> {
    let dims @ [_, height, width] = call.dims(b, 0)?;
    for size in [height, width] {
        rules::bounded(b, call, "a size", size, rules::MOST_KERNEL)?;
        if !size.is_power_of_two() {
            return Err(b.invalid(format!("{} of {size} places; a size is a power of two", call.name())));
        }
    }
    Ok(dims)
}

/// Transforms columns of `lines`: batch x height x (real, imaginary).
fn columns(
    b: &mut Builder,
    lines: TensorId,
    [batch, height, width]: [u64; 3],
    inverse: bool,
) -> Result<Vec<TensorId>> {
    let parts = [0, 1].map(|part| {
        let columns = Range { start: part * width, step: 1, count: width };
        b.slice(lines, &[Range::all(batch), Range::all(height), columns])
    });
    let [real, imaginary] = parts;
    let both = b.concat(&[real?, imaginary?], 1)?;
    let matrix = Turn::new(height, height, inverse).above(b)?;
    let made = b.matmul(matrix, both)?;
    let parts = [0, 1].map(|part| {
        let rows = Range { start: part * height, step: 1, count: height };
        b.slice(made, &[Range::all(batch), rows, Range::all(width)])
    });
    parts.into_iter().collect()
}
