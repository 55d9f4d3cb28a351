//! Operators of `com.microsoft` on quantized tensors.

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
    pad::Border,
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    linear::scaled,
    pool,
    quantize::{dynamic_bytes, of_rows},
    softmax,
};
use crate::{
    build::{Builder, QuantWeights, Range},
    graph::{ElementType, TensorId},
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[
    ("DynamicQuantizeMatMul", dynamic_matmul),
    ("MatMulIntegerToFloat", matmul_to_float),
    ("MatMulNBits", matmul_of_bits),
    ("QGemm", gemm),
    ("QLinearAdd", |b, node| binary(b, node, Function::Add)),
    ("QLinearAveragePool", average_pool),
    ("QLinearConcat", concat),
    ("QLinearGlobalAveragePool", global_average_pool),
    ("QLinearLeakyRelu", leaky_relu),
    ("QLinearMul", |b, node| binary(b, node, Function::Mul)),
    ("QLinearSigmoid", |b, node| unary(b, node, |b, x| b.unary(Function::Sigmoid, x))),
    ("QLinearSoftmax", softmax),
    ("QLinearWhere", choice),
];

/// A quantized tensor in inputs from `first` on: itself, its scale, its zero point.
fn floats(b: &mut Builder, node: &NodeView<'_>, first: usize) -> Result<TensorId> {
    let (x, scale, zero) = (node.input(first)?, node.input(first + 1)?, node.optional(first + 2));
    let one = |b: &mut Builder, id: TensorId| b.reshape(id, &[]);
    let scale = one(b, scale)?;
    let zero = zero.map(|zero| one(b, zero)).transpose()?;
    b.dequantize(x, scale, zero, DType::F32.into())
}

/// A result with the scale and zero point of inputs from `first` on; `like` has its type where there is no zero point.
fn bytes(
    b: &mut Builder,
    node: &NodeView<'_>,
    made: TensorId,
    first: usize,
    like: TensorId,
) -> Result<TensorId> {
    let (scale, zero) = (node.input(first)?, node.optional(first + 1));
    let to = b.element(zero.unwrap_or(like)).storage();
    let scale = b.reshape(scale, &[])?;
    let zero = zero.map(|zero| b.reshape(zero, &[])).transpose()?;
    b.quantize(made, scale, zero, to)
}

fn binary(b: &mut Builder, node: &NodeView<'_>, function: Function) -> Result<Vec<TensorId>> {
    let parts = [floats(b, node, 0)?, floats(b, node, 3)?];
    let made = b.binary(function, parts[0], parts[1])?;
    Ok(vec![bytes(b, node, made, 6, node.input(0)?)?])
}

fn unary(
    b: &mut Builder,
    node: &NodeView<'_>,
    function: impl FnOnce(&mut Builder, TensorId) -> Result<TensorId>,
) -> Result<Vec<TensorId>> {
    let x = floats(b, node, 0)?;
    let made = function(b, x)?;
    Ok(vec![bytes(b, node, made, 3, node.input(0)?)?])
}

fn leaky_relu(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let alpha = Operand::Constant(Scalar::Float(node.float("alpha", 0.01)?.into()));
    unary(b, node, |b, x| b.map(&[x], DType::F32, |p, x| p.call(Function::Prelu, &[x[0], alpha])))
}

fn global_average_pool(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let last = node.flag("channels_last", false)?;
    unary(b, node, |b, x| {
        let rank = b.rank(x);
        let axes: Vec<usize> = if last { (1..rank.max(2) - 1).collect() } else { (2..rank).collect() };
        b.reduce(ReduceKind::Mean, x, &axes, true)
    })
}

fn average_pool(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let last = node.flag("channels_last", false)?;
    unary(b, node, |b, x| {
        let rank = b.rank(x);
        if !last || rank < 3 {
            return Ok(pool::average_pool(b, &node.over(x, node.version))?[0]);
        }
        let forth: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        let back: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
        let x = b.transpose(x, &forth)?;
        let made = pool::average_pool(b, &node.over(x, node.version))?[0];
        b.transpose(made, &back)
    })
}

/// An attribute has the version of ONNX's operator that it means.
fn softmax(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let version = node.int("opset", 13)?;
    unary(b, node, |b, x| Ok(softmax::softmax(b, &node.over(x, version), false)?[0]))
}

fn choice(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let parts = [floats(b, node, 1)?, floats(b, node, 4)?];
    let made = b.select(node.input(0)?, parts[0], parts[1])?;
    Ok(vec![bytes(b, node, made, 7, node.input(1)?)?])
}

fn concat(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let count = node.inputs.len().saturating_sub(2) / 3;
    let parts: Result<Vec<TensorId>> = (0..count).map(|i| floats(b, node, 2 + 3 * i)).collect();
    let parts = parts?;
    let like = node.input(2)?;
    let axis = node.axis(node.int("axis", 1)?, b.rank(like))?;
    let made = b.concat(&parts, axis)?;
    Ok(vec![bytes(b, node, made, 0, like)?])
}

/// A factor of columns, or of all.
fn of_columns(b: &mut Builder, value: TensorId) -> Result<TensorId> {
    if b.tensor(value).elements() == 1 { b.reshape(value, &[]) } else { Ok(value) }
}

/// Sums times scales, and a bias.
pub(super) fn to_float(
    b: &mut Builder,
    sums: TensorId,
    [x_scale, y_scale]: [TensorId; 2],
    bias: Option<TensorId>,
) -> Result<TensorId> {
    let element = b.element(x_scale);
    let (floats, x_scale, y_scale) = (b.as_f32(sums)?, b.as_f32(x_scale)?, b.as_f32(y_scale)?);
    let factor = b.binary(Function::Mul, x_scale, y_scale)?;
    let mut made = b.binary(Function::Mul, floats, factor)?;
    if let Some(bias) = bias {
        let bias = b.as_f32(bias)?;
        made = b.binary(Function::Add, made, bias)?;
    }
    b.cast(made, element)
}

fn matmul_to_float(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    let (x_scale, y_scale) = (of_rows(b, node.input(2)?, x)?, of_columns(b, node.input(3)?)?);
    let x_zero = node.optional(4).map(|zero| of_rows(b, zero, x)).transpose()?;
    let y_zero = node.optional(5).map(|zero| of_columns(b, zero)).transpose()?;
    let sums = b.product_of_bytes(x, x_zero, y, y_zero)?;
    Ok(vec![to_float(b, sums, [x_scale, y_scale], node.optional(6))?])
}

fn dynamic_matmul(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let y = node.input(1)?;
    let [x, x_scale, x_zero] = dynamic_bytes(b, node.input(0)?)?;
    let y_scale = of_columns(b, node.input(2)?)?;
    let y_zero = node.optional(3).map(|zero| of_columns(b, zero)).transpose()?;
    let sums = b.product_of_bytes(x, Some(x_zero), y, y_zero)?;
    Ok(vec![to_float(b, sums, [x_scale, y_scale], node.optional(4))?])
}

/// `alpha * a * b + c` of bytes; `c` has the scale of the product.
fn gemm(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (mut x, mut y) = (node.input(0)?, node.input(3)?);
    if node.flag("transA", false)? {
        x = b.swap_last(x)?;
    }
    if node.flag("transB", false)? {
        y = b.swap_last(y)?;
    }
    let (x_scale, y_scale) = (b.reshape(node.input(1)?, &[])?, of_columns(b, node.input(4)?)?);
    let x_zero = node.optional(2).map(|zero| b.reshape(zero, &[])).transpose()?;
    let y_zero = node.optional(5).map(|zero| of_columns(b, zero)).transpose()?;
    let mut sums = b.product_of_bytes(x, x_zero, y, y_zero)?;
    if let Some(c) = node.optional(6) {
        sums = b.binary(Function::Add, sums, c)?;
    }
    let made = to_float(b, sums, [x_scale, y_scale], None)?;
    let made = scaled(b, made, node.float("alpha", 1.0)?)?;
    if node.optional(7).is_none() {
        return Ok(vec![made]);
    }
    Ok(vec![bytes(b, node, made, 7, node.input(0)?)?])
}

fn matmul_of_bits(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let size = |name, default| {
        let value = node.int(name, default)?;
        u64::try_from(value).ok().filter(|v| *v > 0).ok_or_else(|| node.invalid(format!("{name} is {value}")))
    };
    let (length, rows, bits, block) =
        (size("K", 0)?, size("N", 0)?, size("bits", 4)?, size("block_size", 32)?);
    if !matches!(bits, 2 | 4 | 8) || block % 8 != 0 || node.optional(4).is_some() {
        return Err(
            node.unsupported(format!("weights of {bits} bits in blocks of {block}, or with groups by index"))
        );
    }
    let blocks = length.div_ceil(block);
    let (packed, scales) = (node.input(1)?, node.input(2)?);
    let bytes = blocks.checked_mul(block).and_then(|codes| codes.checked_mul(bits)).map(|bits| bits / 8);
    let bytes = bytes.ok_or_else(|| node.invalid(format!("K is {length}, more than there can be")))?;
    let packed = b.reshape(packed, &[rows, bytes])?;
    let scales = b.reshape(scales, &[rows, blocks])?;
    let bits = bits as u32;
    let (zeros, floats) = match node.optional(3) {
        Some(zeros) if b.element(zeros) == ElementType::Of(DType::U8) => {
            (Some(zeros_of_blocks(b, zeros, bits, [rows, blocks])?), None)
        }
        floats => (None, floats),
    };
    let weights = QuantWeights { packed, bits, length: blocks * block, scales, zeros, group: block };
    let weights = if bits == 2 { widened(b, weights)? } else { weights };
    let lhs = whole_blocks(b, node, x, [length, weights.length])?;
    let mut made = b.quant_product(lhs, &weights)?;
    if let Some(zeros) = floats {
        let zeros = b.reshape(zeros, &[rows, blocks])?;
        made = moved(b, made, lhs, &weights, zeros)?;
    }
    if let Some(bias) = node.optional(5) {
        made = b.binary(Function::Add, made, bias)?;
    }
    Ok(vec![made])
}

/// Zero points of blocks as bytes; each row of them begins with a byte.
fn zeros_of_blocks(
    b: &mut Builder,
    zeros: TensorId,
    bits: u32,
    [rows, blocks]: [u64; 2],
) -> Result<TensorId> {
    let each = b.tensor(zeros).elements() / rows;
    let zeros = b.reshape(zeros, &[rows, each])?;
    let apart = if bits == 8 { zeros } else { b.bits_apart(zeros, bits)? };
    let part = Range { start: 0, step: 1, count: blocks };
    b.slice(apart, &[Range::all(rows), part])
}

/// Rows of a length, with zeros up to whole blocks.
fn whole_blocks(
    b: &mut Builder,
    node: &NodeView<'_>,
    x: TensorId,
    [length, whole]: [u64; 2],
) -> Result<TensorId> {
    let mut sizes = b.sizes(x).to_vec();
    match sizes.last_mut() {
        Some(last) if last.exact() == length => *last = length.into(),
        _ => return Err(node.invalid(format!("{} has no rows of {length}", b.describe(&[x])))),
    }
    let x = b.reshape_to(x, &sizes)?;
    let mut borders = vec![(0, 0); sizes.len()];
    if let Some(last) = borders.last_mut() {
        last.1 = (whole - length) as i64;
    }
    b.pad(x, &borders, Border::Constant, 0.0)
}

/// Weights of 2 bits as weights of 4, which kernels take.
fn widened(b: &mut Builder, weights: QuantWeights) -> Result<QuantWeights> {
    let codes = b.bits_apart(weights.packed, 2)?;
    let [rows, length] = *b.dims(codes) else { return Err(b.invalid("codes are a matrix")) };
    let pairs = b.reshape(codes, &[rows, length / 2, 2])?;
    let mut halves = Vec::new();
    for place in 0..2 {
        let own = Range { start: place, step: 1, count: 1 };
        let half = b.slice(pairs, &[Range::all(rows), Range::all(length / 2), own])?;
        halves.push(b.reshape(half, &[rows, length / 2])?);
    }
    let four = Operand::Constant(Scalar::Int(4, DType::U8));
    let packed = b.map(&halves, DType::U8, |p, x| {
        let high = p.call(Function::Shl, &[x[1], four]);
        p.call(Function::Or, &[x[0], high])
    })?;
    let zeros = match weights.zeros {
        Some(zeros) => zeros,
        None => {
            let middle = b.values(DType::U8, &[], &Values::Int(vec![2]))?;
            let shape = b.dims(weights.scales).to_vec();
            b.expand(middle, &shape)?
        }
    };
    Ok(QuantWeights { packed, bits: 4, zeros: Some(zeros), ..weights })
}

/// A product whose zero points are floats: codes are multiplied as if these were the middle of the codes, and what the sums of blocks
/// make of the difference is taken off.
fn moved(
    b: &mut Builder,
    made: TensorId,
    lhs: TensorId,
    weights: &QuantWeights,
    zeros: TensorId,
) -> Result<TensorId> {
    let middle = if weights.zeros.is_some() { 2.0 } else { f64::from(1 << (weights.bits - 1)) };
    let middle = Operand::Constant(Scalar::Float(middle));
    let (zeros, scales) = (b.as_f32(zeros)?, b.as_f32(weights.scales)?);
    let offsets = b.map(&[zeros, scales], DType::F32, |p, x| {
        let apart = p.call(Function::Sub, &[x[0], middle]);
        p.call(Function::Mul, &[apart, x[1]])
    })?;
    let (element, sizes) = (b.element(made), b.sizes(made).to_vec());
    let count: Size = sizes[..sizes.len() - 1].iter().product();
    let blocks = weights.length / weights.group;
    let lhs = b.as_f32(lhs)?;
    let lhs = b.reshape_to(lhs, &[count, blocks.into(), weights.group.into()])?;
    let sums = b.reduce(ReduceKind::Sum, lhs, &[2], false)?;
    let off = b.product(sums, offsets, true)?;
    let off = b.reshape_to(off, &sizes)?;
    let made = b.as_f32(made)?;
    let made = b.binary(Function::Sub, made, off)?;
    b.cast(made, element)
}

/// The halves of bytes, the lower first: twice as many columns.
pub(super) fn nibbles(b: &mut Builder, x: TensorId) -> Result<TensorId> {
    let [rows, columns] = *b.sizes(x) else { return Err(b.invalid("codes are a matrix")) };
    let column = b.reshape_to(x, &[rows, columns, 1.into()])?;
    let shifts = b.values(DType::U8, &[2], &Values::Int(vec![0, 4]))?;
    let low = Operand::Constant(Scalar::Int(15, DType::U8));
    let apart = b.map(&[column, shifts], DType::U8, |p, x| {
        let shifted = p.call(Function::Shr, x);
        p.call(Function::And, &[shifted, low])
    })?;
    b.reshape_to(apart, &[rows, columns * 2])
}
