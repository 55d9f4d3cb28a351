//! Operators that draw random numbers. All are made of the numbers of `Builder::uniform` and `Builder::normal`; a node's `seed`
//! is its own key, nodes without one share that of the caller.

use halite_ops::{DType, expression::Function, reduce::ReduceKind};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("Bernoulli", bernoulli),
    ("Dropout", dropout),
    ("Multinomial", multinomial),
    ("RandomNormal", |b, n| drawn(b, n, Builder::normal::<Size>, [("mean", 0.0), ("scale", 1.0)])),
    ("RandomNormalLike", |b, n| drawn(b, n, Builder::normal::<Size>, [("mean", 0.0), ("scale", 1.0)])),
    ("RandomUniform", |b, n| drawn(b, n, Builder::uniform::<Size>, [("low", 0.0), ("high", 1.0)])),
    ("RandomUniformLike", |b, n| drawn(b, n, Builder::uniform::<Size>, [("low", 0.0), ("high", 1.0)])),
];

type Draw = fn(&mut Builder, &[Size], [f32; 2], Option<f32>) -> Result<TensorId>;

/// A tensor of a shape that an attribute gives, or that of the input.
fn drawn(
    b: &mut Builder,
    node: &NodeView<'_>,
    draw: Draw,
    numbers: [(&str, f32); 2],
) -> Result<Vec<TensorId>> {
    let like = node.optional(0);
    let dims = match like {
        Some(like) => b.sizes(like).to_vec(),
        None => {
            let shape =
                node.ints("shape")?.ok_or_else(|| node.invalid("the attribute 'shape' is missing"))?;
            let sizes: Option<Vec<u64>> = shape.iter().map(|size| u64::try_from(*size).ok()).collect();
            let sizes = sizes.map(|sizes| sizes.into_iter().map(Size::from).collect());
            sizes.ok_or_else(|| node.invalid(format!("{shape:?} is no shape")))?
        }
    };
    let element = match (node.element("dtype")?, like) {
        (Some(element), _) => element,
        (None, Some(like)) => b.element(like),
        (None, None) => ElementType::Of(DType::F32),
    };
    if !element.is_float() {
        return Err(node
            .invalid(format!("random numbers of type {element}; the attribute 'dtype' names a float type")));
    }
    let [first, second] = numbers;
    let numbers = [node.float(first.0, first.1)?, node.float(second.0, second.1)?];
    let made = draw(b, &dims, numbers, node.float_if("seed")?)?;
    Ok(vec![b.cast(made, element)?])
}

/// 1 with the probability that the input has at a place, else 0.
fn bernoulli(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let chances = node.input(0)?;
    let element = node.element("dtype")?.unwrap_or_else(|| b.element(chances));
    let (chances, dims) = (b.as_f32(chances)?, b.sizes(chances).to_vec());
    let drawn = b.uniform(&dims, [0.0, 1.0], node.float_if("seed")?)?;
    let is_one = b.compare(Function::Lt, drawn, chances)?;
    Ok(vec![b.cast(is_one, element)?])
}

/// Classes by their logarithmic weights: the first class up to which the weights' sum is above a random part of all.
fn multinomial(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let element = node.element("dtype")?.unwrap_or(ElementType::Of(DType::I32));
    let count = node.int("sample_size", 1)?;
    let count = u64::try_from(count).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| node.invalid("the attribute 'sample_size' is no number of samples"))?;
    let weights = node.input(0)?;
    let &[batch, classes] = b.dims(weights) else {
        return Err(node.invalid(format!("takes a matrix, not {}", b.describe(&[weights]))));
    };
    if classes == 0 {
        return Err(node.invalid("there is no class to draw"));
    }
    let weights = b.as_f32(weights)?;
    let parts = b.softmax(weights, 1, false)?;
    let sums = b.cumulative_sum(parts, 1, false, false)?;
    let sums = b.reshape(sums, &[batch, 1, classes])?;
    let drawn = b.uniform(&[batch, count, 1], [0.0, 1.0], node.float_if("seed")?)?;
    let is_behind = b.compare(Function::Le, sums, drawn)?;
    let is_behind = b.cast(is_behind, DType::I32)?;
    let class = b.reduce(ReduceKind::Sum, is_behind, &[2], false)?;
    // The sum of all parts may be rounded to less than 1.
    let last = b.float(DType::I32, (classes - 1) as f64)?;
    let class = b.binary(Function::Min, class, last)?;
    Ok(vec![b.cast(class, element)?])
}

/// Elements as they are; in training mode some are 0, as likely as the ratio says, and the others larger to make up for it.
fn dropout(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let (dims, element) = (b.sizes(data).to_vec(), b.element(data));
    let is_training = match node.optional(2) {
        Some(training) => b.need_ints(training, "whether it is training")?.first().is_some_and(|t| *t != 0),
        None => false,
    };
    let ratio = match node.optional(1).filter(|_| is_training) {
        Some(ratio) => b.need_floats(ratio, "the ratio of elements that are dropped")?.first().copied(),
        None => None,
    };
    let ratio = ratio.unwrap_or(0.5) as f32;
    if is_training && !(0.0..1.0).contains(&ratio) {
        return Err(node.invalid(format!("the ratio {ratio} is not from 0 to below 1")));
    }
    if is_training && ratio > 0.0 {
        let seed = node.int_if("seed")?.map(|seed| seed as f32);
        let drawn = b.uniform(&dims, [0.0, 1.0], seed)?;
        let mask = b.map(&[drawn], ElementType::Bool, |p, x| p.call(Function::Ge, &[x[0], ratio.into()]))?;
        let kept = b.map(&[data, mask], element, |p, x| {
            let scaled = p.call(Function::Mul, &[x[0], (1.0 / (1.0 - ratio)).into()]);
            p.call(Function::Select, &[x[1], scaled, 0f32.into()])
        })?;
        return Ok(vec![kept, mask]);
    }
    if !node.is_used(1) {
        return Ok(vec![data]);
    }
    let element = if node.since(10) { ElementType::Bool } else { element };
    let one = b.float(element, 1.0)?;
    Ok(vec![data, b.expand_to(one, &dims)?])
}
