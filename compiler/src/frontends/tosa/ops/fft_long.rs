//! Fourier transforms of long lines, by shorter ones: a line is a matrix whose columns are transformed, turned by an angle for each
//! element, and whose rows are transformed then. Matrices of cosines and sines stay small.

use halite_ops::{DType, Values, expression::Function};

use super::{super::Result, fft_turn::Turn};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

/// The longest line that one product transforms: its matrix has four elements for each pair of places.
pub(super) const MOST_AT_ONCE: u64 = 1024;

/// The real and the imaginary part of batch x height x width, transformed along both of the last axes.
///
/// # Errors
/// The builder's control ended the work, or its budget.
pub(super) fn planes(
    b: &mut Builder,
    parts: [TensorId; 2],
    [batch, height, width]: [u64; 3],
    inverse: bool,
) -> Result<[TensorId; 2]> {
    let rows = each(b, parts, |b, part| b.reshape(part, &[batch * height, width]))?;
    let rows = lines(b, rows, [batch * height, width], inverse)?;
    let columns = each(b, rows, |b, part| turned(b, part, [batch, height, width]))?;
    let columns = lines(b, columns, [batch * width, height], inverse)?;
    let made = each(b, columns, |b, part| turned(b, part, [batch, width, height]))?;
    each(b, made, |b, part| b.reshape(part, &[batch, height, width]))
}

/// The same of `count` lines.
fn lines(
    b: &mut Builder,
    parts: [TensorId; 2],
    [count, size]: [u64; 2],
    inverse: bool,
) -> Result<[TensorId; 2]> {
    if size <= MOST_AT_ONCE {
        let both = b.concat(&parts, 1)?;
        let matrix = Turn::new(size, size, inverse).beside(b, true)?;
        let made = b.matmul(both, matrix)?;
        let half = |b: &mut Builder, start: u64| {
            b.slice(made, &[Range::all(count), Range { start, step: 1, count: size }])
        };
        return Ok([half(b, 0)?, half(b, size)?]);
    }
    // The line's place is `row * wide + column`, and the result's `row + tall * column`.
    let tall = 1 << (size.trailing_zeros() / 2);
    let wide = size / tall;
    let columns = each(b, parts, |b, part| turned(b, part, [count, tall, wide]))?;
    let columns = lines(b, columns, [count * wide, tall], inverse)?;
    let rows = twisted(b, columns, [count, wide, tall], inverse)?;
    let rows = each(b, rows, |b, part| turned(b, part, [count, wide, tall]))?;
    let rows = lines(b, rows, [count * tall, wide], inverse)?;
    let made = each(b, rows, |b, part| turned(b, part, [count, tall, wide]))?;
    each(b, made, |b, part| b.reshape(part, &[count, size]))
}

/// Of `count` matrices of tall x wide, the columns as lines.
fn turned(b: &mut Builder, part: TensorId, [count, tall, wide]: [u64; 3]) -> Result<TensorId> {
    let part = b.reshape(part, &[count, tall, wide])?;
    let part = b.transpose(part, &[0, 2, 1])?;
    b.reshape(part, &[count * wide, tall])
}

/// Each element of matrices of wide x tall times the cosine and the sine of its angle, which is its row times its column.
fn twisted(
    b: &mut Builder,
    parts: [TensorId; 2],
    [count, wide, tall]: [u64; 3],
    inverse: bool,
) -> Result<[TensorId; 2]> {
    b.countable(wide.saturating_mul(tall))?;
    let turn = Turn::new(wide * tall, wide * tall, inverse);
    let places = (0..wide).flat_map(|row| (0..tall).map(move |column| (row, column)));
    let (cos, sin): (Vec<f64>, Vec<f64>) = places.map(|(row, column)| turn.of(row, column)).unzip();
    let cos = b.values(DType::F32, &[wide, tall], &Values::Float(cos))?;
    let sin = b.values(DType::F32, &[wide, tall], &Values::Float(sin))?;
    let [real, imaginary] = each(b, parts, |b, part| b.reshape(part, &[count, wide, tall]))?;
    let mut product = |by: [TensorId; 2], of: Function| {
        b.map(&[real, imaginary, by[0], by[1]], DType::F32, |p, x| {
            let (first, second) =
                (p.call(Function::Mul, &[x[0], x[2]]), p.call(Function::Mul, &[x[1], x[3]]));
            p.call(of, &[second, first])
        })
    };
    Ok([product([cos, sin], Function::Add)?, product([sin, cos], Function::Sub)?])
}

fn each(
    b: &mut Builder,
    [real, imaginary]: [TensorId; 2],
    make: impl Fn(&mut Builder, TensorId) -> Result<TensorId>,
) -> Result<[TensorId; 2]> {
    Ok([make(b, real)?, make(b, imaginary)?])
}
