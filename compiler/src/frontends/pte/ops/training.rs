//! What training on a device computes: the loss and its gradient, gradients of products, and weights that become codes again.

use halite_ops::{DType, expression::Function as F, pad::Border, reduce::ReduceKind};

use super::{Node, Result, Table, quant_bytes::some_of, quant_linear::grouped, unary::number};
use crate::{build::Range, graph::TensorId};

pub(super) const OPERATORS: Table = &[
    ("et_vk.fused_ce.default", cross_entropy),
    ("et_vk.linear_dW.default", of_weights),
    ("et_vk.linear_q4gsw_backward.default", of_inputs),
    ("et_vk.q4gsw_requant.default", requantize),
];

/// Arguments: logits `[rows, classes]`, a label for each row, of which negative ones do not count, and what sums are divided by.
/// Results: the cross entropy and its gradient.
fn cross_entropy(n: &mut Node<'_, '_>) -> Result<()> {
    let (logits, labels, valid) = (n.tensor(0)?, n.tensor(1)?, n.float(2)?);
    let &[rows, classes] = n.b().sizes(logits) else {
        let what = n.b().describe(&[logits]);
        return Err(n.invalid(format!("{what} has no row of classes for each label")));
    };
    let logits = n.b().cast(logits, DType::F32)?;
    let log = n.b().softmax(logits, 1, true)?;
    let places = n.b().count_from(0, classes.exact())?;
    let element = n.b().element(places);
    let labels = n.b().cast(labels, element)?;
    let labels = n.b().reshape_to(labels, &[rows, 1.into()])?;
    let is_label = n.b().compare(F::Eq, places, labels)?;
    let losses = n.b().map(&[log, is_label], DType::F32, |p, x| {
        let loss = p.call(F::Div, &[x[0], number(-valid)]);
        p.call(F::Select, &[x[1], loss, number(0.0)])
    })?;
    let loss = n.b().reduce(ReduceKind::Sum, losses, &[0, 1], false)?;
    let zero = n.b().values(element, &[], &halite_ops::Values::Int(vec![0]))?;
    let counts = n.b().compare(F::Ge, labels, zero)?;
    let slopes = n.b().map(&[log, is_label, counts], DType::F32, |p, x| {
        let likely = p.call(F::Exp, &x[..1]);
        let wanted = p.call(F::Select, &[x[1], number(1.0), number(0.0)]);
        let apart = p.call(F::Sub, &[likely, wanted]);
        let slope = p.call(F::Div, &[apart, number(valid)]);
        p.call(F::Select, &[x[2], slope, number(0.0)])
    })?;
    n.finish_list(&[Some(loss), Some(slopes)])
}

/// All rows of a tensor as a matrix.
fn rows(n: &mut Node<'_, '_>, i: usize) -> Result<TensorId> {
    let x = n.tensor(i)?;
    let dims = n.b().sizes(x).to_vec();
    let Some((last, lead)) = dims.split_last() else {
        let what = n.b().describe(&[x]);
        return Err(n.invalid(format!("{what} has no rows")));
    };
    n.b().reshape_to(x, &[lead.iter().product(), *last])
}

/// Arguments: the gradient of a product's results, and its rows. The result is that of its weights.
fn of_weights(n: &mut Node<'_, '_>) -> Result<()> {
    let (slopes, x) = (rows(n, 0)?, rows(n, 1)?);
    let slopes = n.b().swap_last(slopes)?;
    let made = n.b().matmul(slopes, x)?;
    n.finish(made)
}

/// Arguments: the gradient of a product's results, its weights in groups, their scales, the size of groups. The result is the
/// gradient of its rows, as long as the file says.
fn of_inputs(n: &mut Node<'_, '_>) -> Result<()> {
    let slopes = n.tensor(0)?;
    let length = n.declared()?.dims.last().copied().unwrap_or(0);
    let weights = grouped(n, length, [1, 2, 3])?;
    let weights = n.b().dequantized(&weights)?;
    let slopes = n.b().cast(slopes, DType::F32)?;
    let made = n.b().matmul(slopes, weights)?;
    n.finish(made)
}

/// Arguments: weights `[columns, length]`, scales `[groups, columns]`, the size of groups. The result is `u8[columns, length / 2]`,
/// lower halves first, in which 8 stands for 0.
fn requantize(n: &mut Node<'_, '_>) -> Result<()> {
    let (weights, scales, group) = (n.tensor(0)?, n.tensor(1)?, n.size(2)?.max(1));
    let &[columns, length] = n.b().dims(weights) else {
        let what = n.b().describe(&[weights]);
        return Err(n.invalid(format!("weights are a matrix, not {what}")));
    };
    let groups = length.div_ceil(group);
    let scales = some_of(n, scales, &[groups, columns])?;
    let scales = n.b().turned(scales)?;
    let scales = n.b().reshape(scales, &[columns, groups, 1])?;
    let scales = n.b().expand(scales, &[columns, groups, group])?;
    let scales = n.b().reshape(scales, &[columns, groups.saturating_mul(group)])?;
    let part = |start, step, count| [Range::all(columns), Range { start, step, count }];
    let scales = n.b().slice(scales, &part(0, 1, length))?;
    let [weights, scales] = [n.b().cast(weights, DType::F32)?, n.b().cast(scales, DType::F32)?];
    let codes = n.b().map(&[weights, scales], DType::F32, |p, x| {
        let none = p.call(F::Eq, &[x[1], number(0.0)]);
        let divisor = p.call(F::Select, &[none, number(1.0), x[1]]);
        let quotient = p.call(F::Div, &[x[0], divisor]);
        let rounded = p.call(F::Round, &[quotient]);
        let code = p.call(F::Select, &[none, number(0.0), rounded]);
        let code = p.call(F::Max, &[code, number(-8.0)]);
        let code = p.call(F::Min, &[code, number(7.0)]);
        p.call(F::Add, &[code, number(8.0)])
    })?;
    let codes = n.b().cast(codes, DType::U8)?;
    let codes = n.b().pad(codes, &[(0, 0), (0, (length % 2) as i64)], Border::Constant, 0.0)?;
    let low = n.b().slice(codes, &part(0, 2, length.div_ceil(2)))?;
    let high = n.b().slice(codes, &part(1, 2, length.div_ceil(2)))?;
    let sixteen = n.b().values(DType::U8, &[], &halite_ops::Values::Int(vec![16]))?;
    let high = n.b().binary(F::Mul, high, sixteen)?;
    let made = n.b().binary(F::Or, low, high)?;
    n.finish(made)
}
