//! Operators of `com.microsoft` that ONNX Runtime's optimizer writes for what it fused.

use halite_ops::{
    DType,
    expression::{Expression, Function, Operand, Scalar, Type},
    norm::NormKind,
};

use super::{
    Import, NodeView, Result,
    attention::{join_heads, split_heads},
    conv::convolution,
    linear::scaled,
};
use crate::{
    build::{Builder, Normalization},
    graph::TensorId,
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[
    ("BiasGelu", |b, node| gelu(b, node, Function::Gelu)),
    ("FastGelu", |b, node| gelu(b, node, Function::GeluTanh)),
    ("FusedConv", fused_conv),
    ("FusedGemm", fused_gemm),
    ("FusedMatMul", fused_matmul),
    ("Gelu", |b, node| gelu(b, node, Function::Gelu)),
    ("QuickGelu", quick_gelu),
    ("RotaryEmbedding", rotary_embedding),
    ("SkipLayerNormalization", |b, node| skip_norm(b, node, NormKind::Group)),
    ("SkipSimplifiedLayerNormalization", |b, node| skip_norm(b, node, NormKind::Rms)),
];

/// What ONNX Runtime adds to ONNX's own domain.
pub(super) const OPS: &[(&str, Import)] = &[("SimplifiedLayerNormalization", simplified_norm)];

fn number(value: f32) -> Operand {
    Operand::Constant(Scalar::Float(value.into()))
}

fn gelu(b: &mut Builder, node: &NodeView<'_>, function: Function) -> Result<Vec<TensorId>> {
    let mut x = node.input(0)?;
    if let Some(bias) = node.optional(1) {
        x = b.binary(Function::Add, x, bias)?;
    }
    Ok(vec![b.unary(function, x)?])
}

fn quick_gelu(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, alpha) = (node.input(0)?, node.float("alpha", 1.702)?);
    let element = b.element(x);
    let made = b.map(&[x], element, |p, x| {
        let product = p.call(Function::Mul, &[x[0], number(alpha)]);
        let gate = p.call(Function::Sigmoid, &[product]);
        p.call(Function::Mul, &[x[0], gate])
    })?;
    Ok(vec![made])
}

/// The sum of two tensors and a bias, normalized; the sum is the fourth output.
fn skip_norm(b: &mut Builder, node: &NodeView<'_>, kind: NormKind) -> Result<Vec<TensorId>> {
    let (mut sum, skip, scale) = (node.input(0)?, node.input(1)?, node.input(2)?);
    sum = b.binary(Function::Add, sum, skip)?;
    let with_shift = kind == NormKind::Group;
    let (shift, bias) =
        if with_shift { (node.optional(3), node.optional(4)) } else { (None, node.optional(3)) };
    if let Some(bias) = bias {
        sum = b.binary(Function::Add, sum, bias)?;
    }
    if node.is_used(1) || node.is_used(2) {
        return Err(node.unsupported("the means and deviations of a normalization that was fused"));
    }
    let rank = b.rank(sum);
    let epsilon = node.float("epsilon", 1e-12)?;
    let norm = Normalization { kind, first: rank.saturating_sub(1), end: rank, groups: 1, epsilon };
    let made = b.normalize(sum, Some(scale), shift, norm)?;
    Ok(vec![made, sum, sum, sum])
}

fn simplified_norm(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, scale) = (node.input(0)?, node.input(1)?);
    let rank = b.rank(x);
    let first = node.axis(node.int("axis", -1)?, rank)?;
    if node.is_used(1) {
        return Err(node.unsupported("the deviations of SimplifiedLayerNormalization"));
    }
    let epsilon = node.float("epsilon", 1e-5)?;
    let norm = Normalization { kind: NormKind::Rms, first, end: rank, groups: 1, epsilon };
    Ok(vec![b.normalize(x, Some(scale), None, norm)?])
}

/// A function of one value in an expression.
type Apply = Box<dyn Fn(&mut Expression, Operand) -> Operand>;

/// The function that a fused operator applies to its result.
pub(super) fn activated(b: &mut Builder, node: &NodeView<'_>, x: TensorId) -> Result<TensorId> {
    let name = node.string("activation", "")?;
    let given = node.floats("activation_params")?.unwrap_or_default();
    let first = given.first().copied();
    let second = given.get(1).copied();
    let of = |given: Option<f32>, default: f32| number(given.unwrap_or(default));
    let element = b.element(x);
    let apply: Apply = match name.as_str() {
        "" => return Ok(x),
        "Relu" => Box::new(|p, x| p.call(Function::Relu, &[x])),
        "Tanh" => Box::new(|p, x| p.call(Function::Tanh, &[x])),
        "Sigmoid" => Box::new(|p, x| p.call(Function::Sigmoid, &[x])),
        "LeakyRelu" => Box::new(move |p, x| p.call(Function::Prelu, &[x, of(first, 0.01)])),
        "Clip" => {
            Box::new(move |p, x| p.call(Function::Clip, &[x, of(first, f32::MIN), of(second, f32::MAX)]))
        }
        "HardSigmoid" => {
            Box::new(move |p, x| p.call(Function::HardSigmoid, &[x, of(first, 0.2), of(second, 0.5)]))
        }
        "HardSwish" => Box::new(|p, x| p.call(Function::HardSwish, &[x])),
        other => return Err(node.unsupported(format!("the activation '{other}'"))),
    };
    b.map(&[x], element, |p, x| apply(p, x[0]))
}

pub(super) fn fused_conv(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, w) = (node.input(0)?, node.input(1)?);
    let (sliding, groups) = convolution(b, node, x, w)?;
    let mut made = b.conv(x, w, node.optional(2), &sliding, groups)?;
    if let Some(more) = node.optional(3) {
        made = b.binary(Function::Add, made, more)?;
    }
    Ok(vec![activated(b, node, made)?])
}

fn fused_gemm(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let made = super::linear::gemm(b, node)?;
    Ok(vec![activated(b, node, made[0])?])
}

/// The first dimension becomes that of rows. The others of the batch lie between it and the columns, as `transBatchA`
/// says.
fn batch_before(b: &mut Builder, x: TensorId) -> Result<TensorId> {
    let rank = b.rank(x);
    if rank < 3 {
        return Ok(x);
    }
    let mut order: Vec<usize> = (1..rank).collect();
    order.insert(rank - 2, 0);
    b.transpose(x, &order)
}

pub(super) fn fused_matmul(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (mut x, mut y) = (node.input(0)?, node.input(1)?);
    if node.flag("transBatchA", false)? {
        x = batch_before(b, x)?;
    }
    if node.flag("transBatchB", false)? {
        y = batch_before(b, y)?;
    }
    if node.flag("transA", false)? && b.rank(x) > 1 {
        x = b.swap_last(x)?;
    }
    let transposed = node.flag("transB", false)? && b.rank(y) > 1;
    let made = b.product(x, y, transposed)?;
    Ok(vec![scaled(b, made, node.float("alpha", 1.0)?)?])
}

/// As ONNX's, with the positions before the tables, or the first of them alone.
fn rotary_embedding(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, positions) = (node.input(0)?, node.input(1)?);
    let tables = [node.input(2)?, node.input(3)?];
    let flat = b.rank(x) == 3;
    let half = b.sizes(tables[0]).last().map_or(0, |size| size.exact());
    let number_of = |name| Ok(u64::try_from(node.int(name, 0)?).unwrap_or(0));
    let heads = match (number_of("num_heads")?, b.sizes(x).last()) {
        (0, Some(width)) if half > 0 => width.exact() / (2 * half),
        (heads, _) => heads,
    };
    let apart = if flat { split_heads(b, node, x, heads)? } else { x };
    let [batch, _, len, dim] = *b.sizes(apart) else {
        return Err(node.invalid(format!("{} has no heads", b.describe(&[x]))));
    };
    let turned = match number_of("rotary_embedding_dim")? {
        0 => dim.exact(),
        some => some,
    };
    let positions = if b.tensor(positions).count() == 1 && batch * len != 1 {
        let rows = b.count_from(0, len)?;
        let first = b.cast(positions, DType::I64)?;
        let first = b.reshape(first, &[1, 1])?;
        let all = b.map(&[first, rows], DType::I64, |p, x| {
            let sum = p.call(Function::Add, x);
            p.cast(Type::Of(DType::I64), sum)
        })?;
        b.expand_to(all, &[batch, len])?
    } else {
        positions
    };
    let made = b.rotary(apart, positions, tables, turned, node.flag("interleaved", false)?)?;
    Ok(vec![if flat { join_heads(b, made)? } else { made }])
}
