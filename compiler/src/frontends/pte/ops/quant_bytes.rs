//! Operators from 8-bit codes to 8-bit codes, and what operators on them share.

use halite_ops::{
    DType,
    expression::{Function as F, Operand, Scalar, Type},
};

use super::{Node, Result, Table, unary::number};
use crate::{
    build::{Codes, Quantum, Range},
    graph::TensorId,
};

pub(super) const OPERATORS: Table = &[
    ("et_vk.q8ta_add.default", add),
    ("et_vk.q8ta_relu.default", relu),
    ("et_vk.q8ta_pixel_shuffle.default", shuffle),
    ("et_vk.q8ta_clone.default", |n| {
        let made = n.tensor(0)?;
        n.finish(made)
    }),
    ("quantized_decomposed.add.default", add_of_types),
];

/// The first elements of a tensor in each dimension: the exporter fills constants up to whole words.
pub(super) fn some_of(n: &mut Node<'_, '_>, x: TensorId, dims: &[u64]) -> Result<TensorId> {
    let own = n.b().dims(x).to_vec();
    let fits = own.len() == dims.len() && own.iter().zip(dims).all(|(own, size)| own >= size);
    if !fits {
        let what = n.b().describe(&[x]);
        return Err(n.invalid(format!("{what} is given where {dims:?} are needed")));
    }
    let ranges: Vec<Range> = dims.iter().map(|count| Range { start: 0, step: 1, count: *count }).collect();
    if own == dims { Ok(x) } else { n.b().slice(x, &ranges) }
}

/// Whether an activation is a rectifier or none.
pub(super) fn is_relu(n: &Node<'_, '_>, i: usize) -> Result<bool> {
    match if i < n.count() { n.text(i)? } else { "" } {
        "relu" => Ok(true),
        "none" | "" => Ok(false),
        other => Err(n.unsupported(format!("the activation {other:?}; there are \"none\" and \"relu\""))),
    }
}

/// `i8` codes of floats.
pub(super) fn quantized(n: &mut Node<'_, '_>, x: TensorId, to: Quantum) -> Result<TensorId> {
    let codes = Codes { range: (-128, 127), element: DType::I8.into(), zero_first: false };
    n.b().quantize_by_number(x, to.scale, to.zero, codes)
}

/// A scale and a zero point in arguments.
fn quantum(n: &Node<'_, '_>, i: usize) -> Result<Quantum> {
    Ok(Quantum { scale: n.float(i)?, zero: n.int(i + 1)? })
}

/// Codes as `f32`.
fn plain(n: &mut Node<'_, '_>, codes: TensorId, from: Quantum) -> Result<TensorId> {
    let zero = number(from.zero as f64);
    n.b().map(&[codes], DType::F32, |p, x| {
        let wide = p.cast(Type::Of(DType::F32), x[0]);
        let moved = p.call(F::Sub, &[wide, zero]);
        p.call(F::Mul, &[moved, number(from.scale)])
    })
}

/// Arguments: two tensors, the scale and the zero point of each and of the result, and a factor of the second.
fn add(n: &mut Node<'_, '_>) -> Result<()> {
    let (a, b) = (n.tensor(0)?, n.tensor(1)?);
    let alpha = if n.count() > 8 { n.float(8)? } else { 1.0 };
    let (a, b) = (plain(n, a, quantum(n, 2)?)?, plain(n, b, quantum(n, 4)?)?);
    let sum = n.b().map(&[a, b], DType::F32, |p, x| {
        let b = if alpha == 1.0 { x[1] } else { p.call(F::Mul, &[x[1], number(alpha)]) };
        p.call(F::Add, &[x[0], b])
    })?;
    let made = quantized(n, sum, quantum(n, 6)?)?;
    n.finish(made)
}

/// The same as a kernel of its own: for each of the two tensors and the result scale, zero point, least and largest code.
fn add_of_types(n: &mut Node<'_, '_>) -> Result<()> {
    let (a, b, to, element) = (n.tensor(0)?, n.tensor(5)?, quantum(n, 10)?, n.element()?);
    let (a, b) = (plain(n, a, quantum(n, 1)?)?, plain(n, b, quantum(n, 6)?)?);
    let sum = n.b().binary(F::Add, a, b)?;
    let codes = Codes { range: (n.int(12)?, n.int(13)?), element, zero_first: false };
    let made = n.b().quantize_by_number(sum, to.scale, to.zero, codes)?;
    n.finish(made)
}

/// Arguments: input, its scale and zero point, those of the result.
fn relu(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, from, to) = (n.tensor(0)?, quantum(n, 1)?, quantum(n, 3)?);
    let made = if from == to {
        // Codes below that of 0 become it.
        let zero = Operand::Constant(Scalar::Int(from.zero, DType::I8));
        n.b().map(&[x], DType::I8, |p, x| p.call(F::Max, &[x[0], zero]))?
    } else {
        let made = plain(n, x, from)?;
        let made = n.b().unary(F::Relu, made)?;
        quantized(n, made, to)?
    };
    n.finish(made)
}

/// Arguments: input, its scale and zero point, the inverse of the result's scale, its zero point, and how many pixels a pixel
/// becomes in each direction.
fn shuffle(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, from, r) = (n.tensor(0)?, quantum(n, 1)?, n.size(5)?);
    let to = Quantum { scale: 1.0 / n.float(3)?, zero: n.int(4)? };
    let moved = super::images::shuffled(n, x, r)?;
    // A scale and its inverse are told by two numbers, which are both rounded.
    let same = (to.scale / from.scale - 1.0).abs() < 1e-9 && from.zero == to.zero;
    let made = if same {
        moved
    } else {
        let made = plain(n, moved, from)?;
        quantized(n, made, to)?
    };
    n.finish(made)
}
