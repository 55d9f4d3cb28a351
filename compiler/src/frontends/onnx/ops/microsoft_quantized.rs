//! Operators of `com.microsoft` on quantized tensors.

use halite_ops::{
    DType, Operation, Values,
    expression::{Function, Operand, Scalar, Type},
    pad::Border,
    quant_matmul::QuantMatMul,
    reduce::ReduceKind,
};

use super::{
    Import, NodeView, Result,
    linear::scaled,
    pool,
    quantize::{dynamic_bytes, of_rows},
    softmax,
};
use crate::{
    build::{Builder, Range},
    graph::{ElementType, TensorId, elements},
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

/// The weights of `MatMulNBits`: their sizes, and where they come from.
struct Weights {
    rows: u64,
    length: u64,
    block: u64,
    bits: u32,
    blocks: u64,
    packed: TensorId,
    scales: TensorId,
    /// A byte for each block.
    zeros: Option<TensorId>,
}

fn matmul_of_bits(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let size = |name, default| {
        let value = node.int(name, default)?;
        u64::try_from(value).ok().filter(|v| *v > 0).ok_or_else(|| node.invalid(format!("{name} is {value}")))
    };
    let (length, rows, bits, block) =
        (size("K", 0)?, size("N", 0)?, size("bits", 4)?, size("block_size", 32)?);
    if !matches!(bits, 4 | 8) || block % 8 != 0 || node.optional(4).is_some() {
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
    let zeros = match node.optional(3) {
        None => None,
        Some(zeros) if b.element(zeros) == ElementType::Of(DType::U8) => {
            let each = b.tensor(zeros).elements() / rows;
            let zeros = b.reshape(zeros, &[rows, each])?;
            let apart = if bits == 4 { nibbles(b, zeros)? } else { zeros };
            let part = Range { start: 0, step: 1, count: blocks };
            Some(b.slice(apart, &[Range::all(rows), part])?)
        }
        Some(_) => return Err(node.unsupported("zero points of weights that are floats; there are bytes")),
    };
    let weights = Weights { rows, length, block, bits, blocks, packed, scales, zeros };
    let mut made = weights.product(b, node, x)?;
    if let Some(bias) = node.optional(5) {
        made = b.binary(Function::Add, made, bias)?;
    }
    Ok(vec![made])
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

impl Weights {
    fn product(&self, b: &mut Builder, node: &NodeView<'_>, x: TensorId) -> Result<TensorId> {
        let (element, mut dims) = (b.element(x), b.dims(x).to_vec());
        if dims.last() != Some(&self.length) {
            return Err(node.invalid(format!("{} has no rows of {}", b.describe(&[x]), self.length)));
        }
        let rows = elements(&dims[..dims.len() - 1]);
        let half = element == ElementType::Of(DType::F16);
        let lhs = if half { x } else { b.as_f32(x)? };
        let lhs = b.reshape(lhs, &[rows, self.length])?;
        let (k, more) = (self.blocks * self.block, (self.blocks * self.block - self.length) as i64);
        let lhs = b.pad(lhs, &[(0, 0), (0, more)], Border::Constant, 0.0)?;
        let made = if self.block.is_multiple_of(32) {
            let dtype = if half { DType::F16 } else { DType::F32 };
            let own = b.element(self.scales).storage();
            let scales = if own == DType::F16 { own } else { DType::F32 };
            let scale = b.cast(self.scales, scales)?;
            let operation = Operation::QuantMatMul(QuantMatMul {
                group: self.block,
                bits: self.bits,
                lhs: dtype,
                scales,
                out: dtype,
                zero_points: self.zeros.is_some(),
                ..QuantMatMul::new(rows, [self.rows, k])
            });
            let inputs: Vec<_> = [lhs, self.packed, scale].into_iter().chain(self.zeros).collect();
            b.kernel1(operation, &inputs, dtype.into(), &[rows, self.rows])?
        } else {
            let weights = self.dequantized(b)?;
            let lhs = b.as_f32(lhs)?;
            b.product(lhs, weights, true)?
        };
        if let Some(last) = dims.last_mut() {
            *last = self.rows;
        }
        let made = b.reshape(made, &dims)?;
        b.cast(made, element)
    }

    /// The weights as `f32`, for blocks that no kernel takes.
    fn dequantized(&self, b: &mut Builder) -> Result<TensorId> {
        let apart = if self.bits == 4 { nibbles(b, self.packed)? } else { self.packed };
        let apart = b.reshape(apart, &[self.rows, self.blocks, self.block])?;
        let scales = b.as_f32(self.scales)?;
        let scales = b.reshape(scales, &[self.rows, self.blocks, 1])?;
        let zeros = match self.zeros {
            Some(zeros) => b.reshape(zeros, &[self.rows, self.blocks, 1])?,
            None => b.values(DType::U8, &[], &Values::Int(vec![1 << (self.bits - 1)]))?,
        };
        let made = b.map(&[apart, scales, zeros], DType::F32, |p, x| {
            let [value, zero] = [x[0], x[2]].map(|x| p.cast(Type::Of(DType::I32), x));
            p.call(Function::Dequantize, &[value, x[1], zero])
        })?;
        b.reshape(made, &[self.rows, self.blocks * self.block])
    }
}
