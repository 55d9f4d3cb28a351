//! Of `ai.onnx.ml` linear models, and what classifiers make of scores: labels, and shares of each class.

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

pub(super) const CLASSIC: &[(&str, Import)] =
    &[("LinearClassifier", classifier), ("LinearRegressor", regressor)];

/// What ONNX Runtime takes for zero where `SOFTMAX_ZERO` leaves zeros out.
const NEARLY_ZERO: f64 = 1e-7;

/// Lines of features as floats: a vector is one line.
pub(super) fn lines(b: &mut Builder, node: &NodeView<'_>) -> Result<TensorId> {
    let x = node.input(0)?;
    let dims: [Size; 2] = match b.sizes(x)[..] {
        [features] => [1.into(), features],
        [lines, features] => [lines, features],
        _ => return Err(node.invalid(format!("{} is no list of lines", b.describe(&[x])))),
    };
    let x = b.as_f32(x)?;
    b.reshape_to(x, &dims)
}

/// A list of floats as a constant of some dimensions.
pub(super) fn row(b: &mut Builder, dims: &[u64], values: impl IntoIterator<Item = f32>) -> Result<TensorId> {
    let values = Values::Float(values.into_iter().map(f64::from).collect());
    b.values(DType::F32, dims, &values)
}

/// The products of lines by rows of coefficients, with what is added.
fn products(b: &mut Builder, node: &NodeView<'_>) -> Result<TensorId> {
    let x = lines(b, node)?;
    let coefficients = node.floats("coefficients")?.unwrap_or_default();
    let added = node.floats("intercepts")?.unwrap_or_default();
    let rows = match node.int_if("targets")? {
        Some(targets) => targets,
        None if added.is_empty() => 1,
        None => added.len() as i64,
    };
    let features = b.sizes(x)[1];
    let rows =
        usize::try_from(rows).ok().filter(|rows| *rows > 0 && coefficients.len().is_multiple_of(*rows));
    let Some(rows) = rows.filter(|rows| added.is_empty() || added.len() == *rows) else {
        let text = format!("{} coefficients and {} intercepts go with no", coefficients.len(), added.len());
        return Err(node.invalid(format!("{text} number of results")));
    };
    let each = (coefficients.len() / rows) as u64;
    if !features.agrees(each) {
        let text = format!("{each} coefficients for each result, and lines of {features} features");
        return Err(node.invalid(text));
    }
    let weights = row(b, &[rows as u64, each], coefficients)?;
    let made = b.product(x, weights, true)?;
    if added.is_empty() {
        return Ok(made);
    }
    let added = row(b, &[1, rows as u64], added)?;
    b.binary(Function::Add, made, added)
}

fn regressor(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let made = products(b, node)?;
    Ok(vec![transformed(b, node, made)?])
}

fn classifier(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let labels = labels(node)?;
    let made = products(b, node)?;
    if !b.sizes(made)[1].is((labels.len() as u64).into()) || labels.len() < 2 {
        let text = format!("{} scores for {} classes", b.sizes(made)[1], labels.len());
        return Err(node.unsupported(format!("{text}; there is one for each of two or more")));
    }
    let label = best(b, made, &labels)?;
    Ok(vec![label, transformed(b, node, made)?])
}

/// The classes' numbers; where classes are texts, which devices do not hold, their places in the list.
pub(super) fn labels(node: &NodeView<'_>) -> Result<Vec<i64>> {
    let numbers = ["classlabels_int64s", "classlabels_ints"].map(|name| node.ints(name));
    for numbers in numbers {
        if let Some(numbers) = numbers?.filter(|numbers| !numbers.is_empty()) {
            return Ok(numbers);
        }
    }
    let texts = node.strings("classlabels_strings")?.unwrap_or_default();
    if texts.is_empty() {
        return Err(node.unsupported("it names no classes"));
    }
    Ok((0..texts.len() as i64).collect())
}

/// The labels of the largest scores, of equal ones the first.
pub(super) fn best(b: &mut Builder, scores: TensorId, labels: &[i64]) -> Result<TensorId> {
    let lines = b.sizes(scores)[0];
    let place = b.arg_reduce(scores, 1, false, false)?;
    let place = b.reshape_to(place, &[lines])?;
    let labels = b.ints_constant(labels)?;
    b.gather(labels, place, 0)
}

/// One of two labels.
pub(super) fn either(b: &mut Builder, condition: TensorId, [yes, no]: [i64; 2]) -> Result<TensorId> {
    let lines = b.sizes(condition)[0];
    let [yes, no] = [b.ints_constant(&[yes])?, b.ints_constant(&[no])?];
    let condition = b.reshape_to(condition, &[lines])?;
    b.select(condition, yes, no)
}

/// What a model says of its scores: nothing, or what makes shares of them.
pub(super) fn transformed(b: &mut Builder, node: &NodeView<'_>, scores: TensorId) -> Result<TensorId> {
    transform(b, node, &node.string("post_transform", "NONE")?, scores)
}

/// What makes shares of scores, by its name.
pub(super) fn transform(
    b: &mut Builder,
    node: &NodeView<'_>,
    name: &str,
    scores: TensorId,
) -> Result<TensorId> {
    match name {
        "NONE" => Ok(scores),
        "LOGISTIC" => b.unary(Function::Sigmoid, scores),
        "SOFTMAX" => b.softmax(scores, 1, false),
        "SOFTMAX_ZERO" => softmax_of_others(b, scores),
        "PROBIT" => probit(b, scores),
        other => Err(node.invalid(format!("post_transform is {other}, which is none"))),
    }
}

/// The inverse of the normal distribution, by Winitzki's formula for the inverse of the error function: with its constant 0.147 it is
/// off by 2e-3 at most, and ONNX Runtime computes this one.
fn probit(b: &mut Builder, scores: TensorId) -> Result<TensorId> {
    const CONSTANT: f64 = 0.147;
    let numbers = [2.0, 1.0, 0.5, 1.0 / CONSTANT, 2.0 / (std::f64::consts::PI * CONSTANT), 2f64.sqrt()];
    b.map(&[scores], DType::F32, |program, x| {
        let [two, one, half, inverse, term, root] =
            numbers.map(|number| Operand::Constant(Scalar::Float(number)));
        let doubled = program.call(Function::Mul, &[x[0], two]);
        let place = program.call(Function::Sub, &[doubled, one]);
        let below = program.call(Function::Sub, &[one, place]);
        let above = program.call(Function::Add, &[one, place]);
        let product = program.call(Function::Mul, &[below, above]);
        let log = program.call(Function::Log, &[product]);
        let halved = program.call(Function::Mul, &[log, half]);
        let v = program.call(Function::Add, &[halved, term]);
        let square = program.call(Function::Mul, &[v, v]);
        let scaled = program.call(Function::Mul, &[log, inverse]);
        let inner = program.call(Function::Sub, &[square, scaled]);
        let inner = program.call(Function::Sqrt, &[inner]);
        let inner = program.call(Function::Sub, &[inner, v]);
        let size = program.call(Function::Sqrt, &[inner]);
        let size = program.call(Function::Mul, &[size, root]);
        let negative = program.call(Function::Neg, &[size]);
        let zero = Operand::Constant(Scalar::Float(0.0));
        let is_negative = program.call(Function::Lt, &[place, zero]);
        program.call(Function::Select, &[is_negative, negative, size])
    })
}

/// Shares by exponentials, of which scores of zero get none.
fn softmax_of_others(b: &mut Builder, scores: TensorId) -> Result<TensorId> {
    let most = b.reduce(ReduceKind::Max, scores, &[1], true)?;
    let (least, none) = (b.float(DType::F32, NEARLY_ZERO)?, b.float(DType::F32, 0.0)?);
    let weights = b.map(&[scores, most, least, none], DType::F32, |program, x| {
        let size = program.call(Function::Abs, &[x[0]]);
        let counts = program.call(Function::Gt, &[size, x[2]]);
        let below = program.call(Function::Sub, &[x[0], x[1]]);
        let share = program.call(Function::Exp, &[below]);
        program.call(Function::Select, &[counts, share, x[3]])
    })?;
    let sum = b.reduce(ReduceKind::Sum, weights, &[1], true)?;
    b.binary(Function::Div, weights, sum)
}

/// Whether scores are above a number.
pub(super) fn above(b: &mut Builder, scores: TensorId, number: f64) -> Result<TensorId> {
    let number = b.float(DType::F32, number)?;
    b.map(&[scores, number], ElementType::Bool, |program, x| program.call(Function::Gt, x))
}
