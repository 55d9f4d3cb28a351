//! Softmax and its relatives, and losses made of its logarithm.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{build::Builder, graph::TensorId};

pub(super) const OPS: &[(&str, Import)] = &[
    ("Hardmax", hardmax),
    ("LogSoftmax", |b, node| softmax(b, node, true)),
    ("NegativeLogLikelihoodLoss", likelihood_loss),
    ("Softmax", |b, node| softmax(b, node, false)),
    ("SoftmaxCrossEntropyLoss", cross_entropy_loss),
];

/// The tensor and the axis that counts. Before version 13 the dimensions from the axis on were one.
fn along(b: &mut Builder, node: &NodeView<'_>) -> Result<(TensorId, usize)> {
    let x = node.input(0)?;
    let dims = b.sizes(x).to_vec();
    if node.since(13) {
        return Ok((x, node.axis(node.int("axis", -1)?, dims.len())?));
    }
    let axis = node.int("axis", 1)?;
    let axis = if axis == dims.len() as i64 { dims.len() } else { node.axis(axis, dims.len())? };
    let flat: [Size; 2] = [dims[..axis].iter().product(), dims[axis..].iter().product()];
    Ok((b.reshape_to(x, &flat)?, 1))
}

pub(super) fn softmax(b: &mut Builder, node: &NodeView<'_>, log: bool) -> Result<Vec<TensorId>> {
    let dims = b.sizes(node.input(0)?).to_vec();
    let (x, axis) = along(b, node)?;
    let made = b.softmax(x, axis, log)?;
    Ok(vec![b.reshape_to(made, &dims)?])
}

fn hardmax(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let dims = b.sizes(node.input(0)?).to_vec();
    let (x, axis) = along(b, node)?;
    let element = b.element(x);
    let largest = b.arg_reduce(x, axis, false, false)?;
    let size = b.sizes(x)[axis];
    let mut shape = vec![Size::constant(1); b.rank(x)];
    shape[axis] = size;
    let numbers = b.line_of_places(DType::I64, size)?;
    let numbers = b.reshape_to(numbers, &shape)?;
    let hit = b.compare(Function::Eq, numbers, largest)?;
    let made = b.cast(hit, element)?;
    Ok(vec![b.reshape_to(made, &dims)?])
}

fn likelihood_loss(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    Ok(vec![loss(b, node, x)?])
}

fn cross_entropy_loss(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = b.softmax(node.input(0)?, 1, true)?;
    Ok(vec![loss(b, node, x)?, x])
}

/// The loss for logarithms of likelihoods, with targets in input 1 and weights of classes in input 2.
fn loss(b: &mut Builder, node: &NodeView<'_>, x: TensorId) -> Result<TensorId> {
    let target = node.input(1)?;
    let (dims, element) = (b.dims(x).to_vec(), b.element(x));
    let places = b.dims(target).to_vec();
    if dims.len() < 2 || [&dims[..1], &dims[2..]].concat() != places {
        return Err(node.invalid(format!("a loss of {}", b.describe(&[x, target]))));
    }
    let column = [&dims[..1], &[1], &dims[2..]].concat();
    let target = b.cast(target, DType::I64)?;
    let ignored = node.int_if("ignore_index")?.map(|index| Operand::Constant(Scalar::Int(index, DType::I64)));
    let index = b.reshape(target, &column)?;
    // Of an index that is none of a class, as one to ignore may be, 0 is picked.
    let picked = b.gather_elements(x, index, 1)?;
    let picked = b.reshape(picked, &places)?;
    let weight = match node.optional(2) {
        Some(weights) => {
            let flat = b.gather(weights, target, 0)?;
            b.cast(flat, DType::F32)?
        }
        None => {
            let one = b.float(DType::F32, 1.0)?;
            b.expand(one, &places)?
        }
    };
    let weight = match ignored {
        None => weight,
        Some(ignored) => b.map(&[target, weight], DType::F32, |p, x| {
            let skip = p.call(Function::Eq, &[x[0], ignored]);
            p.call(Function::Select, &[skip, Operand::from(0.0), x[1]])
        })?,
    };
    let picked = b.as_f32(picked)?;
    let losses = b.map(&[picked, weight], DType::F32, |p, x| {
        let product = p.call(Function::Mul, &[x[0], x[1]]);
        let negative = p.call(Function::Neg, &[product]);
        // What does not count may be infinite.
        let none = p.call(Function::Eq, &[x[1], Operand::from(0.0)]);
        p.call(Function::Select, &[none, Operand::from(0.0), negative])
    })?;
    let axes: Vec<usize> = (0..places.len()).collect();
    let made = match node.string("reduction", "mean")?.as_str() {
        "none" => losses,
        "sum" => b.reduce(ReduceKind::Sum, losses, &axes, false)?,
        "mean" => {
            let sum = b.reduce(ReduceKind::Sum, losses, &axes, false)?;
            let weights = b.reduce(ReduceKind::Sum, weight, &axes, false)?;
            b.binary(Function::Div, sum, weights)?
        }
        other => return Err(node.invalid(format!("reduction '{other}' is none that ONNX has"))),
    };
    b.cast(made, element)
}
