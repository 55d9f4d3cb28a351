//! Products of matrices: of floats, of 8-bit integers, and with weights of 4 or 8 bits.

use halite_formats::pte::{XnnNode, XnnQuantization as Quantization, XnnType};
use halite_ops::{
    DType,
    expression::{Function as F, Type},
    reduce::ReduceKind,
};

use super::{
    Held, Result, Values, dynamic,
    numbers::{self, element_of, integer_of, range, rounded},
    packed_product::{self, Product},
};
use crate::graph::{ElementType, TensorId};

const TRANSPOSED_WEIGHTS: u32 = 1;
const TRANSPOSED_LEFT: u32 = 2;
const AS_MATRIX: u32 = 4;

pub(super) fn fully_connected(v: &mut Values<'_>, node: &XnnNode) -> Result<()> {
    let product = Product {
        x: v.operand(node, 0)?,
        filter: v.operand(node, 1)?,
        bias: v.optional(node, 2),
        by_outputs: node.flags & TRANSPOSED_WEIGHTS == 0,
    };
    let weights = v.about(product.filter);
    if weights.dims.len() != 2 {
        return Err(v.builder.invalid(format!("weights of {:?} are no matrix", weights.dims)));
    }
    if node.flags & AS_MATRIX == 0 {
        if let Some(made) = in_bytes(v, node, &product)? {
            return v.finish_held(node, made);
        }
        let input = activations(v, &product)?;
        if let Some(made) = packed_product::compute(v, &product, &input)? {
            return with_bias(v, node, &product, made);
        }
        if let Some(made) = dynamic_bytes(v, &product, &input)? {
            return with_bias(v, node, &product, made);
        }
    }
    let (x, filter) = (v.floats(product.x)?, v.floats(product.filter)?);
    let (mut x, filter) = (x.in_order(&mut v.builder)?, filter.in_order(&mut v.builder)?);
    if node.flags & AS_MATRIX != 0 {
        let inputs = u64::from(weights.dims[usize::from(product.by_outputs)]).max(1);
        let rows = v.builder.tensor(x).count() / inputs;
        x = v.builder.reshape_to(x, &[rows, inputs.into()])?;
    }
    let made = v.builder.product(x, filter, product.by_outputs)?;
    with_bias(v, node, &product, made)
}

/// What is multiplied: as it is held, or quantized now for data that were written so.
fn activations(v: &mut Values<'_>, product: &Product) -> Result<Held> {
    let held = v.value(product.x)?;
    if v.about(product.x).quantized_late { dynamic::quantized(&mut v.builder, &held, 1) } else { Ok(held) }
}

fn with_bias(v: &mut Values<'_>, node: &XnnNode, product: &Product, made: TensorId) -> Result<()> {
    let made = match product.bias {
        Some(bias) => {
            let bias = v.floats(bias)?.in_order(&mut v.builder)?;
            let element = v.builder.element(made);
            let bias = v.builder.cast(bias, element)?;
            v.builder.binary(F::Add, made, bias)?
        }
        None => made,
    };
    let made = Held::plain(&v.builder, made);
    v.finish(node, made)
}

/// What sums of products with the weights are multiplied with: `scale` times those of the weights, for each filter. None
/// where the weights have zero points, or scales along another dimension.
pub(super) fn factors(
    v: &mut Values<'_>,
    filter: usize,
    axis: usize,
    scale: f32,
) -> Result<Option<TensorId>> {
    let about = v.about(filter);
    let Some(count) = about.dims.get(axis).copied() else { return Ok(None) };
    let scales = match &about.quantization {
        Quantization::Tensor { scale: own, zero: 0 } => {
            return v.builder.float(DType::F32, f64::from(scale * own)).map(Some);
        }
        Quantization::Channels { scales, axis: own } if *own == axis => v.scales(scales, u64::from(count))?,
        _ => return Ok(None),
    };
    let made =
        v.builder.map(&[scales], DType::F32, |p, x| p.call(F::Mul, &[x[0], numbers::number(scale)]))?;
    Ok(Some(made))
}

/// Sums of the weights of each output, `i32`.
fn columns(v: &mut Values<'_>, weights: TensorId, outputs: usize) -> Result<TensorId> {
    let wide = v.builder.cast(weights, DType::I32)?;
    v.builder.reduce(ReduceKind::Sum, wide, &[1 - outputs], false)
}

/// A product of integers with one zero point, rounded to integers again.
fn in_bytes(v: &mut Values<'_>, node: &XnnNode, product: &Product) -> Result<Option<Held>> {
    let to = v.result(node)?;
    let (Quantization::Tensor { scale, zero }, Quantization::Tensor { scale: out_scale, zero: out_zero }) =
        (&v.about(product.x).quantization, &v.about(to).quantization)
    else {
        return Ok(None);
    };
    let [input, own, out] = [product.x, product.filter, to].map(|id| element_of(v.about(id).datatype));
    let i8 = ElementType::Of(DType::I8);
    let bias = product.bias.map(|id| element_of(v.about(id).datatype));
    let sums = bias.is_none_or(|element| element == ElementType::Of(DType::I32));
    if input != i8 || own != i8 || out.storage().size() != 1 || !sums {
        return Ok(None);
    }
    let Some(factor) = factors(v, product.filter, product.outputs(), scale / out_scale)? else {
        return Ok(None);
    };
    let x = v.value(product.x)?.in_order(&mut v.builder)?;
    let weights = v.value(product.filter)?.tensor;
    let made = v.builder.product(x, weights, product.by_outputs)?;
    let columns = columns(v, weights, product.outputs())?;
    let mut offset = v
        .builder
        .map(&[columns], DType::I32, |p, x| p.call(F::Mul, &[x[0], numbers::integer(zero.wrapping_neg())]))?;
    if let Some(bias) = product.bias {
        let bias = v.value(bias)?.in_order(&mut v.builder)?;
        offset = v.builder.binary(F::Add, offset, bias)?;
    }
    let to = out.storage();
    let kept = match node.limits {
        Some(limits) => {
            let [least, most] = limits.map(|limit| integer_of(limit, *out_scale, *out_zero, to));
            (least, most)
        }
        None => range(to),
    };
    let made = v.builder.map(&[made, offset, factor], to, |p, x| {
        let sum = p.call(F::Add, &[x[0], x[1]]);
        let sum = p.cast(Type::Of(DType::F32), sum);
        let steps = p.call(F::Mul, &[sum, x[2]]);
        rounded(p, steps, *out_zero, kept, to)
    })?;
    Ok(Some(Held::plain(&v.builder, made)))
}

/// A product of dynamically quantized rows with 8-bit weights: exact sums of integers, with scales.
fn dynamic_bytes(v: &mut Values<'_>, product: &Product, input: &Held) -> Result<Option<TensorId>> {
    let about = v.about(product.filter);
    let (Some(rows), XnnType::I8 | XnnType::U4) = (input.dynamic, about.datatype) else { return Ok(None) };
    // Scales have to be those of whole rows.
    if v.builder.sizes(rows.scale).last().is_none_or(|last| *last != 1) {
        return Ok(None);
    }
    let Some(factor) = factors(v, product.filter, product.outputs(), 1.0)? else { return Ok(None) };
    let weights = v.signed(product.filter)?;
    let sums = v.builder.product(input.tensor, weights, product.by_outputs)?;
    let columns = columns(v, weights, product.outputs())?;
    dynamic::of_sums(&mut v.builder, sums, rows, columns, factor).map(Some)
}

pub(super) fn batch_product(v: &mut Values<'_>, node: &XnnNode) -> Result<()> {
    let (a, b) = (v.operand(node, 0)?, v.operand(node, 1)?);
    let (a, b) = (v.floats(a)?.in_order(&mut v.builder)?, v.floats(b)?.in_order(&mut v.builder)?);
    let a = if node.flags & TRANSPOSED_LEFT == 0 { a } else { v.builder.swap_last(a)? };
    let made = v.builder.product(a, b, node.flags & TRANSPOSED_WEIGHTS != 0)?;
    let made = Held::plain(&v.builder, made);
    v.finish(node, made)
}

/// Queries times factors, times keys, with the mask added; the softmax of it times values.
pub(super) fn attention(v: &mut Values<'_>, node: &XnnNode) -> Result<()> {
    let mut parts = Vec::new();
    for i in 0..5 {
        let part = match v.optional(node, i) {
            Some(id) => Some(v.floats(id)?.in_order(&mut v.builder)?),
            None => None,
        };
        parts.push(part);
    }
    let [Some(q), Some(k), Some(values), scale, mask] = parts[..] else {
        return Err(v.builder.invalid("attention without queries, keys or values"));
    };
    let q = match scale {
        Some(scale) => v.builder.binary(F::Mul, q, scale)?,
        None => q,
    };
    let scores = v.builder.product(q, k, true)?;
    let scores = match mask {
        Some(mask) => v.builder.binary(F::Add, scores, mask)?,
        None => scores,
    };
    let axis = v.builder.rank(scores).saturating_sub(1);
    let weights = v.builder.softmax(scores, axis, false)?;
    let made = v.builder.matmul(weights, values)?;
    let made = Held::plain(&v.builder, made);
    v.finish(node, made)
}
