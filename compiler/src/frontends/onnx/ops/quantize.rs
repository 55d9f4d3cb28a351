//! Quantization, and products of what is quantized.

use halite_ops::{
    DType, Values,
    expression::Function,
    line_codes::{CodeRule, LineCodes},
};

use super::{Import, NodeView, Result, conv::convolution};
use crate::{
    build::{Builder, Coded},
    graph::{ElementType, TensorId},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("DequantizeLinear", dequantize),
    ("DynamicQuantizeLinear", dynamic),
    ("MatMulInteger", matmul_integer),
    ("QLinearConv", conv),
    ("QLinearMatMul", matmul),
    ("QuantizeLinear", quantize),
];

/// The same of `com.microsoft`, which had codes of 4 and 16 bits before ONNX.
pub(super) const MICROSOFT: &[(&str, Import)] =
    &[("DequantizeLinear", dequantize), ("QuantizeLinear", quantize)];

/// Scale and zero point of a tensor, broadcast to it.
fn parameters(b: &mut Builder, node: &NodeView<'_>, x: TensorId) -> Result<(TensorId, Option<TensorId>)> {
    let dims = b.sizes(x).to_vec();
    let axis = node.int("axis", 1)?;
    // For one scale the axis is nothing.
    let axis = node.axis(axis, dims.len()).unwrap_or(dims.len());
    let block = u64::try_from(node.int("block_size", 0)?).unwrap_or(0);
    let scale = b.quantization(node.input(1)?, &dims, axis, block)?;
    let zero = node.optional(2).map(|zero| b.quantization(zero, &dims, axis, block)).transpose()?;
    Ok((scale, zero))
}

/// What is quantized, and its scale and zero point, which are broadcast to it.
pub(in crate::frontends::onnx) fn quantization(
    b: &mut Builder,
    node: &NodeView<'_>,
) -> Result<(TensorId, TensorId, Option<TensorId>)> {
    let x = node.input(0)?;
    let (scale, zero) = parameters(b, node, x)?;
    Ok((x, scale, zero))
}

fn quantize(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, scale, zero) = quantization(b, node)?;
    let to = match (zero, node.int("output_dtype", 0)?) {
        (Some(zero), _) => b.element(zero),
        (None, 0) => DType::U8.into(),
        (None, _) => node.element("output_dtype")?.unwrap_or(DType::U8.into()),
    };
    if let Some(made) = b.conv_between_codes(x, scale, zero, to.storage())? {
        return Ok(vec![made]);
    }
    Ok(vec![b.quantize(x, scale, zero, to.storage())?])
}

fn dequantize(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let (scale, zero) = parameters(b, node, x)?;
    let to = match node.int("output_dtype", 0)? {
        0 => b.element(scale),
        _ => node.element("output_dtype")?.unwrap_or_else(|| b.element(scale)),
    };
    let made = b.dequantize(x, scale, zero, to)?;
    if node.int("block_size", 0)? == 0 {
        let axis = node.axis(node.int("axis", 1)?, b.rank(x)).unwrap_or(0);
        let coded = Coded { codes: x, scale: node.input(1)?, zero: node.optional(2), axis };
        b.remember_coded(made, coded);
    }
    Ok(vec![made])
}

fn dynamic(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    Ok(dynamic_bytes(b, node.input(0)?)?.to_vec())
}

/// Bytes with a scale and a zero point that the range of the elements gives.
pub(super) fn dynamic_bytes(b: &mut Builder, x: TensorId) -> Result<[TensorId; 3]> {
    let axes: Vec<usize> = (0..b.rank(x)).collect();
    let rule = LineCodes { divide: true, codes: Some(DType::U8), ..LineCodes::new(CodeRule::Whole, 0, 255) };
    match b.codes_of_lines(x, &axes, rule)?.as_deref() {
        Some([scale, zero, codes]) => {
            let (scale, zero) = (b.reshape(*scale, &[])?, b.cast(*zero, DType::U8)?);
            Ok([*codes, scale, b.reshape(zero, &[])?])
        }
        _ => Err(b.invalid("dynamic quantization of a whole tensor has a scale, a zero point and codes")),
    }
}

/// A scale or zero point of the rows of a matrix, in a form that is broadcast to it.
pub(super) fn of_rows(b: &mut Builder, value: TensorId, matrix: TensorId) -> Result<TensorId> {
    match *b.dims(value) {
        [1] => b.reshape(value, &[]),
        [rows] if b.rank(matrix) > 1 => b.reshape(value, &[rows, 1]),
        _ => Ok(value),
    }
}

fn matmul_integer(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    let x_zero = node.optional(2).map(|zero| of_rows(b, zero, x)).transpose()?;
    Ok(vec![b.product_of_bytes(x, x_zero, y, node.optional(3))?])
}

fn matmul(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, y) = (node.input(0)?, node.input(3)?);
    let (x_scale, x_zero) = (of_rows(b, node.input(1)?, x)?, of_rows(b, node.input(2)?, x)?);
    let sums = b.product_of_bytes(x, Some(x_zero), y, node.optional(5))?;
    let y_scale = node.input(4)?;
    let (scale, zero) = (node.input(6)?, node.optional(7));
    Ok(vec![requantized(b, sums, [x_scale, y_scale, scale], zero)?])
}

/// Sums times the scales of what was multiplied, quantized to the scale of the result.
fn requantized(
    b: &mut Builder,
    sums: TensorId,
    [x_scale, y_scale, scale]: [TensorId; 3],
    zero: Option<TensorId>,
) -> Result<TensorId> {
    let floats = b.as_f32(sums)?;
    let (x_scale, y_scale) = (b.as_f32(x_scale)?, b.as_f32(y_scale)?);
    let factor = b.binary(Function::Mul, x_scale, y_scale)?;
    let products = b.binary(Function::Mul, floats, factor)?;
    let to = zero.map_or(DType::U8, |zero| b.element(zero).storage());
    b.quantize(products, scale, zero, to)
}

pub(super) fn conv(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, w) = (node.input(0)?, node.input(3)?);
    let (x_scale, w_scale, scale) = (node.input(1)?, node.input(4)?, node.input(6)?);
    let (w_zero, zero) = (node.optional(5), node.optional(7));
    let (sliding, groups) = convolution(b, node, x, w)?;
    let x_zero = node.optional(2);
    let to = zero.map_or(DType::U8, |zero| b.element(zero).storage());
    let plain = b.element(w) == ElementType::Of(DType::I8)
        && w_zero.is_none_or(|zero| b.ints(zero).is_some_and(|all| all.iter().all(|v| *v == 0)));
    let known = |zero: Option<TensorId>| {
        zero.map_or(Some(0), |zero| b.ints(zero).filter(|all| all.len() == 1).map(|all| all[0]))
    };
    if let (true, Some(x_zero), Some(zero), 3..=4) = (plain, known(x_zero), known(zero), b.rank(x)) {
        let scales = [b.as_f32(x_scale)?, b.as_f32(w_scale)?, b.as_f32(scale)?];
        let factor = b.map(&scales, DType::F32, |p, x| {
            let product = p.call(Function::Mul, &x[..2]);
            p.call(Function::Div, &[product, x[2]])
        })?;
        let count = b.tensor(factor).elements();
        let factor = b.reshape(factor, &[count])?;
        let (x_zero, zero) = (x_zero as i32, zero as i32);
        let made = b.conv_to_bytes([x, w, factor], node.optional(8), x_zero, (to, zero), &sliding, groups)?;
        return Ok(vec![made]);
    }
    let mut sums = b.conv_of_bytes(x, x_zero, w, w_zero, &sliding, groups)?;
    if let Some(bias) = node.optional(8) {
        sums = b.add_to_channels(sums, bias)?;
    }
    let rank = b.rank(sums);
    let w_scale = match *b.dims(w_scale) {
        [filters] if filters > 1 => {
            let mut column = vec![1; rank - 1];
            column[0] = filters;
            b.reshape(w_scale, &column)?
        }
        _ => b.reshape(w_scale, &[])?,
    };
    let one = |b: &mut Builder, id| b.reshape(id, &[]);
    let (x_scale, scale) = (one(b, x_scale)?, one(b, scale)?);
    let zero = zero.map(|zero| one(b, zero)).transpose()?;
    let zero = match zero {
        Some(zero) => zero,
        None => b.values(DType::U8, &[], &Values::Int(vec![0]))?,
    };
    Ok(vec![requantized(b, sums, [x_scale, w_scale, scale], Some(zero))?])
}
